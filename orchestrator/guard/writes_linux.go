package guard

import (
	"os"

	"golang.org/x/sys/unix"
)

// logFD is the supervisor's third extra descriptor, if its command is observed: see
// confine.Observe.
const logFD = 5

// Observes reports whether SandboxOptions.Writes learns what commands change.
func (s *Sandbox) Observes() bool { return s != nil && s.o.Writes != nil && s.parts.Seccomp }

// observe returns the log of one command, nil if it is not observed, and the function to call
// when it has ended.
func (s *Sandbox) observe() (log *os.File, ended func()) {
	if !s.Observes() || s.o.Confine == ConfineReadOnly {
		return nil, func() {}
	}
	l := new(writeLog)
	if fd, err := unix.MemfdCreate("anamnesis-writes", unix.MFD_CLOEXEC); err == nil {
		l.file = os.NewFile(uintptr(fd), "writes")
	}
	w := s.o.Writes
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logs = append(w.logs, l)
	return l.file, func() { w.end(l) }
}

package confine

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// observed is how a system call names what it may change. Arguments count from 0; path and dir
// are -1 where the call has none.
type observed struct {
	nr    uint32
	flags int // argument with the flags of an open: only one that may write counts; -1: none
	names []named
}

// named is a file that a call names: a path relative to a directory's descriptor, or a
// descriptor alone.
type named struct{ dir, path int }

const openForWriting = unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC

// observedCalls change names or modes, or open for writing. Bytes need no more than that: a
// file is opened before it is written or mapped.
func observedCalls() []observed {
	at := func(dir int) []named { return []named{{dir, dir + 1}} }
	return append(olderCalls(), []observed{
		{unix.SYS_OPENAT, 2, at(0)}, {unix.SYS_OPENAT2, -1, at(0)},
		{unix.SYS_MKDIRAT, -1, at(0)}, {unix.SYS_MKNODAT, -1, at(0)}, {unix.SYS_UNLINKAT, -1, at(0)},
		{unix.SYS_SYMLINKAT, -1, at(1)}, {unix.SYS_LINKAT, -1, at(2)},
		{unix.SYS_RENAMEAT2, -1, []named{{0, 1}, {2, 3}}}, {unix.SYS_RENAMEAT, -1, []named{{0, 1}, {2, 3}}},
		{unix.SYS_TRUNCATE, -1, []named{{-1, 0}}},
		{unix.SYS_FCHMODAT, -1, at(0)}, {unix.SYS_FCHMODAT2, -1, at(0)}, {unix.SYS_FCHMOD, -1, []named{{0, -1}}},
	}...)
}

// observeFilter writes the filter that reports these calls and lets them run.
func observeFilter(arch uint32, calls []observed) []unix.SockFilter {
	report := unix.SockFilter{Code: returnWord, K: unix.SECCOMP_RET_USER_NOTIF}
	allow := unix.SockFilter{Code: returnWord, K: unix.SECCOMP_RET_ALLOW}
	prog := []unix.SockFilter{
		{Code: loadWord, K: seccompArch}, {Code: jumpEqual, K: arch, Jt: 1}, allow, // the other filter refuses these
		{Code: loadWord, K: seccompNumber},
	}
	for _, c := range calls {
		if c.flags < 0 {
			prog = append(prog, unix.SockFilter{Code: jumpEqual, K: c.nr, Jf: 1}, report)
			continue
		}
		// Another call skips the four instructions that belong to this one.
		prog = append(prog, unix.SockFilter{Code: jumpEqual, K: c.nr, Jf: 4},
			unix.SockFilter{Code: loadWord, K: uint32(seccompFirstArg + 8*c.flags)},
			unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: openForWriting, Jf: 1}, report, allow)
	}
	return append(prog, allow)
}

// notification is struct seccomp_notif, answer struct seccomp_notif_resp.
type notification struct {
	id         uint64
	pid, flags uint32
	nr         int32
	arch       uint32
	ip         uint64
	args       [6]uint64
}

type answer struct {
	id    uint64
	val   int64
	err   int32
	flags uint32
}

// setFlags is SECCOMP_IOCTL_NOTIF_SET_FLAGS.
const setFlags = 0x40082104

// Observe makes the calling thread, and what it starts, report each file that it may change in
// the world to log: the path relative to the world and a NUL byte, "/" before the NUL for
// everything beneath it, too. The report is in the log before the change is made. Other threads
// of this process read the reports until it ends. An error means that the kernel does not
// report them.
func Observe(world string, log *os.File) error {
	arch, ok := nativeArch()
	if !ok {
		return errors.ErrUnsupported
	}
	calls := observedCalls()
	prog := observeFilter(arch, calls)
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	const setFilter = 1 // SECCOMP_SET_MODE_FILTER
	var fd uintptr
	errno := unix.EINVAL
	// Kernels before 5.19 refuse the flag that lets a caller be interrupted only by a fatal signal.
	for _, flags := range []uintptr{unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER} {
		fd, _, errno = unix.RawSyscall(unix.SYS_SECCOMP, setFilter, flags, uintptr(unsafe.Pointer(&fprog)))
		if errno != unix.EINVAL {
			break
		}
	}
	if errno != 0 {
		return fmt.Errorf("observe system calls: %w", errno)
	}
	unix.CloseOnExec(int(fd))
	// The caller and this reader take turns: a kernel that runs both on one processor wakes
	// neither late. Older kernels refuse this.
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, fd, setFlags, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	o := &observer{world: world, log: log, calls: make(map[int32][]named), seen: make(map[string]bool)}
	for _, c := range calls {
		o.calls[int32(c.nr)] = c.names
	}
	go o.run(fd)
	return nil
}

// maxLogBytes bounds a log of changes. At the limit everything counts as changed.
const maxLogBytes = 16 << 20

type observer struct {
	world   string
	log     *os.File
	calls   map[int32][]named
	seen    map[string]bool
	written int
}

// run reads reports and lets each call run.
func (o *observer) run(fd uintptr) {
	for {
		var n notification
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, unix.SECCOMP_IOCTL_NOTIF_RECV,
			uintptr(unsafe.Pointer(&n))); errno == unix.EINTR || errno == unix.ENOENT {
			continue // a signal, or the caller has ended
		} else if errno != 0 {
			o.append("/") // what follows is not observed
			return
		}
		o.record(&n, o.calls[n.nr])
		a := answer{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
		_, _, _ = unix.Syscall(unix.SYS_IOCTL, fd, unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&a)))
	}
}

// record adds the paths that a call names. If the first of two is a directory, it is renamed
// with everything beneath it.
func (o *observer) record(n *notification, names []named) {
	beneath := ""
	for i, name := range names {
		path, err := n.resolve(name)
		if err != nil {
			o.append("/")
			return
		}
		if info, err := os.Lstat(path); i == 0 && len(names) > 1 && err == nil && info.IsDir() {
			beneath = "/"
		}
		for _, p := range throughLinks(path) {
			if rel, ok := strings.CutPrefix(p, o.world+"/"); ok {
				o.append(rel + beneath)
			} else if beneath != "" && strings.HasPrefix(o.world+"/", p+"/") {
				o.append("/")
			}
		}
	}
}

func (o *observer) append(rel string) {
	if o.seen[rel] || o.seen["/"] {
		return
	}
	if o.written += len(rel) + 1; o.written > maxLogBytes {
		rel = "/"
	}
	o.seen[rel] = true
	_, _ = o.log.Write(append([]byte(rel), 0))
}

// resolve returns the absolute path of a file that a call names.
func (n *notification) resolve(name named) (string, error) {
	link := fmt.Sprintf("/proc/%d/cwd", n.pid)
	if name.dir >= 0 && int32(n.args[name.dir]) != unix.AT_FDCWD {
		link = fmt.Sprintf("/proc/%d/fd/%d", n.pid, int32(n.args[name.dir]))
	}
	path := ""
	if name.path >= 0 {
		var err error
		if path, err = n.text(uintptr(n.args[name.path])); err != nil {
			return "", err
		}
		if own, ok := strings.CutPrefix(path, "/proc/self/"); ok {
			path = fmt.Sprintf("/proc/%d/%s", n.pid, own)
		}
	}
	if filepath.IsAbs(path) {
		return path, nil
	}
	dir, err := os.Readlink(link)
	return dir + "/" + path, err
}

// text reads a path in the caller's memory.
func (n *notification) text(at uintptr) (string, error) {
	const page = 4096
	var out []byte
	for len(out) < unix.PathMax {
		buf := make([]byte, page-at%page) // no further than one page: the next may not exist
		got, err := unix.ProcessVMReadv(int(n.pid), []unix.Iovec{{Base: &buf[0], Len: uint64(len(buf))}},
			[]unix.RemoteIovec{{Base: at, Len: len(buf)}}, 0)
		if err != nil {
			return "", err
		}
		if end := bytes.IndexByte(buf[:got], 0); end >= 0 {
			return string(append(out, buf[:end]...)), nil
		}
		out, at = append(out, buf[:got]...), at+uintptr(got)
	}
	return "", unix.ENAMETOOLONG
}

// throughLinks returns a path with the links of its directory resolved, and what the path
// itself is a link to.
func throughLinks(path string) []string {
	path = strings.TrimRight(path, "/")
	dir, err := realPathOf(filepath.Dir(path))
	if err != nil {
		return nil // the call fails, too
	}
	out := []string{filepath.Join(dir, filepath.Base(path))}
	if info, err := os.Lstat(out[0]); err == nil && info.Mode()&os.ModeSymlink != 0 {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			out = append(out, real)
		}
	}
	return out
}

// realPathOf is filepath.EvalSymlinks of a directory in three system calls.
func realPathOf(dir string) (string, error) {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	return os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
}

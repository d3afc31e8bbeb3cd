package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// changing are the system calls that change what is on a disk, or promise
// that it stays.
var changing = map[uint64]string{
	unix.SYS_OPENAT: "openat", unix.SYS_WRITE: "write", unix.SYS_PWRITE64: "pwrite64", unix.SYS_WRITEV: "writev",
	unix.SYS_PWRITEV:  "pwritev",
	unix.SYS_RENAMEAT: "renameat", unix.SYS_RENAMEAT2: "renameat2", unix.SYS_UNLINKAT: "unlinkat",
	unix.SYS_MKDIRAT: "mkdirat", unix.SYS_LINKAT: "linkat",
	unix.SYS_SYMLINKAT: "symlinkat", unix.SYS_FTRUNCATE: "ftruncate", unix.SYS_FALLOCATE: "fallocate",
	unix.SYS_COPY_FILE_RANGE: "copy_file_range",
	unix.SYS_FCHMOD:          "fchmod", unix.SYS_FCHMODAT: "fchmodat", unix.SYS_FCHMODAT2: "fchmodat2",
	unix.SYS_FCHOWNAT: "fchownat", unix.SYS_UTIMENSAT: "utimensat",
	unix.SYS_FSYNC: "fsync", unix.SYS_FDATASYNC: "fdatasync", unix.SYS_SYNCFS: "syncfs", unix.SYS_FLOCK: "flock",
}

// tracedVariable makes the test binary restrict, by a filter of its own, at which system calls
// it stops for its tracer, and then become the program that the variable names.
const tracedVariable = "ANAMNESIS_TEST_TRACED"

// While variables are set, this is the process's first thread, which exec leaves as it is.
var _ = becomeTraced()

func becomeTraced() error {
	path := os.Getenv(tracedVariable)
	if path == "" {
		return nil
	}
	const load, equal, set, ret = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K,
		unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	const number, flags = 0, 32 // where a call's number is, and the low half of its third argument
	stop, run := unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_TRACE},
		unix.SockFilter{Code: ret, K: unix.SECCOMP_RET_ALLOW}
	prog := []unix.SockFilter{{Code: load, K: number}}
	for n := range changing {
		if n != unix.SYS_OPENAT {
			prog = append(prog, unix.SockFilter{Code: equal, K: uint32(n), Jf: 1}, stop)
		}
	}
	prog = append(prog, unix.SockFilter{Code: equal, K: unix.SYS_OPENAT, Jt: 1}, run,
		unix.SockFilter{Code: load, K: flags},
		unix.SockFilter{Code: set, K: unix.O_CREAT | unix.O_TRUNC, Jf: 1}, stop, run)
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	err := errors.Join(os.Unsetenv(tracedVariable), unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
		unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&fprog)), 0, 0))
	if err == nil {
		err = syscall.Exec(path, os.Args, os.Environ())
	}
	panic(err)
}

// call is a system call about to be made.
type call struct {
	number uint64
	args   [6]uint64
}

// changes says whether the call is one of those that a kill is aimed at.
func (c call) changes() bool {
	switch c.number {
	case unix.SYS_OPENAT:
		return c.args[2]&(unix.O_CREAT|unix.O_TRUNC) != 0
	case unix.SYS_WRITE, unix.SYS_WRITEV: // what is said to people, and the runtime's own pipes
		return c.args[0] > 2 && c.args[2] != 8
	}
	return changing[c.number] != ""
}

// killedAt runs a command under ptrace and kills it, as kill -9 does, just
// before its n-th changing system call, from 1, in whatever thread; 0 kills
// never. It returns how the command ended, the calls seen and the last one's
// name.
func killedAt(t testing.TB, cmd *exec.Cmd, n int) (status syscall.WaitStatus, seen int, last string) {
	t.Helper()
	k := tracer{at: n, do: func(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }}
	status = k.run(t, cmd)
	return status, k.seen, k.last
}

// haltedAt is killedAt for a command whose thread stands still at that call
// while do runs, and which then continues.
func haltedAt(t testing.TB, cmd *exec.Cmd, n int, do func()) (last string) {
	t.Helper()
	k := tracer{at: n}
	k.do = func(int) error {
		last = k.last
		do()
		return nil
	}
	k.run(t, cmd)
	return last
}

// run starts a command and follows it to its end.
func (k *tracer) run(t testing.TB, cmd *exec.Cmd) syscall.WaitStatus {
	t.Helper()
	runtime.LockOSThread() // ptrace knows its tracer by thread
	defer runtime.UnlockOSThread()
	output, err := os.CreateTemp(t.TempDir(), "output")
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	attr := &os.ProcAttr{
		Dir: cmd.Dir, Env: append(cmd.Environ(), tracedVariable+"="+cmd.Path), Files: []*os.File{nil, output, output},
		Sys: &syscall.SysProcAttr{Ptrace: true, Setpgid: true},
	}
	p, err := os.StartProcess(self, cmd.Args, attr)
	if errors.Is(err, syscall.EPERM) {
		need(t, false, "ptrace")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	k.pid, k.known = p.Pid, map[int]bool{p.Pid: true}
	status, err := k.follow()
	if err != nil {
		_ = syscall.Kill(p.Pid, syscall.SIGKILL)
		t.Fatalf("ptrace: %v", err)
	}
	if !status.Signaled() && status.ExitStatus() != 0 {
		text, _ := os.ReadFile(output.Name())
		t.Fatalf("%v ended with exit code %d:\n%s", cmd.Args, status.ExitStatus(), text)
	}
	return status
}

// tracer follows one process with all its threads.
type tracer struct {
	pid, at int
	do      func(pid int) error   // before call at
	saw     func(tid int, c call) // before each that changes something; nil: nobody is told
	seen    int
	last    string
	known   map[int]bool
}

const traceOptions = unix.PTRACE_O_TRACESECCOMP | syscall.PTRACE_O_TRACECLONE | syscall.PTRACE_O_TRACEFORK | syscall.PTRACE_O_TRACEVFORK | unix.PTRACE_O_EXITKILL

func (k *tracer) follow() (syscall.WaitStatus, error) {
	begun := false
	for {
		var ws syscall.WaitStatus
		tid, err := syscall.Wait4(-k.pid, &ws, syscall.WALL, nil) // its process group, and nobody else's
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return ws, fmt.Errorf("wait: %w", err)
		}
		if ws.Exited() || ws.Signaled() {
			if tid == k.pid {
				return ws, nil
			}
			continue
		}
		if !begun {
			begun = true
			if err := syscall.PtraceSetOptions(tid, traceOptions); err != nil {
				return ws, fmt.Errorf("options: %w", err)
			}
		}
		if err := k.stopped(tid, ws); err != nil && !errors.Is(err, syscall.ESRCH) { // killed meanwhile
			return ws, err
		}
	}
}

// stopped looks at a thread that stands still and lets it go on.
func (k *tracer) stopped(tid int, ws syscall.WaitStatus) error {
	deliver := 0
	switch sig := ws.StopSignal(); {
	case sig == syscall.SIGTRAP && ws.TrapCause() == unix.PTRACE_EVENT_SECCOMP:
		c, err := callOf(tid)
		if err != nil {
			return err
		}
		if c.changes() {
			k.seen++
			k.last = changing[c.number]
			if k.saw != nil {
				k.saw(tid, c)
			}
			if k.seen == k.at {
				if err := k.do(k.pid); err != nil {
					return err
				}
			}
		}
	case sig == syscall.SIGTRAP:
	case sig == syscall.SIGSTOP && !k.known[tid]:
		k.known[tid] = true
	default:
		deliver = int(sig)
	}
	return syscall.PtraceCont(tid, deliver)
}

// callOf returns the call that a thread is stopped at by the filter, on any architecture
// (PTRACE_GET_SYSCALL_INFO, Linux 5.3).
func callOf(tid int) (c call, err error) {
	const getSyscallInfo, infoBytes, opFilter = 0x420e, 88, 3
	var info [infoBytes]byte
	_, _, errno := syscall.Syscall6(syscall.SYS_PTRACE, getSyscallInfo, uintptr(tid), infoBytes,
		uintptr(unsafe.Pointer(&info[0])), 0, 0)
	if errno != 0 {
		return c, errno
	}
	if info[0] != opFilter {
		return c, fmt.Errorf("stopped by %d", info[0])
	}
	c.number = binary.NativeEndian.Uint64(info[24:])
	for i := range c.args {
		c.args[i] = binary.NativeEndian.Uint64(info[32+8*i:])
	}
	return c, nil
}

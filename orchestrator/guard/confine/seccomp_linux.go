package confine

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The offsets of a system call's fields for a filter: struct seccomp_data.
const (
	seccompNumber   = 0
	seccompArch     = 4
	seccompFirstArg = 16
)

// The instruction codes of a filter.
const (
	loadWord   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	jumpEqual  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	jumpAbove  = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	andWord    = unix.BPF_ALU | unix.BPF_AND | unix.BPF_K
	returnWord = unix.BPF_RET | unix.BPF_K
)

// Kernel constants that x/sys lacks.
const (
	x32Bit       = 0x40000000
	sockTypeMask = 0xf
)

// nativeArch is this program's architecture as filters know it.
func nativeArch() (uint32, bool) {
	switch runtime.GOARCH {
	case "amd64":
		return unix.AUDIT_ARCH_X86_64, true
	case "arm64":
		return unix.AUDIT_ARCH_AARCH64, true
	}
	return 0, false
}

// filterSystemCalls denies the calling thread what neither namespaces nor Landlock confine:
// sockets other than IP and, with the network, Unix; pairs of datagram sockets, which can send
// to any address; io_uring, which opens sockets unseen by filters; and the kernel's keyrings,
// which belong to the user. All calls of another architecture fail.
func filterSystemCalls(c *Spec) error {
	arch, ok := nativeArch()
	if !ok {
		return fmt.Errorf("no filter for %s", runtime.GOARCH)
	}
	prog := socketFilter(arch, families(c))
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&fprog)), 0, 0)
}

// families are the kinds of sockets a command may open. Without a network
// namespace an IP socket would reach the network.
func families(c *Spec) []uint32 {
	out := []uint32{unix.AF_NETLINK}
	if c.Network || c.Parts.Namespaces {
		out = append(out, unix.AF_INET, unix.AF_INET6)
	}
	if c.Unix {
		out = append(out, unix.AF_UNIX)
	}
	return out
}

// socketFilter writes the filter: each test is followed by its decision.
func socketFilter(arch uint32, allowed []uint32) []unix.SockFilter {
	refuse := func(errno unix.Errno) unix.SockFilter {
		return unix.SockFilter{Code: returnWord, K: unix.SECCOMP_RET_ERRNO | uint32(errno)}
	}
	allow := unix.SockFilter{Code: returnWord, K: unix.SECCOMP_RET_ALLOW}
	load := func(at uint32) unix.SockFilter { return unix.SockFilter{Code: loadWord, K: at} }
	// when runs the next instruction only if the test holds.
	when := func(code uint16, k uint32) unix.SockFilter { return unix.SockFilter{Code: code, K: k, Jf: 1} }
	unless := func(code uint16, k uint32) unix.SockFilter { return unix.SockFilter{Code: code, K: k, Jt: 1} }

	prog := []unix.SockFilter{load(seccompArch), unless(jumpEqual, arch), refuse(unix.EPERM), load(seccompNumber)}
	if arch == unix.AUDIT_ARCH_X86_64 {
		prog = append(prog, when(jumpAbove, x32Bit), refuse(unix.ENOSYS))
	}
	for _, nr := range []uint32{unix.SYS_IO_URING_SETUP, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL} {
		prog = append(prog, when(jumpEqual, nr), refuse(unix.ENOSYS))
	}
	sockets := []unix.SockFilter{load(seccompFirstArg)}
	for _, family := range allowed {
		sockets = append(sockets, when(jumpEqual, family), allow)
	}
	sockets = append(sockets, refuse(unix.EACCES))
	pairs := []unix.SockFilter{
		load(seccompFirstArg + 8), {Code: andWord, K: sockTypeMask},
		when(jumpEqual, unix.SOCK_DGRAM), refuse(unix.EACCES), allow,
	}
	prog = append(prog, unix.SockFilter{Code: jumpEqual, K: unix.SYS_SOCKET, Jf: uint8(len(sockets))})
	prog = append(prog, sockets...)
	prog = append(prog, unix.SockFilter{Code: jumpEqual, K: unix.SYS_SOCKETPAIR, Jf: uint8(len(pairs))})
	prog = append(prog, pairs...)
	return append(prog, allow)
}

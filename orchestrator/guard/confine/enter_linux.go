package confine

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Enter puts the calling thread, and what it starts from now on, into the sandbox. The thread
// must be locked. Only this one thread, which starts the command, is confined. Enter never
// involves other threads, because that hangs a cgo program that is the first process of its
// namespace.
//
// The command must reach neither the supervisor's other threads nor the memory they share with
// this one. This thread has no more rights than the command, which could trace it and write
// code for all of them; a process that is not dumpable cannot be traced or read without
// CAP_SYS_PTRACE. See ptrace(2).
func Enter(c *Spec) error {
	if c == nil || c.Parts == (Parts{}) {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("sandbox: bar tracing of the supervisor: %w", err)
	}
	// Mounts and the loopback need the capabilities that are dropped next.
	if c.Parts.Namespaces {
		if err := mounts(c); err != nil {
			return fmt.Errorf("sandbox: %w", err)
		}
		if !c.Network {
			if err := loopback(); err != nil {
				return fmt.Errorf("sandbox: start the loopback: %w", err)
			}
		}
	}
	if err := dropCapabilities(); err != nil {
		return fmt.Errorf("sandbox: give up privileges: %w", err)
	}
	if c.Parts.Landlock == 0 && !c.Parts.Seccomp {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("sandbox: bar new privileges: %w", err)
	}
	if c.Parts.Landlock > 0 {
		if err := landlock(c); err != nil {
			return fmt.Errorf("sandbox: landlock: %w", err)
		}
	}
	if c.Parts.Seccomp {
		if err := filterSystemCalls(c); err != nil {
			return fmt.Errorf("sandbox: filter system calls: %w", err)
		}
	}
	return nil
}

// loopback starts the only interface of a new network namespace.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

// keptCapabilities are what root keeps inside: to handle its own and other users' files and
// processes, as package managers do. An ordinary user has none.
func keptCapabilities() uint32 {
	var kept uint32
	for _, c := range []uint{
		unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH, unix.CAP_FOWNER, unix.CAP_FSETID,
		unix.CAP_KILL, unix.CAP_SETGID, unix.CAP_SETUID, unix.CAP_NET_BIND_SERVICE,
	} {
		kept |= 1 << c
	}
	return kept
}

// dropCapabilities permanently drops the thread's capabilities to mount, or root's own without
// namespaces. A thread that may not lower the bounding set regains none either: new privileges
// are denied later.
func dropCapabilities() error {
	var kept uint32
	if os.Geteuid() == 0 {
		kept = keptCapabilities()
	}
	for c := uint(0); c <= unix.CAP_LAST_CAP; c++ {
		if c < 32 && kept&(1<<c) != 0 {
			continue
		}
		err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0)
		if err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EPERM) {
			return err
		}
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) // fails only if there are none
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{{Effective: kept, Permitted: kept}}
	return unix.Capset(&header, &data[0])
}

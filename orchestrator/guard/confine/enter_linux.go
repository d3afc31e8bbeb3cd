package confine

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Enter puts the calling thread, and what it starts from now on, into the sandbox. The
// thread must be locked. Only this one thread is confined: it is the one that starts the
// command. Nothing here asks other threads for anything, because that hangs a program built
// with cgo that is the first of its namespace.
//
// The command must reach neither the supervisor's other threads nor the memory they share
// with this one. This thread has no more rights than the command, which could trace it and
// write code for all of them; a process that is not dumpable is traced and read by none
// without CAP_SYS_PTRACE. See ptrace(2).
func Enter(c *Spec) error {
	if c == nil || c.Parts == (Parts{}) {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("sandbox: bar tracing of the supervisor: %w", err)
	}
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

// keptCapabilities are what root keeps inside: to handle files and processes,
// its own and other users', as package managers do. An ordinary user has none.
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

// dropCapabilities takes from the thread what it mounted with, or what root has
// where there are no namespaces, for good. Who may not lower the bound of
// capabilities gets none back all the same: new privileges are barred later.
func dropCapabilities() error {
	var kept uint32
	if os.Geteuid() == 0 {
		kept = keptCapabilities()
	}
	for c := uint(0); c <= unix.CAP_LAST_CAP; c++ {
		if c < 32 && kept&(1<<c) != 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EPERM) {
			return err
		}
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) // none are set where there are none
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{{Effective: kept, Permitted: kept}}
	return unix.Capset(&header, &data[0])
}

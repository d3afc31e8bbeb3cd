package guard

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"anamnesis/orchestrator/guard/confine"
	"anamnesis/orchestrator/guard/quarantine"
)

// NewSandbox determines what this kernel offers by trying it: it starts and ends at most five
// processes. ConfineOff returns nil. Missing parts are not an error, see Missing; a supervisor
// that does not start even without them is one.
func NewSandbox(ctx context.Context, o SandboxOptions) (*Sandbox, error) {
	if !supervised.Load() {
		return nil, ErrNoSupervisor
	}
	switch o.Confine {
	case ConfineOff:
		return nil, nil
	case "":
		o.Confine = ConfineWorld
	}
	for _, dir := range o.Writable {
		if err := CheckWritable(dir, o.Hidden); err != nil {
			return nil, err
		}
	}
	s := &Sandbox{o: o, procs: processBase + processesPerCPU*runtime.NumCPU()}
	if err := s.ready(); err != nil {
		return nil, err
	}
	sweepGroups()
	var err error
	if o.Quarantine != "" {
		s.git, err = quarantine.Open(quarantine.Options{
			Dir: o.Quarantine, World: o.World, Skip: slices.Concat(o.Hidden, confine.NonEmpty(o.Cache, o.Temp)),
			Writable: o.Writable, Runs: o.Runs,
		})
	}
	if err != nil || o.Untried {
		return s, err
	}
	ll := confine.LandlockVersion()
	for _, p := range []confine.Parts{
		{Namespaces: true, PIDs: true, Landlock: ll, Seccomp: true},
		{Namespaces: true, Landlock: ll, Seccomp: true},
		{Landlock: ll, Seccomp: true},
		{Landlock: ll},
		{},
	} {
		s.parts = p
		err = s.try(ctx)
		if ctx.Err() != nil {
			err = context.Cause(ctx)
			break
		}
		if err == nil {
			return s, nil
		}
		// A limit that is reached says nothing of the kernel; fewer parts would be a weaker
		// sandbox for the wrong reason.
		limits := []error{unix.EAGAIN, unix.EMFILE, unix.ENFILE, unix.ENOMEM}
		if slices.ContainsFunc(limits, func(limit error) bool { return errors.Is(err, limit) }) {
			break
		}
	}
	return nil, fmt.Errorf("try the sandbox: %w", err)
}

// try starts a supervisor in the sandbox and ends it again.
func (s *Sandbox) try(ctx context.Context) error {
	where := *s
	if where.o.Cache != "" {
		where.o.World = where.o.Cache // the world may be gone for the moment
	}
	v, err := startSupervisor(context.Background(), &where, nil, nil)
	if err != nil {
		return err
	}
	defer v.close()
	defer v.abandon()
	release := context.AfterFunc(ctx, v.stop)
	defer release()
	return v.prepare(Command{Sandbox: &where, Dir: where.o.World})
}

func (s *Sandbox) spec() *confine.Spec {
	if s == nil {
		return nil
	}
	return &confine.Spec{
		Parts: s.parts, World: s.o.World, Fork: s.o.Fork, ReadOnly: s.o.Confine == ConfineReadOnly,
		Writable: s.o.Writable, Protected: s.o.Protected, Hidden: s.o.Hidden, Cache: s.o.Cache, Temp: s.o.Temp,
		Network: s.net, Readable: s.o.Readable, Sockets: s.o.Sockets, Unix: s.unix,
		Processes: userLimit(s.procs, s.parts.Namespaces),
	}
}

// attr returns how a supervisor in this sandbox is started: in its own namespaces, where it
// may mount, and in which it is the first process.
func (s *Sandbox) attr() (*syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{Setsid: true}
	if s == nil || !s.parts.Namespaces {
		return attr, nil
	}
	attr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWIPC
	if s.parts.PIDs {
		attr.Cloneflags |= unix.CLONE_NEWPID
	}
	if !s.net {
		attr.Cloneflags |= unix.CLONE_NEWNET
	}
	// Ids are mapped to themselves. An ordinary user may map only his own; root maps every
	// user that it has, so that files keep their owners.
	if os.Geteuid() != 0 {
		// A user other than root would lose, in the exec, the capabilities of the first
		// process of the namespaces.
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP, unix.CAP_SYS_RESOURCE}
		if s.o.Fork != nil { // an overlay's work directory has no permissions; the command has no capability
			attr.AmbientCaps = append(attr.AmbientCaps, unix.CAP_DAC_OVERRIDE)
		}
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		return attr, nil
	}
	// Root of a container may have been denied setgroups; it cannot allow it again.
	setgroups, err := readSmall("/proc/self/setgroups")
	if err != nil {
		return nil, fmt.Errorf("read whether groups may be set: %w", err)
	}
	attr.GidMappingsEnableSetgroups = strings.TrimSpace(string(setgroups)) == "allow"
	if attr.UidMappings, err = sameIDs("/proc/self/uid_map"); err != nil {
		return nil, err
	}
	attr.GidMappings, err = sameIDs("/proc/self/gid_map")
	return attr, err
}

// sameIDs maps every id of this user namespace to itself.
func sameIDs(file string) ([]syscall.SysProcIDMap, error) {
	data, err := readSmall(file)
	if err != nil {
		return nil, fmt.Errorf("read the users of this namespace: %w", err)
	}
	var out []syscall.SysProcIDMap
	for lines := bufio.NewScanner(strings.NewReader(string(data))); lines.Scan(); {
		var inside, outside, n int
		if _, err := fmt.Sscan(lines.Text(), &inside, &outside, &n); err != nil {
			return nil, fmt.Errorf("read %s: %q: %w", file, lines.Text(), err)
		}
		out = append(out, syscall.SysProcIDMap{ContainerID: inside, HostID: inside, Size: n})
	}
	return out, nil
}

// Quarantine moves away what a running command has left so far, and returns a report; empty:
// nothing.
func (s *Sandbox) Quarantine() string {
	if s == nil || s.git == nil || s.o.Confine == ConfineReadOnly {
		return ""
	}
	return s.git.Examine()
}

// Examine runs move, which changes files of the world, and quarantines what git would run by
// them. It returns a report; empty: nothing.
func (s *Sandbox) Examine(move func() error) (note string, err error) {
	if s == nil || s.git == nil {
		return "", move()
	}
	return s.git.Around(move)
}

// guarded returns the sandbox for one command, and the function to call when no process of it
// is alive any more.
func (s *Sandbox) guarded() (*Sandbox, func() string, error) {
	none := func() string { return "" }
	if s == nil || s.git == nil || s.o.Confine == ConfineReadOnly {
		return s, none, nil
	}
	closed, err := s.git.Begin()
	if err != nil {
		return nil, none, err
	}
	with := *s
	with.o.Protected = slices.Concat(s.o.Protected, closed)
	return &with, s.git.End, nil
}

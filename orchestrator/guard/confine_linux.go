package guard

import (
	"anamnesis/orchestrator/guard/quarantine"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// confine puts the calling thread, and what it starts from now on, into the
// sandbox. The thread must be locked. Only this one thread is held in: it is
// the one that starts the command. Nothing here asks other threads for anything,
// which is what hangs a program built with cgo that is the first of its namespace.
//
// The supervisor's other threads are out of the command's reach, and so must be
// the memory they share with this one. This thread has no more rights than the command, which could trace it
// and write code for all of them; a process that is not dumpable is traced and
// looked into by nobody without CAP_SYS_PTRACE. See ptrace(2).
func confine(c *confinement) error {
	if c == nil || c.Parts == (parts{}) {
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

// graft is a piece of the file tree, held by a descriptor before the tree is
// changed and put at its place afterwards.
type graft struct {
	path string
	fd   int
}

func takeGraft(path string) (graft, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return graft{}, fmt.Errorf("hold %s: %w", path, err)
	}
	return graft{path, fd}, nil
}

// put attaches the piece at its path, which it makes where the tree is new.
func (g graft) put() error {
	info, err := os.Lstat(g.path)
	if errors.Is(err, os.ErrNotExist) {
		err = g.makeRoom()
	} else if err == nil && info.Mode()&os.ModeSymlink != 0 {
		err = unix.ELOOP
	}
	if err != nil {
		return fmt.Errorf("make room for %s: %w", g.path, err)
	}
	if err := unix.MoveMount(g.fd, "", unix.AT_FDCWD, g.path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount %s: %w", g.path, err)
	}
	return unix.Close(g.fd)
}

// makeRoom makes what the piece is mounted on: a directory, or an empty file.
func (g graft) makeRoom() error {
	var st unix.Stat_t
	if err := unix.Fstat(g.fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return os.MkdirAll(g.path, 0o700)
	}
	if err := os.MkdirAll(filepath.Dir(g.path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(g.path, nil, 0o600)
}

// mounts builds the file tree a command sees: everything read-only and without
// devices, our own state not at all, a private /tmp, and the places it may
// write.
func mounts(c *confinement) error {
	// Changes of ours stay here, and later ones outside do not come in.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("part from the mounts outside: %w", err)
	}
	var err error
	if c.Hidden, err = withOtherNames(c.Hidden, c.World); err != nil {
		return err
	}
	closed := c.protected()
	readable, err := takeAll(existing(c.Readable))
	if err != nil {
		return err
	}
	open, err := takeAll(slices.Concat([]string{c.World}, c.Writable, pinned(c.World, closed), existing(c.Sockets)))
	if err != nil {
		return err
	}
	protected, err := takeAll(closed)
	if err != nil {
		return err
	}
	late, err := takeAll(nonEmpty(c.Cache))
	if err != nil {
		return err
	}
	devices, err := takeAll(existing(strings.Fields(devicesKept)))
	if err != nil {
		return err
	}
	temps, err := privateTemp(c)
	if err != nil {
		return err
	}
	if err := kernelMounts(c); err != nil {
		return err
	}
	if err := setAttr("/", unix.AT_RECURSIVE, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOSUID, 0); err != nil {
		return err
	}
	for _, dir := range temps {
		if err := setAttr(dir, 0, 0, unix.MOUNT_ATTR_RDONLY); err != nil {
			return err
		}
	}
	around, rest := c.hidden()
	if around, err = cover(around); err != nil {
		return err
	}
	if err := putAll(readable); err != nil {
		return err
	}
	for _, g := range readable {
		if err := setAttr(g.path, unix.AT_RECURSIVE, unix.MOUNT_ATTR_RDONLY, 0); err != nil {
			return err
		}
	}
	if err := putAll(open); err != nil {
		return err
	}
	if c.ReadOnly {
		if err := setAttr(c.World, unix.AT_RECURSIVE, unix.MOUNT_ATTR_RDONLY, 0); err != nil {
			return err
		}
	}
	if err := putAll(devices); err != nil {
		return err
	}
	if err := putAll(protected); err != nil {
		return err
	}
	for _, g := range protected {
		if err := setAttr(g.path, unix.AT_RECURSIVE, unix.MOUNT_ATTR_RDONLY, 0); err != nil {
			return err
		}
	}
	if rest, err = cover(rest); err != nil {
		return err
	}
	if err := putAll(late); err != nil {
		return err
	}
	for _, dir := range slices.Concat(around, rest) {
		if err := setAttr(dir, 0, unix.MOUNT_ATTR_RDONLY, 0); err != nil {
			return err
		}
	}
	return nil
}

// protected returns what stays read-only in the world, without links: what they
// lead to is protected, where it lies in the world.
func (c *confinement) protected() []string {
	var out []string
	for _, p := range existing(c.Protected) {
		real := realPath(p)
		if quarantine.Within(real, c.World) && real != c.World && !slices.ContainsFunc(c.Writable, func(w string) bool { return quarantine.Within(real, w) }) {
			out = append(out, real)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// pinned are the directories in the world that hold protected files, those
// around others first. Each becomes a mount of its own: who could rename it
// would put another in its place. A work tree, whose .git is a file, stays as it is.
func pinned(world string, protected []string) []string {
	var out []string
	for _, p := range protected {
		if dir := filepath.Dir(p); dir != world && filepath.Base(p) != ".git" {
			out = append(out, dir)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// devicesKept are the devices that are none of a machine's parts.
const devicesKept = "/dev/null /dev/zero /dev/full /dev/random /dev/urandom"

func takeAll(paths []string) ([]graft, error) {
	var out []graft
	for _, p := range paths {
		g, err := takeGraft(p)
		if err != nil {
			return nil, err
		}
		out = append(out, g)
	}
	return out, nil
}

// putAll attaches pieces; but for the kept devices themselves, neither devices
// nor set-user-id programs work in them.
func putAll(all []graft) error {
	for _, g := range all {
		if err := g.put(); err != nil {
			return err
		}
		if slices.Contains(strings.Fields(devicesKept), g.path) {
			continue
		}
		if err := setAttr(g.path, unix.AT_RECURSIVE, unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOSUID, 0); err != nil {
			return err
		}
	}
	return nil
}

// privateTemp returns the command directories for temporary files of its own.
// One that the world lies around is left alone.
func privateTemp(c *confinement) ([]string, error) {
	var made []string
	var pieces []graft
	for _, dir := range existing([]string{"/tmp", "/var/tmp"}) {
		if c.Temp == "" || quarantine.Within(dir, c.World) || slices.ContainsFunc(c.Writable, func(w string) bool { return quarantine.Within(dir, w) }) {
			continue
		}
		g, err := takeGraft(c.Temp) // before one of them covers it
		if err != nil {
			return nil, err
		}
		g.path = dir
		pieces, made = append(pieces, g), append(made, dir)
	}
	if err := putAll(pieces); err != nil {
		return nil, err
	}
	for _, dir := range existing([]string{"/dev/shm"}) {
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"); err != nil {
			return nil, fmt.Errorf("mount a private %s: %w", dir, err)
		}
		made = append(made, dir)
	}
	return made, nil
}

// kernelMounts returns the command a view of its own processes and terminals. It
// must come before the tree is made read-only: the settings under /proc/sys
// are the machine's, also for root in a namespace.
func kernelMounts(c *confinement) error {
	if c.Parts.PIDs {
		if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
			return fmt.Errorf("mount /proc: %w", err)
		}
		// A user namespace of its own would give a command every capability there:
		// nothing that leads out, but much more of the kernel to be attacked.
		if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("bar further user namespaces: %w", err)
		}
	}
	// The terminals of others are writable for who owns them: cover them.
	for _, dir := range existing([]string{"/dev/pts"}) {
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0555"); err != nil {
			return fmt.Errorf("cover %s: %w", dir, err)
		}
	}
	return nil
}

// hidden gives the directories to be hidden: those around something that is
// shown, which are covered before that is put in its place, and the rest.
func (c *confinement) hidden() (around, rest []string) {
	shown := slices.Concat(c.Writable, c.Readable, c.Sockets, []string{c.World})
	for _, dir := range slices.Sorted(slices.Values(c.Hidden)) { // what lies around comes first
		if slices.ContainsFunc(shown, func(p string) bool { return p != dir && quarantine.Within(p, dir) }) {
			around = append(around, dir)
		} else {
			rest = append(rest, dir)
		}
	}
	return around, rest
}

// cover hides directories behind empty ones, which can still be written, and
// gives those that there were: what lies in a covered one is there no more.
func cover(dirs []string) ([]string, error) {
	var covered []string
	for _, dir := range dirs {
		if len(existing([]string{dir})) == 0 {
			continue
		}
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=64k"); err != nil {
			return nil, fmt.Errorf("hide %s: %w", dir, err)
		}
		covered = append(covered, dir)
	}
	return covered, nil
}

func setAttr(path string, flags uint, set, clear uint64) error {
	if err := unix.MountSetattr(unix.AT_FDCWD, path, flags, &unix.MountAttr{Attr_set: set, Attr_clr: clear}); err != nil {
		return fmt.Errorf("bar writing beneath %s: %w", path, err)
	}
	return nil
}

func nonEmpty(paths ...string) []string {
	return slices.DeleteFunc(paths, func(p string) bool { return p == "" })
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

// realPath is a path without links, or as it is where it is not there.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

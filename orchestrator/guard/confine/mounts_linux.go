package confine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"anamnesis/orchestrator/guard/quarantine"
)

// graft is a piece of the file tree, held by a descriptor before the tree is changed and
// attached at its place afterwards.
type graft struct {
	path     string
	fd       int
	readOnly bool
}

func openGraft(path string) (graft, error) {
	const flags = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_RECURSIVE | unix.AT_SYMLINK_NOFOLLOW
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, flags)
	if err != nil {
		return graft{}, fmt.Errorf("hold %s: %w", path, err)
	}
	return graft{path: path, fd: fd}, nil
}

// devicesKept are the devices without access to hardware.
const devicesKept = "/dev/null /dev/zero /dev/full /dev/random /dev/urandom"

// mount attaches the piece at its path, which it creates in a new tree. Except for the kept devices, neither devices
// nor set-user-id programs work in it.
func (g graft) mount() error {
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
	var attrs uint64
	if !slices.Contains(strings.Fields(devicesKept), g.path) {
		attrs = unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOSUID
	}
	if g.readOnly {
		attrs |= unix.MOUNT_ATTR_RDONLY
	}
	return errors.Join(setAttr(g.path, unix.AT_RECURSIVE, attrs, 0), unix.Close(g.fd))
}

// makeRoom creates what the piece is mounted on: a directory, or an empty file.
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

// mounts builds the file tree of a command: everything read-only and without devices, the
// program's state hidden, a private /tmp, and the places it may write.
func mounts(c *Spec) error {
	// Mounts here do not propagate outside, nor later ones outside to here.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("part from the mounts outside: %w", err)
	}
	var err error
	if c.Fork != nil {
		if err := c.Fork.mount(c.World); err != nil {
			return err
		}
	}
	if c.Hidden, err = withOtherNames(c.Hidden, c.World); err != nil {
		return err
	}
	held, err := hold(c)
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
	const inert = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOSUID
	if err := setAttr("/", unix.AT_RECURSIVE, inert, 0); err != nil {
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
	if err := held.attach(c); err != nil {
		return err
	}
	if rest, err = cover(rest); err != nil {
		return err
	}
	if err := mountAll(held.late); err != nil {
		return err
	}
	for _, dir := range slices.Concat(around, rest) {
		if err := setAttr(dir, 0, unix.MOUNT_ATTR_RDONLY, 0); err != nil {
			return err
		}
	}
	return nil
}

// mount lays what the copy does not have beneath it. Changes there, and to a world without a copy, go to Scratch.
func (f *Fork) mount(world string) error {
	if f.Dir == "" {
		f.Dir = filepath.Join(f.Scratch, "world")
		return f.overlay("0", world, f.Dir)
	}
	for i, rel := range f.Beneath {
		if err := f.overlay(fmt.Sprint(i), filepath.Join(world, rel), filepath.Join(f.Dir, rel)); err != nil {
			return err
		}
	}
	return nil
}

// overlay shows a directory at another place; what is changed there goes to a folder of Scratch.
func (f *Fork) overlay(name, lower, at string) error {
	upper, work := filepath.Join(f.Scratch, name, "upper"), filepath.Join(f.Scratch, name, "work")
	for _, dir := range []string{upper, work, at} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("fork of the world: %w", err)
		}
	}
	// A name may hold the characters that part the options, so that the directories are named by descriptors.
	var options []string
	for option, dir := range map[string]string{"lowerdir": lower, "upperdir": upper, "workdir": work} {
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("fork of the world: %s: %w", dir, err)
		}
		defer unix.Close(fd)
		options = append(options, fmt.Sprintf("%s=/proc/self/fd/%d", option, fd))
	}
	data := strings.Join(append(options, "userxattr"), ",")
	if err := unix.Mount("overlay", at, "overlay", unix.MS_NOSUID|unix.MS_NODEV, data); err != nil {
		return fmt.Errorf("fork of the world: %s: %w", lower, err)
	}
	return nil
}

// pieces are the kept pieces of the earlier tree, in the order in which they are attached.
type pieces struct {
	first, last []graft // before and after the world becomes read-only, if it does
	late        []graft // in a hidden directory that is covered last
}

func hold(c *Spec) (p pieces, err error) {
	protected := c.protected()
	for _, of := range []struct {
		to       *[]graft
		readOnly bool
		paths    []string
	}{
		{&p.first, true, Existing(c.Readable)},
		{&p.first, false, slices.Concat([]string{c.World}, c.Writable, pinned(c.World, protected),
			Existing(c.Sockets))},
		{&p.last, false, Existing(strings.Fields(devicesKept))},
		{&p.last, true, protected},
		{&p.late, false, NonEmpty(c.Cache)},
	} {
		for _, path := range of.paths {
			from := path
			if path == c.World && c.Fork != nil {
				from = c.Fork.Dir
			}
			g, err := openGraft(from)
			if err != nil {
				return p, err
			}
			g.path, g.readOnly = path, of.readOnly
			*of.to = append(*of.to, g)
		}
	}
	return p, nil
}

// attach attaches the pieces that are not late.
func (p pieces) attach(c *Spec) error {
	if err := mountAll(p.first); err != nil {
		return err
	}
	if c.ReadOnly {
		if err := setAttr(c.World, unix.AT_RECURSIVE, unix.MOUNT_ATTR_RDONLY, 0); err != nil {
			return err
		}
	}
	return mountAll(p.last)
}

// protected returns what stays read-only in the world. For a link it protects the target, if
// that is in the world.
func (c *Spec) protected() []string {
	var out []string
	for _, p := range Existing(c.Protected) {
		real := realPath(p)
		if quarantine.Within(real, c.World) && real != c.World && !quarantine.WithinAny(real, c.Writable) {
			out = append(out, real)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// pinned are the directories in the world that hold protected files, outer ones first. Each
// becomes a mount of its own: a command could otherwise rename it and put another in its
// place. A work tree, whose .git is a file, stays unchanged.
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

func mountAll(all []graft) error {
	for _, g := range all {
		if err := g.mount(); err != nil {
			return err
		}
	}
	return nil
}

// privateTemp mounts the command's own directories for temporary files, and returns them. It
// leaves a directory that contains the world unchanged.
func privateTemp(c *Spec) ([]string, error) {
	var made []string
	var pieces []graft
	for _, dir := range Existing([]string{"/tmp", "/var/tmp"}) {
		if c.Temp == "" || quarantine.Within(dir, c.World) || quarantine.WithinAny(dir, c.Writable) {
			continue
		}
		g, err := openGraft(c.Temp) // before a mount covers it
		if err != nil {
			return nil, err
		}
		g.path = dir
		pieces, made = append(pieces, g), append(made, dir)
	}
	if err := mountAll(pieces); err != nil {
		return nil, err
	}
	for _, dir := range Existing([]string{"/dev/shm"}) {
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"); err != nil {
			return nil, fmt.Errorf("mount a private %s: %w", dir, err)
		}
		made = append(made, dir)
	}
	return made, nil
}

// kernelMounts shows the command its own processes and terminals only. Call it before the tree
// is made read-only: the settings under /proc/sys belong to the machine, even for root in a
// namespace.
func kernelMounts(c *Spec) error {
	if c.Parts.PIDs {
		if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
			return fmt.Errorf("mount /proc: %w", err)
		}
		// In a user namespace of its own a command would have every capability. None leads
		// outside, but they expose much more of the kernel to attacks.
		err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("bar further user namespaces: %w", err)
		}
	}
	// Other terminals are writable for their owner: cover them.
	for _, dir := range Existing([]string{"/dev/pts"}) {
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0555"); err != nil {
			return fmt.Errorf("cover %s: %w", dir, err)
		}
	}
	return nil
}

// hidden returns the directories to hide: those that contain something shown, which are
// covered before that is attached, and the rest.
func (c *Spec) hidden() (around, rest []string) {
	shown := slices.Concat(c.Writable, c.Readable, c.Sockets, []string{c.World})
	for _, dir := range slices.Sorted(slices.Values(c.Hidden)) { // outer ones first
		if slices.ContainsFunc(shown, func(p string) bool { return p != dir && quarantine.Within(p, dir) }) {
			around = append(around, dir)
		} else {
			rest = append(rest, dir)
		}
	}
	return around, rest
}

// cover hides directories behind empty, writable ones, and returns those that exist: a
// directory inside a covered one no longer does.
func cover(dirs []string) ([]string, error) {
	var covered []string
	for _, dir := range dirs {
		if len(Existing([]string{dir})) == 0 {
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
	attr := &unix.MountAttr{Attr_set: set, Attr_clr: clear}
	if err := unix.MountSetattr(unix.AT_FDCWD, path, flags, attr); err != nil {
		return fmt.Errorf("bar writing beneath %s: %w", path, err)
	}
	return nil
}

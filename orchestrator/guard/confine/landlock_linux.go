package confine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"anamnesis/orchestrator/guard/quarantine"
)

// The rights that Landlock handles, by the version that introduced them.
const (
	landlockRead  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE
	landlockWrite = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR |
		unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SYM
	landlockRefer    = unix.LANDLOCK_ACCESS_FS_REFER    // version 2
	landlockTruncate = unix.LANDLOCK_ACCESS_FS_TRUNCATE // version 3
	// landlockOfFiles are the rights that a single file can be given.
	landlockOfFiles = landlockRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | landlockTruncate
)

// LandlockVersion returns the version of this kernel's Landlock; 0: none.
func LandlockVersion() int {
	const createVersion = 1
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, createVersion)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// landlock confines the calling thread: it may read everything that is not hidden, write where
// the sandbox allows it, and signal only what it started. With namespaces, mounts have already
// covered hidden directories.
func landlock(c *Spec) error {
	write := uint64(landlockWrite)
	// An older version refuses a ruleset with rights that it does not know.
	if c.Parts.Landlock >= 2 {
		write |= landlockRefer
	}
	if c.Parts.Landlock >= 3 {
		write |= landlockTruncate
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: landlockRead | write}
	if c.Parts.Landlock >= LandlockSignals {
		attr.Scoped = unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)),
		unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return fmt.Errorf("make a ruleset: %w", errno)
	}
	rules := int(fd)
	defer unix.Close(rules)
	readable, writable, err := landlockPlaces(c)
	if err != nil {
		return err
	}
	for rights, paths := range map[uint64][]string{landlockRead: readable, landlockRead | write: writable} {
		for _, path := range paths {
			if err := landlockAllow(rules, path, rights); err != nil {
				return err
			}
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(rules), 0, 0); errno != 0 {
		return fmt.Errorf("enter the ruleset: %w", errno)
	}
	return nil
}

// landlockPlaces returns the files and directories a command may read and those it may write.
// A rule applies to everything beneath a directory, so without mounts over the hidden
// directories the rules exclude them by listing their siblings, even in a world that contains
// one. Cache and Temp are allowed although they are hidden.
func landlockPlaces(c *Spec) (readable, writable []string, err error) {
	may := slices.Clone(c.Writable)
	if !c.ReadOnly {
		may = append(may, c.World)
	}
	readable, own := []string{"/"}, NonEmpty(c.Cache)
	if c.Parts.Namespaces {
		own = append(own, "/tmp", "/var/tmp", "/dev/shm")
		writable = may
	} else {
		hidden, err := withOtherNames(c.Hidden, "")
		if err != nil {
			return nil, nil, err
		}
		readable, own = allBut("/", hidden), append(own, NonEmpty(c.Temp)...)
		for _, path := range append(slices.Clone(c.Readable), c.World) {
			readable = append(readable, allBut(path, inside(hidden, path))...)
		}
		for _, dir := range may {
			writable = append(writable, allBut(dir, inside(hidden, dir))...)
		}
	}
	return readable, Existing(slices.Concat(writable, own, strings.Fields(devicesKept))), nil
}

// landlockAllow adds a rule: these rights beneath a path. A path that is gone, or may not be
// opened, needs none.
func landlockAllow(rules int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
			return nil
		}
		return fmt.Errorf("open %s: %w", path, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("look at %s: %w", path, err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
	case unix.S_IFLNK:
		return nil
	default:
		rights &= landlockOfFiles
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(rules), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("allow %s: %w", path, errno)
	}
	return nil
}

func inside(paths []string, dir string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return p == dir || !quarantine.Within(p, dir) })
}

// allBut covers a directory without some directories: it returns the directory itself, or its
// entries if one of those is within it.
func allBut(dir string, but []string) []string {
	if slices.ContainsFunc(but, func(b string) bool { return quarantine.Within(dir, realPath(b)) }) {
		return nil
	}
	if !slices.ContainsFunc(but, func(b string) bool { return quarantine.Within(realPath(b), dir) }) {
		return []string{dir}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		out = append(out, allBut(filepath.Join(dir, e.Name()), but)...)
	}
	return out
}

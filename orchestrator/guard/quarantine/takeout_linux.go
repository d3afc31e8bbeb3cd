package quarantine

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// replace replaces a file by one with a text and another inode.
func (q *Quarantine) replace(rel, text string) error {
	root, err := os.OpenRoot(q.o.World)
	if err != nil {
		return err
	}
	defer root.Close()
	beside, err := writeBeside(root, rel, text)
	if err != nil {
		return err
	}
	return withRights(root, rel, func() error { return root.Rename(beside, rel) })
}

const besidePrefix = "quarantined-"

// besideName returns a random name in a file's directory, which no command can predict.
func besideName(rel string) string {
	return filepath.Join(filepath.Dir(rel), besidePrefix+rand.Text())
}

// writeBeside writes a new file beside another, with its rights.
func writeBeside(root *os.Root, rel, text string) (string, error) {
	beside := besideName(rel)
	err := withRights(root, rel, func() error {
		mode := os.FileMode(0o644)
		if strings.EqualFold(filepath.Base(filepath.Dir(rel)), "hooks") {
			mode = 0o755
		}
		if info, err := root.Lstat(rel); err == nil && info.Mode().IsRegular() {
			mode = info.Mode().Perm()
		}
		f, err := root.OpenFile(beside, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
		if err != nil {
			return err
		}
		_, err = io.WriteString(f, text)
		if err = errors.Join(err, f.Close()); err != nil {
			_ = root.Remove(beside)
		}
		return err
	})
	return beside, err
}

// disarm renames a file that cannot be moved away, or else removes it, as it does a link. It
// returns the new name; empty: removed.
func disarm(root *os.Root, rel string) (string, error) {
	beside := besideName(rel)
	if info, err := root.Lstat(rel); err == nil && info.Mode().Type() != fs.ModeSymlink {
		if withRights(root, rel, func() error { return root.Rename(rel, beside) }) == nil {
			return beside, nil
		}
	}
	return "", withRights(root, rel, func() error { return root.Remove(rel) })
}

// takeOut moves a file or a link to a path outside the root.
func takeOut(root *os.Root, rel, to string) error {
	return withRights(root, rel, func() error {
		dir, err := root.Open(filepath.Dir(rel))
		if err != nil {
			return err
		}
		defer dir.Close()
		fd, name := int(dir.Fd()), filepath.Base(rel)
		err = unix.Renameat(fd, name, unix.AT_FDCWD, to)
		if !errors.Is(err, unix.EXDEV) {
			return err
		}
		if target, err := root.Readlink(rel); err == nil {
			if err := os.Symlink(target, to); err != nil {
				return err
			}
		} else if err := copyOut(root, rel, to); err != nil {
			return err
		}
		return unix.Unlinkat(fd, name, 0)
	})
}

// copyOut copies a regular file; others have no content.
func copyOut(root *os.Root, rel, to string) error {
	info, err := root.Lstat(rel)
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	if info.Size() > maxGitFileBytes {
		return errors.New("too large to be copied")
	}
	if err := root.Chmod(rel, info.Mode().Perm()|0o400); err != nil {
		return err
	}
	from, err := root.Open(rel)
	if err != nil {
		return err
	}
	defer from.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm()|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, from)
	if err = errors.Join(err, out.Close()); err != nil {
		_ = os.Remove(to)
	}
	return err
}

// withRights calls do with rights to a file's directory, even if a command removed the owner's
// rights to it or to a parent.
func withRights(root *os.Root, rel string, do func() error) error {
	err := do()
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	dir := ""
	for name := range strings.SplitSeq(filepath.Dir(rel), "/") { // from the top: each is needed to reach the next
		dir = filepath.Join(dir, name)
		info, err := root.Lstat(dir)
		if err != nil {
			return err
		}
		if mode := info.Mode().Perm(); mode&0o700 != 0o700 {
			if err := root.Chmod(dir, mode|0o700); err != nil {
				return err
			}
			defer root.Chmod(dir, mode)
		}
	}
	return do()
}

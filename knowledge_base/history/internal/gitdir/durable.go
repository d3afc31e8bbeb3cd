// Package gitdir writes files of a git repository durably, and objects into packs. It
// knows no commits and no branches.
package gitdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	DirMode  fs.FileMode = 0o700
	FileMode fs.FileMode = 0o600
)

// TempPrefix is what git, too, calls objects it is writing, so that its gc
// removes those a crash left.
const TempPrefix = "tmp_obj_"

// writeTemp writes a new synced file in dir.
func writeTemp(dir string, data []byte, mode fs.FileMode) (string, error) {
	f, err := os.CreateTemp(dir, TempPrefix+"*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// Replace puts data at a path of the repository git by a rename, durably. The
// temporary file lies beside no refs: git would take it for one.
func Replace(git, path string, data []byte) error {
	temp, err := writeTemp(git, data, FileMode)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return SyncDir(filepath.Dir(path))
}

// Sweep removes what dead writers left of replace, and of packs.
func Sweep(git string) error {
	for _, dir := range []string{git, filepath.Join(git, "objects", "pack")} {
		left, err := fs.Glob(os.DirFS(dir), TempPrefix+"*")
		if err != nil {
			return err
		}
		for _, name := range left {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// SyncDir makes the entries of a folder, or a file, durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}

func Exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func CopyPath(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			return os.MkdirAll(target, info.Mode().Perm()|DirMode)
		case d.Type() == fs.ModeSymlink:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		case !d.Type().IsRegular():
			return nil
		}
		in, err := os.Open(path)
		if err != nil {
			return err
		}
		defer in.Close()
		out, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm()|FileMode)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, in)
		return errors.Join(err, out.Close())
	})
}

// SyncTree makes all that is in a folder durable.
func SyncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() && !d.Type().IsRegular() {
			return err
		}
		return SyncDir(path)
	})
}

// Package gitdir writes files of a git repository durably, and objects into packs. It
// knows no commits and no branches.
package gitdir

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"anamnesis/opstream/durable"
)

// TempPrefix is what git, too, calls objects it is writing, so that its gc
// removes those a crash left.
const TempPrefix = "tmp_obj_"

// Replace puts data at a path of the repository git by a rename, durably. The
// temporary file lies beside no refs: git would take it for one.
func Replace(git, path string, data []byte) error {
	return replace(durable.OS{}, git, path, data)
}

func replace(fsys durable.FS, folder, path string, data []byte) error {
	if err := durable.WriteVia(fsys, filepath.Join(folder, TempPrefix+rand.Text()), path, data); err != nil {
		return err
	}
	return fsys.SyncDir(filepath.Dir(path))
}

// Sweep removes what dead writers left of Replace, and of packs.
func Sweep(git string) error {
	return errors.Join(durable.RemoveTemp(git, TempPrefix), durable.RemoveTemp(filepath.Join(git, "objects", "pack"), TempPrefix))
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
			return os.MkdirAll(target, info.Mode().Perm()|durable.DirMode)
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
		out, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm()|durable.FileMode)
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
		return durable.Sync(path)
	})
}

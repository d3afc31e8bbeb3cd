package durable

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// TempPrefix begins the names that [Temp] makes.
const TempPrefix = ".tmp-"

// Temp returns a name, which no other file has, for a temporary file beside path.
func Temp(path string) string { return filepath.Join(filepath.Dir(path), TempPrefix+rand.Text()) }

// WriteTemp makes a file with data and its content durable. After a failure it is removed.
func WriteTemp(fsys FS, temp string, data []byte) error { return write(fsys, temp, data, File.Sync) }

func write(fsys FS, temp string, data []byte, finish func(File) error) error {
	f, err := fsys.Open(temp, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	if err == nil {
		err = finish(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = fsys.Remove(temp) // best effort: the next writer of that name truncates it
	}
	return err
}

// WriteFile makes path a file with data: it writes a temporary file, syncs it, renames it and
// syncs the directory. When it returns nil, the new content survives a crash; at no moment is
// there a half-written file at path.
func WriteFile(fsys FS, path string, data []byte) error {
	err := WriteVia(fsys, Temp(path), path, data)
	if err == nil {
		err = fsys.SyncDir(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// WriteVia is WriteFile with a temporary file of a given name on the same file system. The
// caller syncs the directory.
func WriteVia(fsys FS, temp, path string, data []byte) error {
	if err := WriteTemp(fsys, temp, data); err != nil {
		return err
	}
	return rename(fsys, temp, path)
}

func rename(fsys FS, temp, path string) error {
	err := fsys.Rename(temp, path)
	if err != nil {
		_ = fsys.Remove(temp)
	}
	return err
}

// Replace writes a file by rename, with the folders above it: readers see the old content or
// the new. It does not wait for the disk.
func Replace(path string, data []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), DirMode); err != nil {
		return err
	}
	temp := Temp(path)
	if err := write(OS{Mode: mode}, temp, data, func(File) error { return nil }); err != nil {
		return err
	}
	return rename(OS{}, temp, path)
}

// Rewrite is Replace for a file that users edit: a link keeps its place and an existing file its
// mode. When it returns, the new content is on the disk.
func Rewrite(path string, data []byte, mode fs.FileMode) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	if err := os.MkdirAll(filepath.Dir(path), DirMode); err != nil {
		return err
	}
	return WriteFile(OS{Mode: mode}, path, data)
}

// Append adds data to the end of a file, creating it, and syncs it. After a failure the file is
// cut back to what it was. Other processes may append meanwhile.
func Append(fsys FS, path string, data []byte) (err error) {
	f, err := fsys.Open(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	// A file of OS has a lock. The files of other implementations, which inject faults, are opened by one process.
	if f, ok := f.(interface{ Lock() error }); ok {
		if err := f.Lock(); err != nil {
			return err
		}
	}
	size, err := f.Size()
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, size)
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		err = errors.Join(err, f.Truncate(size))
	}
	return err
}

// MakeDir makes a directory and its missing parents, each durable.
func MakeDir(fsys FS, dir string) error {
	parent := filepath.Dir(dir)
	err := fsys.Mkdir(dir)
	if errors.Is(err, fs.ErrNotExist) && parent != dir {
		if err := MakeDir(fsys, parent); err != nil {
			return err
		}
		// Once more only: an existing parent may be unable to hold anything, such as a dangling
		// link.
		err = fsys.Mkdir(dir)
	}
	existed := errors.Is(err, fs.ErrExist)
	if err != nil && !existed {
		return fmt.Errorf("make directory: %w", err)
	}
	// One that exists may be from a writer that died before its entry was durable. A parent of it
	// that cannot be opened was not made by this program.
	if err := fsys.SyncDir(parent); err != nil && !(existed && errors.Is(err, fs.ErrPermission)) {
		return fmt.Errorf("sync directory %s: %w", parent, err)
	}
	return nil
}

// RemoveTemp removes the temporary files of crashed writers from dir, which may be missing. Their
// names begin with prefix. The caller holds a lock, so that no other process writes.
func RemoveTemp(dir, prefix string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) {
			continue
		}
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

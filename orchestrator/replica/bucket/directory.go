package bucket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"anamnesis/opstream/durable"
)

// directory is a bucket on a file system that machines share. An object appears by a link, which exactly one
// of several processes can make, also over NFS.
type directory struct {
	root string
	seen *sync.Map // folders that were there
}

// tempPrefix begins the names of files that are being written. No object has such a name.
const tempPrefix = ".tmp-"

func (d directory) String() string { return d.root }

func (d directory) path(name string) string { return filepath.Join(d.root, filepath.FromSlash(name)) }

// reach returns an error if the storage is away: the root is not there, or a folder above path that was there.
func (d directory) reach(path string) error {
	_, err := os.Stat(d.root)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: there is no directory %s: make it, or mount its storage", ErrRefused, d.root)
	}
	for dir := filepath.Dir(path); err == nil && len(dir) > len(d.root); dir = filepath.Dir(dir) {
		_, was := d.seen.Load(dir) // before the look: another writer may make it just now
		if _, absent := os.Stat(dir); absent == nil {
			d.seen.Store(dir, nil)
		} else if was {
			return fmt.Errorf("%w: %s was there and is not: is the storage mounted?", ErrFails, dir)
		}
	}
	return d.fault(err)
}

func (d directory) Create(ctx context.Context, name string, data []byte) error {
	return d.write(ctx, name, data, func(temp, path string) error {
		err := os.Link(temp, path)
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s: %w", name, ErrExists)
		}
		return err
	})
}

func (d directory) Put(ctx context.Context, name string, data []byte) error {
	return d.write(ctx, name, data, os.Rename)
}

// write makes data durable in a temporary file, and then place gives it its name.
func (d directory) write(ctx context.Context, name string, data []byte, place func(temp, path string) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	path := d.path(name)
	if err := d.reach(path); err != nil { // storage that is not mounted must not be made here
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return d.fault(err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), tempPrefix)
	if err != nil {
		return d.fault(err)
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = place(f.Name(), path)
	}
	if err == nil {
		// The storage may have been unmounted meanwhile: then the file is beneath the place of the mount.
		err = errors.Join(durable.OS{}.SyncDir(filepath.Dir(path)), d.reach(path))
	}
	return d.fault(err)
}

func (d directory) Get(_ context.Context, name string) ([]byte, error) {
	if info, err := os.Stat(d.path(name)); err == nil && info.Size() > maxObjectBytes {
		return nil, nil
	}
	data, err := os.ReadFile(d.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		if err := d.reach(d.path(name)); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%s: %w", name, ErrAbsent)
	}
	return data, d.fault(err)
}

func (d directory) List(_ context.Context, prefix, after string) ([]string, error) {
	top := d.path(prefix[:strings.LastIndexByte(prefix, '/')+1])
	if err := d.reach(filepath.Join(top, tempPrefix)); err != nil {
		return nil, err
	}
	var names []string
	err := filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // nothing is stored there, or it was removed meanwhile
		}
		if err != nil || e.IsDir() || strings.HasPrefix(e.Name(), tempPrefix) {
			return err
		}
		rel, err := filepath.Rel(d.root, path)
		if name := filepath.ToSlash(rel); strings.HasPrefix(name, prefix) && name > after {
			names = append(names, name)
		}
		return err
	})
	slices.Sort(names)
	return names, d.fault(err)
}

func (d directory) Delete(_ context.Context, name string) error {
	err := os.Remove(d.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return d.fault(err)
}

// fault marks the errors that do not pass by themselves, and those that may.
func (d directory) fault(err error) error {
	switch {
	case err == nil, errors.Is(err, ErrExists):
		return err
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR),
		errors.Is(err, unix.EROFS):
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return fmt.Errorf("%w: %w", ErrFails, err)
}

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

	"golang.org/x/sys/unix"

	"anamnesis/opstream/durable"
)

// directory is a bucket on a file system that machines share. An object appears by a link, which exactly one
// of several processes can make, also over NFS.
type directory struct{ root string }

// tempPrefix begins the names of files that are being written. No object has such a name.
const tempPrefix = ".tmp-"

func (d directory) String() string { return d.root }

func (d directory) path(name string) string { return filepath.Join(d.root, filepath.FromSlash(name)) }

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
	if _, err := os.Stat(d.root); err != nil { // one that is not mounted is not made anew
		return d.fault(err)
	}
	path := d.path(name)
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
		err = durable.OS{}.SyncDir(filepath.Dir(path))
	}
	return d.fault(err)
}

func (d directory) Get(_ context.Context, name string) ([]byte, error) {
	if info, err := os.Stat(d.path(name)); err == nil && info.Size() > maxObjectBytes {
		return nil, nil
	}
	data, err := os.ReadFile(d.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(d.root); err != nil {
			return nil, d.fault(err)
		}
		return nil, fmt.Errorf("%s: %w", name, ErrAbsent)
	}
	return data, d.fault(err)
}

func (d directory) List(_ context.Context, prefix, after string) ([]string, error) {
	if _, err := os.Stat(d.root); err != nil {
		return nil, d.fault(err)
	}
	var names []string
	top := d.path(prefix[:strings.LastIndexByte(prefix, '/')+1])
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
	case errors.Is(err, fs.ErrPermission), errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EROFS):
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return fmt.Errorf("%w: %w", ErrFails, err)
}

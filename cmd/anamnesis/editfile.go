//go:build unix

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// editFile replaces a file with what edit gives, which reads it itself. Two
// processes wait for each other, and whoever reads sees the old file or the
// new one, also after a crash. Missing folders are made; the mode of a file
// that is there is kept.
func editFile(path string, dirMode, fileMode fs.FileMode, edit func() ([]byte, error)) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	folder, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer folder.Close() // and with it the lock
	for {
		if err = unix.Flock(int(folder.Fd()), unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("write %s: lock its folder: %w", path, err)
	}
	data, err := edit()
	if err != nil {
		return err
	}
	if info, err := os.Stat(path); err == nil {
		fileMode = info.Mode().Perm()
	}
	temp, err := os.CreateTemp(dir, ".tmp-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = temp.Write(data)
	err = errors.Join(err, temp.Chmod(fileMode), temp.Sync(), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, errors.Join(err, os.Remove(temp.Name())))
	}
	if err := folder.Sync(); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

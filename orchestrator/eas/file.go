// Package eas stores a home's evidence about effective attention spans beside the table:
// results of probes, published figures, and the proposals and decisions about changes of the
// table.
package eas

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"anamnesis/anamnesis/attention"
	"anamnesis/orchestrator/guard/consent"
	"anamnesis/orchestrator/session"
)

// PutRow writes one row into an overlay, under a lock and atomically. A shared file is
// readable by all users.
func PutRow(path string, r attention.Row, shared bool) error {
	dirMode, fileMode := fs.FileMode(0o700), fs.FileMode(0o600)
	if shared {
		dirMode, fileMode = 0o755, 0o644
	}
	// A link stays: its target is written.
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return editFile(path, dirMode, fileMode, func() ([]byte, error) {
		o, err := attention.ReadOverlay(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, session.Usagef("%v", err)
		}
		o.Name = path
		return attention.PutRow(o, r)
	})
}

// PutProjectRow writes one row into the file of a directory. What the user approved stays approved,
// with this row; in a file that had no approval, the row has none.
func PutProjectRow(dir string, trust *consent.Trust, r attention.Row) error {
	_, before, err := session.ProjectEAS(dir)
	if err != nil {
		return session.Usagef("%v", err)
	}
	approved, err := trust.Approved(before)
	if err != nil {
		return err
	}
	if err := PutRow(session.EASProjectFile(dir), r, true); err != nil || trust == nil || before.Hash != "" && !approved {
		return err
	}
	_, now, err := session.ProjectEAS(dir)
	if err != nil {
		return err
	}
	return trust.Approve(now)
}

// editFile replaces a file with the result of edit, which reads the file itself. The folder is
// locked meanwhile. A reader sees the old file or the new one, even after a crash. Missing
// folders are made; an existing file keeps its mode.
func editFile(path string, dirMode, fileMode fs.FileMode, edit func() ([]byte, error)) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	folder, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer folder.Close() // releases the lock
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

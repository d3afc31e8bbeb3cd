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

	"anamnesis/anamnesis/attention"
	"anamnesis/opstream/durable"
	"anamnesis/orchestrator/guard/consent"
	"anamnesis/orchestrator/session"
)

// PutRow writes one row into a user's overlay.
func PutRow(path string, r attention.Row) error { return putRow(path, r, 0o700, 0o600) }

func putRow(path string, r attention.Row, dirMode, fileMode fs.FileMode) error {
	// A link stays: its target's folder is locked.
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
// with this row; in a file that had no approval, the row has none. All users may read the file.
func PutProjectRow(dir string, trust *consent.Trust, r attention.Row) error {
	_, before, err := session.ProjectEAS(dir)
	if err != nil {
		return session.Usagef("%v", err)
	}
	approved, err := trust.Approved(before)
	if err != nil {
		return err
	}
	err = putRow(session.EASProjectFile(dir), r, 0o755, 0o644)
	if err != nil || trust == nil || before.Hash != "" && !approved {
		return err
	}
	_, now, err := session.ProjectEAS(dir)
	if err != nil {
		return err
	}
	return trust.Approve(now)
}

// editFile replaces a file with the result of edit, which reads the file itself. The folder is
// locked meanwhile, since a lock file would stay in a user's project. The modes are those of what
// is missing.
func editFile(path string, dirMode, fileMode fs.FileMode, edit func() ([]byte, error)) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	folder, err := durable.LockFolder(dir)
	if err != nil {
		return fmt.Errorf("write %s: lock its folder: %w", path, err)
	}
	defer folder.Close()
	data, err := edit()
	if err != nil {
		return err
	}
	if err := durable.Rewrite(path, data, fileMode); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

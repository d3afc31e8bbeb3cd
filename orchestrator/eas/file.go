// Package eas stores a home's evidence about effective attention spans beside the table:
// results of probes, published figures, and the proposals and decisions about changes of the
// table.
package eas

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"anamnesis/anamnesis/attention"
	"anamnesis/opstream/durable"
	"anamnesis/orchestrator/session"
)

// PutRow writes one row into a user's overlay.
func PutRow(path string, r attention.Row) error {
	// A link stays: its target's folder is locked.
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return editFile(path, func() ([]byte, error) {
		o, err := attention.ReadOverlay(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, session.Usagef("%v", err)
		}
		o.Name = path
		return attention.PutRow(o, r)
	})
}

// editFile replaces a file with the result of edit, which reads the file itself. The folder is
// locked meanwhile, since a lock file would stay among the user's own files.
func editFile(path string, edit func() ([]byte, error)) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
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
	if err := durable.Rewrite(path, data, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// readJSON reads a file into v, which stays as it is if there is none.
func readJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	return err
}

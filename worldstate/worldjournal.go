package worldstate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/restore"
)

func (w *World) journalPath() string {
	return filepath.Join(w.store, fsys.StateDir, restore.JournalPrefix+w.key)
}

// checkNoJournal refuses to go on over an interrupted restore.
func (w *World) checkNoJournal() error {
	switch _, err := fsys.Lstatat(unix.AT_FDCWD, w.journalPath()); {
	case err == nil:
		return fmt.Errorf("world %s: %w", w.dir, ErrUnfinished)
	case !errors.Is(err, unix.ENOENT):
		return fmt.Errorf("world %s: read journal: %w", w.dir, err)
	}
	return nil
}

func (w *World) writeJournal(j *restore.Journal) error {
	return fsys.WriteFileDurably(w.journalPath(), j.Encode())
}

// readJournal gives the interrupted restore's journal, nil when there is none.
func (w *World) readJournal() (*restore.Journal, error) {
	data, err := os.ReadFile(w.journalPath())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read journal: %w", err)
	}
	j, err := restore.DecodeJournal(data)
	if err == nil && j.World != w.key {
		err = errors.New("it is another world's")
	}
	if err != nil {
		return nil, fmt.Errorf("read journal %s: %w: %w", w.journalPath(), gitfmt.ErrCorrupt, err)
	}
	return j, nil
}

func (w *World) removeJournal() error {
	if err := os.Remove(w.journalPath()); err != nil {
		return fmt.Errorf("remove journal: %w", err)
	}
	return fsys.SyncDir(filepath.Dir(w.journalPath()))
}

package replica

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"anamnesis/opstream/durable"
	"anamnesis/orchestrator/taskdir"
)

// Cursor is how far a home's copy of a task agrees with the task's log. It is a file beside the root's stream:
// a task with it is one that is kept in a bucket.
type Cursor struct {
	Remote string `json:"remote"` // the bucket's address
	Task   string `json:"task"`   // of the root
	Last   About  `json:"last"`   // the last object
	Sum    string `json:"sum"`    // its SHA-256, as hex
	Own    string `json:"own"`    // the last process of this home that held the task
	// Project: a project's file named the bucket, not the user.
	Project bool `json:"project,omitempty"`
	// Place identifies the directory where this home left the task's files as the log has them; empty: there is none.
	Place string `json:"place,omitempty"`
	// Records: the log's snapshots were left out.
	Records bool `json:"records,omitempty"`
	// Of each stream: its last line in the log, where that ends, and how much of its vault the log has.
	Seqs   map[string]uint64 `json:"seqs"`
	Ends   map[string]end    `json:"ends"`
	Vaults map[string]int64  `json:"vaults,omitempty"`
}

type end struct {
	File string `json:"file"`
	Size int64  `json:"size"`
}

// Left reports whether a directory is the one where this home left the task's files. An empty one has lost them.
func (c *Cursor) Left(dir string) bool {
	entries, _ := os.ReadDir(dir)
	return len(entries) > 0 && c.Place == durable.Identity(dir)
}

func cursorPath(h taskdir.Home, task string) string {
	return filepath.Join(h.Task(task), taskdir.RemoteName)
}

// ReadCursor reads the cursor of a task's root; nil: the task is kept in this home alone.
func ReadCursor(h taskdir.Home, task string) (*Cursor, error) {
	data, err := os.ReadFile(cursorPath(h, task))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	c := new(Cursor)
	if err == nil {
		err = json.Unmarshal(data, c)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", cursorPath(h, task), err)
	}
	return c, nil
}

// write replaces the file. It need not be durable: with an older one, objects are read again that are applied
// already.
func (c *Cursor) write(h taskdir.Home) error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	path := cursorPath(h, c.Task)
	if err := durable.WriteVia(durable.OS{}, path+".tmp", path, data); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func (c *Cursor) move(task string, m mark) {
	if c.Seqs == nil {
		c.Seqs, c.Ends, c.Vaults = make(map[string]uint64), make(map[string]end), make(map[string]int64)
	}
	c.Seqs[task], c.Vaults[task] = m.seq, m.vault
	if m.file != "" {
		c.Ends[task] = end{m.file, m.end}
	}
}

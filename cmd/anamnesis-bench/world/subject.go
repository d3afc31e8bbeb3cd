//go:build unix

package world

import (
	"context"
	"path/filepath"
)

// A subject saves and restores the one tree into a store of its own.
type subject interface {
	info() info
	// fresh forgets everything: the next save is a first save.
	fresh(ctx context.Context) error
	// save returns what names the saved state, and its git tree id, "" where there is none.
	save(ctx context.Context) (id, tree string, err error)
	restore(ctx context.Context, id string) error
	close()
}

// A syncer's restore returns before it is durable; sync waits for that.
type syncer interface{ sync() error }

// info is what the runner must know of a subject.
type info struct {
	name        string
	reference   bool // what ours is measured against
	restoreOnly bool
}

// The subjects' names.
const (
	nameScan    = "scan"      // ours in process, the store open
	nameProgram = "cli"       // a process of this program each time
	nameGit     = "git"       // shadow git add -A && git write-tree; git read-tree --reset -u
	nameReset   = "git-reset" // git reset --hard instead
)

// Subjects lists their names.
func Subjects() []string {
	return []string{nameScan, nameProgram, nameGit, nameReset}
}

// newSubjects makes all subjects, with their stores under top.
func newSubjects(top, tree, binary string) []subject {
	at := func(name string) string { return filepath.Join(top, name) }
	plain := &shadow{repo: at(nameGit), work: tree}
	list := []subject{
		&ours{who: info{name: nameScan}, store: at(nameScan), dir: tree},
		plain,
		&resetting{shadow: plain},
	}
	if binary != "" {
		list = append(list, &program{binary: binary, store: at(nameProgram), dir: tree})
	}
	return list
}

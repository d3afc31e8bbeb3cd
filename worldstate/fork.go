package worldstate

import (
	"context"
	"fmt"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/restore"
)

// A Forked is a directory made of a snapshot.
type Forked struct {
	ID    ID     `json:"id"`
	Dir   string `json:"dir"` // absolute, without symbolic links
	Tree  string `json:"tree"`
	Files int    `json:"files"` // files and links
	// Missing lists what was in the world and has no bytes in the snapshot.
	Missing []Skip `json:"missing"`
}

// Fork makes the directory target of a snapshot: bytes, modes, links and empty
// directories as they were. It is built beside under a new name, made
// durable, and renamed: target is there whole or not at all. What killed forks
// left in target's parent is removed first. Whoever builds holds a lock on its
// directory, so no fork under way is taken for a leftover.
//
// target must not exist, nor lie in this world or its store; its parent must
// exist. ErrRefused otherwise, and where another process forks to the same target
// and ends first. The new directory is a world of its own.
func (w *World) Fork(ctx context.Context, id ID, target string) (Forked, error) {
	end, err := w.begin(ctx, reading)
	if err != nil {
		return Forked{}, err
	}
	defer end()
	f, err := w.fork(ctx, id, target)
	if err != nil {
		return Forked{}, fmt.Errorf("fork %s: %w", gitfmt.Short(id), err)
	}
	return f, nil
}

func (w *World) fork(ctx context.Context, id ID, target string) (f Forked, err error) {
	c, err := w.byID(id)
	if err != nil {
		return f, err
	}
	list, err := w.tree(c.Tree)
	if err != nil {
		return f, err
	}
	dir, err := restore.Fork(ctx, w.effects(), target, list, []restore.Outside{{Dir: w.dir, What: "the world"}, {Dir: w.store, What: "the store"}})
	if err != nil {
		return f, err
	}
	f = Forked{ID: id, Dir: dir, Tree: c.Tree.String(), Files: list.Files(), Missing: c.Skips}
	if f.Missing == nil {
		f.Missing = []Skip{}
	}
	return f, nil
}

type plainForked Forked

// MarshalJSON adds dir_bytes where the directory's path is not UTF-8.
func (f Forked) MarshalJSON() ([]byte, error) { return gitfmt.MarshalNames((*plainForked)(&f)) }

package worldstate

import (
	"context"
	"fmt"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/restore"
)

// A Forked is a directory that was created from a snapshot.
type Forked struct {
	ID    ID     `json:"id"`
	Dir   string `json:"dir"` // absolute, without symbolic links
	Tree  string `json:"tree"`
	Files int    `json:"files"` // files and links
	// Missing lists paths of the world whose bytes the snapshot does not hold.
	Missing []Skip `json:"missing"`
}

// Fork creates the directory target from a snapshot: bytes, modes, links and empty directories.
// It builds it under a temporary name in target's parent, makes it durable, and renames it, so
// that target exists completely or not at all. It first removes what killed forks left in the
// parent. A running fork holds a lock on its directory and is not taken for a leftover.
//
// ErrRefused: target exists, its parent does not, or it is inside this world or its store; or
// another process has forked to the same target. The new directory is a world of its own.
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
	outside := []restore.Outside{{Dir: w.dir, What: "the world"}, {Dir: w.store, What: "the store"}}
	dir, err := restore.Fork(ctx, w.effects(), target, list, outside)
	if err != nil {
		return f, err
	}
	f = Forked{ID: id, Dir: dir, Tree: c.Tree.String(), Files: list.Files(), Missing: append([]Skip{}, c.Skips...)}
	return f, nil
}

type plainForked Forked

// MarshalJSON adds dir_bytes where the directory's path is not UTF-8.
func (f Forked) MarshalJSON() ([]byte, error) { return gitfmt.MarshalNames((*plainForked)(&f)) }

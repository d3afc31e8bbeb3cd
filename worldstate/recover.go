package worldstate

import (
	"context"
	"fmt"
	"strings"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/refs"
	"anamnesis/worldstate/internal/restore"
)

// A Recovery is what Recover did about an interrupted restore.
type Recovery struct {
	Source ID `json:"source"`
	Target ID `json:"target"`
	// Finished: the world is at the target. Otherwise it is at the source, or
	// Dropped: its files were removed since, and it was left as it is, or
	// Abandoned.
	Finished  bool   `json:"finished"`
	Dropped   bool   `json:"dropped,omitempty"`
	Abandoned bool   `json:"abandoned,omitempty"`
	Reason    string `json:"reason,omitempty"` // why it was rolled back
	Kept      []Skip `json:"kept"`             // changed by another program since; left alone
}

// checkNoJournal returns ErrUnfinished for an interrupted restore.
func (w *World) checkNoJournal() error {
	there, err := w.journal.Exists()
	switch {
	case err != nil:
		return fmt.Errorf("world %s: read journal: %w", w.dir, err)
	case there:
		return fmt.Errorf("world %s: %w", w.dir, ErrUnfinished)
	}
	return nil
}

// Recover finishes a restore that was interrupted, or rolls it back when it
// cannot be finished. One whose files were all removed since is dropped. nil:
// there was none. Call it before Save or Plan when they return ErrUnfinished;
// every command of the program does.
func (w *World) Recover(ctx context.Context) (*Recovery, error) {
	end, err := w.begin(ctx, changing)
	if err != nil {
		return nil, err
	}
	defer end()
	j, err := w.journal.Read()
	if err != nil {
		return nil, w.stuck(err)
	}
	if j == nil {
		return nil, nil
	}
	root, err := fsys.OpenRoot(w.dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	r := &Recovery{Source: ID(j.Source.String()), Target: ID(j.Target.String()), Kept: []Skip{}}
	// A store that cannot say what was there leaves it to the executor.
	if source, err := w.listing(r.Source); err == nil && restore.Swept(root.Fd, source, j.Actions) {
		r.Dropped, w.unsettled = true, nil
		return r, w.journal.Remove()
	}
	x := restore.New(w.effects(), root.Fd, j, restore.Resumed)
	x.SweepTemps(j.Actions)
	if err := x.Run(j.Actions); err != nil {
		var berr error
		if x, berr = restore.Undo(w.effects(), root.Fd, j); berr != nil {
			return nil, fmt.Errorf("recover %s: %w", w.dir, w.stuck(fmt.Errorf("%w; roll back: %w", err, berr)))
		}
		r.Reason, j.Head = err.Error(), j.Source
	} else {
		r.Finished = true
	}
	r.Kept = append(r.Kept, x.Kept...)
	if err := x.Sync(); err != nil {
		return nil, fmt.Errorf("recover %s: %w", w.dir, w.stuck(err))
	}
	if err := w.refs.Update(map[string]gitfmt.Hash{refs.WorldPrefix + w.key: j.Head}); err != nil {
		return nil, err
	}
	if err := w.journal.Remove(); err != nil {
		return nil, err
	}
	w.unsettled = nil
	return r, nil
}

// Abandon gives up an interrupted restore that Recover can neither finish nor roll
// back. nil: there was none. No file of the world is written or deleted: some
// paths are as the target has them, the others as the source does, and what
// differs from the snapshot the world was last known at counts as edited from here
// on. Both ends stay in the store. Only the restore's own half-written files are
// removed, as far as they can be, and read-only directories that it had opened get
// their modes back.
func (w *World) Abandon(ctx context.Context) (*Recovery, error) {
	end, err := w.begin(ctx, changing)
	if err != nil {
		return nil, err
	}
	defer end()
	j, err := w.journal.Read()
	if j == nil && err == nil {
		return nil, nil
	}
	r := &Recovery{Abandoned: true, Kept: []Skip{}}
	if err == nil { // of one that cannot be read nothing is known
		r.Source, r.Target = ID(j.Source.String()), ID(j.Target.String())
		if root, err := fsys.OpenRoot(w.dir); err == nil {
			restore.New(w.effects(), root.Fd, j, restore.Resumed).Tidy(j)
			root.Close()
		}
	}
	w.unsettled = nil
	return r, w.journal.Remove()
}

// stuck names the command that gives up an interrupted restore.
func (w *World) stuck(err error) error {
	return fmt.Errorf("%w; remove the cause, or give the restore up and leave the files as they are: %s", err, w.abandonCommand())
}

func (w *World) abandonCommand() string {
	task := ""
	if w.opts.Task != defaultTask {
		task = "--task " + w.opts.Task + " "
	}
	return "anamnesis world abandon " + task + "--dir " + shellWord(w.dir) + " --store " + shellWord(w.store)
}

// shellWord quotes a word for a shell, where it needs that.
func shellWord(s string) string {
	if strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+:@%", r))
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

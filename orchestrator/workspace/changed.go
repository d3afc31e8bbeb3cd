package workspace

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
	"anamnesis/worldstate"
)

var ErrUnsaved = errors.New("the world as it is now cannot be saved")

// present returns the last snapshot of the world, a step's or not; no commit if the current
// step has none.
func (p *Place) present() (SavedWorld, error) {
	if n := p.State().World.Now; n.Commit != "" {
		return SavedWorld{Step: p.State().Current, Commit: worldstate.ID(n.Commit), Tree: n.Tree}, nil
	}
	return p.WorldOf(p.State().Current)
}

// SeeNow is see with the folded state, and folds what was posted.
func (p *Place) SeeNow(ctx context.Context) (worldstate.Snapshot, error) {
	var err error
	if p.seen, err = p.present(); err != nil {
		return worldstate.Snapshot{}, err
	}
	snap, err := p.see(ctx, byOthers)
	if err != nil {
		return snap, err
	}
	return snap, p.ApplyQueued()
}

// changer is the author of the changes that a look at the directory finds.
type changer int

const (
	byOthers changer = iota // the user, or what runs in the background
	byCalls                 // the calls of the step under way
)

// see saves the present world and posts what changed since p.seen, as made by by.
func (p *Place) see(ctx context.Context, by changer) (worldstate.Snapshot, error) {
	was := p.seen
	parent, err := p.commitOf(was)
	if err != nil {
		return worldstate.Snapshot{}, err
	}
	message := "changed outside the agent's calls"
	if by == byCalls {
		message = fmt.Sprintf("in step %d, before a wait for the user", p.State().Steps.Next())
	}
	seq, _ := p.Journal.Log().Last()
	began := time.Now()
	o := worldstate.SaveOptions{Message: message, Parent: parent, Ref: fmt.Sprintf("changed-%d", seq)}
	snap, replaced, err := p.save(ctx, o)
	if err != nil {
		return snap, fmt.Errorf("%w: %w", ErrUnsaved, err)
	}
	if replaced && was.Commit == "" {
		was.Commit = p.lastSaved()
	}
	// A wait in mid-step: what the calls wrote so far is the agent's, and what others wrote beside them is not.
	if by == byCalls && !replaced {
		p.partial, p.gone = append(p.partial, snap.ChangedPaths...), append(p.gone, snap.IgnoredGone...)
		theirs, _, err := p.beside(ctx, snap, began)
		if err != nil {
			return snap, err
		}
		for _, b := range theirs {
			if err := p.postChange(ctx, b); err != nil {
				return snap, err
			}
		}
	} else {
		p.Sandbox.writes.Drain()
		p.authors.reset(began)
	}
	// A look after calls is recorded even if nothing changed: it ends their time, and what changes from here on is the
	// user's. An empty directory was lost, not edited, and after a lost parent there is nothing to compare with.
	if (snap.ID == was.Commit || Lost(snap)) && by == byOthers || snap.ParentLost != "" {
		return snap, nil
	}
	author := p.author()
	switch {
	case replaced && was.Commit != "":
		author = state.ChangedUnknown
	// There is no change to tell or to keep: the record only names the new snapshot.
	case by == byCalls || was.Commit == "" || snap.Tree == was.Tree:
		author = state.ChangedByAgent
	}
	b, err := p.changeOf(ctx, author, was.Commit, "", snap)
	if err != nil {
		return snap, err
	}
	p.seen = SavedWorld{Step: was.Step, Commit: snap.ID, Tree: snap.Tree}
	return snap, p.postChange(ctx, b)
}

// author returns whose a change is that no call of this task made.
func (p *Place) author() string {
	author := state.ChangedByUser
	p.Journal.ReadQueue(func(queue []op.Op) {
		begun := func(o op.Op) bool { _, ok := o.Body.(*op.JobStarted); return ok }
		if p.State().AuthorUnknown() || slices.ContainsFunc(queue, begun) { // a call of this reply began it
			author = state.ChangedUnknown
		}
	})
	return author
}

// changeOf describes the change between two snapshots, without what equals a third one, if
// given.
func (p *Place) changeOf(ctx context.Context, by string, was, or worldstate.ID, snap worldstate.Snapshot) (
	*op.WorldChanged, error) {
	b := &op.WorldChanged{By: by, From: string(was), Or: string(or), To: string(snap.ID), Tree: snap.Tree}
	if by == state.ChangedByAgent {
		return b, nil
	}
	list, err := p.World.Diff(ctx, was, snap.ID)
	if err == nil && or != "" {
		var other []worldstate.Change
		other, err = p.World.Diff(ctx, or, snap.ID)
		list = InBoth(list, other)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: list what changed: %w", ErrUnsaved, err)
	}
	describe(b, list, false)
	return b, nil
}

// describe adds what changed; during: while calls of the task ran.
func describe(b *op.WorldChanged, list []worldstate.Change, during bool) {
	b.Changed, b.NChanged = notice.FirstN(notice.Paths(list), notice.MaxListed), len(list)
	b.Notice = notice.Changed(b.By, list, during)
}

// changedMeanwhile describes what others changed while a jump or a restore moved the files
// from source to target, possibly in an earlier process: the paths that equal neither. It
// returns nil if there are none. The notice of the jump or the restore informs the model.
func (p *Place) changedMeanwhile(ctx context.Context, source, target worldstate.ID, snap worldstate.Snapshot) (
	*op.WorldChanged, error) {
	if Lost(snap) {
		return nil, nil // a missing directory is not a deletion of each of its files
	}
	by := p.author()
	if p.Abandon {
		by = state.ChangedUnknown // a directory's mode may be the restore's
	}
	b, err := p.changeOf(ctx, by, source, target, snap)
	if err != nil || b.NChanged == 0 {
		return nil, err
	}
	b.Notice = ""
	return b, nil
}

// postChange posts a change. A change by a subagent in the task's own directory is also posted
// to the task that began it, whose jumps may go back further.
func (p *Place) postChange(ctx context.Context, b *op.WorldChanged) error {
	if above := p.Changed; above != nil && b.By != state.ChangedByAgent {
		told := *b
		told.Task = p.ID
		if err := above(ctx, &told); err != nil {
			return err
		}
	}
	return p.Journal.Post(ctx, b)
}

// quiet returns the change that a step without writing calls did not make; nil if the snapshot
// it ends with is its own.
func (p *Place) quiet(ctx context.Context, snap worldstate.Snapshot) (*op.WorldChanged, error) {
	if p.State().World.Dirty || p.seen.Commit == "" || p.seen.Tree == snap.Tree || snap.ParentLost != "" || Lost(snap) {
		return nil, nil
	}
	return p.changeOf(ctx, p.author(), p.seen.Commit, "", snap)
}

// BeginCalls looks at the world before the first call of a reply that may write.
func (p *Place) BeginCalls(ctx context.Context, writes bool) error {
	var err error
	if p.seen, err = p.present(); err != nil {
		return err
	}
	p.dirty, p.looked = p.State().World.Dirty, false
	p.authors.crashed = p.authors.crashed || p.dirty
	if writes {
		return p.beforeWrite(ctx)
	}
	if p.dirty { // what calls did before a crash is theirs, what changes from here on is not
		return p.BeforeWait(ctx)
	}
	return nil
}

// beforeWrite looks at the world before a call that may write, unless such a call ran since
// the last look.
func (p *Place) beforeWrite(ctx context.Context) error {
	if p.dirty || p.looked {
		return nil
	}
	p.looked = true
	return p.trySee(ctx, byOthers)
}

// BeginCall records that a call begins, in one write with the decisions that let it. Before a call
// that may write it looks at the world.
func (p *Place) BeginCall(ctx context.Context, called *op.ToolCalled, decisions ...op.Body) error {
	if called.Changes {
		if err := p.beginWrite(ctx); err != nil {
			return err
		}
	}
	return p.Journal.Post(ctx, append(decisions, called)...)
}

func (p *Place) beginWrite(ctx context.Context) error {
	p.calls.Lock()
	defer p.calls.Unlock()
	err := p.beforeWrite(ctx)
	p.dirty = p.dirty || err == nil
	p.authors.begun++
	return err
}

// ChangedSinceLast records what changed since the task last worked, as made by its calls, and
// returns it. Most of it is from the task that began this one.
func (p *Place) ChangedSinceLast(ctx context.Context) ([]worldstate.Change, error) {
	var err error
	if p.seen, err = p.present(); err != nil || p.seen.Commit == "" {
		return nil, err
	}
	last := p.seen.Commit
	now, err := p.see(ctx, byCalls)
	if err != nil {
		return nil, err
	}
	return p.World.Diff(ctx, last, now.ID)
}

// BeforeWait records the changes by the calls so far, so that changes during a question count
// as the user's.
func (p *Place) BeforeWait(ctx context.Context) error {
	p.calls.Lock()
	defer p.calls.Unlock()
	wrote := p.dirty
	p.dirty, p.looked = false, false
	if !wrote {
		return nil
	}
	return p.trySee(ctx, byCalls)
}

// trySee is see for cases in which the task continues even if the world cannot be saved: the
// end of the step reports it.
func (p *Place) trySee(ctx context.Context, by changer) error {
	_, err := p.see(ctx, by)
	if errors.Is(err, ErrUnsaved) {
		return nil
	}
	return err
}

// Adopt begins a process's work. What differs from the task's last snapshot is the user's, as
// between all turns. If that cannot be said, because the last step ended without the directory, or
// because the user named another one after a step without a checkpoint or an interrupted call, the
// author is unknown: it is recorded here, so that jumps keep it as well.
func (p *Place) Adopt(ctx context.Context, named bool) error {
	s := p.State()
	was, err := p.present()
	unsure := s.World.Gone || named && (was.Commit == "" || s.World.Dirty)
	if err != nil || !unsure || s.Jump.Intended != nil || s.World.Restoring != nil {
		return err
	}
	was.Commit = cmp.Or(was.Commit, p.lastSaved())
	seq, _ := p.Journal.Log().Last()
	snap, err := p.World.Save(ctx, worldstate.SaveOptions{
		Message: "continued in a directory that the user named",
		Parent:  was.Commit, Ref: fmt.Sprintf("changed-%d", seq),
	})
	if err != nil || was.Commit == "" || snap.ID == was.Commit || Lost(snap) || snap.ParentLost != "" {
		return err
	}
	b, err := p.changeOf(ctx, state.ChangedUnknown, was.Commit, "", snap)
	if err != nil {
		return err
	}
	if err := p.postChange(ctx, b); err != nil {
		return err
	}
	return p.ApplyQueued()
}

// SeenTree returns the tree of the last snapshot, empty if there is none.
func (p *Place) SeenTree() string { return p.seen.Tree }

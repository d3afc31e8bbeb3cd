package workspace

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

// authors finds out who changed a path while calls of the task ran.
//
// File tools name what they write, and the supervisor of a command sees what it opens for
// writing, creates, renames or removes. If every writing call of a step is one of these, a
// change that none of them made is another program's. Otherwise that is unknown.
type authors struct {
	begun, noted int           // writing calls of this process since the last snapshot; those whose writes are known
	crashed      bool          // a call of an earlier process ran, too
	tools        guard.Written // what file tools wrote
	since        time.Time     // when the last snapshot was begun
	// others counts how often others changed a path, as far as the record says and this process
	// saw; read is how many changes of the record it includes.
	others map[string]int
	read   int
}

// often is the count of a path that others go on changing, as a server does that writes a log.
// A change while a call ran counts so at once. A call that writes such a path may have mixed its
// changes with theirs.
const often = 2

func (a *authors) reset(now time.Time) {
	a.begun, a.noted, a.crashed, a.tools, a.since = 0, 0, false, nil, now
}

func (a *authors) add(list []worldstate.Change, n int) {
	if a.others == nil {
		a.others = make(map[string]int)
	}
	for _, c := range list {
		a.others[strings.TrimSuffix(c.Path, "/")] += n
	}
}

// RecordWrites records what a call that may write has written, apart from what its commands did.
// complete: paths are all that it wrote; command: it ran one, whose writes the sandbox may observe.
func (p *Place) RecordWrites(paths []string, complete, command bool) {
	p.calls.Lock()
	defer p.calls.Unlock()
	if complete || command && p.Sandbox.observes() {
		p.authors.noted++
	}
	if p.authors.tools == nil {
		p.authors.tools = make(guard.Written)
	}
	for _, path := range paths {
		p.authors.tools[path] = true
	}
}

// beside returns the changes up to a snapshot, which calls of the task ran before, that are not
// the calls' or may not be, and whether the authors are known. began is when the snapshot was.
func (p *Place) beside(ctx context.Context, snap worldstate.Snapshot, began time.Time) (
	out []*op.WorldChanged, known bool, err error) {
	a := &p.authors
	commands := p.Sandbox.writes.Drain()
	parent := p.State().Opened.Parent
	// What commands wrote is known only if the sandbox reported on each of them, and nobody else works for the
	// task here.
	alone := !p.State().Subagents.InWorld() && (parent == nil || parent.Fork)
	known = alone && a.begun > 0 && a.begun == a.noted && !a.crashed
	since, tools := a.since, a.tools
	a.reset(began)
	if p.seen.Commit == "" || p.seen.Tree == snap.Tree || snap.ParentLost != "" || Lost(snap) {
		return nil, known, nil
	}
	if err := p.readOthers(ctx); err != nil {
		return nil, known, err
	}
	list, err := p.World.Diff(ctx, p.seen.Commit, snap.ID)
	if err != nil {
		return nil, known, fmt.Errorf("%w: list what changed: %w", ErrUnsaved, err)
	}
	var theirs, unsure []worldstate.Change
	for _, c := range list {
		n := a.others[strings.TrimSuffix(c.Path, "/")]
		ours := commands.Has(c.Path)
		switch {
		// A file that others have changed often, such as a log, says little about who changed it this time.
		case !known && n > 0, known && ours && n >= often:
			unsure = append(unsure, c)
		case known && !ours && !tools.Has(c.Path) && p.happened(c, since):
			theirs = append(theirs, c)
		}
	}
	for _, part := range []struct {
		by   string
		list []worldstate.Change
	}{{state.ChangedByUser, theirs}, {state.ChangedUnknown, unsure}} {
		if len(part.list) == 0 {
			continue
		}
		b := &op.WorldChanged{By: part.by, From: string(p.seen.Commit), To: string(snap.ID), Tree: snap.Tree}
		describe(b, part.list, true)
		for _, c := range part.list {
			b.Only = append(b.Only, strings.TrimSuffix(c.Path, "/"))
		}
		out = append(out, b)
	}
	return out, known, nil
}

// happened reports whether a change was made to the files since a time: new ignore rules, or a
// new index of the user's git, also change what a snapshot holds.
func (p *Place) happened(c worldstate.Change, since time.Time) bool {
	var st unix.Stat_t
	err := unix.Lstat(filepath.Join(p.Dir, filepath.FromSlash(strings.TrimSuffix(c.Path, "/"))), &st)
	switch c.Kind {
	case worldstate.Deleted:
		return err != nil
	case worldstate.Added:
		const coarse = 20 * time.Millisecond // the granularity of time stamps
		return err != nil || time.Unix(st.Ctim.Unix()).After(since.Add(-coarse))
	}
	return true
}

// readOthers adds what the record says of changes by others.
func (p *Place) readOthers(ctx context.Context) error {
	seqs := p.State().World.Changes
	for ; p.authors.read < len(seqs); p.authors.read++ {
		b, err := taskdir.ReadBody[*op.WorldChanged](p.Journal.Log(), seqs[p.authors.read])
		if err != nil {
			return err
		}
		list, err := p.World.Diff(ctx, worldstate.ID(b.From), worldstate.ID(b.To))
		if err != nil {
			continue // the snapshots are lost
		}
		n := 1
		if len(b.Only) > 0 {
			n = often
		}
		p.authors.add(onlyPaths(list, b.Only), n)
	}
	p.authors.read = len(seqs) // after a jump that overwrites, the state lists fewer
	return nil
}

// onlyPaths returns the changes with these paths, all without any.
func onlyPaths(list []worldstate.Change, only []string) []worldstate.Change {
	if len(only) == 0 {
		return list
	}
	named := make([]worldstate.Change, len(only))
	for i, path := range only {
		named[i].Path = path
	}
	return InBoth(list, named)
}

package inspect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/workspace"
	"anamnesis/worldstate"
)

// Finding is one result of a task's examination.
type Finding struct {
	Severity opstream.Severity `json:"severity"`
	Where    string            `json:"where"` // a file, a commit, an operation
	Why      string            `json:"why"`
}

func (f Finding) String() string { return fmt.Sprintf("%s: %s: %s", f.Severity, f.Where, f.Why) }

// Diagnosis is the result of Examine. A task without findings of severity corrupt or torn is
// whole.
type Diagnosis struct {
	Task     string    `json:"task"`
	Ops      uint64    `json:"ops"`     // verified records
	Blobs    int       `json:"blobs"`   // distinct ones named by records
	Commits  int       `json:"commits"` // distinct ones named by operations
	Findings []Finding `json:"findings"`
	Omitted  int       `json:"omitted,omitempty"` // findings beyond MaxFindings
	// NotExamined is why the task was not examined; callers that examine several set it.
	NotExamined string `json:"not_examined,omitempty"`
}

// MaxFindings is how many findings a diagnosis lists; the rest are counted.
const MaxFindings = opstream.MaxFindings

// Has reports whether there is a finding of a severity.
func (d *Diagnosis) Has(s opstream.Severity) bool {
	return slices.ContainsFunc(d.Findings, func(f Finding) bool { return f.Severity == s })
}

func (d *Diagnosis) add(s opstream.Severity, where, format string, args ...any) {
	if len(d.Findings) == MaxFindings {
		d.Omitted++
		if s == opstream.SeverityCorrupt && !d.Has(s) { // keep the worst visible
			d.Findings[MaxFindings-1] = Finding{s, where, fmt.Sprintf(format, args...)}
		}
		return
	}
	d.Findings = append(d.Findings, Finding{s, where, fmt.Sprintf(format, args...)})
}

// lostOps ends what is found of a store whose task has no stream.
const lostOps = " holds snapshots of a task with this name: its operations are lost"

// examination is the state of Examine.
type examination struct {
	Diagnosis
	h      taskdir.Home
	id     string
	opened *op.TaskOpened // as folded, if the stream can be
	store  string
	begun  time.Time           // of the first record
	named  map[string][]string // commits, and the operations that name them
	hashes map[uint64]string   // of the lines that commits name
	last   uint64
	marked bool // an operation holds a marker
}

// Examine verifies everything a task depends on: each line, its place in the chain and its
// blob; that the operations fold; that the commits of the world they name exist and are
// intact; that the stream holds the operation each commit says it was made after, which
// detects a lost end; and the vault. It changes nothing and works on a running task. An error
// means that it could not examine: ErrNoTask, or ctx's.
func Examine(ctx context.Context, h taskdir.Home, id string) (Diagnosis, error) {
	if err := taskdir.CheckTaskID(id); err != nil {
		return Diagnosis{}, err
	}
	x := &examination{h: h, id: id, named: map[string][]string{}, hashes: map[uint64]string{}}
	x.Task, x.Findings = id, []Finding{}
	r, err := opstream.OpenReader(h.Task(id), nil)
	if errors.Is(err, opstream.ErrNotFound) {
		if !h.HasTask(id) {
			return Diagnosis{}, h.NoTask(id)
		}
		store := x.storeOfLost()
		if store == "" {
			return Diagnosis{}, fmt.Errorf("%w: %s: %s has no stream, and there are no snapshots of such a task",
				taskdir.ErrNoTask, id, h.Task(id))
		}
		x.corrupt(h.Task(id), "there is no stream in it, and %s"+lostOps, store)
		return x.Diagnosis, nil
	}
	if err != nil {
		return Diagnosis{}, err
	}
	defer r.Close()
	x.readOpened(r)
	// The world is opened before the stream: commits that a running task adds meanwhile are
	// then in the stream.
	world, commits, err := x.openWorld(ctx)
	if err != nil {
		return Diagnosis{}, err
	}
	if world != nil {
		defer world.Close()
	}
	if err := x.stream(ctx, r, commits); err != nil {
		return Diagnosis{}, err
	}
	if world != nil {
		if err := x.commits(ctx, world, commits); err != nil {
			return Diagnosis{}, err
		}
	}
	x.compareEnds(commits)
	x.vault()
	return x.Diagnosis, nil
}

func (x *examination) corrupt(where, format string, args ...any) {
	x.add(opstream.SeverityCorrupt, where, format, args...)
}

func (x *examination) note(where, format string, args ...any) {
	x.add(opstream.SeverityNotice, where, format, args...)
}

func (x *examination) readOpened(r *opstream.Reader) {
	rec, err := r.Get(1)
	if err != nil {
		return // the examination of the stream reports why
	}
	if o, err := taskdir.Decode(rec); err == nil {
		x.opened, _ = o.Body.(*op.TaskOpened)
		x.begun = rec.Time
	}
	if x.opened == nil {
		return
	}
	if st, err := taskdir.ReadState(x.h, x.id); err == nil {
		x.opened = &st.Opened // in the directory that a later operation may have named
	}
	x.store = x.h.StoreOf(x.opened)
}

// openWorld opens the task's store for reading, and lists its commits. A missing store is a
// finding if operations name commits.
func (x *examination) openWorld(ctx context.Context) (*worldstate.World, []worldstate.Commit, error) {
	if x.opened == nil {
		return nil, nil, nil
	}
	if _, err := os.Stat(filepath.Join(x.store, "HEAD")); errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil // opening it would create one
	} else if err != nil {
		return nil, nil, fmt.Errorf("examine %s: %w", x.id, err)
	}
	gone, err := workspace.DirGone(x.id, x.opened.Dir)
	if own := x.h.CheckOwn(x.opened); own != nil {
		x.note(x.h.Task(x.id), "%v", own)
		gone = true // the directory is not this task's
	} else if err != nil {
		x.note(x.opened.Dir, "%v", err)
	} else if gone && !x.opened.Origin.Imported() {
		x.note(x.opened.Dir, "%v; if it was moved, resume the task there; else put it back, or restore a step to "+
			"recreate it", workspace.WantDir(x.id, x.opened.Dir))
	}
	gone = gone || err != nil
	w, err := worldstate.Open(x.opened.Dir, x.store, &worldstate.Options{Task: x.id, Home: x.h.User, StoreOnly: gone,
		FileLimitBytes: x.h.FileLimitBytes, Secrets: x.h.Secrets})
	if err != nil {
		return nil, nil, fmt.Errorf("examine %s: %w", x.id, err)
	}
	commits, err := w.Log(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, nil, errors.Join(err, w.Close())
		}
		x.corrupt(x.store, "the world's history cannot be read: %v", err)
	}
	return w, commits, nil
}

// stream verifies the lines and folds the operations.
func (x *examination) stream(ctx context.Context, r *opstream.Reader, commits []worldstate.Commit) error {
	report, err := opstream.Verify(ctx, x.h.Task(x.id))
	if err != nil {
		return err
	}
	x.Ops, x.Blobs = report.Records, report.Blobs
	if report.Records > 0 && !report.Sealed && report.Writer == 0 && !report.Has(opstream.SeverityTorn) &&
		taskdir.Live(x.h, x.id) == 0 {
		x.note(x.h.Task(x.id), "the stream is not sealed: its writer was killed; it ends with op %d, and operations "+
			"that were not acknowledged may be missing", report.LastSeq)
	}
	for _, f := range report.Findings {
		where := f.File
		if f.Seq != 0 {
			where += fmt.Sprintf(" at byte %d (seq %d)", f.Offset, f.Seq)
		}
		x.add(f.Severity, where, "%s", f.Why)
	}
	x.Omitted += report.Omitted
	if x.opened == nil {
		why := "its first operation cannot be read, so its world was not looked at"
		if report.Records == 0 && !report.Has(opstream.SeverityCorrupt) {
			why = "the stream is empty: the task was never begun"
			if store := x.storeOfLost(); store != "" {
				x.corrupt(x.h.Task(x.id), "the stream is empty, and %s"+lostOps, store)
				return nil
			}
		}
		x.note(x.h.Task(x.id), "%s", why)
	}
	wanted := map[uint64]bool{}
	for _, c := range commits {
		if seq, _, ok := madeAfter(c, x.id); ok {
			wanted[seq] = true
		}
	}
	st, folding := new(state.State), true
	fold, foldedTo := x.snapshot()
	for rec, err := range r.Since(0) {
		if err != nil {
			break // Verify reported why
		}
		if ctx.Err() != nil {
			return fmt.Errorf("examine %s: %w", x.id, ctx.Err())
		}
		if wanted[rec.Seq-1] { // a line has the hash of the line before it
			x.hashes[rec.Seq-1] = fmt.Sprintf("%x", rec.Prev)
		}
		x.last = rec.Seq
		x.marked = x.marked || redact.HasMarker(string(rec.Body))
		o, err := taskdir.Decode(rec)
		if err == nil && folding {
			err = state.Fold(st, o)
		}
		if err != nil {
			folding = false
			x.corrupt(fmt.Sprintf("op %d", rec.Seq), "%v", err)
			continue
		}
		x.names(o)
		if rec.Seq == foldedTo && folding && !state.Holds(fold, st) {
			x.corrupt(x.h.Task(x.id), "its snapshot of the index differs from the %d operations it covers; delete "+
				"checkpoint.bin there, it is derived", foldedTo)
		}
	}
	seq, hash, _ := r.Last()
	if seq == x.last {
		x.hashes[seq] = fmt.Sprintf("%x", hash)
	}
	x.last = max(x.last, report.LastSeq) // behind damage the stream continues
	return nil
}

// snapshot returns the state that an opening of the task would begin with.
func (x *examination) snapshot() (fold []byte, seq uint64) {
	r, err := taskdir.OpenStream(x.h, x.id)
	if err != nil {
		return nil, 0 // the examination of the stream reports why
	}
	defer r.Close()
	if err := r.SnapshotRefused(); errors.Is(err, opstream.ErrFoldVersion) { // opstream.Verify reports any other
		x.note(x.h.Task(x.id), "%v; the next command on the task folds the whole stream", err)
	}
	fold, seq, _ = r.Folded()
	return fold, seq
}

// storeOfLost returns a world's store with snapshots of a task whose stream is unreadable,
// including its directory; empty if there is none.
func (x *examination) storeOfLost() string {
	stores, err := x.h.Stores()
	if err != nil {
		return "" // then there is nothing to find
	}
	for _, store := range stores {
		// An unreadable store belongs to another task's examination.
		if has, err := worldstate.HasTask(store, x.id); err == nil && has {
			return store
		}
	}
	return ""
}

func (x *examination) names(o op.Op) {
	for _, id := range op.Snapshots(o.Body) {
		where := fmt.Sprintf("op %d", o.Seq)
		if !slices.Contains(x.named[id], where) {
			x.named[id] = append(x.named[id], where)
		}
	}
}

// commits checks the commits that operations name. If the store is whole, its history covers
// them; others are read one by one.
func (x *examination) commits(ctx context.Context, w *worldstate.World, listed []worldstate.Commit) error {
	x.Commits = len(x.named)
	report, err := w.Verify(ctx)
	if err != nil {
		return fmt.Errorf("examine %s: %w", x.id, err)
	}
	if report.Unfinished {
		x.note(x.store, "a restore was interrupted; the next command on the task finishes it")
	}
	whole := map[string]bool{}
	for _, c := range listed {
		whole[string(c.ID)] = report.OK
		if c.Missing != "" && x.named[string(c.ID)] == nil {
			x.corrupt("snapshot "+string(c.ID), "it is missing or damaged: %s; no operation names it", c.Missing)
		}
	}
	var ids []string
	for id := range x.named {
		if !whole[id] {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		if err := w.Has(ctx, worldstate.ID(id)); err != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("examine %s: %w", x.id, ctx.Err())
			}
			x.corrupt("commit "+id, "%v; named by %s", err, strings.Join(notice.FirstN(x.named[id], maxNamedBy), ", "))
		}
	}
	return nil
}

// maxNamedBy is how many operations a finding about a commit lists.
const maxNamedBy = 5

// madeAfter returns the operation a commit was made after, from its trailer Anamnesis-Op. It
// returns false for a commit of another task, or without the trailer.
func madeAfter(c worldstate.Commit, task string) (seq uint64, hash string, ok bool) {
	for _, t := range c.Trailers {
		switch t[0] {
		case workspace.TrailerTask:
			if t[1] != task {
				return 0, "", false
			}
		case workspace.TrailerOp:
			number, rest, cut := strings.Cut(t[1], " ")
			n, err := strconv.ParseUint(number, 10, 64)
			seq, hash, ok = n, rest, cut && err == nil && n > 0
		}
	}
	return seq, hash, ok
}

// ours separates this task's commits from those of an earlier task of its name: they were made
// since it began, or descend from one that the stream confirms, since clocks may go back.
func (x *examination) ours(commits []worldstate.Commit) map[worldstate.ID]bool {
	ours := map[worldstate.ID]bool{}
	for _, c := range slices.Backward(commits) { // parents before their children
		seq, hash, ok := madeAfter(c, x.id)
		ours[c.ID] = ok && (!c.Time.Before(x.begun.Truncate(time.Second)) || x.hashes[seq] == hash ||
			slices.ContainsFunc(c.Parents, func(p worldstate.ID) bool { return ours[p] }))
	}
	return ours
}

// compareEnds compares the stream with the commits. A commit is made after its operation is durable,
// so a whole stream without that operation has lost it.
func (x *examination) compareEnds(commits []worldstate.Commit) {
	whole := !x.Has(opstream.SeverityCorrupt)
	if len(x.named) > 0 && x.opened != nil && commits == nil && whole {
		x.corrupt(x.store, "the world's store is missing or empty, and operations name %d of its commits", len(x.named))
	}
	var lost, other []worldstate.Commit
	var lastLost uint64
	ours := x.ours(commits)
	for _, c := range commits {
		seq, hash, ok := madeAfter(c, x.id)
		if !ok || !ours[c.ID] { // of an earlier task of this name
			continue
		}
		switch have, known := x.hashes[seq]; {
		case whole && seq > x.last:
			lost, lastLost = append(lost, c), max(lastLost, seq)
		case known && have != hash:
			other = append(other, c)
		}
	}
	if len(lost) > 0 {
		x.corrupt(x.h.Task(x.id), "the end of the stream is lost: it ends with op %d, and commit %s was made after "+
			"op %d was durable", x.last, lost[0].ID, lastLost)
	}
	for _, c := range other {
		seq, hash, _ := madeAfter(c, x.id)
		x.corrupt(fmt.Sprintf("op %d", seq), "it is not the operation commit %s was made after: its line's hash is "+
			"%s, and was %s", c.ID, x.hashes[seq], hash)
	}
}

func (x *examination) vault() {
	path := x.h.Vault(x.id)
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if x.marked {
			x.note(path, "the vault is missing: the stream's markers cannot be replaced by their values")
		}
		return
	case err != nil:
		x.note(path, "%v", err)
		return
	}
	if err := journal.CheckVault(data); err != nil {
		x.corrupt(path, "%v", err)
	}
}

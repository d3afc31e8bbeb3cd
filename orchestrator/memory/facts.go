package memory

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/anamnesis/facts"
	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

// OpenFacts opens what the tasks of the repository of a directory showed of it.
func OpenFacts(h taskdir.Home, dir string) (*facts.Repo, error) {
	top, ids, first := worldstate.Identity(dir)
	at, err := filepath.Rel(top, dir)
	if err != nil {
		return nil, err
	}
	r, err := facts.Open(filepath.Join(h.Data, "facts"), at, ids, first)
	for _, o := range shared(h, dir) { // sorted by ends, so that the last one of a task counts
		r.Tasks = append(slices.DeleteFunc(r.Tasks, func(t facts.Task) bool { return t.ID == o.Facts.ID }), o.Facts)
	}
	slices.SortStableFunc(r.Tasks, func(a, b facts.Task) int { return a.Ended.Compare(b.Ended) })
	return r, err
}

// TellFacts returns the facts of its repository that a task in a directory is shown at its start, without those that
// the directory or the machine contradict now. The error says in one line why there are none.
func TellFacts(h taskdir.Home, dir string) (text string, told []facts.Fact, err error) {
	r, err := OpenFacts(h, dir)
	if err != nil {
		return "", nil, err
	}
	text, told = facts.Tell(r.Facts(), facts.World{
		File:    func(name string) bool { _, err := os.Lstat(filepath.Join(dir, name)); return err == nil },
		Program: func(name string) bool { _, err := exec.LookPath(name); return err == nil },
	})
	return text, told, nil
}

// tellFacts puts the facts of the repository before the cards of a recall.
func (m *Memory) tellFacts(rec *op.CardsRecalled) {
	text, told, err := TellFacts(m.Home, m.dir)
	if err != nil {
		rec.Damage = append(rec.Damage, err.Error())
	}
	for _, f := range told {
		rec.Facts = append(rec.Facts, f.ID())
	}
	if len(told) > 0 {
		rec.Text = strings.TrimSpace(text + "\n\n" + rec.Text)
	}
}

// KnownFacts returns the facts that the task is shown, read once; nothing where it has installed something since.
func (m *Memory) KnownFacts() []facts.Fact {
	if _, err := m.experienced(); err != nil {
		return nil // the damage is reported when it matters
	}
	m.seenMu.Lock()
	installed := m.facts.Installed()
	m.seenMu.Unlock()
	if installed {
		return nil
	}
	return m.known()
}

// countFacts adds to the facts of the repository what the task's operations show of it.
func (m *Memory) countFacts() error {
	if m.State().Opened.Parent != nil || !m.Advanced() {
		return nil
	}
	if _, err := m.experienced(); err != nil && !errors.Is(err, opstream.ErrCorrupt) {
		return err
	}
	m.Untold = m.shareTask()
	return AddFacts(m.Home, m.dir, &m.facts)
}

// AddFacts adds what one task in a directory showed.
func AddFacts(h taskdir.Home, dir string, r *facts.Record) error {
	top, _, _ := worldstate.Identity(dir)
	t, any := r.Task(top)
	if !any {
		return nil
	}
	repo, err := OpenFacts(h, dir)
	if errors.Is(err, facts.ErrNewer) { // the start of the task said so; the newer program counts it from the record
		return nil
	}
	return repo.Add(t)
}

// RebuildFacts counts all tasks again and returns their number.
func RebuildFacts(h taskdir.Home) (n int, err error) {
	tasks, err := h.Tasks()
	for _, id := range tasks {
		var r facts.Record
		var opened *op.TaskOpened
		failed := taskdir.EachOp(h, id, func(o op.Op) error {
			if b, is := o.Body.(*op.TaskOpened); is {
				opened = b
			}
			r.Add(&o)
			return nil
		})
		if failed != nil || opened == nil || opened.Parent != nil || opened.Dir == "" {
			continue // damage is reported when it matters
		}
		if err := AddFacts(h, opened.Dir, &r); err != nil {
			return n, err
		}
		n++
	}
	return n, err
}

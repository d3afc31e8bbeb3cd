package memory

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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
	ids, first := worldstate.Identity(dir)
	return facts.Open(filepath.Join(h.Data, "facts"), ids, first)
}

// TellFacts words what a task in a directory is told of its repository at its start: nothing of what the
// directory and the machine contradict now. The error says in one line why nothing is told.
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

// KnownFacts returns the facts that the task is told, read once; nothing where it has installed something since.
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
	return AddFacts(m.Home, m.dir, &m.facts)
}

// AddFacts adds what one task in a directory showed.
func AddFacts(h taskdir.Home, dir string, r *facts.Record) error {
	t, any := r.Task()
	if !any {
		return nil
	}
	repo, err := OpenFacts(h, dir)
	if errors.Is(err, facts.ErrNewer) { // the start of the task said so; the newer program counts it from the record
		return nil
	}
	t.Env = strings.TrimSpace(runtime.GOOS + " " + t.Env)
	return repo.Add(t)
}

// RebuildFacts counts all tasks of the repository of a directory again, and returns how many showed something.
func RebuildFacts(h taskdir.Home, dir string) (n int, err error) {
	repo, err := OpenFacts(h, dir)
	if err != nil && !errors.Is(err, facts.ErrDamaged) {
		return 0, err
	}
	var tasks []facts.Task
	same := sameRepository(dir)
	all, err := h.Tasks()
	if err != nil {
		return 0, err
	}
	for _, id := range all {
		var r facts.Record
		its := false
		err := taskdir.EachOp(h, id, func(o op.Op) error {
			if b, is := o.Body.(*op.TaskOpened); is {
				if its = b.Parent == nil && same(b); !its {
					return errOther
				}
			}
			r.Add(&o)
			return nil
		})
		if t, any := r.Task(); err == nil && any && its { // a damaged stream is reported when it matters
			tasks = append(tasks, t)
		}
	}
	return len(tasks), repo.Add(tasks...)
}

// errOther ends the reading of a task of another repository.
var errOther = errors.New("another repository")

// sameRepository returns whether a task's directory belongs to the repository of dir. One that is gone is
// known by the name that the task recorded.
func sameRepository(dir string) func(*op.TaskOpened) bool {
	ids, first := worldstate.Identity(dir)
	if commit := first(); commit != "" {
		ids = append(ids, commit)
	}
	return func(b *op.TaskOpened) bool {
		its, first := worldstate.Identity(b.Dir)
		if _, err := os.Stat(b.Dir); err != nil {
			its = []string{"remote:" + b.Repo, "dir:" + b.Dir}
		}
		known := func(id string) bool { return slices.Contains(ids, id) }
		return slices.ContainsFunc(its, known) || known(first())
	}
}

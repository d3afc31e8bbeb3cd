package workspace_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate/gatetest"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/workspace"
)

// TestAdopt: a process records as of unknown author what changed before it, if the last step could not say it, or
// if the user named the directory and the record does not say how it stood. It changes nothing while a jump or
// a restore is unfinished.
func TestAdopt(t *testing.T) {
	for name, tt := range map[string]struct {
		named, unchanged bool
		unsaved          bool // the last step has no checkpoint
		set              func(s *state.State)
		want             bool
	}{
		"an ordinary opening":      {},
		"named":                    {named: true},
		"gone at the last step":    {set: func(s *state.State) { s.World.Gone = true }, want: true},
		"gone, and unchanged":      {set: func(s *state.State) { s.World.Gone = true }, unchanged: true},
		"named, after a call":      {named: true, set: func(s *state.State) { s.World.Dirty = true }, want: true},
		"after a call":             {set: func(s *state.State) { s.World.Dirty = true }},
		"named, nothing saved":     {named: true, unsaved: true, want: true},
		"nothing saved":            {unsaved: true},
		"a jump is unfinished":     {named: true, set: func(s *state.State) { s.World.Dirty, s.Jump.Intended = true, new(state.Jumping) }},
		"a restore is unfinished":  {set: func(s *state.State) { s.World.Gone, s.World.Restoring = true, new(op.RestoreIntended) }},
		"named, and gone at first": {named: true, set: func(s *state.State) { s.World.Gone, s.World.Dirty = true, true }, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := gatetest.Place(t, op.TaskOpened{})
			file := filepath.Join(p.Dir, "f")
			write := func(text string) {
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			write("one")
			if err := p.SaveStep(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			if tt.unsaved {
				if err := p.Record(t.Context(), &op.ModelAsked{LastSeq: p.State().Last}, &op.ModelReplied{}, &op.WorldSaved{Parent: 1, Error: "full"}); err != nil {
					t.Fatal(err)
				}
			}
			if !tt.unchanged {
				write("another")
			}
			if tt.set != nil {
				tt.set(p.State())
			}
			if err := p.Adopt(t.Context(), tt.named); err != nil {
				t.Fatal(err)
			}
			changes := p.State().World.Changes
			if (len(changes) == 1) != tt.want || len(changes) > 1 {
				t.Fatalf("changes %v", changes)
			}
			if tt.want {
				o, err := p.Op(changes[0])
				if b := o.Body.(*op.WorldChanged); err != nil || b.By != state.ChangedUnknown || len(b.Changed) != 1 ||
					b.From == b.To {
					t.Errorf("recorded %+v, %v", b, err)
				}
			}
		})
	}
	// Files that are all gone were lost, not deleted by the user.
	p := gatetest.Place(t, op.TaskOpened{})
	file := filepath.Join(p.Dir, "f")
	if err := os.WriteFile(file, []byte("one"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := p.SaveStep(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	p.State().World.Gone = true
	if err := p.Adopt(t.Context(), false); err != nil || len(p.State().World.Changes) != 0 {
		t.Errorf("changes %v, %v", p.State().World.Changes, err)
	}
}

// TestCallsAndUser: what changes while a call that may write runs is the agent's; what changes before it, or while
// the user is asked, is the user's.
func TestCallsAndUser(t *testing.T) {
	p := gatetest.Place(t, op.TaskOpened{})
	write := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(p.Dir, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	changed := func() (out []string) {
		t.Helper()
		if err := p.ApplyQueued(); err != nil {
			t.Fatal(err)
		}
		for _, seq := range p.State().World.Changes {
			o, err := p.Op(seq)
			if err != nil {
				t.Fatal(err)
			}
			b := o.Body.(*op.WorldChanged)
			out = append(out, b.By+" "+filepath.Join(b.Changed...))
		}
		return out
	}
	equal := func(when string, want ...string) {
		t.Helper()
		if got := changed(); filepath.Join(got...) != filepath.Join(want...) {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	write("first")
	if err := p.SaveStep(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	var calls []op.Call
	for _, id := range []string{"r", "w", "v", "x"} {
		calls = append(calls, op.Call{ID: id, Name: "Any", Args: "{}"})
	}
	if err := p.Record(t.Context(), &op.ModelAsked{LastSeq: p.State().Last}, &op.ModelReplied{Calls: calls}); err != nil {
		t.Fatal(err)
	}
	write("before")
	if err := p.BeginCalls(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	equal("calls that only read")
	if err := p.BeginCall(t.Context(), &op.ToolCalled{Call: "r", Name: "Read"}); err != nil {
		t.Fatal(err)
	}
	equal("a call that only reads")
	if err := p.BeginCalls(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	equal("before a call that writes", state.ChangedByUser+" before")
	if err := p.BeginCall(t.Context(), &op.ToolCalled{Call: "w", Name: "Write", Changes: true}); err != nil {
		t.Fatal(err)
	}
	write("call")
	if err := p.BeginCall(t.Context(), &op.ToolCalled{Call: "v", Name: "Write", Changes: true}); err != nil {
		t.Fatal(err)
	}
	if err := p.BeforeWait(t.Context()); err != nil {
		t.Fatal(err)
	}
	equal("the call's own", state.ChangedByUser+" before")
	write("asked")
	if err := p.BeforeWait(t.Context()); err != nil {
		t.Fatal(err)
	}
	equal("a wait after which no call ran", state.ChangedByUser+" before")
	if err := p.BeginCall(t.Context(), &op.ToolCalled{Call: "x", Name: "Write", Changes: true}); err != nil {
		t.Fatal(err)
	}
	equal("while the user was asked", state.ChangedByUser+" before", state.ChangedByUser+" asked")
	write("later")
	for _, id := range []string{"r", "w", "v", "x"} {
		if err := p.Record(t.Context(), &op.ToolReturned{Call: id, Name: "Any"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.SaveStep(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	o, err := p.Op(p.State().Last)
	if err != nil {
		t.Fatal(err)
	}
	if b := o.Body.(*op.WorldSaved); !slices.Equal(b.Changed, []string{"call", "later"}) {
		t.Errorf("the step changed %q", b.Changed)
	}
}

// TestResolve: a step that changed no file has no snapshot of its name; the record of its task says with which one
// it ended.
func TestResolve(t *testing.T) {
	root := t.TempDir()
	store := filepath.Join(root, "worlds", "store")
	p := gatetest.Open(t, root, op.TaskOpened{Task: "t", Store: store}, &op.ModelReplied{})
	if err := os.MkdirAll(filepath.Dir(store), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(root, "store"), store); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.Dir, "f"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := p.SaveStep(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	first, err := p.WorldOf(1)
	if err != nil || first.Commit == "" {
		t.Fatalf("%+v, %v", first, err)
	}
	same := &op.WorldSaved{Parent: 1, Commit: string(first.Commit), Tree: first.Tree}
	unsaved := &op.WorldSaved{Parent: 2, Error: "full"}
	for _, end := range []*op.WorldSaved{same, unsaved} {
		if err := p.Record(t.Context(), &op.ModelAsked{LastSeq: p.State().Last}, &op.ModelReplied{}, end); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		task, name string
		ok         bool
	}{
		{"t", "1", true}, {"t", "2", true}, {"", "t@2", true}, {"none", "t@2", true}, {"t", string(first.Commit), true},
		{"t", "3", false}, {"t", "4", false}, {"t", "-1", false}, {"none", "2", false}, {"", "2", false}, {"t", "none@2", false},
	} {
		got, err := workspace.Resolve(t.Context(), p.Home, p.World, tt.task, tt.name)
		if (err == nil) != tt.ok || tt.ok && got != first.Commit {
			t.Errorf("%s of task %q: %s, %v", tt.name, tt.task, got, err)
		}
	}
	commits, overcome, err := workspace.Commits(p.Journal.Log(), p.State(), nil)
	if err != nil || overcome != "" || len(commits) != 4 || commits[1] != first.Commit || commits[2] != first.Commit ||
		commits[3] != "" {
		t.Errorf("commits %q, %q, %v", commits, overcome, err)
	}
	for id, want := range map[int]bool{-1: false, 0: false, 1: true, 2: true, 3: true, 4: false} {
		if got, err := p.CommitAt(id); (got != "") != want || err != nil {
			t.Errorf("the commit of step %d: %q, %v", id, got, err)
		}
	}
}

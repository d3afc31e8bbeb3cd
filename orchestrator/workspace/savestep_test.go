package workspace_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate/gatetest"
	"anamnesis/orchestrator/state"
)

// TestSaveStep: what a step's own calls changed is the step's; the rest is the user's, or of unknown author beside
// another program.
func TestSaveStep(t *testing.T) {
	for name, tt := range map[string]struct {
		first  bool // no step has a checkpoint yet
		writes bool // a call of the step may write
		same   bool // no file changes
		other  string
		late   bool
		gone   bool // the directory is missing
		by     string
		end    op.WorldSaved // some of its fields
		err    string
	}{
		"a call":                  {writes: true, end: op.WorldSaved{Changed: []string{"f"}, NChanged: 1, Unobserved: true}},
		"a call without effect":   {writes: true, same: true},
		"no call":                 {by: state.ChangedByUser},
		"nothing":                 {same: true},
		"beside a program":        {writes: true, other: "make", by: state.ChangedUnknown, end: op.WorldSaved{Mixed: "make"}},
		"beside it, nothing":      {writes: true, same: true, other: "make"},
		"beside it, no call":      {other: "make", by: state.ChangedByUser},
		"beside it, at first":     {first: true, writes: true, other: "make", err: "mixed with changes of make"},
		"late":                    {writes: true, late: true, err: "the agent went on before"},
		"the directory is gone":   {writes: true, gone: true, err: "no such"},
		"the first, by its calls": {first: true, writes: true, end: op.WorldSaved{Changed: []string{"f", "g"}, NChanged: 2, Unobserved: true}},
	} {
		t.Run(name, func(t *testing.T) {
			p := gatetest.Place(t, op.TaskOpened{}, op.Call{ID: "c", Name: "Any", Args: "{}"})
			write := func(name, text string) {
				t.Helper()
				if err := os.WriteFile(filepath.Join(p.Dir, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			write("g", "one")
			if !tt.first {
				if err := p.Record(t.Context(), &op.ToolReturned{Call: "c", Name: "Any"}); err != nil {
					t.Fatal(err)
				}
				if err := p.SaveStep(t.Context(), ""); err != nil {
					t.Fatal(err)
				}
				if err := p.Record(t.Context(), &op.ModelAsked{LastSeq: p.State().Last}, &op.ModelReplied{Calls: []op.Call{{ID: "c", Name: "Any", Args: "{}"}}}); err != nil {
					t.Fatal(err)
				}
			}
			if tt.writes {
				called := &op.ToolCalled{Call: "c", Name: "Any", Changes: true}
				begin := func() error { return p.BeginCall(t.Context(), called) }
				if tt.first { // its directory was not looked at
					begin = func() error { return p.Record(t.Context(), called) }
				}
				if err := begin(); err != nil {
					t.Fatal(err)
				}
			}
			if !tt.same {
				write("f", "two")
			}
			if tt.gone {
				if err := os.RemoveAll(p.Dir); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.Record(t.Context(), &op.ToolReturned{Call: "c", Name: "Any"}); err != nil {
				t.Fatal(err)
			}
			p.Disturbed = func() (string, bool) { return tt.other, tt.late }
			before := len(p.State().World.Changes)
			if err := p.SaveStep(t.Context(), "[mark]"); err != nil {
				t.Fatal(err)
			}
			o, err := p.Op(p.State().Last)
			if err != nil {
				t.Fatal(err)
			}
			b := o.Body.(*op.WorldSaved)
			if tt.err != "" {
				if !strings.Contains(b.Error, tt.err) || b.Commit != "" || b.Gone != tt.gone ||
					!strings.Contains(b.Mark, "without checkpoint") {
					t.Errorf("%+v, want the error %q", b, tt.err)
				}
				return
			}
			if b.Error != "" || b.Commit == "" || b.Mark != "[mark]" || !slices.Equal(b.Changed, tt.end.Changed) ||
				b.NChanged != tt.end.NChanged || b.Mixed != tt.end.Mixed || b.Unobserved != tt.end.Unobserved {
				t.Errorf("%+v, want %+v", b, tt.end)
			}
			changes := p.State().World.Changes[before:]
			if (tt.by != "") != (len(changes) == 1) || len(changes) > 1 {
				t.Fatalf("changes by others %v", changes)
			}
			if tt.by != "" {
				o, err := p.Op(changes[0])
				if c := o.Body.(*op.WorldChanged); err != nil || c.By != tt.by ||
					!slices.Equal(c.Changed, []string{"f"}) || c.From == c.To {
					t.Errorf("%+v, %v; want by %s", c, err, tt.by)
				}
			}
		})
	}
}

// TestBesideCalls: if all that the calls of a step wrote is known, a change that none of them made is the user's. If
// not, a path that others changed before has an unknown author.
func TestBesideCalls(t *testing.T) {
	for name, tt := range map[string]struct {
		complete bool
		before   bool // others changed the path before
		changed  []string
		by       string
		unseen   bool
	}{
		"known":              {complete: true, changed: []string{"f"}, by: state.ChangedByUser},
		"known, as before":   {complete: true, before: true, changed: []string{"f"}, by: state.ChangedByUser},
		"not known":          {changed: []string{"f", "h"}, unseen: true},
		"not known, a log's": {before: true, changed: []string{"f", "h"}, by: state.ChangedUnknown, unseen: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := gatetest.Place(t, op.TaskOpened{})
			write := func(name, text string) {
				t.Helper()
				if err := os.WriteFile(filepath.Join(p.Dir, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			write("g", "one")
			if err := p.SaveStep(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			if tt.before {
				write("h", "before")
				if _, err := p.SeeNow(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if err := p.Record(t.Context(), &op.ModelAsked{LastSeq: p.State().Last}, &op.ModelReplied{Calls: []op.Call{{ID: "c", Name: "Any", Args: "{}"}}}); err != nil {
				t.Fatal(err)
			}
			if err := p.BeginCalls(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			if err := p.BeginCall(t.Context(), &op.ToolCalled{Call: "c", Name: "Any", Changes: true}); err != nil {
				t.Fatal(err)
			}
			write("f", "call")
			write("h", "other")
			p.RecordWrites([]string{"f"}, tt.complete, false)
			if err := p.Record(t.Context(), &op.ToolReturned{Call: "c", Name: "Any"}); err != nil {
				t.Fatal(err)
			}
			before := len(p.State().World.Changes)
			if err := p.SaveStep(t.Context(), ""); err != nil {
				t.Fatal(err)
			}
			o, err := p.Op(p.State().Last)
			if err != nil {
				t.Fatal(err)
			}
			if b := o.Body.(*op.WorldSaved); !slices.Equal(b.Changed, tt.changed) || b.Unobserved != tt.unseen {
				t.Errorf("the step changed %q, unobserved %v", b.Changed, b.Unobserved)
			}
			changes := p.State().World.Changes[before:]
			if (tt.by != "") != (len(changes) == 1) {
				t.Fatalf("changes by others %v", changes)
			}
			if tt.by != "" {
				o, err := p.Op(changes[0])
				if c := o.Body.(*op.WorldChanged); err != nil || c.By != tt.by || !slices.Equal(c.Only, []string{"h"}) {
					t.Errorf("%+v, %v; want by %s", c, err, tt.by)
				}
			}
		})
	}
}

package state

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/loop"
	"anamnesis/orchestrator/state/steps"
)

// TestBegan: a call that may have changed the files is remembered with the state in which it ran.
func TestBegan(t *testing.T) {
	for name, tt := range map[string]struct {
		call CallState
		want int
	}{
		"changes":        {CallState{Call: op.Call{Name: "Bash", Args: "{}"}, World: "tree", Changes: true}, 1},
		"only reads":     {CallState{Call: op.Call{Name: "Bash", Args: "{}"}, World: "tree"}, 0},
		"in no snapshot": {CallState{Call: op.Call{Name: "Bash", Args: "{}"}, Changes: true}, 0},
	} {
		var st steps.Step
		began(&st, &tt.call, 7)
		if len(st.Began) != tt.want ||
			tt.want > 0 && (st.Began[0].Seq != 7 || st.Began[0].Key != undoneKey(steps.MarkOf("tree"), "Bash", "{}")) {
			t.Errorf("%s: %+v", name, st.Began)
		}
	}
}

// branching returns a tree of which each step's parent is given, and in which each step began the calls named.
func branching(parents []int, began ...string) *steps.Tree {
	var tree steps.Tree
	for id, parent := range parents {
		st := steps.Step{ID: id, Parent: parent, Ended: true}
		if id < len(began) {
			for i, args := range strings.Fields(began[id]) {
				st.Began = append(st.Began,
					steps.Began{Key: undoneKey(steps.MarkOf("tree"), "Bash", args), Seq: uint64(10*id + i)})
			}
		}
		tree.Add(st)
	}
	return &tree
}

func undoneArgs(c *Calls, all ...string) (out []string) {
	for _, args := range all {
		if _, ok := c.UndoneCall(loop.Call{World: "tree", Tool: "Bash", Args: args}); ok {
			out = append(out, args)
		}
	}
	return out
}

// TestUndone: a jump back undoes the calls of the first step that changed something. They are met
// in the same files only, until the model was told of one or its step is on the path again.
func TestUndone(t *testing.T) {
	tree := branching([]int{0, 0, 1, 2, 0, 1}, "", "", "a b", "c")
	var c Calls
	c.undo(tree, []int{1, 2, 3}, strings.Repeat("r", maxUndoneReason+1))
	if got := undoneArgs(&c, "a", "b", "c", "d"); !slices.Equal(got, []string{"a", "b"}) {
		t.Fatalf("undone: %q", got)
	}
	u, _ := c.UndoneCall(loop.Call{World: "tree", Tool: "Bash", Args: "b"})
	if u.Step != 2 || u.Seq != 21 || u.Reason != strings.Repeat("r", maxUndoneReason) {
		t.Errorf("undone call: %+v", u)
	}
	for _, call := range []loop.Call{{Tool: "Bash", Args: "a"}, {World: "other", Tool: "Bash", Args: "a"}, {World: "tree", Tool: "Write", Args: "a"}} {
		if u, ok := c.UndoneCall(call); ok || u != (Undone{}) {
			t.Errorf("%+v is undone: %+v", call, u)
		}
	}

	open := []CallState{{}, {}}
	open[0].ID, open[0].Name, open[0].Args = "1", "Bash", "x"
	open[1].ID, open[1].Name, open[1].Args = "2", "Bash", "a"
	c.heldOnce(steps.MarkOf("tree"), open, "3")
	c.heldOnce(steps.MarkOf("other"), open, "2")
	c.heldOnce(steps.MarkOf("tree"), open, "1")
	if got := undoneArgs(&c, "a", "b"); len(got) != 2 {
		t.Errorf("after other calls were held: %q", got)
	}
	c.heldOnce(steps.MarkOf("tree"), open, "2")
	if got := undoneArgs(&c, "a", "b"); !slices.Equal(got, []string{"b"}) {
		t.Errorf("after a was held: %q", got)
	}

	c.redo(tree, 5)
	if got := undoneArgs(&c, "b"); len(got) != 1 {
		t.Errorf("on another path: %q", got)
	}
	c.redo(tree, 3)
	if c.Undone != nil {
		t.Errorf("on the path again: %+v", c.Undone)
	}
	c.redo(tree, 3)
}

// TestUndoneForgets: of too many calls those of the oldest step are forgotten.
func TestUndoneForgets(t *testing.T) {
	var calls []string
	for i := range maxUndone {
		calls = append(calls, strconv.Itoa(i))
	}
	tree := branching([]int{0, 0, 0, 0}, "", "a b", strings.Join(calls[2:], " "), "last")
	var c Calls
	c.undo(tree, []int{1}, "")
	c.undo(tree, []int{2}, "")
	if len(c.Undone) != maxUndone {
		t.Errorf("%d calls, want %d", len(c.Undone), maxUndone)
	}
	c.undo(tree, []int{3}, "")
	if len(c.Undone) != maxUndone-1 ||
		slices.ContainsFunc(slices.Collect(maps.Values(c.Undone)), func(u Undone) bool { return u.Step == 1 }) {
		t.Errorf("%d calls, want those of all steps but the first", len(c.Undone))
	}
}

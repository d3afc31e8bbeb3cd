package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"anamnesis/opstream/op"
)

// story feeds a Builder: each word is a step that continues from where the task
// stands, or "N>" a jump back to step N.
func story(t testing.TB, words string) *Builder {
	t.Helper()
	w := &writer{t: t, b: new(Builder)}
	w.add(0, &op.TaskOpened{Task: "task_1", Dir: "/w", Model: "m", EAS: 4000, Window: 128000})
	w.add(0, &op.UserSaid{Text: "Go.", Source: op.SourceRequest})
	w.add(0, &op.WorldSaved{Commit: "c0"})
	for word := range strings.FieldsSeq(words) {
		var to int
		if n, _ := fmt.Sscanf(word, "%d>", &to); n == 1 {
			w.jump(to)
			continue
		}
		w.step(word)
	}
	return w.b
}

type writer struct {
	t testing.TB
	b *Builder
}

func (w *writer) add(step int, body op.Body) {
	w.t.Helper()
	if err := w.b.Add(op.Op{Seq: w.b.State().Last + 1, Step: step, Tok: 10, Body: body}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *writer) step(name string) {
	st := w.b.State()
	id := st.Steps.Next()
	w.add(id, &op.ModelAsked{LastSeq: st.Last, Tokens: 100 * id})
	w.add(id,
		&op.ModelReplied{Calls: []op.Call{{ID: fmt.Sprint("c", id), Name: name, Args: "{}"}}, Finish: "tool_calls"})
	w.add(id, &op.ToolReturned{Call: fmt.Sprint("c", id), Name: name})
	w.add(id, &op.WorldSaved{Parent: st.Current, Commit: fmt.Sprint("c", id)})
}

func (w *writer) jump(to int) {
	st := w.b.State()
	id, from := st.Steps.Next(), st.Current
	w.add(id, &op.PassDone{Trigger: "person", Block: "b", Cards: []string{fmt.Sprint("card", id)}})
	w.add(id, &op.JumpIntended{From: from, To: to, Reason: "back", By: "agent", Backward: true})
	w.add(id, &op.JumpDone{From: from, To: to, Backward: true})
}

// drawing is the tree as text: a line a row, indented by lanes.
func drawing(tree Tree) string {
	var sb strings.Builder
	for _, n := range tree.Nodes {
		mark := "o"
		if n.OnPath {
			mark = "*"
		}
		if n.Current {
			mark = "@"
		}
		fmt.Fprintf(&sb, "%s%s%d", strings.Repeat(". ", n.Lane), mark, n.Step)
		for _, m := range n.Marks {
			fmt.Fprintf(&sb, " %s", m.Kind)
		}
		sb.WriteString("\n")
	}
	return sb.String()
}

func TestTree(t *testing.T) {
	for _, tt := range []struct{ name, words, want string }{
		{"nothing", "", "@0\n"},
		{"a line", "a b", "*0\n*1\n@2\n"},
		{"a branch that was left stands before what went on", "a b c 1> d", "*0\n*1\n. o2\n. o3 pass jump\n@4\n"},
		{"two branches from one step", "a b 1> c 1> d", "*0\n*1\n. o2 pass jump\n. o3 pass jump\n@4\n"},
		{"a branch of a branch", "a b c 2> d 0> e", "*0\n. o1\n. o2\n. . o3 pass jump\n. o4 pass jump\n@5\n"},
		{"jumped back, and the next step under way", "a b 1>", "*0\n@1\n. o2 pass jump\n*3\n"},
		{"forward again", "a b 0> 2>", "*0 pass jump\n*1\n@2 pass jump\n*3\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := drawing(story(t, tt.words).Tree()); got != tt.want {
				t.Errorf("got\n%swant\n%s", got, tt.want)
			}
		})
	}
}

// TestTreeEmpty: a stream without operations has a tree without rows.
func TestTreeEmpty(t *testing.T) {
	tree := new(Builder).Tree()
	if len(tree.Nodes) != 0 || tree.Current != -1 {
		t.Errorf("got %+v", tree)
	}
	if nodes, from := tree.Window(-1, 10); len(nodes) != 0 || from != 0 {
		t.Errorf("window of nothing: %v from %d", nodes, from)
	}
}

// TestTreeUnderWay: a step that has begun is shown while its turn is open, and
// what follows a turn's end is no step.
func TestTreeUnderWay(t *testing.T) {
	b := story(t, "a")
	w := &writer{t: t, b: b}
	w.add(2, &op.ModelAsked{LastSeq: b.State().Last, Tokens: 5})
	tree := b.Tree()
	if n := tree.Nodes[len(tree.Nodes)-1]; n.Step != 2 || !n.UnderWay || !n.OnPath {
		t.Errorf("the step under way is %+v", n)
	}
	w.add(2, &op.ModelReplied{Text: "Done.", Finish: "stop"})
	w.add(2, &op.WorldSaved{Parent: 1, Commit: "c2"})
	w.add(3, &op.TurnEnded{Reason: "done"})
	if got, want := drawing(b.Tree()), "*0\n*1\n@2 end\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestTreeProperties: whatever a task does, every step has one row below its
// parent's, the lines of the tree do not cross, and jumps and cards stand at
// the step they were made at.
func TestTreeProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		words := ""
		steps := 1
		for range rapid.IntRange(0, 40).Draw(rt, "moves") {
			if rapid.IntRange(0, 2).Draw(rt, "jump") == 0 {
				words += fmt.Sprintf(" %d>", rapid.IntRange(0, steps-1).Draw(rt, "to"))
				continue
			}
			words += " Bash"
			steps++
		}
		b := story(t, words)
		tree := b.Tree()
		open := 0
		if _, ok := b.UnderWay(); ok {
			open = 1
		}
		if len(tree.Nodes) != steps+open {
			rt.Fatalf("%d rows for %d steps", len(tree.Nodes), steps)
		}
		seen := make([]bool, steps+open)
		for row, n := range tree.Nodes {
			if seen[n.Step] {
				rt.Fatalf("step %d has two rows", n.Step)
			}
			seen[n.Step] = true
			if n.Step > 0 && (n.ParentRow >= row || tree.Nodes[n.ParentRow].Step != n.Parent) {
				rt.Fatalf("step %d in row %d: its parent %d is said to stand in row %d", n.Step, row,
					n.Parent, n.ParentRow)
			}
			if n.OnPath && n.Lane != 0 {
				rt.Fatalf("step %d is on the path and stands in lane %d", n.Step, n.Lane)
			}
			if n.OnPath != (n.UnderWay || b.State().Steps.OnPath(n.Step, b.State().Current)) {
				rt.Fatalf("step %d on the path: %v", n.Step, n.OnPath)
			}
		}
		if tree.Nodes[tree.Current].Step != b.State().Current {
			rt.Fatalf("row %d is not step %d", tree.Current, b.State().Current)
		}
		linesApart(rt, tree)
		marksAtHome(rt, tree)
	})
}

// linesApart checks the lines of the tree: each goes down the lane of the
// parent to the child's row, and no other step stands on it there.
func linesApart(rt *rapid.T, tree Tree) {
	for row, n := range tree.Nodes {
		if n.ParentRow < 0 {
			continue
		}
		lane := tree.Nodes[n.ParentRow].Lane
		if n.Lane != lane && n.Lane != lane+1 {
			rt.Fatalf("step %d in lane %d has its parent in lane %d", n.Step, n.Lane, lane)
		}
		for k := n.ParentRow + 1; k < row; k++ {
			if tree.Nodes[k].Lane <= lane {
				rt.Fatalf("step %d stands on the line from step %d to step %d", tree.Nodes[k].Step, n.Parent, n.Step)
			}
		}
	}
}

// marksAtHome checks that each jump is marked at the step it left, with the
// card of its pass, and that its arc joins the rows it says.
func marksAtHome(rt *rapid.T, tree Tree) {
	marks := 0
	for _, n := range tree.Nodes {
		for _, m := range n.Marks {
			if m.Jump == nil {
				continue
			}
			marks++
			if m.Jump.From != n.Step {
				rt.Fatalf("a jump from step %d is marked at step %d", m.Jump.From, n.Step)
			}
			if !slices.ContainsFunc(n.Marks, func(m Row) bool { return m.Block && len(m.Cards) == 1 }) {
				rt.Fatalf("step %d has the jump and not its block and card", n.Step)
			}
		}
	}
	if marks != len(tree.Arcs) {
		rt.Fatalf("%d jumps are marked and %d drawn", marks, len(tree.Arcs))
	}
	if !slices.IsSortedFunc(tree.Arcs, func(a, b Arc) int { return cmp.Compare(a.Seq, b.Seq) }) {
		rt.Fatal("the jumps are not in order")
	}
	for _, a := range tree.Arcs {
		if tree.Nodes[a.FromRow].Step != a.From || tree.Nodes[a.ToRow].Step != a.To {
			rt.Fatalf("the jump %d → %d is drawn from row %d to row %d", a.From, a.To, a.FromRow, a.ToRow)
		}
	}
}

// TestWindow: a window is never longer than asked, and holds the current step
// unless a row was named.
func TestWindow(t *testing.T) {
	line := story(t, strings.Repeat("a ", 30)).Tree()
	back := story(t, strings.Repeat("a ", 30)+"1>").Tree()
	for _, tt := range []struct {
		name         string
		tree         Tree
		first, limit int
		from, n      int
	}{
		{"all of it", line, -1, 50, 0, 31},
		{"the end", line, -1, 10, 21, 10},
		{"from a row", line, 5, 10, 5, 10},
		{"past the end", line, 99, 10, 21, 10},
		{"around the step jumped back to", back, -1, 8, 0, 8},
		{"of nothing", Tree{Current: -1}, -1, 8, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			nodes, from := tt.tree.Window(tt.first, tt.limit)
			if from != tt.from || len(nodes) != tt.n {
				t.Errorf("%d rows from row %d, want %d from %d", len(nodes), from, tt.n, tt.from)
			}
			holds := slices.ContainsFunc(nodes, func(n Node) bool { return n.Current })
			if tt.first < 0 && tt.n > 0 && !holds {
				t.Error("the current step is not in it")
			}
		})
	}
}

// TestTreeUnderWayCalls: the step under way is named by its calls, those that still run last.
func TestTreeUnderWayCalls(t *testing.T) {
	w := &writer{t, story(t, "a")}
	id := w.b.State().Steps.Next()
	w.add(id, &op.ModelAsked{LastSeq: w.b.State().Last, Tokens: 9})
	w.add(id, &op.ModelReplied{
		Calls:  []op.Call{{ID: "x", Name: "Glob", Args: "{}"}, {ID: "y", Name: "Bash", Args: `{"command":"go test"}`}},
		Finish: "tool_calls",
	})
	w.add(id, &op.ToolReturned{Call: "x", Name: "Glob"})
	nodes := w.b.Tree().Nodes
	if got := nodes[len(nodes)-1]; !got.UnderWay || !strings.HasPrefix(got.Text, "Glob") ||
		!strings.HasSuffix(got.Text, ", Bash(go test)") {
		t.Errorf("%+v", got)
	}
	w.add(id, &op.ApprovalDecided{Call: "y", Decision: "edit", Args: `{"command":"go vet"}`})
	w.add(id, &op.ToolReturned{Call: "y", Name: "Bash", IsError: true, Refused: true,
		Text: "Not run: the user interrupted the turn."})
	nodes = w.b.Tree().Nodes
	if got := nodes[len(nodes)-1].Text; !strings.HasSuffix(got, ", Bash(go vet) (interrupted)") {
		t.Errorf("after the user edited the command: %q", got)
	}
}

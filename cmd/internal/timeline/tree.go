package timeline

import (
	"slices"
	"strings"

	"anamnesis/orchestrator/state/steps"
	"anamnesis/orchestrator/tool"
)

// Tree is the tree of steps laid out in rows, one step a row, parents above their children. At
// each step the abandoned branches come first, each in one piece and one lane further out; the
// step's own line continues below them. So no line crosses another.
type Tree struct {
	Nodes   []Node // by row
	Arcs    []Arc  // the jumps, in order
	Lanes   int    // how many lanes there are
	Current int    // the row of the current step; -1 in an empty tree
}

// Node is one step in the tree.
type Node struct {
	Step      int
	Parent    int // step 0 is its own
	ParentRow int // -1 for step 0
	Lane      int // 0 for the current path: how many times its line left another
	OnPath    bool
	Compacted bool // an anamnesis pass replaced it
	Current   bool // the current step
	UnderWay  bool // has not ended
	First     uint64
	Last      uint64 // its operations
	Tokens    int
	Failed    int    // calls whose result was an error
	Commit    string // empty: no checkpoint
	Text      string // its calls
	LeftBy    string // why it was left, where a jump left it
	Marks     []Row  // what was made while it was current, in order
}

// Arc is one jump between two rows.
type Arc struct {
	Jump
	Seq     uint64
	FromRow int
	ToRow   int
}

// Tree lays out the steps of the operations added so far.
func (b *Builder) Tree() Tree {
	st := b.State()
	t := Tree{Current: -1}
	n := b.Steps()
	if n == 0 {
		return t
	}
	rows := make([]int, n) // of each step
	live := b.live()
	t.Nodes = make([]Node, 0, n)
	for _, at := range order(&st.Steps, live[:n]) {
		rows[at.step] = len(t.Nodes)
		node := b.node(at.step, live)
		node.Lane = at.lane
		if node.ParentRow = -1; at.step > 0 {
			node.ParentRow = rows[node.Parent]
		}
		t.Lanes = max(t.Lanes, at.lane+1)
		t.Nodes = append(t.Nodes, node)
	}
	for _, r := range b.rows {
		t.place(r, rows)
	}
	if st.Current < n {
		t.Current = rows[st.Current]
		t.Nodes[t.Current].Current = true
	}
	return t
}

func (t *Tree) place(r Row, rows []int) {
	// What follows a turn's end has the number of a step that has not begun.
	if r.Step >= len(rows) && r.Kind == RowStep || r.At >= len(rows) {
		return
	}
	if r.Kind == RowStep {
		n := &t.Nodes[rows[r.Step]]
		n.First, n.Last, n.Tokens, n.Commit, n.Text = r.First, r.Last, r.Tokens, r.Commit, r.Text
		return
	}
	if j := r.Jump; j != nil && j.From < len(rows) && j.To < len(rows) {
		t.Arcs = append(t.Arcs, Arc{Jump: *j, Seq: r.First, FromRow: rows[j.From], ToRow: rows[j.To]})
	}
	n := &t.Nodes[rows[r.At]]
	n.Marks = append(n.Marks, r)
}

func (b *Builder) node(id int, live []bool) Node {
	s := b.state.Steps.At(id)
	calls := s.Calls
	if !s.Ended {
		calls = b.calls
		for _, id := range b.open {
			calls = append(slices.Clone(calls), tool.Display(b.asks[id], b.state.Opened.Dir))
		}
	}
	return Node{
		Step: id, Parent: s.Parent, OnPath: live[id] || !s.Ended, Compacted: s.Compacted, UnderWay: !s.Ended,
		First: s.First, Last: s.Last, Failed: s.Failed, LeftBy: s.LeftBy, Text: strings.Join(calls, ", "),
	}
}

type placed struct{ step, lane int }

// order returns the first steps, as many as live has, in the order of their rows. The line
// through a step continues with its child on the current path, or off that path with its
// newest child; a step that the task has jumped back to may have no such child.
func order(steps *steps.Tree, live []bool) []placed {
	children := make([][]int, len(live))
	for id := 1; id < len(live); id++ {
		parent := steps.At(id).Parent
		children[parent] = append(children[parent], id)
	}
	out := make([]placed, 0, len(live))
	for stack := []placed{{}}; len(stack) > 0; {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		out = append(out, at)
		next := -1
		for _, c := range children[at.step] {
			if live[c] || !steps.At(c).Ended || !live[at.step] {
				next = c
			}
		}
		// The step's own line is pushed first, and so taken last: it continues below the branches.
		if next >= 0 {
			stack = append(stack, placed{next, at.lane})
		}
		for _, c := range slices.Backward(children[at.step]) {
			if c != next {
				stack = append(stack, placed{c, at.lane + 1})
			}
		}
	}
	return out
}

// Window cuts the tree to at most limit rows from row first on, or, with first below 0, to
// those with the current step and as many as possible of the last ones. It returns the first
// row of the window.
func (t Tree) Window(first, limit int) (nodes []Node, from int) {
	last := max(len(t.Nodes)-limit, 0)
	if first < 0 {
		first = last
		if t.Current >= 0 && t.Current < first {
			first = max(t.Current-limit/4, 0)
		}
	}
	from = min(first, last)
	return t.Nodes[from:min(from+limit, len(t.Nodes))], from
}

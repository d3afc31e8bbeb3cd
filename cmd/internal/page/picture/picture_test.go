package picture

import (
	"fmt"
	"strings"
	"testing"

	"anamnesis/cmd/internal/timeline"
)

// leftBehind is a task that jumped from step 3 back to step 1 and continued.
var leftBehind = timeline.Tree{
	Nodes: []timeline.Node{
		{Step: 0, ParentRow: -1, OnPath: true},
		{Step: 1, Parent: 0, ParentRow: 0, OnPath: true},
		{Step: 2, Parent: 1, ParentRow: 1, Lane: 1, LeftBy: "wrong path"},
		{Step: 3, Parent: 2, ParentRow: 2, Lane: 1, Failed: 1, Compacted: true, Marks: []timeline.Row{{Kind: timeline.RowPass, First: 9, Icon: "◆", Short: "block, 1 ✦", Block: true, Cards: []string{"c1"}}}},
		{Step: 4, Parent: 1, ParentRow: 1, OnPath: true, Current: true},
	},
	Arcs:  []timeline.Arc{{Jump: timeline.Jump{From: 3, To: 1, Backward: true}, FromRow: 3, ToRow: 1}},
	Lanes: 2, Current: 4,
}

// TestBranches: a list begins where a step does not go on from the row before it.
func TestBranches(t *testing.T) {
	var got strings.Builder
	var items []Item
	for _, b := range Branches(leftBehind.Nodes) {
		got.WriteString(b.Name + ":")
		for _, it := range b.Items {
			fmt.Fprint(&got, " ", it.Step)
		}
		got.WriteString("\n")
		items = append(items, b.Items...)
	}
	if want := "From the beginning: 0 1\nBranch from step 1, left: wrong path: 2 3\nBranch from step 1: 4\n"; got.String() != want {
		t.Errorf("the lists are\n%s, want\n%s", got.String(), want)
	}
	if s := strings.Join(items[3].Signs, " "); s != "left compacted 1 failed" {
		t.Errorf("step 3 has the signs %q", s)
	}
	if m := items[3].Made; len(m) != 1 || m[0].Sign+" "+m[0].Short != "◆ block, 1 ✦" || m[0].Text != "; card c1" {
		t.Errorf("step 3 has the marks %+v", m)
	}
}

// TestDraw: a part of the tree has the steps shown, the lines to them, and the jumps that
// touch it; lines that leave it end at its edge.
func TestDraw(t *testing.T) {
	d := Draw(leftBehind, 0, 5)
	if len(d.Nodes) != 5 || len(d.Edges) != 4 || len(d.Arcs) != 1 || d.Hidden != 0 || d.Arcs[0].Head == "" ||
		d.Arcs[0].Forward {
		t.Errorf("the whole tree: %+v", d)
	}
	if !d.Edges[1].Left || d.Edges[3].Left || d.Nodes[3].OnPath || d.Nodes[3].Failed != 1 || !d.Nodes[4].Current ||
		d.Nodes[2].X <= d.Nodes[1].X {
		t.Errorf("what was left is not set apart: %+v", d)
	}
	d = Draw(leftBehind, 2, 2)
	if len(d.Nodes) != 2 || len(d.Arcs) != 1 || d.Arcs[0].Head != "" || d.Height != 2*rowHeight {
		t.Errorf("rows 2 and 3: %+v", d)
	}
	if d = Draw(leftBehind, 4, 1); len(d.Arcs) != 0 || d.Hidden != 1 {
		t.Errorf("a row that no jump touches: %+v", d)
	}
}

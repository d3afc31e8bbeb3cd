package steps

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"anamnesis/opstream/op"
)

// TestDiscarded: in any tree, a jump leaves the steps of the path to where the task is
// that are not on the path to its target.
func TestDiscarded(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var s Tree
		n := rapid.IntRange(1, 40).Draw(rt, "steps")
		for id := range n {
			s.Add(Step{
				ID: id, Parent: rapid.IntRange(0, max(id-1, 0)).Draw(rt, "parent"), First: uint64(id + 1),
				Last: uint64(id + 1), Ended: true,
			})
		}
		from := rapid.IntRange(0, n-1).Draw(rt, "from")
		to := rapid.IntRange(0, n-1).Draw(rt, "to")
		var want []int
		for _, id := range s.Path(from) {
			if !slices.Contains(s.Path(to), id) {
				want = append(want, id)
			}
		}
		if got := s.Discarded(from, to); !slices.Equal(got, want) {
			rt.Fatalf("from step %d to step %d: %v, want %v", from, to, got, want)
		}
		for id, on := range s.PathSet(to) {
			if on != s.OnPath(id, to) {
				rt.Fatalf("step %d on the path to step %d: %v", id, to, on)
			}
		}
	})
}

// TestRanges: consecutive steps are one range; a block describes steps each of which continues the one before.
func TestRanges(t *testing.T) {
	for _, tt := range []struct {
		ids  []int
		want string
	}{{nil, ""}, {[]int{0}, "0"}, {[]int{1, 2, 3}, "1-3"}, {[]int{1, 3, 4, 7}, "1, 3-4, 7"}} {
		if got := IDRanges(tt.ids); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.ids, got, tt.want)
		}
	}
	var tree Tree
	for id, parent := range []int{0, 0, 1, 1, 3} { // a jump back from 2 to 1
		tree.Add(Step{ID: id, Parent: parent, First: uint64(10*id + 1), Last: uint64(10*id + 9)})
	}
	for _, tt := range []struct {
		ids              []int
		ranges, branches string
	}{
		{nil, "[]", "[]"},
		{[]int{1, 2}, "[11-29]", "[[1 2]]"},
		{[]int{1, 2, 3, 4}, "[11-49]", "[[1 2] [3 4]]"},
		{[]int{0, 2, 4}, "[1-9 21-29 41-49]", "[[0] [2] [4]]"},
	} {
		if ranges, branches := fmt.Sprint(tree.Ranges(tt.ids)), fmt.Sprint(tree.Branches(tt.ids)); ranges != tt.ranges || branches != tt.branches {
			t.Errorf("%v: %s, %s; want %s, %s", tt.ids, ranges, branches, tt.ranges, tt.branches)
		}
	}
}

// TestLeftFrom: the attempts at a step that a jump left are listed by their first steps, and the ended ones named.
func TestLeftFrom(t *testing.T) {
	var tree Tree
	if got := tree.Valid(); got != "none yet" {
		t.Errorf("valid in an empty tree: %s", got)
	}
	for id, parent := range []int{0, 0, 1, 0, 0, 0} { // 0 was returned to three times
		st := Step{ID: id, Parent: parent, Ended: id < 5}
		if id == 1 || id == 2 || id == 3 {
			st.LeftBy = "wrong"
		}
		tree.Add(st)
		if id == 0 && tree.Valid() != "0" {
			t.Errorf("valid after step 0: %s", tree.Valid())
		}
	}
	for to, want := range map[int]string{0: "[1 3]", 1: "[2]", 2: "[]"} {
		ids := []int{}
		for st := range tree.LeftFrom(to, 4) {
			ids = append(ids, st.ID)
		}
		if got := fmt.Sprint(ids); got != want {
			t.Errorf("left from step %d: %s, want %s", to, got, want)
		}
	}
	for st := range tree.LeftFrom(0, 2) {
		if st.ID != 3 {
			t.Errorf("step %d is listed, which is on the path", st.ID)
		}
	}
	if got := tree.Valid(); got != "0 to 4" {
		t.Errorf("valid: %s", got)
	}
}

// TestTree: which steps a tree has begun, which ended, which are off a path, and which begin in some operations.
func TestTree(t *testing.T) {
	var tree Tree
	if got := fmt.Sprint(tree.Next(), tree.CountEnded(), tree.PathSet(0), tree.Unread(0)); got != "0 0 [] []" {
		t.Errorf("an empty tree: %s", got)
	}
	for id, want := range []struct{ under, ended string }{{"0 0 none yet", "1 0 0"}, {"1 0 0", "2 1 0 to 1"}, {"2 1 0 to 1", "3 2 0 to 2"}, {"3 2 0 to 2", "4 3 0 to 3"}} {
		now := func() string { return fmt.Sprint(tree.Next(), " ", tree.CountEnded(), " ", tree.Valid()) }
		tree.Add(Step{ID: id, Parent: max(id-1, 0), First: uint64(10 * (id + 1)), Last: uint64(10*(id+1) + 5)})
		if got := now(); got != want.under {
			t.Errorf("during step %d: %s, want %s", id, got, want.under)
		}
		tree.Edit(id, func(st *Step) { st.Ended = true })
		if got := now(); got != want.ended {
			t.Errorf("after step %d: %s, want %s", id, got, want.ended)
		}
	}
	tree.Add(Step{ID: 4, Parent: 1, First: 50, Last: 50}) // a jump back to 1
	tree.Edit(2, func(st *Step) { st.Compacted = true })
	tree.Edit(3, func(st *Step) { st.Read = true })
	if got := fmt.Sprint(tree.Raw(4), tree.Unread(4), tree.Raw(3), tree.Unread(0), tree.Uncompacted([]int{1, 2, 3})); got != "[3] [2] [] [1 2] [1 3]" {
		t.Errorf("off the path: %s", got)
	}
	for _, tt := range []struct {
		ranges []op.Range
		want   string
	}{
		{nil, "[]"},
		{[]op.Range{{First: 10, Last: 10}}, "[0]"},
		{[]op.Range{{First: 11, Last: 19}}, "[]"},
		{[]op.Range{{First: 20, Last: 30}}, "[1 2]"},
		{[]op.Range{{First: 19, Last: 29}, {First: 40, Last: 90}}, "[1 3]"},
	} {
		ids := []int{}
		for id := range tree.In(tt.ranges) {
			ids = append(ids, id)
		}
		if got := fmt.Sprint(ids); got != tt.want {
			t.Errorf("the steps that begin in %v: %s, want %s", tt.ranges, got, tt.want)
		}
	}
	for id := range tree.In([]op.Range{{First: 10, Last: 90}}) {
		if id == 1 {
			break
		}
	}
	tree.Edit(1, func(st *Step) { st.LeftBy = "a" })
	tree.Edit(2, func(st *Step) { st.Parent, st.LeftBy = 0, "b" })
	for st := range tree.LeftFrom(0, 0) {
		if st.ID != 1 {
			t.Errorf("step %d is listed first", st.ID)
		}
		break
	}
	if MarkOf("") != 0 || MarkOf("a") == MarkOf("b") || MarkOf("a") == 0 {
		t.Error("the marks of trees")
	}
}

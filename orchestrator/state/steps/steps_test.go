package steps

import "testing"

// TestWhole: a tree read from a snapshot is whole only if Add could have built it.
func TestWhole(t *testing.T) {
	whole := func() Tree {
		return Tree{List: []Step{
			{First: 1, Last: 2, Ended: true}, {ID: 1, First: 3, Last: 4, Ended: true},
			{ID: 2, Parent: 1, First: 5, Last: 5},
		}}
	}
	if s := whole(); !s.Whole() {
		t.Fatal("a whole tree is not")
	}
	for what, damage := range map[string]func(st *Step){
		"another id":                   func(st *Step) { st.ID = 2 },
		"a parent after it":            func(st *Step) { st.Parent = 2 },
		"a parent before all":          func(st *Step) { st.Parent = -1 },
		"an end before its beginning":  func(st *Step) { st.Last = 2 },
		"no end before another begins": func(st *Step) { st.Ended = false },
	} {
		s := whole()
		if s.Edit(1, damage); s.Whole() {
			t.Errorf("%s: the tree is whole", what)
		}
	}
}

package steps

import (
	"fmt"
	"iter"
	"slices"
	"sort"

	"anamnesis/opstream/op"
)

// Path returns the steps from 0 to id, oldest first.
func (t *Tree) Path(id int) []int {
	path := slices.Collect(t.Back(id))
	slices.Reverse(path)
	return path
}

// Back yields the steps on the path to id, id first.
func (t *Tree) Back(id int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for yield(id) && id > 0 {
			id = t.List[id].Parent
		}
	}
}

// PathSet reports for each step whether it is on the path to a step. In an empty tree it is
// empty.
func (t *Tree) PathSet(to int) []bool {
	on := make([]bool, t.Len())
	if len(on) > 0 {
		for id := range t.Back(to) {
			on[id] = true
		}
	}
	return on
}

// OnPath reports whether step id is on the path to step to.
func (t *Tree) OnPath(id, to int) bool {
	for to > id {
		to = t.List[to].Parent
	}
	return to == id
}

// Discarded returns the steps that a jump leaves, oldest first.
func (t *Tree) Discarded(from, to int) []int {
	var out []int
	for at := from; at != to; { // of the two, the later one is replaced by its parent, whose id is smaller
		if at < to {
			to = t.List[to].Parent
			continue
		}
		out = append(out, at)
		if at == 0 {
			break
		}
		at = t.List[at].Parent
	}
	slices.Reverse(out)
	return out
}

// LeftFrom yields the first steps of abandoned attempts at step to, oldest first, without the
// one on the path to step from.
func (t *Tree) LeftFrom(to, from int) iter.Seq[Step] {
	return func(yield func(Step) bool) {
		for id := range t.Len() {
			if id == to || t.List[id].Parent != to || !t.List[id].Ended || t.OnPath(id, from) {
				continue
			}
			if st := t.At(id); st.LeftBy != "" && !yield(st) {
				return
			}
		}
	}
}

// Valid names the steps that have ended.
func (t *Tree) Valid() string {
	last := t.Len() - 1
	if last >= 0 && !t.List[last].Ended {
		last--
	}
	switch {
	case last < 0:
		return "none yet"
	case last == 0:
		return "0"
	}
	return fmt.Sprintf("0 to %d", last)
}

// Ranges returns the sequence numbers of some steps, in the order of their ids, as
// disjoint ranges.
func (t *Tree) Ranges(steps []int) []op.Range {
	var out []op.Range
	for i, id := range steps {
		st := t.At(id)
		if i > 0 && steps[i-1] == id-1 {
			out[len(out)-1].Last = st.Last
			continue
		}
		out = append(out, op.Range{First: st.First, Last: st.Last})
	}
	return out
}

// IDRanges lists ascending numbers, consecutive ones as ranges.
func IDRanges(ids []int) string {
	s := ""
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 {
			j++
		}
		if i > 0 {
			s += ", "
		}
		s += op.Range{First: uint64(ids[i]), Last: uint64(ids[j])}.String()
		i = j + 1
	}
	return s
}

// Branches splits steps, in the order of their ids, where one does not continue the previous:
// a block describes one line of states.
func (t *Tree) Branches(steps []int) [][]int {
	var out [][]int
	for i, id := range steps {
		if i > 0 && steps[i-1] == id-1 && t.List[id].Parent == id-1 {
			out[len(out)-1] = append(out[len(out)-1], id)
			continue
		}
		out = append(out, []int{id})
	}
	return out
}

// In returns the ended steps, by id, that begin in some ranges.
func (t *Tree) In(ranges []op.Range) iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, r := range ranges {
			first := sort.Search(t.Len(), func(i int) bool { return t.List[i].First >= r.First })
			for i := first; i < t.Len() && r.Contains(t.List[i].First); i++ {
				if t.List[i].Ended && !yield(i) {
					return
				}
			}
		}
	}
}

// Next returns the id of the step under way, or of the next one.
func (t *Tree) Next() int {
	if n := t.Len(); n > 0 && !t.List[n-1].Ended {
		return n - 1
	}
	return t.Len()
}

// CountEnded counts the steps that ended, without step 0.
func (t *Tree) CountEnded() int { return max(t.Next()-1, 0) }

// Raw returns the steps that are discarded when the path leads to step to, and that the
// context still holds in full.
func (t *Tree) Raw(to int) []int { return t.abandoned(to, func(st Step) bool { return st.Compacted }) }

// Unread returns the steps off the path to step to that no pass has read.
func (t *Tree) Unread(to int) []int { return t.abandoned(to, func(st Step) bool { return st.Read }) }

// abandoned returns the ended steps off a path, but for some.
func (t *Tree) abandoned(to int, but func(st Step) bool) []int {
	live := t.PathSet(to)
	var out []int
	for id := range live {
		if t.List[id].Ended && !live[id] && !but(t.List[id]) {
			out = append(out, id)
		}
	}
	return out
}

// Uncompacted returns those of some steps that the context still holds in full.
func (t *Tree) Uncompacted(steps []int) []int {
	return slices.DeleteFunc(slices.Clone(steps), func(id int) bool { return t.List[id].Compacted })
}

package steps

import (
	"fmt"
	"reflect"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/loop"
)

// TestStepsAgainstList: whatever steps hold and however they are changed, they
// return what a plain list of them holds, also decoded.
func TestStepsAgainstList(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var s Tree
		var list []Step
		first := uint64(1)
		for range rapid.IntRange(1, 40).Draw(rt, "changes") {
			id, change := len(list), 0
			if id > 0 {
				change = rapid.IntRange(0, 6).Draw(rt, "change")
			}
			if change > 0 {
				id = rapid.IntRange(0, len(list)-1).Draw(rt, "id")
			}
			switch change {
			case 1: // of any kind
				st := drawStep(rt, id, rapid.Uint64Range(1, 1<<30).Draw(rt, "first"))
				if list[id].Ended && !st.Ended { // no step begins again
					st.Ended = true
				}
				s.Edit(id, func(was *Step) { *was = st })
				list[id] = st
			case 2:
				id = len(list) - 1
				if !list[id].Ended { // the one under way ends
					s.Edit(id, func(st *Step) { st.Ended, st.Saved, st.World = true, true, 7 })
					list[id].Ended, list[id].Saved, list[id].World = true, true, 7
				}
			case 3:
				s.Mark(id, FlagCompacted|FlagRead)
				list[id].Compacted, list[id].Read = true, true
			case 4:
				s.Mark(id, FlagCarried)
				list[id].Carried = true
			case 5:
				reason := rapid.SampledFrom([]string{"", "no use", "of no more use"}).Draw(rt, "reason")
				s.Leave(id, reason)
				list[id].LeftBy = reason
			case 6:
				if id = len(list) - 1; !list[id].Ended {
					list[id].Last++
					s.Edit(id, func(st *Step) { st.Last++ })
				}
			default:
				for range rapid.SampledFrom([]int{1, 1, 5, 64}).Draw(rt, "steps") {
					st := drawStep(rt, len(list), first)
					first = st.Last + rapid.Uint64Range(1, 9).Draw(rt, "between")
					s.Add(st)
					list = append(list, st)
				}
			}
		}
		if s.Len() != len(list) {
			rt.Fatalf("%d steps, want %d", s.Len(), len(list))
		}
		for id, st := range s.All() {
			if want := list[id]; !reflect.DeepEqual(st, want) {
				rt.Fatalf("step %d:\n%+v, want\n%+v", id, st, want)
			}
			if st.Parent != s.Parent(id) || st.First != s.First(id) || st.Ended != s.Ended(id) || st.Compacted != s.Compacted(id) || st.Read != s.Read(id) || st.Saved != s.Saved(id) || !reflect.DeepEqual(s.At(id), st) {
				rt.Fatalf("step %d is returned in two ways", id)
			}
		}
		data, err := s.Append(nil)
		if err != nil {
			rt.Fatal(err)
		}
		back, rest, ok := Decode(append(data, 1, 2, 3))
		if !ok || len(rest) != 3 || back.Len() != len(list) {
			rt.Fatalf("decoded %v, %d bytes left", ok, len(rest))
		}
		for id, st := range back.All() {
			if want := list[id]; !reflect.DeepEqual(st, want) {
				rt.Fatalf("decoded step %d:\n%+v, want\n%+v", id, st, want)
			}
		}
		n := rapid.IntRange(0, len(data)-1).Draw(rt, "cut at")
		if _, _, ok := Decode(data[:n]); ok {
			rt.Fatalf("the first %d of %d bytes decode", n, len(data))
		}
	})
}

func drawStep(rt *rapid.T, id int, first uint64) Step {
	bits := rapid.Uint32().Draw(rt, "step")
	few := func(shift, most int) int { return int(bits>>shift) % (most + 1) }
	st := Step{
		ID: id, Parent: max(0, id-1), First: first, Last: first + uint64(few(0, 300)), Ended: bits&(1<<20) != 0, Compacted: bits&(1<<21) != 0, Read: bits&(1<<22) != 0,
		Carried: bits&(1<<23) != 0, Saved: bits&(1<<24) != 0, World: Mark(bits >> 29), LeftBy: []string{"", "no use", "too slow"}[few(4, 2)], Failed: few(8, 1),
	}
	if few(12, 15) == 0 {
		st.Parent, st.NoCheckpoint, st.Failed = rapid.IntRange(0, id).Draw(rt, "parent"), "disk full", rapid.IntRange(0, 1<<17).Draw(rt, "failed")
		st.Last = first + rapid.Uint64Range(0, 1<<24).Draw(rt, "operations")
		st.World = Mark(rapid.Uint64().Draw(rt, "world"))
	}
	for i := range few(6, 3) {
		st.Calls = append(st.Calls, fmt.Sprintf("Tool%d", i))
	}
	for i := range few(9, 2) {
		st.Todos = append(st.Todos, op.Todo{Title: fmt.Sprint("todo ", i), Status: "pending"})
	}
	for i := range few(15, 9) / 4 {
		st.Began = append(st.Began, Began{loop.KeyOf(fmt.Sprint(bits), "Bash", fmt.Sprint(i)), st.First + uint64(bits)%(st.Last-st.First+1) - uint64(bits>>28&1)})
	}
	return st
}

// TestStepsAreSmall: a task keeps each step for as long as it runs. What steps have in common
// is stored once.
func TestStepsAreSmall(t *testing.T) {
	var s Tree
	for id := range 3200 {
		st := Step{ID: id, Parent: max(0, id-1-id%20/19*18), First: uint64(5*id + 1), Last: uint64(5*id + 5), Ended: true, Saved: true, World: MarkOf(fmt.Sprint(id)), Calls: []string{"Bash"}}
		st.Began = []Began{{loop.KeyOf(fmt.Sprint(id), "Bash", "{}"), st.Last}}
		s.Add(st)
		s.Leave(id, "no use")
	}
	if n := len(s.texts.list); n != 2 {
		t.Errorf("%d texts, want a reason and a list of calls", n)
	}
	if n := len(s.details.list); n != 1 {
		t.Errorf("%d details, want one of all steps", n)
	}
	if n := unsafe.Sizeof(row{}) + unsafe.Sizeof(Began{}); n > 48 {
		t.Errorf("a step takes %d bytes, at most 48 are wanted", n)
	}
}

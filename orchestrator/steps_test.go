package orchestrator

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/loop"

	"pgregory.net/rapid"
)

// TestStepsAgainstList: whatever steps hold and however they are changed, they
// say what a plain list of them says.
func TestStepsAgainstList(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var s Steps
		var list []Step
		for range rapid.IntRange(1, 40).Draw(rt, "changes") {
			id := len(list)
			if id > 0 && rapid.Bool().Draw(rt, "change one") {
				id = rapid.IntRange(0, len(list)-1).Draw(rt, "id")
				change := drawStep(rt, id)
				if list[id].Ended && !change.Ended { // no step begins again
					change.Ended = true
				}
				s.edit(id, func(st *Step) { *st = change })
				list[id] = change
				continue
			}
			st := drawStep(rt, id)
			s.add(st)
			list = append(list, st)
		}
		if s.Len() != len(list) {
			rt.Fatalf("%d steps, want %d", s.Len(), len(list))
		}
		for id, st := range s.All() {
			if want := list[id]; !reflect.DeepEqual(st, want) {
				rt.Fatalf("step %d:\n%+v, want\n%+v", id, st, want)
			}
			if st.Parent != s.Parent(id) || st.First != s.First(id) || st.Ended != s.Ended(id) || st.Folded != s.Folded(id) || st.Read != s.Read(id) {
				rt.Fatalf("step %d is told in two ways", id)
			}
		}
	})
}

func drawStep(rt *rapid.T, id int) Step {
	hash := rapid.SampledFrom([]string{"", strings.Repeat("0a", 20), strings.Repeat("f9", 20), strings.Repeat("00", 20), "t1", strings.Repeat("AB", 20)})
	first := rapid.Uint64Range(1, 1<<40).Draw(rt, "first")
	st := Step{
		ID: id, Parent: rapid.IntRange(0, id).Draw(rt, "parent"), First: first, Last: first + rapid.Uint64Range(0, 1<<34).Draw(rt, "operations"),
		Ended: rapid.Bool().Draw(rt, "ended"), Folded: rapid.Bool().Draw(rt, "folded"), Read: rapid.Bool().Draw(rt, "read"), Carried: rapid.Bool().Draw(rt, "carried"),
		Commit: hash.Draw(rt, "commit"), Tree: hash.Draw(rt, "tree"), LeftBy: rapid.SampledFrom([]string{"", "no use", "too slow"}).Draw(rt, "left by"),
		NoCheckpoint: rapid.SampledFrom([]string{"", "", "disk full"}).Draw(rt, "no checkpoint"), Failed: rapid.IntRange(0, 1<<17).Draw(rt, "failed"),
	}
	for i := range rapid.IntRange(0, 3).Draw(rt, "calls") {
		st.Calls = append(st.Calls, fmt.Sprintf("Tool%d", i))
	}
	for i := range rapid.IntRange(0, 2).Draw(rt, "todos") {
		st.Todos = append(st.Todos, op.Todo{Title: fmt.Sprint("todo ", i), Status: "pending"})
	}
	for range rapid.IntRange(0, 2).Draw(rt, "began") {
		key := loop.Key(rapid.SampledFrom([]string{"short", string(loop.KeyOf("w", "Bash", "{}")), "AAAAAAAAAAAAAAA=", "AAAAAAAAAAAAAAAAAA"}).Draw(rt, "key"))
		st.Began = append(st.Began, Began{key, rapid.Uint64Range(first-1, st.Last).Draw(rt, "result")})
	}
	return st
}

// TestStepsAreSmall: a task keeps what it knows of each step for ever.
func TestStepsAreSmall(t *testing.T) {
	if n := unsafe.Sizeof(packedStep{}); n > 96 {
		t.Errorf("a step takes %d bytes, at most 96 are wanted", n)
	}
	var s Steps
	for id := range 3 * stepChunk {
		st := Step{ID: id, First: uint64(5*id + 1), Last: uint64(5*id + 5), Ended: true, Commit: strings.Repeat("ab", 20), Tree: strings.Repeat("cd", 20), LeftBy: "no use", Calls: []string{"Bash"}}
		st.Began = []Began{{loop.KeyOf(fmt.Sprint(id), "Bash", "{}"), st.Last}}
		s.add(st)
	}
	if n := len(s.wide) + len(s.texts.list) + len(s.calls.list); n != 2 {
		t.Errorf("ordinary steps fill %d places of tables, want one reason and one list of calls", n)
	}
}

// TestTokenSums: sums of counts, beside a plain list of them.
func TestTokenSums(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var sums tokenSums
		list := []uint64{0}
		for i, tok := range rapid.SliceOfN(rapid.Uint64Range(0, 1<<40), 0, 4*sumBlock).Draw(rt, "counts") {
			sums.add(tok)
			list = append(list, list[i]+tok)
		}
		for n, want := range list {
			if got := sums.upTo(uint64(n)); got != want {
				rt.Fatalf("of %d counts: %d, want %d", n, got, want)
			}
		}
		n := 0
		for tok := range sums.all() {
			if n++; tok != list[n]-list[n-1] {
				rt.Fatalf("count %d is %d, want %d", n, tok, list[n]-list[n-1])
			}
		}
		if n != len(list)-1 {
			rt.Fatalf("%d counts, want %d", n, len(list)-1)
		}
	})
}

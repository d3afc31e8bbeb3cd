package anamnesis

import (
	"slices"
	"strings"
	"testing"

	"anamnesis/opstream/op"
)

// TestLastToGo: as the cap grows tighter the lists lose what they say in the
// order of their worth: what was not tried goes first, what failed last.
func TestLastToGo(t *testing.T) {
	text := func(s string) []Statement { return []Statement{{Text: strings.Repeat(s+" ", 20), Ops: []uint64{13}}} }
	n := Notes{
		Causes: text("cause"), Findings: text("finding"), Verified: text("verified"), Untried: text("untried"), Advice: text("advice"),
		Falsified: []Falsified{{Action: strings.Repeat("falsified ", 20), Confidence: ConfidenceHigh, Ops: []uint64{13}}},
	}
	order := []string{"untried", "finding", "verified", "advice", "cause", "falsified"}
	r := story().request(4000)
	full, left := renderBlock(&r, &n, 1<<20)
	if left != 0 {
		t.Fatalf("%d entries have no room without a cap", left)
	}
	gone := 0
	for limit := words(full); limit > 0; limit-- {
		block, left := renderBlock(&r, &n, limit)
		if left < gone || left > gone+1 {
			t.Fatalf("at %d tokens %d entries are left out, at one more it was %d", limit, left, gone)
		}
		gone = left
		for i, word := range order {
			if said := strings.Contains(block, word+" "+word); said != (i >= gone) {
				t.Fatalf("at %d tokens, %d entries left out, %q is said: %v\n%s", limit, gone, word, said, block)
			}
		}
	}
	if gone != len(order) {
		t.Errorf("at no tokens %d entries are left out of %d", gone, len(order))
	}
}

// TestManyRanges: a path of many stretches is pointed at by the first ones and
// the extent of the others; the smallest block says which steps it stands for.
func TestManyRanges(t *testing.T) {
	r := story().request(4000)
	r.Ranges, r.Starts = nil, nil
	for i := range 15 {
		r.Ranges = append(r.Ranges, op.Range{First: uint64(12 + 10*i), Last: uint64(15 + 10*i)})
	}
	block, _ := renderBlock(&r, &Notes{}, 400)
	if want := ", 122-125 and 3 more ranges within 132-155 hold the full record"; !strings.Contains(block, want) {
		t.Errorf("no %q in\n%s", want, block)
	}
	r.Ranges = r.Ranges[:12]
	if block, _ = renderBlock(&r, &Notes{}, 400); !strings.Contains(block, ", 122-125 hold the full record") {
		t.Errorf("twelve ranges are not all named:\n%s", block)
	}
	for standing, want := range map[bool]string{false: "Back at step 2 from step 7.", true: "Steps 7 to 2 stand."} {
		r.Standing = standing
		small, _ := renderBlock(&r, &Notes{}, 30)
		lines := strings.Split(small, "\n")
		if !slices.Contains(lines, want) || !slices.Contains(lines, "Pointers: ops 12-15, 22-25, 32-35, 42-45 and 8 more ranges within 52-125.") {
			t.Errorf("%q, want %q", lines, want)
		}
	}
}

// TestWorkedElsewhere: the card that a failed call's result showed leaves the context
// with it; the block keeps what it says worked, and a later block takes that over.
func TestWorkedElsewhere(t *testing.T) {
	s := newSpan(7, 1)
	exit := 1
	s.add(&op.ToolCalled{Call: "a", Name: "Bash", Args: `{"command":"python3 -m pytest"}`})
	s.add(&op.CardsRecalled{Why: "failure", Cards: []op.CardRef{{ID: "okyp24f7", Tries: []string{"bin/test sympy/core"}}}})
	s.add(&op.ToolReturned{Call: "a", Name: "Bash", Text: "/usr/bin/python3: No module named pytest", Stderr: "/usr/bin/python3: No module named pytest", Exit: &exit, IsError: true})
	r := s.request(4000)
	res := pass(t, nil, r, nil)
	const want = "  worked elsewhere: bin/test sympy/core (lesson okyp24f7)\n"
	if !strings.Contains(res.Block, want) {
		t.Fatalf("no %q in\n%s", want, res.Block)
	}
	if f := parseFalsified(res.Block); len(f) != 1 || f[0].Elsewhere != "bin/test sympy/core (lesson okyp24f7)" {
		t.Errorf("read back as %+v", f)
	}
}

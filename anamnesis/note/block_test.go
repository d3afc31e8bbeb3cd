package note

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"anamnesis/opstream/op"
)

func words(s string) int { return len(strings.Fields(s)) }

// TestLastToGo: as the cap grows tighter the lists lose what they say in the
// order of their worth: what was not tried goes first, what failed last.
func TestLastToGo(t *testing.T) {
	text := func(s string) []Statement { return []Statement{{Text: strings.Repeat(s+" ", 20), Ops: []uint64{13}}} }
	n := Notes{
		Causes: text("cause"), Findings: text("finding"), Verified: text("verified"), Untried: text("untried"),
		Advice: text("advice"),
		// Not longer than the others, for which there would be room in its place.
		Falsified: []Falsified{
			{Action: strings.Repeat("falsified ", 19), Confidence: ConfidenceHigh, Ops: []uint64{13}},
		},
	}
	order := []string{"untried", "finding", "verified", "advice", "cause", "falsified"}
	r := Span{Task: "t", From: 7, To: 2, Ranges: []op.Range{{First: 12, Last: 40}}}
	full, left := n.Block(&r, nil, 1<<20, words)
	if left != 0 {
		t.Fatalf("%d entries have no room without a cap", left)
	}
	gone, before := 0, full
	for limit := words(full); limit > 0; limit-- {
		block, left := n.Block(&r, nil, limit, words)
		if words(block) > max(limit, 2) {
			t.Fatalf("%d tokens, the cap is %d:\n%s", words(block), limit, block)
		}
		if block != before && words(before) != limit+1 {
			t.Fatalf("a block of %d tokens fits into %d, but it is\n%s", words(before), limit, block)
		}
		before = block
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
	r, n := Span{Task: "t", From: 7, To: 2}, Notes{}
	for i := range 15 {
		r.Ranges = append(r.Ranges, op.Range{First: uint64(12 + 10*i), Last: uint64(15 + 10*i)})
	}
	block, _ := n.Block(&r, nil, 400, words)
	if want := ", 122-125 and 3 more ranges within 132-155 hold the full record"; !strings.Contains(block, want) {
		t.Errorf("no %q in\n%s", want, block)
	}
	r.Ranges = r.Ranges[:12]
	if block, _ = n.Block(&r, nil, 400, words); !strings.Contains(block, ", 122-125 hold the full record") {
		t.Errorf("twelve ranges are not all named:\n%s", block)
	}
	for standing, want := range map[bool]string{false: "Back at step 2 from step 7.", true: "Steps 7 to 2 stand."} {
		r.Standing = standing
		small, _ := n.Block(&r, nil, 30, words)
		lines := strings.Split(small, "\n")
		if !slices.Contains(lines, want) ||
			!slices.Contains(lines, "Pointers: ops 12-15, 22-25, 32-35, 42-45 and 8 more ranges within 52-125.") {
			t.Errorf("%q, want %q", lines, want)
		}
	}
}

// TestPlacesStay: steps to go back to are short, and stay where long entries of other lists
// have no room.
func TestPlacesStay(t *testing.T) {
	var n Notes
	for i := range 3 {
		n.Falsified = append(n.Falsified, Falsified{Action: fmt.Sprintf("make part%d", i),
			Error: strings.Repeat("x", 700), Confidence: ConfidenceHigh})
		n.Places = append(n.Places, Statement{Text: fmt.Sprintf("step %d: I try %d.", i, i)})
	}
	text, left := n.Block(&Span{Task: "t", Standing: true}, nil, 400, func(s string) int { return len(s) / 4 })
	if len(ParseList(text, PlacesTitle)) != 3 || left != 2 {
		t.Errorf("%d entries had no room:\n%s", left, text)
	}
}

// TestRefill: one entry too long for the block takes the place of itself alone.
func TestRefill(t *testing.T) {
	var n Notes
	for i := range 9 {
		n.Findings = append(n.Findings, Statement{Text: fmt.Sprintf("finding %d", i), Ops: []uint64{uint64(i)}})
	}
	n.Findings[2].Text = strings.Repeat("long ", 400)
	text, left := n.Block(&Span{Task: "t"}, nil, 200, words)
	if left != 1 || !strings.Contains(text, "- finding 8 (op 8)\n(+1 more: ops 2)\n") {
		t.Errorf("%d entries had no room:\n%s", left, text)
	}
	full := words(text)
	if exact, _ := n.Block(&Span{Task: "t"}, nil, full, words); exact != text {
		t.Errorf("a block of %d tokens does not fit into as many:\n%s", full, exact)
	}
	if short, left := n.Block(&Span{Task: "t"}, nil, full-1, words); left != 2 {
		t.Errorf("%d entries had no room in one token less:\n%s", left, short)
	}
}

func TestOverflows(t *testing.T) {
	for _, tt := range []struct {
		jump, raw, eas int
		want           bool
	}{
		{0, 0, 8000, false}, {8000, 8000, 8000, false}, {8001, 8001, 8000, true}, {10, 8001, 8000, true}, {8001, 0, 8000, true}, {1, 1, 1, false}, {2, 0, 1, true},
	} {
		if got := Overflows(tt.jump, tt.raw, tt.eas); got != tt.want {
			t.Errorf("Overflows(%d, %d, %d) = %v", tt.jump, tt.raw, tt.eas, got)
		}
	}
}

// TestStandingLeft: the head of a block names the steps that a jump had left within a span, and only them.
func TestStandingLeft(t *testing.T) {
	r := Span{Task: "t", From: 2, To: 7, Standing: true, Ranges: []op.Range{{First: 12, Last: 40}}}
	for left, want := range map[string]string{
		"":         ": steps 2 to 7 left the context to make room; their changes remain.\n",
		"4  and 5": "their changes remain, but for steps 4 and 5, which a jump undid.\n",
	} {
		r.Left = left
		if block, _ := new(Notes).Block(&r, nil, 1<<20, words); !strings.Contains(block, want) {
			t.Errorf("Left %q: %q is missing in\n%s", left, want, block)
		}
	}
}

// TestParseFalsified: falsified paths are read from this version's blocks and earlier ones, up to the next section.
func TestParseFalsified(t *testing.T) {
	const head = "[ANAMNESIS_BLOCK]\nFalsified paths:\n"
	for text, want := range map[string]string{
		"Falsified paths:\n- a":                    "",
		head:                                       "",
		head + "- a":                               "a| | | |high",
		head + "  why: of nothing\n- a":            "",
		head + "- a\n  error: e: f\n- b":           "a| |e: f| |high;b| | | |high",
		head + "- a\n  seen: s\n  why: w (op 3)":   "a|s| |w|high",
		head + "- a\n  in: s\n  why: w (ops 3, 4)": "a|s| |w|high",
		head + "- a\n  why: w; confidence low":     "a| | |w|low",
		head + "- a\n  why: confidence low (op 3)": "a| | | |low",
		head + "- a\n  confidence: low x":          "a| | | |low",
		head + "- a\n(+3 more)\n- b":               "a| | | |high",
		head + "- a\nFindings: x\n- b":             "a| | | |high",
		head + "- a\n  odd: x\n  error: e":         "a| |e| |high",
	} {
		var got []string
		for _, f := range ParseFalsified(text) {
			got = append(got, fmt.Sprintf("%s|%s|%s|%s|%s", f.Action, cmp.Or(f.State, " "), cmp.Or(f.Error, " "),
				cmp.Or(f.Why, " "), f.Confidence))
		}
		if s := strings.Join(got, ";"); s != want {
			t.Errorf("%q: %s, want %s", text, s, want)
		}
	}
}

// TestBlockCap: a block takes a sixteenth of the span, 400 tokens at least and 2,000 at most.
func TestBlockCap(t *testing.T) {
	for eas, want := range map[int]int{0: 400, 6415: 400, 6416: 401, 31_999: 1999, 32_000: 2000, 32_016: 2000} {
		if got := BlockCap(eas); got != want {
			t.Errorf("of a span of %d: %d, want %d", eas, got, want)
		}
	}
}

// TestBlockText: a block has the lists that hold something, says how many entries it left out and which operations
// these cite, and how sure a path is.
func TestBlockText(t *testing.T) {
	n := Notes{
		Edits: []Statement{{Text: "a.go: by make"}},
		Falsified: []Falsified{
			{Action: "make", Confidence: ConfidenceHigh}, {Action: "make x", Confidence: ConfidenceLow},
			{Action: "make y", Why: "w", Confidence: ConfidenceMedium, Ops: []uint64{3}},
		},
	}
	const paths = "Falsified paths:\n- make\n- make x\n  why: confidence low\n- make y\n  why: w; confidence medium (op 3)\n"
	for standing, title := range map[bool]string{true: "What you edited", false: UndoneTitle} {
		r := Span{Task: "t", Standing: standing, Ranges: []op.Range{{First: 1, Last: 9}}}
		block, _ := n.Block(&r, []Statement{{Text: "todo"}}, 1<<20, words)
		want := blockHead(&r) + paths + title + ":\n- a.go: by make\nTodo list at the end of these steps:\n- todo\n" +
			blockFoot(&r)
		if block != want {
			t.Errorf("got\n%s\nwant\n%s", block, want)
		}
		if got := ParseList(block, title); !slices.Equal(got, []string{"a.go: by make"}) ||
			ParseList(block, "No such") != nil {
			t.Errorf("read back: %q", got)
		}
	}
	r := Span{Task: "t"}
	few := Notes{Findings: []Statement{{Text: "one"}, {Text: strings.Repeat("two ", 50)}}}
	full, _ := few.Block(&r, nil, 1<<20, words)
	block, left := few.Block(&r, nil, words(full)-1, words)
	if want := blockHead(&r) + "Key findings:\n- one\n(+1 more)\n" + blockFoot(&r); block != want || left != 1 {
		t.Errorf("got\n%s\nwant\n%s", block, want)
	}
}

// TestRefillTitle: an entry that fits but for its list's title gives way to a shorter one.
func TestRefillTitle(t *testing.T) {
	r := Span{Task: "t"}
	n := Notes{Findings: []Statement{{Text: strings.Repeat("long ", 30)}, {Text: "short"}}}
	frame := words(blockHead(&r) + blockFoot(&r))
	block, left := n.Block(&r, nil, frame+31+3, words)
	if want := blockHead(&r) + "Key findings:\n- short\n(+1 more)\n" + blockFoot(&r); block != want || left != 1 {
		t.Errorf("%d left out of\n%s", left, block)
	}
}

// TestOpList: few operations are named, many by the range that holds them.
func TestOpList(t *testing.T) {
	for n, want := range map[int]string{0: "", 1: "1", 2: "1, 2", maxOpsNamed: "", maxOpsNamed +
		1: fmt.Sprint("1-", maxOpsNamed+1)} {
		var ops []uint64
		for i := range n {
			ops = append(ops, uint64(i+1))
		}
		if got := OpList(ops); got != want && (n != maxOpsNamed || strings.Count(got, ", ") != n-1) {
			t.Errorf("%d: %q", n, got)
		}
	}
}

// TestEmpty: notes of a model are empty without a statement; what the record adds is none.
func TestEmpty(t *testing.T) {
	one := []Statement{{Text: "x"}}
	for name, n := range map[string]*Notes{
		"causes": {Causes: one}, "falsified": {Falsified: []Falsified{{}}}, "findings": {Findings: one},
		"verified": {Verified: one}, "untried": {Untried: one}, "advice": {Advice: one},
	} {
		if n.Empty() {
			t.Errorf("%s are nothing", name)
		}
	}
	if !new(Notes).Empty() || !(&Notes{Edits: one, Places: one, Effects: one}).Empty() {
		t.Error("notes without a statement of the model are not empty")
	}
}

package anamnesis

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"anamnesis/anamnesis/wording"
	"anamnesis/opstream/op"
)

// extracted is the one card of a pass without a model.
func extracted(t *testing.T, r Request) (topic string, issue, solution []string) {
	t.Helper()
	res := pass(t, nil, r, nil)
	if len(res.Cards) != 1 {
		t.Fatalf("%d cards", len(res.Cards))
	}
	return res.Cards[0].Topic, res.Cards[0].Issue, res.Cards[0].Solution
}

// TestExtractedCard: the card is found by the first error with a word in it; a
// call that printed none is told by how it ended, and what was overcome is the solution.
func TestExtractedCard(t *testing.T) {
	s := newSpan(12, 3)
	s.bash("make silent", 7, "", "")
	s.bash("make odd", 2, "404\n", "")
	r := s.request(4000)
	topic, issue, solution := extracted(t, r)
	want := []string{"Bash: make odd failed: 404", "Bash: make silent failed (exit code 7, nothing printed)"}
	if topic != "Bash: make odd" || !slices.Equal(issue, want) {
		t.Errorf("topic %q, issue %q", topic, issue)
	}
	if want := []string{"The path was given up for this reason: " + r.Reason}; !slices.Equal(solution, want) {
		t.Errorf("solution %q", solution)
	}

	long := strings.Repeat("error: the linker has no symbol ", 8)
	s.bash("make told", 2, "", long+"\n")
	failed := s.bash("go vet ./...", 1, "", "undefined: parse\n")
	s.write("parse.go", "package main\n")
	ok := s.bash("go vet ./...", 0, "", "")
	r = s.request(4000)
	r.Reason = ""
	topic, _, solution = extracted(t, r)
	if rest, cut := strings.CutSuffix(topic, "…"); !cut || !strings.HasPrefix(long, rest) || len([]rune(topic)) > wording.MaxTopicRunes {
		t.Errorf("topic %q", topic)
	}
	if len(solution) != 2 || solution[0] != "The path was given up; no solution was found on it." || !strings.Contains(solution[1], "Bash: go vet ./... failed after step ") ||
		!strings.Contains(solution[1], "succeeded later after step ") {
		t.Errorf("solution %q", solution)
	}

	// The card rests on both calls, so text from outside in either taints it.
	d := extractCard(&r, new(extract(&r, records(&r))), records(&r))
	for _, seq := range []uint64{failed, ok} {
		if !slices.Contains(d.Ops, seq) {
			t.Errorf("the card rests on %v, not on %d", d.Ops, seq)
		}
	}
}

// TestCardRanges: a card names where its evidence stands, and of a path in very
// many stretches from where to where.
func TestCardRanges(t *testing.T) {
	for n, want := range map[int]string{1: "[12-13]", 50: "", 51: "[12-513]"} {
		r := Request{}
		for i := range n {
			r.Ranges = append(r.Ranges, op.Range{First: uint64(12 + 10*i), Last: uint64(13 + 10*i)})
		}
		got := cardRanges(&r)
		if want != "" && fmt.Sprint(got) != want || want == "" && len(got) != n {
			t.Errorf("%d ranges: %v, want %s", n, got, want)
		}
	}
}

package anamnesis

import (
	"slices"
	"strings"
	"testing"

	"anamnesis/opstream/op"
)

// TestPairCards: a command that failed and later succeeded is a card with what was changed between.
// Its id is the same in every search, and what a discarded step changed is not in it.
func TestPairCards(t *testing.T) {
	s := newSpan(1, 1)
	failed := s.bash("cd /work/dir && go test ./... | tail", 1, "--- FAIL: TestSum (0.00s)\n    a_test.go:7: Sum(1, 2) = -1, want 3\nFAIL\n", "")
	s.save("t1")
	s.call("StrReplaceFile", `{"path":"left.go","edit":{"old":"a","new":"b"}}`, op.ToolReturned{Text: "replaced", Writes: []string{"left.go"}})
	s.save("t2", "left.go")
	left := s.step - 1
	s.call("StrReplaceFile", `{"path":"a.go","edit":{"old":"\ta - b","new":"\ta + b"}}`, op.ToolReturned{Text: "replaced", Writes: []string{"a.go"}})
	s.bash("cp /work/dir/a.go b/b.go", 0, "", "")
	s.save("t3", "a.go", "b/b.go")
	s.bash("go test ./...", 0, "ok  \tm\t0.1s\n", "")
	s.save("t4")
	r := s.request(8000)
	onPath := slices.Repeat([]bool{true}, s.step+1)
	onPath[left] = false
	found := PairCards(Pairs(&r, onPath))
	if len(found) != 1 {
		t.Fatalf("%d pairs: %+v", len(found), found)
	}
	c := found[0]
	want := "`go test ./...` failed: a_test.go:7: Sum(1, 2) = -1, want 3\nRun before: `cp a.go b/b.go`\n" +
		"Changed in a.go:\n```diff\n-    a - b\n+    a + b\n```\nChanged: `b/b.go`"
	if got := strings.Join(append(c.Issue, c.Solution...), "\n"); got != want {
		t.Errorf("the card says\n%s\nwant\n%s", got, want)
	}
	if err := c.Validate(); err != nil || c.Provenance.Ranges[0].First >= failed || c.Provenance.Tainted || c.Provenance.Model != WriterExtractor {
		t.Errorf("%v, provenance %+v", err, c.Provenance)
	}
	if again := PairCards(Pairs(&r, onPath)); again[0].ID != c.ID {
		t.Error("another id the second time")
	}
	in := c.Provenance.Ranges[0]
	within := slices.DeleteFunc(slices.Clone(r.Ops), func(o op.Op) bool { return !(op.Range{First: in.First, Last: in.Last}).Contains(o.Seq) })
	if len(within) == len(r.Ops) || c.Provenance.EvidenceHash != EvidenceHash(within) {
		t.Errorf("the evidence is not what happened from the failure to the success, ops %d to %d", in.First, in.Last)
	}
	r.Tainted = []string{"a.go"}
	if c := Pairs(&r, onPath)[0].Card; !c.Provenance.Tainted {
		t.Error("a command that may read text from outside leaves the pair untainted")
	}
	if found := Pairs(&r, onPath[:left]); len(found) > 0 {
		t.Errorf("a pair of discarded steps: %+v", found)
	}
}

// TestBackgroundIsNoSuccess: that a command began in the background does not show that it succeeded.
func TestBackgroundIsNoSuccess(t *testing.T) {
	s := newSpan(1, 1)
	s.bash("make serve", 2, "", "error: no port\n")
	s.save("t1")
	s.write("port", "80\n")
	s.save("t2", "port")
	s.call("Bash", `{"command":"make serve","run_in_background":true}`, op.ToolReturned{Text: "job 1 began"})
	s.save("t3")
	r := s.request(8000)
	if found := Pairs(&r, slices.Repeat([]bool{true}, s.step+1)); len(found) > 0 {
		t.Errorf("%+v", found[0].Card)
	}
}

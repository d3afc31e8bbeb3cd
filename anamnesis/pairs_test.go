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
	failed := s.bash("cd /work/dir && go test ./... | tail", 1,
		"--- FAIL: TestSum (0.00s)\n    a_test.go:7: Sum(1, 2) = -1, want 3\nFAIL\n", "")
	s.save("t1")
	s.call("StrReplaceFile", `{"path":"left.go","edit":{"old":"a","new":"b"}}`,
		op.ToolReturned{Text: "replaced", Writes: []string{"left.go"}})
	s.save("t2", "left.go")
	left := s.step - 1
	s.call("StrReplaceFile", `{"path":"a.go","edit":{"old":"\ta - b","new":"\ta + b"}}`,
		op.ToolReturned{Text: "replaced", Writes: []string{"a.go"}})
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
	if err := c.Validate(); err != nil || c.Provenance.Ranges[0].First >= failed || c.Provenance.Tainted ||
		c.Provenance.Model != WriterExtractor {
		t.Errorf("%v, provenance %+v", err, c.Provenance)
	}
	if again := PairCards(Pairs(&r, onPath)); again[0].ID != c.ID {
		t.Error("another id the second time")
	}
	in := c.Provenance.Ranges[0]
	within := slices.DeleteFunc(slices.Clone(r.Ops),
		func(o op.Op) bool { return !(op.Range{First: in.First, Last: in.Last}).Contains(o.Seq) })
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

// TestPairEvidence: a failed write is no change of a pair, a successful one is, and only what lies between the two runs
// is evidence. Where the outputs were not kept apart, the text that the model saw tells the failure.
func TestPairEvidence(t *testing.T) {
	s := newSpan(1, 1)
	s.say("before")
	s.save("t0")
	exit := 1
	failed := s.call("Bash", `{"command":"make"}`, op.ToolReturned{Text: "error: no rule to make lex.c", Exit: &exit,
		IsError: true})
	s.save("t1")
	s.call("WriteFile", `{"path":"bad","content":"x"}`, op.ToolReturned{Text: "error: read-only", IsError: true,
		Writes: []string{"bad"}})
	s.call("Run", `{"command":"other"}`, op.ToolReturned{Text: "fine"})
	s.write("lex.c", "int x;")
	s.save("t2", "lex.c")
	s.bash("make", 0, "built\n", "")
	fixed := s.seq
	s.save("t3")
	s.say("after")
	r := s.request(8000)
	found := Pairs(&r, slices.Repeat([]bool{true}, s.step+1))
	if len(found) != 1 {
		t.Fatalf("%+v", found)
	}
	c := found[0].Card
	if got, want := strings.Join(append(c.Issue, c.Solution...), "|"),
		"`make` failed: error: no rule to make lex.c|Changed in lex.c:\n```diff\n+int x;\n```"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	var within []op.Op
	for _, o := range s.ops {
		if o.Seq >= failed-1 && o.Seq <= fixed {
			within = append(within, o)
		}
	}
	if c.Provenance.EvidenceHash != EvidenceHash(within) {
		t.Error("the evidence holds what was before the failure or after the success")
	}
}

// TestLearnedCard: what the agent learned on a path is a card with the failed calls beside, tainted as they are.
func TestLearnedCard(t *testing.T) {
	for _, tainted := range []bool{false, true} {
		s := newSpan(7, 1)
		s.say("I try")
		s.call("FetchURL", `{"url":"x"}`, op.ToolReturned{Text: "ok", Network: tainted})
		s.bash("make", 2, "", "error: no lexer\n")
		r := s.request(4000)
		c := LearnedCard(&r, "the lexer is\nnot generated")
		if c.Topic != "the lexer is not generated" || len(c.Issue) != 1 ||
			c.Issue[0] != "`make` failed: error: no lexer" || c.Provenance.Tainted != tainted {
			t.Errorf("tainted %v: %+v", tainted, c)
		}
	}
}

// TestSameChange: two solutions share a change if both ran one command, however it was spelled, or edited the same
// lines.
func TestSameChange(t *testing.T) {
	edit, other, named := "Changed in a.go:\n```diff\n+x\n```", "Changed in a.go:\n```diff\n+y\n```", "Changed: `a.go`"
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"Run before: `npm ci`", "Run before: `npm ci`", true},
		{"Run before: `npm ci`", "Run before: `npm  ci | tail`", true},
		{"Run before: `npm ci`", "Run before: `npm test`", false}, {"Run before: `npm ci`", "`npm ci`", false},
		{"`npm ci`", "Run before: `npm ci`", false},
		{edit, edit, true}, {edit, other, false}, {named, named, false}, {"in words", "in words", false},
		{edit, "Run before: `npm ci`", false},
	} {
		if got := SameChange([]string{"first", tt.a}, []string{"second", tt.b}); got != tt.want {
			t.Errorf("%q and %q: %v", tt.a, tt.b, got)
		}
	}
}

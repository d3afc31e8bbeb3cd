package anamnesis

import (
	"fmt"
	"strings"
	"testing"

	"anamnesis/anamnesis/wording"
	"anamnesis/opstream/op"
)

// TestRepairs: a command that failed and later succeeded is a card with what was
// changed between; one that never did, or said nothing, is none.
func TestRepairs(t *testing.T) {
	s := newSpan(1, 1)
	failed := s.bash("go test ./...", 1, "--- FAIL: TestSum (0.00s)\n    a_test.go:7: Sum(1, 2) = -1, want 3\nFAIL\n", "")
	s.save("t1")
	s.call("StrReplaceFile", `{"path":"a.go","edit":{"old":"a - b","new":"a + b"}}`, op.ToolReturned{Text: "replaced", Writes: []string{"a.go"}})
	s.bash("grep nothing .", 1, "", "")
	s.save("t2", "a.go")
	s.bash("go test ./...", 0, "ok  \tm\t0.1s\n", "")
	s.bash("make docs", 2, "", "make: *** No rule to make target 'docs'.  Stop.\n")
	s.bash("./flaky", 1, "", "error: connection reset\n")
	s.bash("./flaky", 0, "ok\n", "")
	s.save("t3")
	r := s.request(8000)
	found := Repairs(&r)
	if len(found) != 1 || found[0].Failed != failed {
		t.Fatalf("%d repairs: %+v", len(found), found)
	}
	c := found[0].Card
	text := strings.Join(append(c.Issue, c.Solution...), "\n")
	for _, want := range []string{"`go test ./...` failed: ", "Sum(1, 2) = -1, want 3", "Changed in a.go:\n```diff\n-a - b\n+a + b\n```"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if err := c.Validate(); err != nil || c.Provenance.Ranges[0].First >= failed || c.Provenance.Tainted {
		t.Errorf("%v, provenance %+v", err, c.Provenance)
	}
	if again := Repairs(&r); again[0].Card.ID != c.ID {
		t.Error("another id the second time")
	}
}

// TestRepairSaysWhatToDo: a card names files by their place in the world and commands
// without what prepares them; the command itself, and with another flag, is no attempt.
func TestRepairSaysWhatToDo(t *testing.T) {
	s := newSpan(1, 1)
	const run = "cd /work/dir/web && npm test -- sum"
	for _, command := range []string{run, run, "npm test -- sum --bail", run, "cd web && npm test -- sum --bail"} {
		s.bash(command, 1, "", "Error: Cannot find module './kahan'\n")
	}
	s.bash("cat > /work/dir/web/kahan.js <<'EOF'\nexports.sum = kahan\nEOF", 0, "", "")
	s.bash(run, 0, "ok\n", "")
	r := s.request(8000)
	found := Repairs(&r)
	if len(found) != 1 {
		t.Fatalf("%d repairs", len(found))
	}
	c := found[0].Card
	got := strings.Join(append(append(c.Issue, c.Solution...), c.Constraint...), "\n")
	want := "`npm test -- sum` failed: Error: Cannot find module './kahan'\n" +
		"Changed in web/kahan.js:\n```diff\n+exports.sum = kahan\n```"
	if got != want {
		t.Errorf("the card says\n%s\nwant\n%s", got, want)
	}
	if p, ok := wording.PairOf(c); !ok || p.Changes[0].Path != "web/kahan.js" {
		t.Errorf("read back as %+v", p)
	}
	if !wording.Quotes("npm test -- sum", `{"command":"`+run+`"}`) || wording.Quotes("npm test -- sum", `{"command":"npm test -- sum | tail"}`) {
		t.Error("the quoted command is not known again, or another is taken for it")
	}
}

// TestRepairNamesAttempts: what was changed without success is named by what it was, whether
// a jump took it back or not, and is no part of the solution; a command that succeeds as
// it is after it failed teaches nothing.
func TestRepairNamesAttempts(t *testing.T) {
	s := newSpan(1, 1)
	check := func(exit int) {
		out := "ok\n"
		if exit > 0 {
			out = "--- FAIL: TestLarge (0.00s)\n    ledger_test.go:35: 131 of 240 bookings are wrong\n"
		}
		s.bash("go test ./...", exit, out, "")
		s.save("t", "ledger.go")
	}
	edit := func(old, now string) {
		args := fmt.Sprintf(`{"path":"ledger.go","edits":[{"old":%q,"new":%q}]}`, old, now)
		s.call("StrReplaceFile", args, op.ToolReturned{Text: "replaced", Writes: []string{"ledger.go"}})
	}
	check(1)
	edit("total += f", "total = round(total + f)")
	check(1)
	s.bash("pip install money", 0, "", "")
	check(1)
	left := s.step - 1
	edit("var total float64", "var total kahan")
	check(1)
	s.add(&op.JumpDone{From: s.step - 1, To: left})
	edit("var total float64", "var total int64")
	check(0)
	s.bash("sphinx-build out", 1, "", "error: the reference is lost\n")
	s.bash("sphinx-build out2", 1, "", "error: the reference is lost\n")
	s.bash("sphinx-build out2", 0, "", "")
	r := s.request(8000)
	found := Repairs(&r)
	if len(found) != 1 {
		t.Fatalf("%d repairs", len(found))
	}
	c := found[0].Card
	got := strings.Join(append(append([]string{c.Topic}, c.Solution...), c.Constraint...), "\n")
	want := "TestLarge in ledger_test.go: 131 of 240 bookings are wrong\n" +
		"Changed in ledger.go:\n```diff\n-var total float64\n+var total int64\n```\n" +
		"Tried without success: in ledger.go, `total += f` → `total = round(total + f)`\n" +
		"Tried without success: `pip install money`\n" +
		"Tried without success: in ledger.go, `var total float64` → `var total kahan`"
	if got != want {
		t.Errorf("the card says\n%s\nwant\n%s", got, want)
	}
}

// TestUndoneChoiceRepairsNothing: of two choices after a failure, the one that a jump took
// back is not what put it right.
func TestUndoneChoiceRepairsNothing(t *testing.T) {
	s := newSpan(1, 1)
	choose := func(option string) {
		s.bash("go tool choose cache "+option, 0, "cache set\n", "")
		s.save("t", "config")
	}
	for i, option := range []string{"redis", "varnish"} {
		choose(option)
		s.bash("go tool stage cache 1", 0, "ok\n", "")
		s.bash(fmt.Sprintf("go tool stage cache %d", 12+i), 1, "", "error[R1]: cache "+option+" is refused\n")
		s.save("t")
		s.add(&op.JumpDone{From: s.step - 1, To: 0})
	}
	choose("zstd")
	r := s.request(8000)
	found := Repairs(&r)
	if len(found) != 2 {
		t.Fatalf("%d repairs", len(found))
	}
	for _, f := range found {
		if got := strings.Join(f.Card.Solution, "\n"); got != "`go tool choose cache zstd` succeeded." {
			t.Errorf("%s: a choice that was taken back is the solution: %s", f.Card.Topic, got)
		}
	}
}

package page

import (
	"fmt"
	"strings"
	"testing"

	"anamnesis/opstream/op"
)

// addEvidence makes a card name a range of a task's operations.
func (s *site) addEvidence(t *testing.T, id, task string, first, last uint64) {
	t.Helper()
	text, seen := s.text(t, id)
	with := strings.Replace(text, "id: "+id+"\n", fmt.Sprintf(
		"id: %s\nprovenance:\n  task: %s\n  jump_op: %d\n  ranges: [%d-%d]\n", id, task, last, first, last), 1)
	if got := s.ask(t, "POST", "/cards/"+id+"/edit", form("seen", seen, "text", with)); got.code != 303 {
		t.Fatalf("%d\n%s", got.code, got.text)
	}
}

// The evidence of a card is shown as inert text. The jump shown is the one that left those
// operations, whatever jumps come after.
func TestEvidence(t *testing.T) {
	s := openSite(t)
	w := newTask(t, s, "work")
	w.call("Bash", "before the span")
	first, _ := w.log.Last()
	first++
	w.call("Bash", "<script>alert(1)</script> \u202eevil \x1b[31m")
	w.call("Bash", strings.Repeat("long ", maxEvidenceText))
	w.add(&op.ApprovalDecided{Call: "c", Decision: "allow", By: "person", ForTask: true})
	w.add(&op.TurnEnded{Reason: "limit", Detail: "no more steps"})
	last, _ := w.log.Last()
	w.add(&op.JumpIntended{From: 3, To: 1, Reason: "another span", By: "agent",
		Discarded: []op.Range{{First: 1, Last: 2}}})
	w.add(&op.JumpIntended{From: 3, To: 1, Reason: "it <b>fails</b>", By: "agent",
		Discarded:  []op.Range{{First: first, Last: last}},
		FromCommit: strings.Repeat("a", 40), ToCommit: strings.Repeat("b", 40)})
	w.add(&op.JumpIntended{From: 3, To: 1, Reason: "a later one", By: "agent",
		Discarded: []op.Range{{First: first, Last: last}}})
	s.addCard(t, "c1", "one")
	s.addEvidence(t, "c1", "work", first, last)

	got := s.get(t, "/cards/c1/evidence")
	wantIn(t, "the evidence", got, "&lt;script&gt;alert(1)", `\u202eevil \x1b[31m`, "it &lt;b&gt;fails&lt;/b&gt;",
		"From step 3 back to step 1", "by the agent",
		`href="/tasks/work"`, fmt.Sprintf(`href="/tasks/work/ops/%d"`,
			first+1), "The rest: ", ">allowed by the user, with every later call of the task</pre>",
		">limit: no more steps</pre>", "The diff cannot be made")
	for _, not := range []string{"<script>alert", "\u202e", "\x1b", "before the span", "another span", "a later one", "model.asked", "{&#34;"} {
		if strings.Contains(got, not) {
			t.Errorf("the evidence shows %q", not)
		}
	}
	if len(got) > 4*maxEvidenceText+8<<10 {
		t.Errorf("the evidence of a long operation has %d bytes", len(got))
	}
	if part := s.get(t, "/cards/c1/evidence", asPart); strings.Contains(part, "<html") ||
		!strings.Contains(part, "fails") {
		t.Errorf("the part beside the card:\n%s", part)
	}
}

// Of a long span the first operations are shown, and how many are left out.
func TestEvidenceOfMany(t *testing.T) {
	s := openSite(t)
	w := newTask(t, s, "work")
	for range maxEvidenceOps {
		w.call("Bash", "again")
	}
	last, _ := w.log.Last()
	s.addCard(t, "c1", "one")
	s.addEvidence(t, "c1", "work", 1, last)
	got := s.get(t, "/cards/c1/evidence")
	if n := strings.Count(got, "<summary>"); n != maxEvidenceOps {
		t.Errorf("%d operations are shown, want %d", n, maxEvidenceOps)
	}
	// Two of each step's operations say something, and two begin the task.
	wantIn(t, "the evidence", got, fmt.Sprintf("%d more operations are in", 2*maxEvidenceOps+2-maxEvidenceOps),
		"What changed from step ")

	// What is damaged is said, and the page stays.
	w.spoil(int(last / 2))
	wantIn(t, "damaged evidence", s.get(t, "/cards/c1/evidence"), "The task cannot be read")
	wantIn(t, "the card", s.get(t, "/cards/c1"), "issue of c1")
}

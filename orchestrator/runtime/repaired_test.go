package runtime

import (
	"slices"
	"testing"

	"anamnesis/knowledge_base/card"
	"anamnesis/opstream/op"
)

// TestRepairCompletesCard: the card of a path that was left for one failure is
// superseded by that of its repair, once the same command succeeds.
func TestRepairCompletesCard(t *testing.T) {
	t.Run("one failure", func(t *testing.T) { testRepairCompletesCard(t, 1, "") })
	t.Run("two failures", func(t *testing.T) {
		testRepairCompletesCard(t, 2, "  - calls: [{name: Bash, arguments: {command: \"sh check.sh\"}}]\n")
	})
}

// TestRepairBehindFilter: a failure whose exit code a filter hides is repaired, too.
func TestRepairBehindFilter(t *testing.T) {
	task, _ := newTask(t, `turns:
  - calls: [{name: WriteFile, arguments: {path: pytest, content: "cat answer.txt || echo 1 failed\n"}}]
  - calls: [{name: Bash, arguments: {command: "sh pytest 2>&1 | tail -2"}}]
  - calls: [{name: WriteFile, arguments: {path: answer.txt, content: "42\n"}}]
  - calls: [{name: Bash, arguments: {command: "sh pytest 2>&1 | tail -2"}}]
  - reply: Done.
`, Options{})
	pairs := 0
	task.opts.Callbacks.Op = func(o op.Op) {
		if b, ok := o.Body.(*op.RepairsFound); ok {
			pairs += b.Pairs
		}
	}
	if out, err := task.Run(t.Context()); err != nil || pairs != 1 {
		t.Errorf("%d repairs; Run = %+v, %v", pairs, out, err)
	}
}

func testRepairCompletesCard(t *testing.T, failures int, second string) {
	task, _ := newTask(t, `turns:
  - calls: [{name: Bash, arguments: {command: "cat answer.txt"}}]
`+second+`  - calls: [{name: jump_to_step, arguments: {step_id: 0, reason: the file has to be written first}}]
  - calls: [{name: WriteFile, arguments: {path: answer.txt, content: "42\n"}}]
  - calls: [{name: Bash, arguments: {command: "cat answer.txt"}}]
  - calls: [{name: WriteFile, arguments: {path: check.sh, content: "exit 0\n"}}]
`+second+`  - reply: Done.
`, Options{})
	var pass *op.PassDone
	var found []*op.RepairsFound
	task.opts.Callbacks.Op = func(o op.Op) {
		switch b := o.Body.(type) {
		case *op.PassDone:
			pass = b
		case *op.RepairsFound:
			found = append(found, b)
		}
	}
	out, err := task.Run(t.Context())
	if err != nil || out.Answer != "Done." || pass == nil || len(pass.Cards) != 1 {
		t.Fatalf("Run = %+v, %v; pass %+v", out, err, pass)
	}
	if len(found) != 1 || len(found[0].Cards) != failures || !slices.Equal(found[0].Superseded, pass.Cards) || !slices.Contains(out.Learned, found[0].Cards[0]) {
		t.Fatalf("found %+v, learned %v", found[0], out.Learned)
	}
	c, err := cardOf(t, task, found[0].Cards[0])
	if err != nil || !slices.Equal(c.Supersedes, pass.Cards) || !slices.ContainsFunc(c.Solution, func(s string) bool { return s == "Changed in answer.txt:\n```diff\n+42\n```" }) {
		t.Errorf("%+v, %v", c, err)
	}
	if old, err := cardOf(t, task, pass.Cards[0]); err != nil || old.State != card.Superseded {
		t.Errorf("the pass's card: %+v, %v", old, err)
	}
	if n := task.State().Totals.CardsWritten; n != failures {
		t.Errorf("%d cards written; the pass's is superseded", n)
	}
	if task.State().Repairs.FailedAt > 0 && task.State().Repairs.Worked {
		t.Error("the same would be searched for again")
	}
}

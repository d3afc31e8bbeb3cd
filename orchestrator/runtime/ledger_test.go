package runtime

import (
	"fmt"
	"strings"
	"testing"

	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/usage"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/memory"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/state"
	"anamnesis/worldstate/worldtest"
)

// TestLedger: each path that was left is still named in the last request of a task of 300 steps with 18 jumps and 12
// approaches, however often the context was made smaller. The extractor alone writes the blocks.
func TestLedger(t *testing.T) {
	for _, eas := range []int{4_000, 16_000, 32_000, 128_000} {
		t.Run(fmt.Sprint(eas), func(t *testing.T) {
			if eas > 16_000 {
				worldtest.Heavy(t)
			}
			t.Parallel()
			const approaches, steps = 12, 300
			task, _ := newTask(t, "turns:\n  - reply: x\n",
				Options{Limits: state.Limits{Limits: op.Limits{Steps: 2 * steps}}})
			task.Ledger.State().Model.EAS = eas
			task.Ledger.State().Model.Window = 2 * eas
			p := &provider{}
			n := 0 // replies so far, which are steps
			calls := func(name, args string) {
				n++
				p.answers = append(p.answers, model.Reply{Finish: "tool_calls",
					Calls: []op.Call{{ID: fmt.Sprint("c", n), Name: name, Args: args}}})
			}
			jumps := 0
			for i := range approaches {
				again := 1
				if i%2 == 0 {
					again = 2 // tried twice
				}
				for try := range again {
					calls("WriteFile", fmt.Sprintf(`{"path":"good%d_%d","content":"x"}`, i, try))
					base := n
					for n < base+steps/18-2 {
						calls("Think", fmt.Sprintf(`{"thought":"step %d: %s"}`, n,
							strings.Repeat(fmt.Sprintf("what if part %d is wrong; ", n), eas/80)))
					}
					calls("jump_to_step",
						fmt.Sprintf(`{"step_id":%d,"reason":"approach-%02d with the parser does not hold: the dates are ambiguous, so read the locale first"}`, base, i))
					jumps++
				}
			}
			p.answers = append(p.answers, says("Done."))
			task.opts.Model = p
			out, err := task.Run(t.Context())
			if err != nil || out.Reason != "done" || task.Ledger.State().Totals.Jumps != 18 || jumps != 18 {
				t.Fatalf("%+v, %v after %d jumps", out, err, task.Ledger.State().Totals.Jumps)
			}
			var last strings.Builder
			for _, m := range p.sent[len(p.sent)-1].Messages {
				last.WriteString(m.Text + "\n")
				for _, c := range m.Calls {
					last.WriteString(c.Args + "\n")
				}
			}
			for i := range approaches {
				if !strings.Contains(last.String(), fmt.Sprintf("approach-%02d", i)) {
					t.Errorf("approach %d is not named in the last request of %d bytes", i, last.Len())
				}
			}
			t.Logf("EAS %d: %d steps, %d passes, the last request has %d bytes", eas, n,
				task.Ledger.State().Totals.Passes, last.Len())
		})
	}
}

// TestLearned: what the agent learned on a path comes first where the path is named later, and is a draft that
// waits for a user, with the failed calls of the path. Without it, a jump writes no card.
func TestLearned(t *testing.T) {
	const learned = "The tests read dates.txt: write it before make test."
	task, h := newTask(t, `
turns:
  - calls: [{name: WriteFile, arguments: {path: a, content: "1"}}]
  - calls: [{name: Bash, arguments: {command: "echo 'error: no dates.txt' >&2; exit 2"}}]
  - calls: [{name: jump_to_step, arguments: {step_id: 1, reason: it needs dates.txt, learned: "`+learned+`"}}]
  - expect: [{on: last, contains: "Learned: `+learned+`\nReason: it needs dates.txt"}]
    calls: [{name: jump_to_step, arguments: {step_id: 0, reason: once more}}]
  - reply: Done.
`, Options{})
	if out, err := task.Run(t.Context()); err != nil || out.Reason != "done" {
		t.Fatalf("%+v, %v", out, err)
	}
	if why := task.Ledger.State().Steps.At(3).LeftBy; why != learned+
		" – it needs dates.txt – tried: Bash(echo 'error: no dates.txt' >&2; exit 2)" {
		t.Errorf("the path was left by %q", why)
	}
	kb, err := knowledgebase.Open(h.KnowledgeBase(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer kb.Close()
	list := kb.List()
	if n := task.Ledger.State().Totals.CardsWritten; len(list) != 1 || n != 1 {
		t.Fatalf("%d cards, %d counted", len(list), n)
	}
	c, err := kb.Get(list[0].ID)
	if err != nil || c.State != card.Draft || c.Solution[0] != learned ||
		!strings.Contains(c.Issue[0], "failed: error: no dates.txt") || c.Provenance.EvidenceHash == "" {
		t.Errorf("%+v, %v", c, err)
	}
	if tr := memory.TrustOf(h, c, usage.Counts{}); !tr.Withheld {
		t.Errorf("other tasks are shown the draft: %+v", tr)
	}
}

package runtime

import (
	"fmt"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/state"
)

// TestLedger: each path that was left is still named in the last request of a task of 300 steps with 18 jumps and 12
// approaches, however often the context was made smaller. The extractor alone writes the blocks.
func TestLedger(t *testing.T) {
	for _, eas := range []int{4_000, 16_000, 32_000, 128_000} {
		t.Run(fmt.Sprint(eas), func(t *testing.T) {
			t.Parallel()
			const approaches, steps = 12, 300
			task, _ := newTask(t, "turns:\n  - reply: x\n", Options{Limits: state.Limits{Steps: 2 * steps}})
			task.Ledger.State().Model.EAS = eas
			task.Ledger.State().Model.Window = 2 * eas
			p := &provider{}
			n := 0 // replies so far, which are steps
			calls := func(name, args string) {
				n++
				p.answers = append(p.answers, model.Reply{Finish: "tool_calls", Calls: []op.Call{{ID: fmt.Sprint("c", n), Name: name, Args: args}}})
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
						calls("Think", fmt.Sprintf(`{"thought":"step %d: %s"}`, n, strings.Repeat(fmt.Sprintf("what if part %d is wrong; ", n), eas/80)))
					}
					calls("jump_to_step", fmt.Sprintf(`{"step_id":%d,"reason":"approach-%02d with the parser does not hold: the dates are ambiguous, so read the locale first"}`, base, i))
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
			t.Logf("EAS %d: %d steps, %d passes, the last request has %d bytes", eas, n, task.Ledger.State().Totals.Passes, last.Len())
		})
	}
}

package jobs

import (
	"context"
	"fmt"
	"slices"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/state"
)

// EndOf ends the background commands that began in some steps, and returns their names.
func (js *Jobs) EndOf(ctx context.Context, steps []int) ([]string, error) {
	var names []string
	for _, r := range slices.Clone(js.ledger.State().Jobs.Running) {
		if !slices.Contains(steps, r.Step) {
			continue
		}
		names = append(names, named(r.Job, r.Command))
		if j, ok := js.own(r.Job); ok {
			js.end(ByJump, j)
			continue
		}
		if err := js.closeLost(ctx, r, ""); err != nil { // a user's jump may follow a crashed process
			return nil, err
		}
	}
	return names, js.ledger.ApplyQueued()
}

// CloseLost records the end of background commands that an earlier process began: they
// ended with it.
func (js *Jobs) CloseLost(ctx context.Context) error {
	for _, r := range slices.Clone(js.ledger.State().Jobs.Running) {
		if _, ok := js.own(r.Job); ok {
			continue
		}
		text := "[background] %s was ended when the program stopped. Start it again if it is still needed."
		if err := js.closeLost(ctx, r, fmt.Sprintf(text, named(r.Job, r.Command))); err != nil {
			return err
		}
	}
	return nil
}

// closeLost ends what is left of a background command of an earlier process and records it.
// notice is shown to the model, if not empty.
func (js *Jobs) closeLost(ctx context.Context, r state.RunningJob, notice string) error {
	began := op.ToolStarted{Call: r.Call, PID: r.PID, StartTime: r.StartTime, BootID: r.BootID}
	if err := guard.EndLeftover(began); err != nil {
		return fmt.Errorf("end the background task %s: %w", r.Job, err)
	}
	return js.ledger.Record(ctx, &op.JobEnded{Job: r.Job, Why: Lost, Notice: notice})
}

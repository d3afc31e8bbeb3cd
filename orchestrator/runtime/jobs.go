package runtime

import (
	"context"
	"fmt"
	"slices"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/jobs"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
)

// endJobs ends what runs in the background and was begun in one of some steps,
// and returns it by name.
func (t *place) endJobs(ctx context.Context, steps []int) ([]string, error) {
	var names []string
	for _, r := range slices.Clone(t.state.Jobs) {
		if !slices.Contains(steps, r.Step) {
			continue
		}
		names = append(names, fmt.Sprintf("%s (%s)", r.Job, notice.OneLine(r.Command, notice.MaxDelivered)))
		if t.jobs.EndByJump(r.Job) {
			continue
		}
		if err := t.closeLostJob(ctx, r, ""); err != nil { // a user jumps in a dead process's place
			return nil, err
		}
	}
	return names, t.settle()
}

// closeLostJobs records the end of background commands that an earlier process
// began: they ended with it.
func (t *place) closeLostJobs(ctx context.Context) error {
	for _, r := range slices.Clone(t.state.Jobs) {
		if t.jobs.Owns(r.Job) {
			continue
		}
		if err := t.closeLostJob(ctx, r, fmt.Sprintf(
			"[background] %s (%s) was ended when the program stopped. Start it again if it is still needed.", r.Job, notice.OneLine(r.Command, notice.MaxDelivered))); err != nil {
			return err
		}
	}
	return nil
}

// closeLostJob ends what is left of a background command of an earlier process
// and records it. The notice tells the model; empty: something else does.
func (t *ledger) closeLostJob(ctx context.Context, r state.RunningJob, notice string) error {
	if err := guard.EndLeftover(op.ToolStarted{Call: r.Call, PID: r.PID, StartTime: r.StartTime, BootID: r.BootID}); err != nil {
		return fmt.Errorf("end the background task %s: %w", r.Job, err)
	}
	return t.record(ctx, &op.JobEnded{Job: r.Job, Why: jobs.Lost, Notice: notice})
}

package runtime

import (
	"context"
	"fmt"
	"os"
	"slices"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool/file"
	"anamnesis/orchestrator/tool/subagent"
)

// endSubagentLeftovers ends what the commands of subagents left running when the
// program died, and removes what their calls left half written.
func (t *place) endSubagentLeftovers() error {
	for _, c := range t.state.Subagents {
		if !c.Running {
			continue
		}
		st, err := taskdir.ReadState(t.home, c.Task)
		if err != nil {
			continue // it is reported when it is resumed
		}
		if err := endLeftovers(st); err != nil {
			return fmt.Errorf("subagent %s: %w", c.Task, err)
		}
		if c.Dir != "" {
			continue // nobody works there until it is resumed
		}
		for _, open := range st.OpenCalls() {
			if err := file.RemoveLeftover(t.root, open.Call); err != nil {
				return fmt.Errorf("subagent %s: remove what call %s left half written: %w", c.Task, open.ID, err)
			}
		}
	}
	return nil
}

// maxSubagentsSought is among how many names the subagent of a call is looked
// for that did not come to record it.
const maxSubagentsSought = 256

// adoptSubagents finds the subagents of calls that a dead process began, and
// died before it recorded that they had begun.
func (t *place) adoptSubagents(ctx context.Context) error {
	first := 1 // one of the same reply may have a higher number, and be known
	if r := t.state.Reply; r != nil {
		first = max(1, len(t.state.Subagents)+1-len(r.Calls))
	}
	for _, open := range t.state.OpenCalls() {
		begun := slices.ContainsFunc(t.state.Subagents, func(c state.BegunSubagent) bool { return c.Call == open.ID })
		if begun || !open.Called || open.Name != subagent.ToolName {
			continue
		}
		for n := range maxSubagentsSought {
			id := t.subagentID(first + n)
			if _, err := os.Lstat(t.home.Task(id)); err != nil {
				continue
			}
			st, err := taskdir.ReadState(t.home, id)
			if err != nil || st.Opened.Parent == nil || st.Opened.Parent.Task != t.ID || st.Opened.Parent.Call != open.ID {
				continue
			}
			started := &op.SubagentStarted{Call: open.ID, Task: id, Agent: st.Opened.Parent.Agent}
			if st.Opened.Dir != t.Dir {
				started.Dir = st.Opened.Dir
			}
			if err := t.record(ctx, started); err != nil {
				return err
			}
			break
		}
	}
	return nil
}

// closeLostSubagents records the end of subagents that an earlier process left
// at work.
func (t *ledger) closeLostSubagents(ctx context.Context) error {
	for _, c := range slices.Clone(t.state.Subagents) {
		if !c.Running || t.opts.family.atWork(c.Task) {
			continue
		}
		b := &op.SubagentEnded{Call: c.Call, Task: c.Task, Reason: reasonLost}
		if st, err := taskdir.ReadState(t.home, c.Task); err == nil {
			b.Usage, b.Steps = st.Totals.Usage.Minus(c.Before), st.Turn.Steps
		}
		if err := t.record(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// lostWith names the subagent that worked on a call whose outcome is unknown.
func lostWith(s *state.State, call string) string {
	for _, c := range s.Subagents {
		if c.Call == call && c.Reason == reasonLost {
			return fmt.Sprintf(" The subagent %s (%s) was at work on it. Its record is whole: Task with resume %q goes on with it.", c.Task, c.Agent, c.Task)
		}
	}
	return ""
}

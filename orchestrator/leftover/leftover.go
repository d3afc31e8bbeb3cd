package leftover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/state/projection"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/file"
	"anamnesis/orchestrator/workspace"
)

// reasonLost ends a subagent whose program died.
const reasonLost = "lost"

// Leftovers closes what an earlier process of a task left open: running processes, calls
// without a result, background commands and subagents. Nothing runs a second time.
type Leftovers struct {
	*journal.Ledger
	place  *workspace.Place
	atWork func(task string) bool // reports whether this process runs a subagent
}

// New returns the leftovers of a task in a place. atWork reports whether this process runs a
// subagent.
func New(p *workspace.Place, atWork func(task string) bool) *Leftovers {
	return &Leftovers{Ledger: p.Ledger, place: p, atWork: atWork}
}

// EndProcesses ends processes of the task and of its subagents that still run, so that the
// world can be read.
func (l *Leftovers) EndProcesses() error {
	return errors.Join(endLeftovers(l.State()), l.endSubagentLeftovers())
}

// CloseSubagents records the end of subagents that an earlier process began.
func (l *Leftovers) CloseSubagents(ctx context.Context) error {
	return errors.Join(l.adoptSubagents(ctx), l.closeLostSubagents(ctx))
}

// endSubagentLeftovers ends processes that the commands of subagents left running, and removes
// files that their calls left half written.
func (l *Leftovers) endSubagentLeftovers() error {
	root, err := l.place.Root()
	if err != nil {
		return err
	}
	for _, c := range l.State().Subagents {
		if !c.Running {
			continue
		}
		st, err := taskdir.ReadState(l.Home, c.Task)
		if err != nil {
			continue // it is reported when it is resumed
		}
		if err := endLeftovers(st); err != nil {
			return fmt.Errorf("subagent %s: %w", c.Task, err)
		}
		if c.Dir != "" {
			continue // it is not in use until it is resumed
		}
		for _, open := range st.Reply.Open() {
			if err := file.RemoveLeftover(root, open.Call); err != nil {
				return fmt.Errorf("subagent %s: remove what call %s left half written: %w", c.Task, open.ID, err)
			}
		}
	}
	return nil
}

// maxSubagentsSought is how many names are tried to find the subagent of a call that was not
// recorded.
const maxSubagentsSought = 256

// adoptSubagents finds the subagents of calls whose process died before it recorded their
// beginning.
func (l *Leftovers) adoptSubagents(ctx context.Context) error {
	first := 1 // one of the same reply with a higher number may be recorded
	if r := l.State().Reply; r != nil {
		first = max(1, len(l.State().Subagents)+1-len(r.Calls))
	}
	for _, open := range l.State().Reply.Open() {
		begun := slices.ContainsFunc(l.State().Subagents, func(c state.BegunSubagent) bool { return c.Call == open.ID })
		if begun || !open.Called || op.Acts(open.Name) != op.Delegates {
			continue
		}
		// Which number it got depends on the other calls of the reply, and on the names that were free.
		for n := range maxSubagentsSought {
			id := taskdir.SubagentID(l.ID, first+n)
			if _, err := os.Lstat(l.Home.Task(id)); err != nil {
				continue
			}
			st, err := taskdir.ReadState(l.Home, id)
			if err != nil || st.Opened.Parent == nil || st.Opened.Parent.Task != l.ID ||
				st.Opened.Parent.Call != open.ID {
				continue
			}
			started := &op.SubagentStarted{Call: open.ID, Task: id, Agent: st.Opened.Parent.Agent}
			if st.Opened.Dir != l.place.Dir && !slices.Contains(l.State().Moved, st.Opened.Dir) {
				started.Dir = st.Opened.Dir
			}
			if err := l.Record(ctx, started); err != nil {
				return err
			}
			break
		}
	}
	return nil
}

// closeLostSubagents records the end of subagents that an earlier process left
// at work.
func (l *Leftovers) closeLostSubagents(ctx context.Context) error {
	for _, c := range slices.Clone(l.State().Subagents) {
		if !c.Running || l.atWork(c.Task) {
			continue
		}
		b := &op.SubagentEnded{Call: c.Call, Task: c.Task, Reason: reasonLost}
		if st, err := taskdir.ReadState(l.Home, c.Task); err == nil {
			b.Usage, b.Steps = st.Totals.Usage.Minus(c.Before), st.Turn.Steps
		}
		if err := l.Record(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// lostWith names the subagent that worked on a call whose outcome is unknown.
func lostWith(s *state.State, call string) string {
	for _, c := range s.Subagents {
		if c.Call == call && c.Reason == reasonLost {
			return fmt.Sprintf(" The subagent %s (%s) was at work on it. Its record is whole: Task with resume %q "+
				"continues it.", c.Task, c.Agent, c.Task)
		}
	}
	return ""
}

// endLeftovers ends the processes that the calls of a dead process left.
func endLeftovers(s *state.State) error {
	for _, c := range s.Reply.Open() {
		if c.Started != nil {
			if err := guard.EndLeftover(*c.Started); err != nil {
				return fmt.Errorf("end what call %s left running: %w", c.ID, err)
			}
		}
	}
	return nil
}

// CloseUnknown ends processes that a crashed process left running and records that the outcome
// of its calls is unknown. Nothing runs a second time.
func (l *Leftovers) CloseUnknown(ctx context.Context, calls []state.CallState) error {
	if err := endLeftovers(l.State()); err != nil {
		return err
	}
	root, err := l.place.Root()
	if err != nil {
		return err
	}
	for _, c := range calls {
		// Before the result is recorded: nothing looks for the files of a call that has one.
		if err := file.RemoveLeftover(root, c.Call); err != nil {
			return fmt.Errorf("remove what call %s left half written: %w", c.ID, err)
		}
		kept, err := l.KeptOf(c.ID)
		if err != nil {
			return err
		}
		res := &op.ToolReturned{
			Call: c.ID, Name: c.Name, Text: projection.UnknownResult + lostWith(l.State(), c.ID), Kept: kept,
			IsError: true, Unknown: true,
		}
		if len(kept) > 0 {
			res.Text += fmt.Sprintf(" What it had printed is kept up to a point: recall opens op %s.",
				strings.Trim(fmt.Sprint(kept), "[]"))
		}
		if text := recordedEffect(l.State(), c.ID); text != "" {
			res = &op.ToolReturned{Call: c.ID, Name: c.Name, Text: text}
		}
		if err := l.Record(ctx, res); err != nil {
			return err
		}
	}
	return nil
}

// recordedEffect returns the result of a call whose only effect is an operation, if that was
// recorded; empty otherwise.
func recordedEffect(s *state.State, call string) string {
	if p := s.Jump.Pending; p != nil && p.Call == call {
		if p.Mail != nil {
			return tool.MailUnsent
		}
		return fmt.Sprintf("Jump to step %d scheduled.", p.To)
	}
	for number, m := range s.Marked {
		if m.Call == call {
			return tool.CheckpointCreated(number)
		}
	}
	return ""
}

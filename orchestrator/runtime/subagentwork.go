package runtime

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"anamnesis/anamnesis/quote"
	"anamnesis/anamnesis/shell"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/question"
	"anamnesis/orchestrator/feature/subagent"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

// Limits of what a subagent returns.
const (
	maxSubagentAnswer = 50_000 // bytes of its last words; head and tail are kept
	maxSubagentPatch  = 50_000 // bytes of its changes in a copy of the directory
)

// working is a subagent at work on one call. It implements subagent.Working.
type working struct {
	t     *subagents
	start subagent.Start
	spec  Subagent
	id    string // its task
	child *Task

	before op.Usage // what it had used of the model when it began
	had    state.Used
	from   uint64 // its last operation then
}

func (w *working) Work(ctx context.Context) (subagent.End, error) {
	out, err := w.child.Run(ctx)
	if err != nil { // the subagent's stores failed, not this task's
		out.Reason, out.Detail = "failed", err.Error()
	}
	keep := context.WithoutCancel(ctx)
	st := w.child.Ledger.State()
	ended := &op.SubagentEnded{
		Call: w.start.Call, Task: w.id, Reason: out.Reason, Usage: st.Totals.Usage.Minus(w.before),
		Steps: max(st.Spent().Steps-w.had.Steps, 0),
	}
	end := w.endOf(keep, out, ended)
	if err := w.child.Close(); err != nil {
		end.IsError = true
		end.Text += fmt.Sprintf("\nIts record could not be closed: %v", err)
	}
	err = w.t.ledger.Journal.Post(keep, ended)
	w.t.opts.family.release(w.id)
	if out.Reason == "asked" {
		err = errors.Join(err, question.ErrOpen)
	}
	if errors.Is(err, taskdir.ErrNotLive) { // the task was closed meanwhile: its next opening records it
		err = nil
	}
	return end, err
}

func (w *working) endOf(ctx context.Context, out Outcome, b *op.SubagentEnded) subagent.End {
	answer := strings.TrimSpace(out.Answer)
	if w.child.Ledger.State().Last == w.from || b.Usage == (op.Usage{}) {
		answer = "" // it said nothing this time
	}
	if answer != "" {
		answer = quote.Ends(answer, maxSubagentAnswer, "\n… (%d bytes left out) …\n")
	}
	end := subagent.End{IsError: out.Reason != "done"}
	var sb strings.Builder
	if end.IsError {
		fmt.Fprintf(&sb, "The subagent did not finish: %s.", w.stopReason(out))
		if answer != "" {
			sb.WriteString(" Its last words:\n")
		}
	}
	sb.WriteString(answer)
	if w.child.Place.Dir != w.t.place.Dir {
		w.writePatch(ctx, &sb)
	}
	steps := fmt.Sprintf("%s, %d steps, %d tokens", out.Reason, b.Steps, b.Usage.Prompt+b.Usage.Completion)
	fmt.Fprintf(&sb, "\n[subagent %s (%s): %s; resume %q continues it]", w.id, w.spec.Spec.Name, steps, w.id)
	end.Text, end.Display = strings.TrimLeft(sb.String(), "\n"), steps
	ops, err := w.child.Ledger.Ops(op.Range{First: w.from + 1, Last: w.child.Ledger.State().Last})
	// What cannot be read may be text from the network.
	end.Network = err != nil || lookedOutside(w.child.Place.Dir, ops)
	return end
}

func (w *working) stopReason(out Outcome) string {
	switch {
	case out.Reason == "interrupted", out.Reason == "evicted":
		return "it was interrupted"
	case out.Detail != "":
		return out.Reason + ": " + strings.TrimRight(quote.OneLine(out.Detail, notice.MaxDelivered), ".")
	}
	return out.Reason
}

// lookedOutside reports whether the results of some operations may hold text from the network.
func lookedOutside(dir string, ops []op.Op) bool {
	open := make(map[string]string) // commands without a result, by call
	for _, o := range ops {
		switch b := o.Body.(type) {
		case *op.ToolReturned:
			if cmd := open[b.Call]; b.Network || cmd != "" && shell.ShowsOutside(cmd, dir, b.Isolated) {
				return true
			}
			delete(open, b.Call)
		case *op.ToolCalled:
			if cmd := notice.BashCommand(b.Name, b.Args); cmd != "" {
				open[b.Call] = cmd
			}
		}
	}
	for _, cmd := range open {
		if shell.ShowsOutside(cmd, dir, false) {
			return true
		}
	}
	return false
}

// writePatch appends what the subagent changed in its copy of the directory.
func (w *working) writePatch(ctx context.Context, sb *strings.Builder) {
	c := w.child
	fmt.Fprintf(sb, "\nIt worked in a copy of the directory, %s; nothing of it is in yours.", c.Place.Dir)
	if c.Ledger.State().Steps.Len() == 0 {
		return
	}
	var changes []worldstate.Change
	first, err := c.Place.CommitAt(0)
	last, err2 := c.Place.CommitAt(c.Ledger.State().Current)
	if err = errors.Join(err, err2); err == nil {
		changes, err = c.Place.World.Diff(ctx, first, last)
	}
	var patch bytes.Buffer
	if err == nil {
		err = c.Place.World.Patch(ctx, &patch, changes)
	}
	switch {
	case err != nil:
		fmt.Fprintf(sb, " What it changed there cannot be shown: %v.", err)
	case len(changes) == 0:
		sb.WriteString(" It changed no file there.")
	case patch.Len() > maxSubagentPatch:
		fmt.Fprintf(sb, " Its changes to %s are too long to be shown (%d bytes of patch): %s.",
			quote.Number(len(changes), "file"), patch.Len(), notice.List(notice.Paths(changes), len(changes)))
	default:
		fmt.Fprintf(sb, " Its changes to %s, which 'git apply' takes:\n%s", quote.Number(len(changes), "file"),
			patch.String())
	}
}

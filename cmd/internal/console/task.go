//go:build unix

package console

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"anamnesis/anamnesis/quote"
	"anamnesis/cmd/internal/exit"
	view "anamnesis/cmd/internal/term"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/agent"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/state"
)

// Show configures how a task is shown.
type Show struct {
	JSON  bool // lines of JSON
	Quiet bool // the answer only
}

// Keys returns the lines a user types at a terminal that is not drawn on, the same each time. It
// is nil without a terminal.
func (c *Console) Keys() *view.Lines {
	if c.keys == nil && c.Interactive() {
		c.keys = view.NewLines(c.In, c.Err)
	}
	return c.keys
}

// Client returns the terminal's callbacks for a task. show makes the printer when the task is
// known. If keys is nil, the user is not asked.
func (c *Console) Client(keys *view.Lines, warn func(texts ...string),
	show func(session.Info) view.Printer) session.Client {
	var p view.Printer
	client := session.Client{
		Callbacks: session.Callbacks{
			Op:       func(o op.Op) { p.Op(o) },
			Delta:    func(d model.Delta) { p.Delta(d) },
			Progress: func(c op.Call, text string) { p.Progress(c, text) },
			Passing:  func(b op.PassBegun) { p.Passing(b) },
			Waiting:  func(o state.Outage, left time.Duration) { p.Waiting(o, left) },
		},
		Started: func(i session.Info) { p = show(i) },
		Retry:   func(at model.Attempt) { p.Retry(at) },
		Scan:    view.NewProgress(c.Err).TaskScan,
		Note:    func(text string) { warn(text) },
	}
	if keys != nil {
		client.Approve, client.Ask, client.Trust = keys.Approve, keys.Ask, keys.Trust
	}
	return client
}

// Announce prints what is about to run, and returns the printer that shows it.
func (c *Console) Announce(how Show, s session.Info, warn func(texts ...string)) view.Printer {
	warn(s.Warnings...)
	if s.Notice != "" {
		warn(strings.ReplaceAll(s.Notice, "the setting approval", "--approval"))
	}
	for _, m := range guard.Missing() {
		warn("on this platform: " + m)
	}
	if how.JSON {
		return view.NewJSON(c.Out, s)
	}
	if s.Banner != "" {
		fmt.Fprintln(c.Err, view.Fit(c.Err, s.Banner))
	}
	if real, err := session.RealDir(s.Dir); err == nil { // otherwise the task reports the fault
		s.Dir = real
	}
	if how.Quiet {
		return view.NewText(c.Out, io.Discard, c.Width(), s.Dir, view.NoOutputs)
	}
	who := ""
	if s.Agent != "" && s.Agent != agent.Default {
		who = "agent " + s.Agent + " · "
	}
	fmt.Fprintln(c.Err, view.Fit(c.Err, view.Clean(fmt.Sprintf("task %s · %s%s · EAS %d (%s) · approval %s", s.Task,
		who, view.ModelName(s.Model), s.EAS, s.EASFrom, s.Approval))))
	answer := c.Out
	if view.IsTerminal(c.Out) && c.Interactive() || sameFile(c.Out, c.Err) {
		answer = nil // the progress on that output shows the answer
	}
	return view.NewText(answer, c.Err, c.Width(), s.Dir, view.WithOutputs)
}

// sameFile reports whether two outputs are one file or pipe, as with 2>&1.
func sameFile(a, b io.Writer) bool {
	fa, ok := a.(*os.File)
	fb, ok2 := b.(*os.File)
	if !ok || !ok2 {
		return false
	}
	sa, err := fa.Stat()
	sb, err2 := fb.Stat()
	return err == nil && err2 == nil && os.SameFile(sa, sb)
}

// OutcomeError returns the end of a turn as an error with its exit code; nil if the turn is done.
func OutcomeError(task string, out runtime.Outcome) error {
	again := fmt.Sprintf("'anamnesis resume %s' continues it", task)
	if fault, ok := errors.AsType[*model.Fault](out.Err); ok && (slices.Contains([]int{401, 403, 404}, fault.Status) ||
		errors.Is(fault.Err, model.ErrNoKey) || errors.Is(fault.Err, model.ErrNoTools)) {
		return exit.Usagef("task %s: %v; correct the key, the address or the model's name, then %s", task, out.Err,
			again)
	}
	switch out.Reason {
	case "done", "idle":
		return nil
	case "interrupted":
		return exit.With(exit.Interrupted,
			fmt.Errorf("task %s: %s; %s", task, strings.TrimSuffix("interrupted: "+out.Detail, ": "), again))
	case "evicted":
		return exit.With(exit.Evicted, fmt.Errorf("task %s: %s; %s", task, out.Detail, again))
	case "limit":
		if out.Limit != "" {
			again = fmt.Sprintf("raise --%s, and %s", out.Limit, again)
		}
		return exit.With(exit.Limit, fmt.Errorf("task %s: stopped by a limit: %s; %s", task, out.Detail, again))
	case "asked":
		return exit.With(exit.Stuck, fmt.Errorf("task %s asks: %s; 'anamnesis answer %s' answers, then %s", task,
			quote.Squash(out.Detail), task, again))
	case "stuck":
		return exit.With(exit.Stuck,
			fmt.Errorf("task %s: stuck: %s; answer with 'anamnesis resume %s \"…\"'", task, out.Detail, task))
	}
	if out.Err != nil {
		return exit.With(exit.Code(out.Err), fmt.Errorf("task %s: %w; %s", task, out.Err, again))
	}
	return fmt.Errorf("task %s: %s; %s", task, out.Detail, again)
}

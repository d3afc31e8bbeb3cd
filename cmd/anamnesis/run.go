//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	view "anamnesis/cmd/internal/term"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/agent"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
)

// maxRequestBytes bounds a request read from standard input.
const maxRequestBytes = 1 << 20

func (a *app) runCommand() *cobra.Command {
	var f agentFlags
	var id string
	var lasting taskFlags
	cmd := &cobra.Command{
		Use:   `run "REQUEST"`,
		Short: "Run an agent on a request",
		Long: "Run an agent on a request (- reads it from standard input), in a directory that becomes its reversible world.\n" +
			"On a terminal, typed lines steer the agent; Ctrl-C ends the turn, twice leaves at once; 'resume' goes on.",
		Args: usageArgs(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "-" {
				text, err := io.ReadAll(io.LimitReader(a.stdin, maxRequestBytes))
				if err != nil {
					return usageError("read the request: %v", err)
				}
				args[0] = string(text)
			}
			if strings.TrimSpace(args[0]) == "" {
				return usageError("the request is empty: say what is to be done")
			}
			if err := f.check(cmd.Flags().Changed); err != nil {
				return err
			}
			if err := f.checkSpan(cmd.Flags().Changed); err != nil {
				return err
			}
			return a.run(cmd.Context(), f, lasting, id, args[0])
		},
	}
	f.register(cmd)
	lasting.register(cmd)
	cmd.Flags().StringVar(&f.agent, "agent", "", "name of an agent, or file of its spec ('anamnesis agent list' shows them; default: default)")
	cmd.Flags().StringVar(&id, "task", "", "name of the task (default: made from the request)")
	cmd.Flags().StringArrayVar(&f.allow, "allow", nil, "rule for calls that run without a question, such as 'Bash(go test *)' (repeatable)")
	cmd.Flags().StringArrayVar(&f.ask, "ask", nil, "rule for calls that are asked about (repeatable)")
	cmd.Flags().StringArrayVar(&f.deny, "deny", nil, "rule for calls that do not run (repeatable)")
	cmd.Flags().StringArrayVar(&f.writable, "writable", nil, "directory beside the world that commands may write (repeatable)")
	cmd.Flags().IntVar(&f.eas, "eas", 0, "effective attention span in tokens (default: from the EAS table)")
	cmd.Flags().StringSliceVar(&f.tools, "tools", nil, "tools beside those that every agent has: SendDMail, dmail")
	cmd.Flags().IntVar(&f.window, "window", 0, "context window of the model in tokens (default: from the EAS table)")
	return cmd
}

func (a *app) run(ctx context.Context, f agentFlags, lasting taskFlags, id, request string) error {
	h, err := a.home()
	if err != nil {
		return err
	}
	if info, err := os.Stat(f.dir); err != nil || !info.IsDir() {
		return usageError("--dir %s: not a directory; make it first", f.dir)
	}
	keys := a.keyboard(ctx)
	if keys != nil {
		defer keys.Close()
	}
	who, err := a.pickAgent(ctx, h, f, keys)
	if err != nil {
		return err
	}
	f.follow(&who.Spec)
	m, err := a.chooseModels(ctx, f, f.model, f.baseURL)
	if err != nil {
		return err
	}
	if err := a.costKnown(f, m); err != nil {
		return err
	}
	mode, notice, err := a.approvalMode(f.approval)
	if err != nil {
		return err
	}
	n, err := a.newTask(h, f, m, mode, id, request)
	if err != nil {
		return err
	}
	if err := a.brief(&n, who); err != nil {
		return err
	}
	if err := lasting.set(&n); err != nil {
		return err
	}
	p := a.announce(f, view.Start{
		Task: n.ID, Agent: n.Agent.Name, Dir: n.Dir, Model: n.Model, EAS: n.EAS, EASFrom: n.EASFrom,
		Approval: mode, Notice: notice, Banner: m.banner,
	})
	opts, err := a.taskOptions(f, m, mode, p, keys)
	if err != nil {
		return err
	}
	done, err := a.surround(ctx, h, n.Dir, f, who.Spec.Subagents, keys, &opts)
	if err != nil {
		return err
	}
	defer done()
	t, err := runtime.Create(ctx, h, n, opts)
	if err != nil {
		return err
	}
	return closing(a.runTask(ctx, t, h, keys, p), t.Close())
}

// newTask fills in what a task is made of.
func (a *app) newTask(h taskdir.Home, f agentFlags, m modelChoice, mode, id, request string) (runtime.New, error) {
	span, err := easFor(h, f.dir, m.lookup)
	if err != nil {
		return runtime.New{}, err
	}
	rules, err := f.rules()
	if err != nil {
		return runtime.New{}, err
	}
	n := runtime.New{
		Rules: rules,
		ID:    id, Dir: f.dir, Request: request, Model: m.name, BaseURL: m.baseURL, Reflect: m.reflectName,
		EAS: span.EAS, EASFrom: span.Source, Window: span.Advertised, Encoding: span.Encoding,
		Approval: mode, Sandbox: f.sandbox, Writable: f.writable, MaxSteps: f.maxSteps, Tools: f.tools, Redact: f.redact,
	}
	if !span.Known {
		n.EASFrom = fmt.Sprintf("%s is not in the EAS table", m.lookup)
	}
	if f.eas > 0 {
		n.EAS, n.EASFrom = f.eas, "--eas"
	}
	if f.window > 0 {
		n.Window = f.window
	}
	if n.Window > 0 && n.EAS > n.Window {
		return runtime.New{}, f.spanTooLarge(n)
	}
	known := a.taskSecrets(f.dir, f.redact)
	if err := n.CheckNames(known); err != nil { // before they are shown
		return n, err
	}
	if n.ID == "" {
		if n.ID, err = taskdir.NewTaskID(h, withoutSecrets(request, known)); err != nil {
			return n, err
		}
	} else if err := taskdir.CheckTaskID(n.ID); err != nil {
		return n, usageError("--task: %v", err)
	}
	if _, err := taskdir.ReadState(h, n.ID); !errors.Is(err, taskdir.ErrNoTask) {
		return n, usageError("task %s exists: 'anamnesis resume %s' goes on with it, --task gives another name", n.ID, n.ID)
	}
	return n, nil
}

// checkSpan refuses numbers that leave no span at all. given tells a flag that
// was set from one that was not.
func (f *agentFlags) checkSpan(given func(flag string) bool) error {
	switch {
	case f.eas <= 0 && given("eas"):
		return usageError("--eas %d: want a positive number of tokens, such as --eas 8000, or no --eas for the table's", f.eas)
	case f.window <= 0 && given("window"):
		return usageError("--window %d: want a positive number of tokens, such as --window 128000, or no --window for the table's", f.window)
	}
	return nil
}

// spanTooLarge says that a task's EAS does not fit its window, and which of
// the two the flags can change.
func (f *agentFlags) spanTooLarge(n runtime.New) error {
	window := fmt.Sprintf("the window of %d tokens the EAS table has", n.Window)
	if f.window > 0 {
		window = fmt.Sprintf("--window %d", n.Window)
	}
	if f.eas > 0 {
		return usageError("--eas %d is larger than %s: a model cannot attend to more than it is given; lower --eas or give a larger --window", n.EAS, window)
	}
	return usageError("%s is smaller than the EAS of %d tokens (%s): a model cannot attend to more than it is given; give an --eas of at most %d or a larger --window", window, n.EAS, n.EASFrom, n.Window)
}

// withoutSecrets is a text of which a name is made.
func withoutSecrets(text string, known []redact.Secret) string {
	text, _ = redact.New(nil, known).Text(text)
	return redact.ReplaceMarkers(text, func(string) string { return "redacted" })
}

// tellRefused says why a task took longer to open than it should have.
func (a *app) tellRefused(t *runtime.Task) {
	if err := t.CheckpointRefused(); err != nil {
		fmt.Fprintf(a.stderr, "anamnesis: %s; the whole stream was folded instead\n", oneLine(err.Error()))
	}
}

// keyboard is the terminal's, where there is one.
func (a *app) keyboard(ctx context.Context) *view.Keyboard {
	if !a.interactive() {
		return nil
	}
	return view.NewKeyboard(ctx, a.stdin.(*os.File), a.stderr)
}

// announce says what is about to run, before anything else, and gives the
// printer that shows it.
func (a *app) announce(f agentFlags, s view.Start) view.Printer {
	if s.Notice != "" {
		fmt.Fprintf(a.stderr, "anamnesis: %s\n", s.Notice)
	}
	for _, m := range guard.Missing() {
		fmt.Fprintf(a.stderr, "anamnesis: on this platform: %s\n", m)
	}
	if f.output == "stream-json" {
		return view.NewJSON(a.stdout, s)
	}
	if s.Banner != "" {
		fmt.Fprintln(a.stderr, s.Banner)
	}
	if real, err := realDir(s.Dir); err == nil { // otherwise the task says what is wrong with it
		s.Dir = real
	}
	if f.print {
		return view.NewText(a.stdout, io.Discard, a.width(), s.Dir)
	}
	who := ""
	if s.Agent != "" && s.Agent != agent.Default {
		who = "agent " + s.Agent + " · "
	}
	fmt.Fprintln(a.stderr, view.Line(fmt.Sprintf("task %s · %s%s · EAS %d (%s) · approval %s", s.Task, who, s.Model, s.EAS, s.EASFrom, s.Approval), a.width()))
	answer := a.stdout
	if f, ok := a.stdout.(*os.File); ok && term.IsTerminal(int(f.Fd())) && a.interactive() {
		answer = nil // the same screen shows the progress
	}
	return view.NewText(answer, a.stderr, a.width(), s.Dir)
}

func (a *app) resumeCommand() *cobra.Command {
	var f agentFlags
	cmd := &cobra.Command{
		Use:   "resume [TASK] [MESSAGE]",
		Short: "Go on with a task, after its end, an interruption or a crash",
		Long: "Go on with a task from what was acknowledged. Without TASK it is the last one of the directory.\n" +
			"A call that was running when the program died is reported as of unknown outcome and not run again.",
		Args: usageArgs(cobra.MaximumNArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd.Flags().Changed); err != nil {
				return err
			}
			return a.resume(cmd.Context(), f, args)
		},
	}
	f.register(cmd)
	return cmd
}

// resumedModel is the model a task goes on with, and its Reflect-Agent's: its own,
// unless the flags name another. What was used before there was a price is counted at its price.
func (a *app) resumedModel(ctx context.Context, f *agentFlags, id string, st *state.State) (modelChoice, error) {
	name, baseURL := st.Model, st.BaseURL
	if f.model != "" {
		name, baseURL = f.model, ""
	}
	if f.baseURL != "" {
		baseURL = f.baseURL
	}
	if redact.HasMarker(baseURL) {
		return modelChoice{}, usageError("task %s: the address of its model holds a password, which is not kept; give it again with --base-url", id)
	}
	if f.reflectModel == "" {
		f.reflectModel = st.Reflect
	}
	m, err := a.chooseModels(ctx, *f, name, baseURL)
	if err != nil {
		return m, err
	}
	if m.price != nil {
		f.earlierCost = m.price.Most(st.Totals.Usage.Unpriced())
	}
	return m, a.costKnown(*f, m)
}

// resumedApproval is the mode a task goes on with: what the flags say, or what was
// given when the task was started, or by the user since. notice says which it is,
// why, and what changes it.
func (a *app) resumedApproval(f agentFlags, st *state.State) (mode, notice string, err error) {
	from, why := f.approval, "--approval says so"
	switch spec := st.Opened.Agent; {
	case from != "":
	case st.Approval != st.Opened.Approval:
		from, why = st.Approval, "the user allowed everything in this task"
	case st.Approval == string(guard.ModeAuto) || st.Approval == string(guard.ModeEdits):
		from, why = st.Approval, "the task was started with it"
	case spec != nil && spec.Approval != "":
		from, why = spec.Approval, "the agent "+spec.Name+" says so"
	default:
		why = "it is the default at a terminal"
	}
	mode, notice, err = a.approvalMode(from)
	if notice == "" {
		notice = fmt.Sprintf("approval mode is %s: %s; --approval MODE sets another (ask, edits, auto, deny)", mode, why)
	}
	return mode, notice, err
}

func (a *app) resume(ctx context.Context, f agentFlags, args []string) error {
	h, err := a.home()
	if err != nil {
		return err
	}
	id, message, err := a.resumeTarget(h, f.dir, args)
	if err != nil {
		return err
	}
	st, err := taskdir.ReadState(h, id)
	if err != nil {
		return err
	}
	if err := taskdir.CheckParent(st); err != nil {
		return err
	}
	goOn, err := continues(st, message)
	if err != nil {
		return err
	}
	m, err := a.resumedModel(ctx, &f, id, st)
	if err != nil {
		return err
	}
	mode, notice, err := a.resumedApproval(f, st)
	if err != nil {
		return err
	}
	if f.maxSteps == 0 {
		f.maxSteps = st.Opened.MaxSteps
	}
	f.tools = st.Opened.Tools
	resumed, err := a.resumedWith(h, st, m)
	if err != nil {
		return err
	}
	if err := a.agentSince(h, st, resumed); err != nil {
		return err
	}
	resumed.Continue, resumed.Redact = goOn, unknownTo(st, f.redact)
	f.dir, f.redact = st.Opened.Dir, append(resumed.Redact, st.Redact...)
	eas, easFrom := st.EAS, st.Opened.EASFrom
	if resumed.EAS > 0 {
		eas, easFrom = resumed.EAS, resumed.EASFrom
	}
	keys := a.keyboard(ctx)
	if keys != nil {
		defer keys.Close()
	}
	p := a.announce(f, view.Start{
		Task: id, Agent: agentOf(st), Dir: st.Opened.Dir, Model: m.name, EAS: eas, EASFrom: easFrom,
		Approval: mode, Notice: notice, Banner: m.banner,
	})
	a.tellUnset(id, st.Redact)
	opts, err := a.taskOptions(f, m, mode, p, keys)
	if err != nil {
		return err
	}
	done, err := a.surround(ctx, h, st.Opened.Dir, f, subagentsOf(st), keys, &opts)
	if err != nil {
		return err
	}
	defer done()
	t, err := runtime.OpenTask(ctx, h, id, opts)
	if err != nil {
		return err
	}
	a.tellRefused(t)
	if err := t.Resume(ctx, message, resumed); err != nil {
		return closing(err, t.Close())
	}
	return closing(a.runTask(ctx, t, h, keys, p), t.Close())
}

// resumedWith is the record of a resume: what changes with another model.
func (a *app) resumedWith(h taskdir.Home, st *state.State, m modelChoice) (*op.TaskResumed, error) {
	resumed := &op.TaskResumed{PID: os.Getpid(), Program: "anamnesis " + version}
	if m.name != st.Model || m.baseURL != st.BaseURL {
		resumed.Model, resumed.BaseURL = m.name, m.baseURL
	}
	if m.reflectName != st.Reflect {
		resumed.Reflect = m.reflectName
	}
	if m.name != st.Model {
		span, err := easFor(h, st.Opened.Dir, m.lookup)
		if err != nil {
			return nil, err
		}
		resumed.EAS, resumed.EASFrom, resumed.Window = span.EAS, span.Source, span.Advertised
	}
	return resumed, nil
}

// continues says whether a resume without words opens the last turn again.
func continues(st *state.State, message string) (bool, error) {
	if message != "" || st.Turn.Open || st.Jumping != nil || st.Restoring != nil || st.Pending != nil {
		return false, nil // there is something to answer or to tell, or a jump to make
	}
	if st.Turn.End == nil {
		return false, usageError("task %s has no request yet: give one with 'anamnesis resume %s \"…\"'", st.Opened.Task, st.Opened.Task)
	}
	if st.Turn.End.Reason == "done" && st.Turn.Answered {
		return false, usageError("task %s is done; say what is next with 'anamnesis resume %s \"…\"'", st.Opened.Task, st.Opened.Task)
	}
	return true, nil
}

// resumeTarget reads [TASK] [MESSAGE]: a single argument that names no task
// and holds a space is a message to the directory's last task.
func (a *app) resumeTarget(h taskdir.Home, dir string, args []string) (id, message string, err error) {
	if len(args) == 2 {
		return args[0], args[1], nil
	}
	if len(args) == 1 && !strings.ContainsAny(args[0], " \t\n") {
		return args[0], "", nil
	}
	if len(args) == 1 {
		message = args[0]
	}
	id, err = lastTask(h, dir)
	return id, message, err
}

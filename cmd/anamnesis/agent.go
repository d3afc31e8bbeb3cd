//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/charmbracelet/colorprofile"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"anamnesis/anamnesis"
	view "anamnesis/cmd/internal/term"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/builtin"
	"anamnesis/orchestrator/tool/file"
	"anamnesis/orchestrator/tool/search"
)

// version is recorded in every stream the program writes.
const version = "0.1.0"

// home is where this process keeps everything.
func (a *app) home() (taskdir.Home, error) {
	h, err := taskdir.FindHome(a.getenv)
	if err != nil {
		return h, usageError("%v", err)
	}
	for _, root := range h.Roots() {
		if err := usableRoot(root); err != nil {
			return h, usageError("the program's folder %s: %v; %s", root, err, homeRemedy)
		}
	}
	return h, nil
}

const homeRemedy = "set ANAMNESIS_HOME to a folder that you may read and write"

// homeFault adds the remedy to an error of the file system about something in the
// home that may not be used, which no verb could foresee.
func (a *app) homeFault(err error) error {
	var fault *fs.PathError
	if !errors.As(err, &fault) || exitCode(err) != exitFailed || errors.As(err, new(*exitError)) {
		return err
	}
	h, unknown := taskdir.FindHome(a.getenv)
	if unknown != nil {
		return err
	}
	for _, cause := range []error{syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.ENOTDIR} {
		in := func(root string) bool {
			rest, ok := strings.CutPrefix(fault.Path, root+"/")
			if first, _, _ := strings.Cut(rest, "/"); ok && cause == syscall.ENOTDIR {
				info, err := os.Stat(filepath.Join(root, first))
				return err != nil || !info.IsDir() // or else something deep within is damaged
			}
			return ok || fault.Path == root
		}
		if errors.Is(fault.Err, cause) && slices.ContainsFunc(h.Roots(), in) {
			return usageError("%w; %s", err, homeRemedy)
		}
	}
	return err
}

// usableRoot says why a folder, or the nearest one above it that exists, cannot
// hold what the program keeps. A folder that exists need not be writable: some
// verbs only read.
func usableRoot(root string) error {
	if !utf8.ValidString(root) {
		return errors.New("its path is not UTF-8 text")
	}
	for at := root; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		var mode uint32 = unix.R_OK | unix.X_OK
		switch {
		case errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at):
			if _, err := os.Lstat(at); err == nil {
				return fmt.Errorf("%s is a link to nothing", at)
			}
			continue
		case errors.Is(err, syscall.ENOTDIR) && at != filepath.Dir(at):
			continue
		case err != nil:
			return errors.New(plainCause(err))
		case !info.IsDir():
			return fmt.Errorf("%s is not a folder", at)
		case at != root:
			mode = unix.W_OK | unix.X_OK
		}
		if err := unix.Access(at, mode); err != nil {
			return fmt.Errorf("%s: %s", at, plainCause(err))
		}
		return nil
	}
}

// plainCause is what the system says is wrong, without the call and the path.
func plainCause(err error) string {
	var no syscall.Errno
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "no permission"
	case errors.Is(err, syscall.EROFS):
		return "the file system is read-only"
	case errors.As(err, &no):
		return no.Error()
	}
	return err.Error()
}

// easFor looks a model up for a task in a directory.
func easFor(h taskdir.Home, dir, lookup string) (anamnesis.Span, error) {
	table, err := loadEAS(h.EASOverlay(), easProjectFile(dir))
	if err != nil {
		return anamnesis.Span{}, err
	}
	return table.Lookup(lookup), nil
}

// approvalMode resolves the flag: without a terminal nobody can be asked.
func (a *app) approvalMode(flag string) (mode, notice string, err error) {
	if flag != "" {
		m, err := guard.ParseMode(flag)
		if err != nil {
			return "", "", usageError("--approval: %v", err)
		}
		if m == guard.ModeAsk && !a.interactive() {
			return string(m), "approval mode ask without a terminal: nobody is there to answer, so calls that need approval are refused; --approval auto lets them run", nil
		}
		return string(m), "", nil
	}
	if a.interactive() {
		return string(guard.ModeAsk), "", nil
	}
	return string(guard.ModeDeny), "approval mode is deny: there is no terminal to ask at; --approval edits or --approval auto lets calls run", nil
}

// interactive says whether a person sits at the terminal.
func (a *app) interactive() bool {
	in, ok := a.stdin.(*os.File)
	out, ok2 := a.stderr.(*os.File)
	return ok && ok2 && term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd()))
}

// styled is standard output with colours where the terminal shows them and
// NO_COLOR is not set.
func (a *app) styled() io.Writer {
	return colorprofile.NewWriter(a.stdout, os.Environ())
}

// width is the terminal's, or what fits most screens and logs.
func (a *app) width() int {
	for _, w := range []io.Writer{a.stdout, a.stderr} {
		if f, ok := w.(*os.File); ok {
			if cols, _, err := term.GetSize(int(f.Fd())); err == nil && cols > 0 {
				return cols
			}
		}
	}
	return 120
}

// runTask runs one turn of an open task with everything a person at a
// terminal expects: steering by typed lines, approval questions, the socket.
func (a *app) runTask(ctx context.Context, t *runtime.Task, h taskdir.Home, keys *view.Keyboard, p view.Printer) error {
	if err := a.tellSandbox(ctx, t); err != nil {
		return err
	}
	if keys != nil {
		keys.Steer(func(line string) {
			if err := t.Say(ctx, line, op.SourceSteer); err != nil {
				fmt.Fprintf(a.stderr, "anamnesis: %v\n", err)
			}
		})
		defer keys.Steer(nil)
	}
	var last runtime.Outcome
	for {
		out, err := a.runServed(ctx, t, h)
		if err != nil {
			return err
		}
		if out.Reason != "idle" || last.Reason == "" {
			last = out
		}
		again := out.Reason == "done" || out.Reason == "limit" || out.Reason == "idle"
		if again && ctx.Err() == nil && t.Unanswered() {
			continue // words, or a jump, came in between the turn's end and the socket's
		}
		p.End(last, t.State())
		return outcomeError(t.ID, last)
	}
}

// tellSandbox says once what a sandbox cannot hold in on this machine.
func (a *app) tellSandbox(ctx context.Context, t *runtime.Task) error {
	box, err := t.Sandbox(ctx)
	if ctx.Err() != nil {
		return nil // the turn ends as interrupted
	}
	if earlier := box.Earlier(); earlier != "" {
		fmt.Fprintf(a.stderr, "anamnesis: a command did not end before the program did; what it left: %s\n", oneLine(earlier))
	}
	for _, m := range box.Missing() {
		fmt.Fprintf(a.stderr, "anamnesis: %s; --sandbox off says that this is known\n", m)
	}
	return err
}

// runServed runs a turn while the task's socket takes commands. Without a
// socket the task runs all the same.
func (a *app) runServed(ctx context.Context, t *runtime.Task, h taskdir.Home) (runtime.Outcome, error) {
	stop, err := t.Serve(ctx, h)
	if err != nil {
		fmt.Fprintf(a.stderr, "anamnesis: warning: %v; 'say' and 'jump' cannot reach the task while it runs\n", err)
		return t.Run(ctx)
	}
	defer stop()
	return t.Run(ctx)
}

// outcomeError turns the end of a turn into the process's exit.
func outcomeError(task string, out runtime.Outcome) error {
	again := fmt.Sprintf("'anamnesis resume %s' goes on", task)
	var fault *model.Fault
	if errors.As(out.Err, &fault) && (fault.Status == 401 || fault.Status == 403 || fault.Status == 404) {
		return usageError("task %s: %v; set the key, the address and the model's name right, then %s", task, out.Err, again)
	}
	switch out.Reason {
	case "done", "idle":
		return nil
	case "interrupted":
		return &exitError{exitInterrupted, fmt.Errorf("task %s: interrupted; %s", task, again)}
	case "limit":
		return &exitError{exitLimit, fmt.Errorf("task %s: stopped by a limit: %s; %s", task, out.Detail, again)}
	case "stuck":
		return &exitError{exitStuck, fmt.Errorf("task %s: stuck: %s", task, out.Detail)}
	}
	if out.Err != nil {
		return &exitError{exitCode(out.Err), fmt.Errorf("task %s: %w; %s", task, out.Err, again)}
	}
	return fmt.Errorf("task %s: %s; %s", task, out.Detail, again)
}

// taskOptions are a task's surroundings in this process.
func (a *app) taskOptions(f agentFlags, m modelChoice, approval string, p view.Printer, keys *view.Keyboard) (runtime.Options, error) {
	more, err := builtin.OptIn(f.tools...)
	if err != nil {
		return runtime.Options{}, usageError("--tools: %v", err)
	}
	h, err := a.home()
	if err != nil {
		return runtime.Options{}, err
	}
	net, err := a.webOptions(h)
	if err != nil {
		return runtime.Options{}, err
	}
	tools, err := tool.NewRegistry(append(builtin.Tools(&builtin.Options{
		File:   file.Options{AllowSecrets: f.secrets},
		Search: search.Options{AllowSecrets: f.secrets},
		Web:    net,
	}), more...)...)
	if err != nil {
		return runtime.Options{}, err
	}
	embedder, err := a.embedder()
	if err != nil {
		return runtime.Options{}, err
	}
	m.retries.set(p.Retry)
	o := runtime.Options{
		NoLessons: f.noLessons,
		Embedder:  embedder,
		Model:     m.model, Reflect: m.reflect, Tools: tools, Approval: approval, Program: "anamnesis " + version,
		Sandbox:     guard.Confinement(f.sandbox),
		Limits:      state.Limits{Steps: f.maxSteps, Tokens: f.maxTokens, USD: f.maxCost, EarlierUSD: f.earlierCost, Time: f.maxTime},
		Secrets:     a.taskSecrets(f.dir, f.redact),
		Event:       p.Op,
		Delta:       p.Delta,
		Progress:    p.Progress,
		Passing:     p.Passing,
		Scan:        a.scanProgress(),
		AfterAppend: a.afterAppend, WorldHook: a.worldHook, SealAfter: a.sealAfter, CheckpointEvery: a.checkpointEvery,
	}
	if keys != nil {
		at := questions{keys}
		o.Approve, o.Ask = at.approve, at.ask
	}
	return o, nil
}

// surround gives a task what its directory has for it: rules, subagents, tools
// that come and go. done ends what serves those.
func (a *app) surround(ctx context.Context, h taskdir.Home, dir string, f agentFlags, subagents []op.Agent, keys *view.Keyboard, o *runtime.Options) (done func(), err error) {
	o.KnownModel = knownModel(h, dir)
	if o.Rules, err = a.standingRules(h, dir); err != nil {
		return nil, err
	}
	if err := a.addSubagents(ctx, h, dir, f, subagents, o); err != nil {
		return nil, err
	}
	return a.addSources(ctx, h, dir, f, keys, o)
}

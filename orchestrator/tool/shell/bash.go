// Package shell has the tools that run commands: Bash, and those for its background commands.
package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"anamnesis/anamnesis/quote"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/tool"
)

// The limits of a command.
const (
	DefaultTimeoutSeconds = 120
	MaxTimeoutSeconds     = 300
	MaxOutputRunes        = 50_000 // characters of output kept, half head, half tail
	MaxLineRunes          = 2_000  // characters kept of a line
	// MaxCommandBytes is Linux's limit of one argument, less its end mark.
	MaxCommandBytes = 128<<10 - 1
)

// Bash is the tool that runs a shell command. Each runs in a fresh shell in the world's
// directory, with an empty standard input and an environment without secrets, under a
// supervisor that ends everything it started (package guard). A non-nil error comes with a
// Result that holds the output so far.
func Bash() tool.Tool { return bash{} }

type bash struct{}

func (bash) Spec() tool.Spec {
	timeout := fmt.Sprintf("Timeout in seconds: 1-%d, default %d. With run_in_background: 1-%d, default %d.",
		MaxTimeoutSeconds, DefaultTimeoutSeconds, MaxBackgroundSeconds, MaxBackgroundSeconds)
	return tool.Spec{
		Name: "Bash", Command: "command", Network: "network",
		Description: fmt.Sprintf("Run a command with bash in the working directory. Each call starts a new shell: cd "+
			"and variables do not persist, so join steps with &&. Standard input is empty, and the environment has "+
			"no API keys. The command can write in the working directory and in /tmp, but not to the configuration "+
			"and hooks of existing git repositories. It has no network unless network is set and approved. When the "+
			"command ends or times out, all processes it started are ended; use run_in_background for those that "+
			"must go on. Output is limited to %d characters (head and tail) and %d a line; recall returns the rest. "+
			"To work with files, use ReadFile, WriteFile, StrReplaceFile, Glob and Grep.", MaxOutputRunes,
			MaxLineRunes),
		Schema: tool.Params(
			tool.Required("command", tool.Text("The command line.")),
			tool.Optional("timeout", tool.Int(timeout, 1, MaxBackgroundSeconds)),
			tool.Optional("run_in_background",
				tool.Bool("Return at once and keep the command running: for servers, watchers, long builds.")),
			tool.Optional("network",
				tool.Bool("Request network access, including Unix sockets. It needs an approval.")),
		),
	}
}

func (bash) Call(ctx context.Context, env *tool.Env, args json.RawMessage) (tool.Result, error) {
	a, err := tool.Decode[struct {
		Command string `json:"command"`
		Timeout int    `json:"timeout"`
		Behind  bool   `json:"run_in_background"`
		Network bool   `json:"network"`
	}](ctx, args)
	if err != nil {
		return tool.Result{}, err
	}
	switch {
	case len(a.Command) > MaxCommandBytes:
		return tool.Errorf("Bash was not run: the command is %d bytes, at most %d are possible. Write it to a file "+
			"and run that.", len(a.Command), MaxCommandBytes), nil
	case strings.ContainsRune(a.Command, 0):
		return tool.Errorf("Bash was not run: the command contains a NUL byte. Use printf '\\0' to make one."), nil
	}
	switch {
	case a.Timeout == 0 && a.Behind:
		a.Timeout = MaxBackgroundSeconds
	case a.Timeout == 0:
		a.Timeout = DefaultTimeoutSeconds
	case a.Timeout > MaxTimeoutSeconds && !a.Behind:
		return tool.Errorf("Bash was not run: timeout %d is more than %d seconds; with run_in_background it may "+
			"be up to %d.", a.Timeout, MaxTimeoutSeconds, MaxBackgroundSeconds), nil
	}
	shell, err := findShell()
	if err != nil {
		return tool.Errorf("Bash was not run: %v.", err), nil
	}
	e := Exec{Name: "Bash", Path: shell, Args: []string{shell, "-c", a.Command}, Network: a.Network}
	e.Timeout = time.Duration(a.Timeout) * time.Second
	// Without a word the first build in a sandbox looks like one that hangs.
	if name := env.Sandbox.FillsCache(a.Command, os.Environ()); name != "" && env.Progress != nil {
		env.Progress(
			fmt.Sprintf("the sandbox's own cache of %s is empty: this first run fills it, and can take minutes", name))
	}
	if a.Behind && ctx.Err() == nil {
		return begin(ctx, env, e, a.Command), nil
	}
	return Run(ctx, env, e)
}

// findShell returns bash, or else sh.
func findShell() (string, error) {
	for _, name := range []string{"bash", "sh"} {
		if p, err := exec.LookPath(name); err == nil {
			return p, nil
		}
	}
	return "", errors.New("neither bash nor sh is installed")
}

// elsewhere explains a cut in the middle of one separate output.
const elsewhere = "both outputs together are in the result's text"

// outputs keeps the two outputs, separately and together, redacted before anything is cut.
type outputs struct {
	stdout, stderr, merged *clip
	kept                   *kept // of the merged output
	secrets                *tool.Redaction
	streams                map[guard.Stream]*stream
	last                   guard.Stream // that wrote last
	why                    error        // what canceled the command, if something did
	// live are the writers for a user who watches: they get what is certain at once.
	live map[guard.Stream]*redact.Writer
}

func newOutputs(runes, line int, env *tool.Env) *outputs {
	secrets := env.Redaction()
	o := &outputs{
		stdout: newClip(runes, line), stderr: newClip(runes, line), merged: newClip(runes, line),
		streams: map[guard.Stream]*stream{}, live: map[guard.Stream]*redact.Writer{}, last: guard.Stdout,
		secrets: secrets,
	}
	o.kept = &kept{record: env.Keep, shown: o.merged}
	for s, own := range map[guard.Stream]*clip{guard.Stdout: o.stdout, guard.Stderr: o.stderr} {
		to := &stream{clips: []*clip{own, o.merged}, kept: o.kept}
		to.redacted = secrets.Writer(to)
		o.streams[s] = to
		if env.Output != nil {
			o.live[s] = env.Redactor.NewWriter(watched(env.Output))
		}
	}
	return o
}

// watched is a writer that a user watches.
type watched func(p []byte)

func (w watched) Write(p []byte) (int, error) { w(p); return len(p), nil }

// write is a guard.Command's Output. If the other stream wrote last, its held lines come first.
func (o *outputs) write(s guard.Stream, p []byte) {
	if s != o.last {
		_ = o.streams[o.last].redacted.Lines() // a stream never fails
		o.last = s
	}
	_, _ = o.streams[s].redacted.Write(p)
	if w := o.live[s]; w != nil {
		_, _ = w.Write(p) // a watched never fails
		_ = w.Now()
	}
}

// stream redacts one output for the clips. Its writes never fail.
type stream struct {
	redacted *redact.Writer
	clips    []*clip
	kept     *kept
	whole    whole
}

func (s *stream) Write(p []byte) (int, error) {
	s.pass(s.whole.next(p))
	return len(p), nil
}

func (s *stream) pass(p []byte) {
	for _, c := range s.clips {
		c.Write(p)
	}
	s.kept.Write(p)
}

func (s *stream) end() {
	_ = s.redacted.Close() // see Write
	s.pass(s.whole.held)
	s.whole.held = nil
}

// configRefused matches git's message when the sandbox refuses a write of a configuration.
var configRefused = regexp.MustCompile(
	`could not (write|lock) config file .*: (Device or resource busy|Read-only file system|Permission denied)`)

// result returns the model's result: the output, then one line in brackets with everything
// else.
func (o *outputs) result(end guard.Outcome, timeout time.Duration) tool.Result {
	for s, other := range o.streams {
		if s != o.last { // its held bytes are older
			other.end()
		}
	}
	o.streams[o.last].end()
	o.kept.end()
	middle := o.merged.isMiddleCut()
	text, cut := o.merged.text(o.kept.how(o.kept.head))
	r := tool.Result{
		Cut: cut, Kept: o.kept.ops, Secrets: o.secrets.Found(),
		IsError: end.Exit != 0 || end.TimedOut || end.Canceled,
	}
	r.Stdout, _ = o.stdout.text(elsewhere)
	r.Stderr, _ = o.stderr.text(elsewhere)
	exit := end.Exit
	r.Exit = &exit
	const ended = ": the command and everything it had started were ended"
	var notes []string
	switch {
	case end.TimedOut:
		notes = append(notes, fmt.Sprintf("timed out after %v%s", timeout, ended))
		if doing := running(end.Running); doing != "" {
			notes = append(notes, doing)
		}
	case end.Canceled:
		why := "interrupted"
		if o.why != nil && !errors.Is(o.why, context.Canceled) {
			why = "ended because " + o.why.Error()
		}
		notes = append(notes, why+ended)
	}
	if end.Note != "" {
		notes = append(notes, end.Note)
	}
	if r.IsError && configRefused.MatchString(r.Stdout+r.Stderr) {
		notes = append(notes, "the configuration of a git repository that was there before is read-only for "+
			"commands: the user can run this, or allow it (setting writable: DIR/.git)")
	}
	if end.NLeft > 0 {
		notes = append(notes, fmt.Sprintf("%s still ran in the background when the command ended and %s ended: %s",
			quote.Number(end.NLeft, "process"), were(end.NLeft), list(end.Left, end.NLeft)))
	}
	if len(end.Alive) > 0 {
		notes = append(notes, "could not be ended and still runs: "+list(end.Alive, len(end.Alive)))
	}
	notes = append(notes, fmt.Sprintf("exit %d", end.Exit))
	if text == "" {
		text = "[no output]\n"
	} else if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	if cut > 0 && !middle && o.kept.record != nil {
		text += "[the rest of the first line that is cut: " + o.kept.how(o.kept.line) + "]\n"
	}
	r.Text = text + "[" + strings.Join(notes, "]\n[") + "]"
	r.Display = notes[0]
	return r
}

// maxRunning bounds the processes of a timeout's note.
const maxRunning = 5

// running describes what a command was doing when its time was up; empty if unknown.
func running(procs []guard.Process) string {
	var texts []string
	for _, p := range procs[:min(len(procs), maxRunning)] {
		texts = append(texts, fmt.Sprintf("%s (for %d s)", p.Name, p.Seconds))
	}
	if len(texts) == 0 {
		return ""
	}
	if more := len(procs) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return "running at that time: " + strings.Join(texts, "; ")
}

func list(procs []guard.Process, n int) string {
	var names []string
	for _, p := range procs {
		names = append(names, p.String())
	}
	text := strings.Join(names, "; ")
	if n > len(procs) {
		text += fmt.Sprintf("; and %d more", n-len(procs))
	}
	return text
}

func were(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

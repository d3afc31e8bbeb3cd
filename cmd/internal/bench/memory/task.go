package memory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"anamnesis/opstream"
	"anamnesis/opstream/op"
	agentspec "anamnesis/orchestrator/agent"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/loop"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/shell"
	"anamnesis/orchestrator/tool/timeline"
)

// never is an EAS that no span overflows: the arms without the pass.
const never = 1 << 30

// maxAsked is how often the user tells the stuck agent to go on.
const maxAsked = 100

// encoding counts the operations' tokens for the rule and the block's cap.
const encoding = "r50k_base"

// stage is what a task is played on.
type stage struct {
	root string // a directory of its own
	home taskdir.Home
	// program runs a project's commands in a process of their own; empty: the
	// commands run inside this process.
	program string
	now     time.Time
}

// play runs one task in one arm on the orchestrator.
func (st *stage) play(ctx context.Context, p *Params, arm *Arm, pz *puzzle, id string, src source) (Metrics, error) {
	pr := &project{puzzle: pz, dir: filepath.Join(st.root, pz.Project), outside: filepath.Join(st.root, "outside")}
	for _, dir := range []string{pr.dir, pr.outside} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return Metrics{}, err
		}
	}
	if err := pr.writeConfig(nil); err != nil {
		return Metrics{}, err
	}
	bash, err := st.bash(pr)
	if err != nil {
		return Metrics{}, err
	}
	tools := []tool.Tool{bash}
	if arm.Jumps {
		tools = append(tools, timeline.JumpToStep())
	}
	registry, err := tool.NewRegistry(tools...)
	if err != nil {
		return Metrics{}, err
	}
	// The other arms have no rule, no pass, no masking of ours and no guard but the hold.
	eas, window, polling := never, 0, []loop.Pattern{{Tool: bashTool}}
	if arm.Pass {
		eas, window = p.EAS, p.Window
	}
	if arm.Pass || arm.Hold {
		polling = nil
	}
	system, err := systemPrompt()
	if err != nil {
		return Metrics{}, err
	}
	a := newAgent(p, arm, pz, src)
	c := &counter{met: make(map[string]int), m: &a.m}
	task, err := runtime.Create(ctx, st.home, runtime.New{
		ID: id, Dir: pr.dir, Request: pz.request(), Model: a.Name(), EAS: eas, EASFrom: "bench", Window: window, Encoding: encoding,
		Approval: "auto", Sandbox: string(guard.ConfineOff), System: system, NoFinalPass: !arm.Pass,
		Mark: "bench7",
	}, runtime.Options{
		Model: a, Tools: registry, Limits: state.Limits{Steps: p.MaxSteps + maxAsked}, Event: c.event, Polling: polling,
		Now: func() time.Time { return st.now }, Stream: opstream.Options{SealAfter: -1}, Program: "bench", RunUndone: !arm.Hold,
	})
	if err != nil {
		return Metrics{}, fmt.Errorf("task %s: %w", id, err)
	}
	err = st.turns(ctx, task, a)
	return a.m, errors.Join(err, task.Close())
}

// systemPrompt is the default agent's, the same on every machine.
func systemPrompt() (string, error) {
	a, err := agentspec.NewLoader(nil).Load(agentspec.Default)
	if err != nil {
		return "", err
	}
	return agentspec.Render(&a.Spec, agentspec.Vars{Now: time.Unix(0, 0).UTC(), Dir: "/world", Listing: "README.md"}), nil
}

// turns runs the task until the agent is done. Where the loop guard asks, the
// user says to go on.
func (st *stage) turns(ctx context.Context, task *runtime.Task, a *agent) error {
	for {
		out, err := task.Run(ctx)
		switch {
		case err != nil:
			return err
		case out.Reason == "stuck" && a.m.Asked < maxAsked:
			a.m.Asked++
			if err := task.Say(ctx, "Go on.", op.SourceAnswer); err != nil {
				return err
			}
			continue
		case out.Reason == "interrupted":
			return ctx.Err()
		case out.Err != nil:
			return out.Err
		case out.Reason != "done":
			return fmt.Errorf("the turn ended as %s: %s", out.Reason, out.Detail)
		}
		return nil
	}
}

// counter reads from the operations what happened.
type counter struct {
	met map[string]int // dead ends, by what they say
	m   *Metrics
}

func (c *counter) event(o op.Op) {
	switch b := o.Body.(type) {
	case *op.ToolReturned:
		i := strings.Index(b.Text, "error[R")
		if i < 0 {
			return
		}
		line, _, _ := strings.Cut(b.Text[i:], "\n")
		c.m.DeadEnds++
		if c.met[line]++; c.met[line] > 1 {
			c.m.Repeated++
		}
	case *op.JumpDone:
		c.m.Jumps++
	case *op.PassDone:
		c.m.Passes++
		c.m.written += len(b.Cards)
	case *op.CardsRecalled:
		for _, card := range b.Cards {
			c.m.shown = append(c.m.shown, card.ID)
		}
	}
}

// bash is the tool that runs the project's commands.
func (st *stage) bash(pr *project) (tool.Tool, error) {
	if st.program == "" {
		return &inProcess{spec: shell.Bash(nil).Spec(), project: pr}, nil
	}
	if err := pr.install(st.program, filepath.Join(st.root, "bin")); err != nil {
		return nil, err
	}
	return &withPath{Tool: shell.Bash(nil), bin: filepath.Join(st.root, "bin")}, nil
}

// inProcess is Bash for a project's commands and nothing else: its results are
// those of the real tool, without the process.
type inProcess struct {
	spec    tool.Spec
	project *project
}

func (b *inProcess) Spec() tool.Spec { return b.spec }

func (b *inProcess) Call(_ context.Context, env *tool.Env, args json.RawMessage) (tool.Result, error) {
	a, err := tool.Decode[struct {
		Command string `json:"command"`
	}](args)
	if err != nil {
		return tool.Result{}, err
	}
	// No process: the record stands here so that operations have the same
	// numbers in both paths.
	if err := env.Started(op.ToolStarted{Call: env.Call}); err != nil {
		return tool.Result{}, err
	}
	out, exit, err := b.project.run(a.Command)
	if err != nil {
		return tool.Result{}, fmt.Errorf("run %q: %w", a.Command, err)
	}
	note := fmt.Sprintf("exit %d", exit)
	return tool.Result{Text: out + "[" + note + "]", Stdout: out, Exit: &exit, IsError: exit != 0, Display: note}, nil
}

// withPath is the real Bash tool with a project's commands found first.
type withPath struct {
	tool.Tool
	bin string
}

func (b *withPath) Call(ctx context.Context, env *tool.Env, args json.RawMessage) (tool.Result, error) {
	e := *env
	e.Environ = append(os.Environ(), "PATH="+b.bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	return b.Tool.Call(ctx, &e, args)
}

// install writes the project's commands as programs that call this one.
func (w *project) install(program, bin string) error {
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	data, err := json.Marshal(w.puzzle)
	if err != nil {
		return fmt.Errorf("write the puzzle down: %w", err)
	}
	file := filepath.Join(bin, "puzzle.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return err
	}
	for _, name := range []string{"npm", "curl"} {
		line := fmt.Sprintf("#!/bin/sh\nexec %q %s %q %q %q %s \"$@\"\n", program, CommandVerb, file, w.dir, w.outside, name)
		if err := os.WriteFile(filepath.Join(bin, name), []byte(line), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// CommandVerb is the argument with which a program plays one command of a
// project; see CommandMain.
const CommandVerb = "memory-command"

// CommandMain plays one command of a project and exits, when that is what this
// process was started for; otherwise it returns at once. A program that is named
// in Options.Program calls it first thing in main. The arguments are the
// puzzle's file, the directory, the outside directory, and the words of the
// command; the exit code is the command's, 125 where it could not be played.
func CommandMain() {
	if len(os.Args) < 2 || os.Args[1] != CommandVerb {
		return
	}
	out, exit, err := command(os.Args[2:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(125)
	}
	fmt.Print(out)
	os.Exit(exit)
}

func command(args []string) (out string, exit int, err error) {
	if len(args) < 4 {
		return "", 0, errors.New("want PUZZLE DIR OUTSIDE COMMAND…")
	}
	data, err := os.ReadFile(args[0])
	if err != nil {
		return "", 0, err
	}
	pr := &project{puzzle: new(puzzle), dir: args[1], outside: args[2]}
	if err := json.Unmarshal(data, pr.puzzle); err != nil {
		return "", 0, fmt.Errorf("read the puzzle: %w", err)
	}
	return pr.run(strings.Join(args[3:], " "))
}

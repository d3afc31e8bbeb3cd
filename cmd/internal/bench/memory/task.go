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

	"anamnesis/cmd/internal/bench/depot"
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
func (st *stage) play(ctx context.Context, p *Params, arm *Arm, pz *depot.Puzzle, id string, src depot.Source) (Metrics, error) {
	pr := &depot.Project{Puzzle: pz, Dir: filepath.Join(st.root, pz.Project), Outside: filepath.Join(st.root, "outside")}
	for _, dir := range []string{pr.Dir, pr.Outside} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return Metrics{}, err
		}
	}
	if err := pr.WriteConfig(nil); err != nil {
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
	// The other arms have no rule, no pass, no masking by the product and no guard but the
	// hold.
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
		ID: id, Dir: pr.Dir, Request: pz.Request(), Model: a.Name(), EAS: eas, EASFrom: "bench", Window: window, Encoding: encoding,
		Approval: "auto", Sandbox: string(guard.ConfineOff), System: system, NoFinalPass: !arm.Pass,
		Mark: "bench7",
	}, runtime.Options{
		Model: a, Tools: registry, Limits: state.Limits{Steps: p.MaxSteps + maxAsked}, Callbacks: runtime.Callbacks{Op: c.event}, Guards: runtime.Guards{Polling: polling, RunUndone: !arm.Hold},
		Now: func() time.Time { return st.now }, Store: runtime.Store{Stream: opstream.Options{SealAfter: -1}}, Program: "bench",
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
func (st *stage) bash(pr *depot.Project) (tool.Tool, error) {
	if st.program == "" {
		return &inProcess{spec: shell.Bash().Spec(), project: pr}, nil
	}
	if err := pr.Install(st.program, filepath.Join(st.root, "bin")); err != nil {
		return nil, err
	}
	return &withPath{Tool: shell.Bash(), bin: filepath.Join(st.root, "bin")}, nil
}

// inProcess is Bash for a project's commands and nothing else: its results are
// those of the real tool, without the process.
type inProcess struct {
	spec    tool.Spec
	project *depot.Project
}

func (b *inProcess) Spec() tool.Spec { return b.spec }

func (b *inProcess) Call(_ context.Context, env *tool.Env, args json.RawMessage) (tool.Result, error) {
	a, err := tool.Decode[struct {
		Command string `json:"command"`
	}](args)
	if err != nil {
		return tool.Result{}, err
	}
	// No process: the record is made here so that operations have the same
	// numbers in both paths.
	if err := env.Started(op.ToolStarted{Call: env.Call}); err != nil {
		return tool.Result{}, err
	}
	out, exit, err := b.project.Run(a.Command)
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

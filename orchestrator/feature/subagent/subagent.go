// Package subagent has the tool that hands work to another agent.
package subagent

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/tool"
)

// ToolName is the tool's name.
const ToolName = "Task"

// MaxBackground is how long a subagent may work in the background.
const MaxBackground = 24 * time.Hour

// Agents begin the subagents of a task.
type Agents interface {
	// Begin creates a subagent's task, or resumes one. A *CallError is shown to the model; any
	// other error is internal.
	Begin(ctx context.Context, s Start) (Working, error)
}

// Working is a subagent that has begun.
type Working interface {
	// Work runs the subagent until its turn ends, and records that. It must be called once,
	// from any goroutine; when ctx has ended it returns soon. The error is internal: what the
	// model can act on is in the end's Text.
	Work(ctx context.Context) (End, error)
}

// Start is the request to Begin.
type Start struct {
	Call        string // the call's id
	Agent       string // its name
	Description string // a few words for users
	Prompt      string
	Resume      string // the task of a subagent that continues; empty: a new one
	Fork        bool   // in a directory of its own
	// Progress shows a user the subagent's progress; may be nil.
	Progress func(text string)
}

// End is a subagent's result.
type End struct {
	Text    string // for the model
	Display string // for users
	IsError bool
	Network bool // Text may hold text from outside
}

// Tool is the tool that hands work to one of some agents, at least one. begin nil: it describes
// itself and refuses calls.
func Tool(specs []op.Agent, begin Agents) tool.Tool { return task{specs, begin} }

type task struct {
	specs []op.Agent
	begin Agents
}

// Args are the arguments of a call.
type Args struct {
	Subagent    string `json:"subagent"`
	Description string `json:"description"`
	Prompt      string `json:"prompt"`
	Resume      string `json:"resume"`
	Isolation   string `json:"isolation"`
	Background  bool   `json:"run_in_background"`
}

// fork is the isolation of an agent in its own directory.
const fork = "fork"

func (t task) Spec() tool.Spec {
	var names, lines []string
	for _, a := range t.specs {
		names = append(names, a.Name)
		kind := ""
		if a.ReadOnly {
			kind = " (read-only)"
		}
		lines = append(lines, fmt.Sprintf("- %s%s: %s", a.Name, kind, strings.Join(strings.Fields(a.Description), " ")))
	}
	return tool.Spec{
		Name: ToolName,
		Description: "Delegate work to a subagent: an agent with a context of its own that knows only the " +
			"prompt. Returns its last message. Use it for searches and for work that needs much reading, to keep " +
			"your own context small. Read-only subagents can run in parallel: call them in one reply. A subagent " +
			"works in your directory or, with isolation set to fork, in a copy; the changes in a copy are returned " +
			"as a patch. Its calls need the same approvals as yours. The result names the subagent's task, which " +
			"resume continues unless you have jumped back to before the step that started it.\nSubagents:\n" +
			strings.Join(lines, "\n"),
		Schema: tool.Params(
			tool.Required("subagent", tool.OneOf("Name of the subagent.", names...)),
			tool.Required("description", tool.Text("The work in three to five words, shown to the user.")),
			tool.Required("prompt", tool.Text("What to do, all that the subagent needs to know, and what to report.")),
			tool.Optional("resume", tool.Text("Task of an earlier subagent, which continues with its context.")),
			tool.Optional("isolation", tool.OneOf("fork: work in a copy of the directory. Not with resume.", fork)),
			tool.Optional("run_in_background", tool.Bool("Return at once while the subagent works. Only for "+
				"read-only subagents and forks. TaskOutput returns its answer, TaskStop ends it.")),
		),
		Delegates: true,
	}
}

// SpecFor implements tool.Varying: a subagent that only reads changes nothing.
func (t task) SpecFor(args json.RawMessage) tool.Spec {
	s := t.Spec()
	if a, err := tool.Decode[Args](context.Background(), args); err == nil {
		s.ReadOnly = t.readOnly(a.Subagent) && a.Isolation != fork
	}
	return s
}

func (t task) readOnly(name string) bool {
	return slices.ContainsFunc(t.specs, func(a op.Agent) bool { return a.Name == name && a.ReadOnly })
}

func (t task) Call(ctx context.Context, env *tool.Env, args json.RawMessage) (tool.Result, error) {
	a, err := tool.Decode[Args](ctx, args)
	switch {
	case err != nil:
		return tool.Result{}, err
	case ctx.Err() != nil:
		return tool.Result{}, fmt.Errorf("hand work to a subagent: %w", ctx.Err())
	case t.begin == nil:
		return tool.Errorf("Task was not run: this call is not part of a task that has subagents."), nil
	case a.Isolation == fork && a.Resume != "":
		return tool.Errorf("Task was not run: resume continues where the subagent was; omit isolation."), nil
	}
	start := Start{
		Call: env.Call, Agent: a.Subagent, Description: a.Description, Prompt: a.Prompt, Resume: a.Resume,
		Fork: a.Isolation == fork,
	}
	if a.Background && !t.readOnly(a.Subagent) && !start.Fork {
		return tool.Errorf("Task was not run: %s may change files, and you go on working in them. Let it work in the "+
			"background with isolation fork, or wait for it.", a.Subagent), nil
	}
	if a.Background && env.Jobs == nil {
		return tool.Errorf("Task was not run: there is nothing to run it in the background."), nil
	}
	if !a.Background { // in the background it works on after this call, whose progress it would show
		start.Progress = env.Progress
	}
	sub, err := t.begin.Begin(ctx, start)
	if err != nil {
		if res, about := tool.ErrorResult(err); about {
			return res, nil
		}
		return tool.Result{}, err
	}
	if a.Background {
		return inBackground(ctx, env, a, sub)
	}
	end, err := sub.Work(ctx)
	return tool.Result{Text: end.Text, IsError: end.IsError, Display: end.Display, Network: end.Network}, err
}

// inBackground lets a subagent work in the background, as a command does.
func inBackground(ctx context.Context, env *tool.Env, a Args, sub Working) (tool.Result, error) {
	work := func(ctx context.Context, out io.Writer, started func(op.ToolStarted) error) (tool.JobEnd, error) {
		if err := started(op.ToolStarted{Call: env.Call}); err != nil {
			return tool.JobEnd{}, err
		}
		limited, cancel := context.WithTimeout(ctx, MaxBackground)
		defer cancel()
		end, err := sub.Work(limited)
		if err != nil {
			return tool.JobEnd{Exit: 1, Note: err.Error()}, nil
		}
		redacted := env.Redaction().Writer(out)
		defer redacted.Close()
		_, err = io.WriteString(redacted, end.Text) // bytes that cannot be kept are counted
		o := tool.JobEnd{TimedOut: limited.Err() != nil && ctx.Err() == nil, Network: end.Network}
		if end.IsError {
			o.Exit = 1
		}
		return o, err
	}
	id, err := env.Jobs.Begin(ctx, tool.JobStart{
		Call: env.Call, Command: fmt.Sprintf("%s %s: %s", ToolName, a.Subagent, a.Description),
		Timeout: MaxBackground, Run: work,
	})
	if err != nil { // it has begun: its failure is recorded
		over, cancel := context.WithCancel(ctx)
		cancel()
		_, failed := sub.Work(over)
		return tool.Errorf("Task was not run: %v.", err), failed
	}
	return tool.Textf("Started in the background as %s. TaskOutput shows its answer when it has ended, TaskStop ends "+
		"it; it is ended when the task's program ends, and by a jump to a step before this one.", id), nil
}

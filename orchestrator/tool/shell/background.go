package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/tool"
)

// The limits of background commands.
const (
	MaxBackgroundSeconds = 86_400 // the longest, and the default
	maxWaitSeconds       = 60     // that TaskOutput waits
	defaultOutputBytes   = 20_000 // that TaskOutput shows by default
	maxOutputBytes       = 100_000
)

// begin starts a command in the background.
func begin(env *tool.Env, e Exec, line string) tool.Result {
	if env.Jobs == nil {
		return tool.Errorf("Bash was not run: there is nothing to run it in the background.")
	}
	c := command(env, e)
	id, err := env.Jobs.Begin(tool.JobStart{Call: env.Call, Command: line, Timeout: e.Timeout,
		Run: func(ctx context.Context, out io.Writer, started func(op.ToolStarted) error) (tool.JobEnd, error) {
			redacted := env.Redaction().Writer(out)
			defer redacted.Close()
			c.Started = started
			c.Output = func(_ guard.Stream, p []byte) { // bytes that cannot be kept are counted
				_, _ = redacted.Write(p)
				_ = redacted.Lines() // TaskOutput may be waiting for them
			}
			o, err := guard.Run(ctx, c)
			return jobEnd(o, err, ctx.Err() != nil), err
		}})
	if err != nil {
		return tool.Errorf("Bash was not run: %v.", err)
	}
	r := tool.Textf("Started in the background as %s. TaskOutput shows what it prints, TaskStop ends it; it is ended after %v, when the task's program ends, "+
		"and by a jump to a step before this one.", id, e.Timeout)
	r.Isolated = c.Sandbox.Isolates()
	return r
}

// notRun is a shell's exit code for a command that did not run.
const notRun = 126

// jobEnd returns how a background command ended.
func jobEnd(o guard.Outcome, err error, stopped bool) tool.JobEnd {
	end := tool.JobEnd{Exit: o.Exit, TimedOut: o.TimedOut, Note: o.Note}
	if doing := running(o.Running); doing != "" {
		end.Note = strings.TrimSpace(end.Note + " " + doing)
	}
	if len(o.Alive) > 0 {
		end.Note = strings.TrimSpace("could not be ended and still runs: " + list(o.Alive, len(o.Alive)) + ". " + end.Note)
	}
	if err != nil && !stopped {
		end.Exit, end.Note = notRun, strings.TrimSpace(err.Error()+". "+end.Note)
	}
	return end
}

// TaskList, TaskOutput and TaskStop are the tools for background commands of Bash.
func TaskList() tool.Tool { return taskList{} }

type taskList struct{}

func (taskList) Spec() tool.Spec {
	return tool.Spec{Name: "TaskList", Description: "List background commands and their status.",
		Schema: tool.Params(), ReadOnly: true}
}

func (taskList) Call(ctx context.Context, env *tool.Env, _ json.RawMessage) (tool.Result, error) {
	if env.Jobs == nil {
		return noJobs(), ctx.Err()
	}
	var lines []string
	list, err := env.Jobs.List()
	if err != nil {
		return tool.Errorf("%v.", err), ctx.Err()
	}
	for _, j := range list {
		lines = append(lines, fmt.Sprintf("%s %s: %s", j.ID, state(j), j.Command))
	}
	if len(lines) == 0 {
		return tool.Textf("No command was begun in the background."), ctx.Err()
	}
	return tool.Textf("%s", strings.Join(lines, "\n")), ctx.Err()
}

func noJobs() tool.Result { return tool.Errorf("There are no background commands here.") }

// state describes a job's state.
func state(j tool.Job) string {
	text := map[string]string{
		"": "runs", "exit": "ended", "timeout": "ended, because its time was up", "stopped": "was ended by TaskStop",
		"jump": "was ended by a jump", "closed": "was ended with the program", "lost": "was ended when the program stopped",
	}[j.Why]
	if j.Why == "exit" {
		text += fmt.Sprintf(" with exit code %d", j.Exit)
	}
	if j.Note != "" {
		text += " (" + j.Note + ")"
	}
	return fmt.Sprintf("%s, %d bytes of output", text, j.Bytes)
}

// TaskOutput shows what a background command printed.
func TaskOutput() tool.Tool { return taskOutput{} }

type taskOutput struct{}

func (taskOutput) Spec() tool.Spec {
	return tool.Spec{
		Name: "TaskOutput",
		Description: fmt.Sprintf("Return the output of a background command, standard output and standard error combined, and its status. Without from, returns the last %d bytes; "+
			"the result names the byte to continue from.", defaultOutputBytes),
		Schema: tool.Params(
			taskID(),
			tool.Param{Name: "from", Schema: tool.Int("Byte to start at; a negative number counts from the end.", -1<<40, 1<<40)},
			tool.Param{Name: "limit", Schema: tool.Int(fmt.Sprintf("Maximum number of bytes to return, default %d.", defaultOutputBytes), 1, maxOutputBytes)},
			tool.Param{Name: "wait", Schema: tool.Int("Seconds to wait for the command to end first, default 0.", 0, maxWaitSeconds)},
		),
		ReadOnly: true,
	}
}

func taskID() tool.Param {
	return tool.Param{Name: "task_id", Required: true, Schema: tool.Text("Id of the background command, such as bg_1.")}
}

func (taskOutput) Call(ctx context.Context, env *tool.Env, args json.RawMessage) (tool.Result, error) {
	a, err := tool.Decode[struct {
		TaskID string `json:"task_id"`
		From   *int64 `json:"from"`
		Limit  int    `json:"limit"`
		Wait   int    `json:"wait"`
	}](args)
	switch {
	case err != nil:
		return tool.Result{}, err
	case env.Jobs == nil:
		return noJobs(), ctx.Err()
	}
	if a.Limit == 0 {
		a.Limit = defaultOutputBytes
	}
	from := int64(-a.Limit)
	if a.From != nil {
		from = *a.From
	}
	if a.Wait > 0 {
		if err := env.Jobs.Wait(ctx, a.TaskID, time.Duration(a.Wait)*time.Second); err != nil {
			return tool.Errorf("%v.", err), ctx.Err()
		}
	}
	out, err := env.Jobs.Output(a.TaskID, from, a.Limit)
	if err != nil {
		return tool.Errorf("%v.", err), ctx.Err()
	}
	text := strings.ToValidUTF8(out.Text, "\uFFFD")
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	notes := []string{fmt.Sprintf("%s %s", a.TaskID, state(out.Job)), fmt.Sprintf("bytes %d to %d shown; from %d continues", out.From, out.Next, out.Next)}
	if out.Dropped > 0 {
		notes = append(notes, fmt.Sprintf("the last %d bytes were not kept", out.Dropped))
	}
	r := tool.Textf("%s[%s]", text, strings.Join(notes, "; "))
	r.Network = out.Job.Network && out.Next > out.From
	return r, ctx.Err()
}

// TaskStop ends a background command.
func TaskStop() tool.Tool { return taskStop{} }

type taskStop struct{}

// Spec: it ends only what this task began, so it needs no approval.
func (taskStop) Spec() tool.Spec {
	return tool.Spec{Name: "TaskStop", Description: "End a background command and all processes it started.", Schema: tool.Params(taskID()), ReadOnly: true}
}

func (taskStop) Call(ctx context.Context, env *tool.Env, args json.RawMessage) (tool.Result, error) {
	a, err := tool.Decode[struct {
		TaskID string `json:"task_id"`
	}](args)
	switch {
	case err != nil:
		return tool.Result{}, err
	case env.Jobs == nil:
		return noJobs(), ctx.Err()
	case ctx.Err() != nil:
		return tool.Result{}, fmt.Errorf("stop %s: %w", a.TaskID, ctx.Err())
	}
	j, err := env.Jobs.Stop(a.TaskID)
	if err != nil {
		return tool.Errorf("%v.", err), nil
	}
	return tool.Textf("%s %s.", j.ID, state(j)), nil
}

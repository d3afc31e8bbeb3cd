package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"anamnesis/orchestrator/tool"
)

// Limits of TaskOutput.
const (
	maxWaitSeconds     = 60     // that it waits
	defaultOutputBytes = 20_000 // that it shows by default
	maxOutputBytes     = 100_000
)

// Tools are TaskList, TaskOutput and TaskStop, for commands that Bash and Task run in the background.
// Without jobs they describe themselves and refuse calls.
func Tools(js *Jobs) []tool.Tool { return []tool.Tool{taskList{js}, taskOutput{js}, taskStop{js}} }

type taskList struct{ jobs *Jobs }

func (taskList) Spec() tool.Spec {
	return tool.Spec{Name: "TaskList", Description: "List background commands and their status.",
		Schema: tool.Params(), ReadOnly: true}
}

func (t taskList) Call(ctx context.Context, _ *tool.Env, _ json.RawMessage) (tool.Result, error) {
	if t.jobs == nil {
		return noJobs(), ctx.Err()
	}
	var lines []string
	list, err := t.jobs.List()
	if err != nil {
		return tool.Errorf("%v.", err), ctx.Err()
	}
	for _, j := range list {
		lines = append(lines, fmt.Sprintf("%s %s: %s", j.ID, StatusOf(j), j.Command))
	}
	if len(lines) == 0 {
		return tool.Textf("No command was begun in the background."), ctx.Err()
	}
	return tool.Textf("%s", strings.Join(lines, "\n")), ctx.Err()
}

func noJobs() tool.Result { return tool.Errorf("There are no background commands here.") }

// StatusOf describes a job's state.
func StatusOf(j Job) string {
	text := map[string]string{
		"": "runs", Exited: "ended", TimedOut: "ended, because its time was up", Stopped: "was ended by TaskStop",
		ByUser: "was ended by the user", ByJump: "was ended by a jump",
		Closed: "was ended with the program", Lost: "was ended when the program stopped",
	}[j.Why]
	if j.Why == Exited {
		text += fmt.Sprintf(" with exit code %d", j.Exit)
	}
	if j.Note != "" {
		text += " (" + j.Note + ")"
	}
	return fmt.Sprintf("%s, %d bytes of output", text, j.Bytes)
}

type taskOutput struct{ jobs *Jobs }

func (taskOutput) Spec() tool.Spec {
	return tool.Spec{
		Name: "TaskOutput",
		Description: fmt.Sprintf("Return the output of a background command, standard output and standard error "+
			"combined, and its status. Without from, returns the last %d bytes; the result names the byte to "+
			"continue from.", defaultOutputBytes),
		Schema: tool.Params(
			taskID(),
			tool.Optional("from", tool.Int("Byte to start at; a negative number counts from the end.", -1<<40, 1<<40)),
			tool.Optional("limit", tool.Int(
				fmt.Sprintf("Maximum number of bytes to return, default %d.", defaultOutputBytes), 1, maxOutputBytes)),
			tool.Optional("wait", tool.Int("Seconds to wait for the command to end, default 0.", 0, maxWaitSeconds)),
		),
		ReadOnly: true,
	}
}

func taskID() tool.Param {
	return tool.Required("task_id", tool.Text("Id of the background command, such as bg_1."))
}

func (t taskOutput) Call(ctx context.Context, _ *tool.Env, args json.RawMessage) (tool.Result, error) {
	a, err := tool.Decode[struct {
		TaskID string `json:"task_id"`
		From   *int64 `json:"from"`
		Limit  int    `json:"limit"`
		Wait   int    `json:"wait"`
	}](ctx, args)
	switch {
	case err != nil:
		return tool.Result{}, err
	case t.jobs == nil:
		return noJobs(), ctx.Err()
	}
	a.Limit = cmp.Or(a.Limit, defaultOutputBytes)
	from := int64(-a.Limit) // the end, where a failure is reported
	if a.From != nil {
		from = *a.From
	}
	if a.Wait > 0 {
		if err := t.jobs.Wait(ctx, a.TaskID, time.Duration(a.Wait)*time.Second); err != nil {
			return tool.Errorf("%v.", err), ctx.Err()
		}
	}
	out, err := t.jobs.Output(a.TaskID, from, a.Limit)
	if err != nil {
		return tool.Errorf("%v.", err), ctx.Err()
	}
	text := strings.ToValidUTF8(out.Text, "\uFFFD")
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	shown := fmt.Sprintf("bytes %d to %d shown; from %d continues", out.From, out.Next, out.Next)
	notes := []string{fmt.Sprintf("%s %s", a.TaskID, StatusOf(out.Job)), shown}
	if out.Dropped > 0 {
		notes = append(notes, fmt.Sprintf("the last %d bytes were not kept", out.Dropped))
	}
	r := tool.Textf("%s[%s]", text, strings.Join(notes, "; "))
	r.Network = out.Job.Network && out.Next > out.From
	return r, ctx.Err()
}

// StopName is the name of the tool that ends a background command.
const StopName = "TaskStop"

type taskStop struct{ jobs *Jobs }

// Spec: it ends only what this task began, so it needs no approval.
func (taskStop) Spec() tool.Spec {
	const about = "End a background command and all processes it started."
	return tool.Spec{Name: StopName, Description: about, Schema: tool.Params(taskID()), ReadOnly: true}
}

func (t taskStop) Call(ctx context.Context, _ *tool.Env, args json.RawMessage) (tool.Result, error) {
	a, err := tool.Decode[struct {
		TaskID string `json:"task_id"`
	}](ctx, args)
	switch {
	case err != nil:
		return tool.Result{}, err
	case t.jobs == nil:
		return noJobs(), ctx.Err()
	case ctx.Err() != nil:
		return tool.Result{}, fmt.Errorf("stop %s: %w", a.TaskID, ctx.Err())
	}
	j, err := t.jobs.Stop(a.TaskID, Stopped)
	if err != nil {
		return tool.Errorf("%v.", err), nil
	}
	return tool.Textf("%s %s.", j.ID, StatusOf(j)), nil
}

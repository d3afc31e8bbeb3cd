package subagent_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/subagent"
	"anamnesis/orchestrator/tool"
)

func agents() []op.Agent {
	return []op.Agent{{Name: "explore", Description: "reads\n  files", ReadOnly: true},
		{Name: "coder", Description: "writes"}}
}

// crew begins a subagent, or refuses to, and notes what it was begun with.
type crew struct {
	err   error
	end   subagent.End
	fails error // of Work
	waits bool  // Work ends with its context

	begun  *subagent.Start
	worked []error // what each Work's context had ended with at its end
}

func (c *crew) Begin(_ context.Context, s subagent.Start) (subagent.Working, error) {
	c.begun = &s
	return c, c.err
}

func (c *crew) Work(ctx context.Context) (subagent.End, error) {
	if c.waits {
		<-ctx.Done()
	}
	c.worked = append(c.worked, ctx.Err())
	return c.end, c.fails
}

// jobs runs what it begins at once, or refuses it.
type jobs struct {
	tool.Jobs
	err    error
	start  tool.JobStart
	out    bytes.Buffer
	end    tool.JobEnd
	ended  error
	unable error // of started
}

func (j *jobs) Begin(ctx context.Context, s tool.JobStart) (string, error) {
	j.start = s
	if j.err != nil {
		return "", j.err
	}
	j.end, j.ended = s.Run(ctx, &j.out, func(op.ToolStarted) error { return j.unable })
	return "job1", nil
}

// TestCall: which calls begin a subagent, how, and what the model is told.
func TestCall(t *testing.T) {
	failed := errors.New("disk full")
	const work = `"description":"find it","prompt":"Where is it?"`
	for _, tt := range []struct {
		name, args string
		crew       crew
		nobody     bool // the call is of no task
		jobs       *jobs
		begun      *subagent.Start // but for Progress
		want       string
		isError    bool
		err        error
	}{
		{name: "waits", args: `{"subagent":"coder",` + work + `}`, crew: crew{end: subagent.End{Text: "There."}},
			begun: &subagent.Start{Agent: "coder"}, want: "There."},
		{name: "fails", args: `{"subagent":"coder",` + work + `}`, crew: crew{end: subagent.End{Text: "No.", IsError: true}},
			begun: &subagent.Start{Agent: "coder"}, want: "No.", isError: true},
		{name: "its end is not recorded", args: `{"subagent":"coder",` + work + `}`, crew: crew{fails: failed}, begun: &subagent.Start{Agent: "coder"}, err: failed},
		{name: "in a copy", args: `{"subagent":"coder","isolation":"fork",` + work + `}`, begun: &subagent.Start{Agent: "coder", Fork: true}},
		{name: "continues", args: `{"subagent":"coder","resume":"t.1",` + work + `}`, begun: &subagent.Start{Agent: "coder", Resume: "t.1"}},
		{name: "continues in a copy", args: `{"subagent":"coder","resume":"t.1","isolation":"fork",` + work + `}`, want: "omit isolation", isError: true},
		{name: "outside a task", args: `{"subagent":"coder",` + work + `}`, nobody: true, want: "not part of a task", isError: true},
		{name: "cannot begin", args: `{"subagent":"coder",` + work + `}`, crew: crew{err: &tool.CallError{Text: "t.9: no such task"}},
			begun: &subagent.Start{Agent: "coder"}, want: "t.9: no such task", isError: true},
		{name: "cannot be recorded", args: `{"subagent":"coder",` + work + `}`, crew: crew{err: failed}, begun: &subagent.Start{Agent: "coder"}, err: failed},

		{name: "reads in the background", args: `{"subagent":"explore","run_in_background":true,` + work + `}`, jobs: &jobs{},
			begun: &subagent.Start{Agent: "explore"}, want: "Started in the background as job1."},
		{name: "writes in the background", args: `{"subagent":"coder","run_in_background":true,` + work + `}`, jobs: &jobs{}, want: "coder may change files", isError: true},
		{name: "writes in the background, in a copy", args: `{"subagent":"coder","isolation":"fork","run_in_background":true,` + work + `}`, jobs: &jobs{},
			begun: &subagent.Start{Agent: "coder", Fork: true}, want: "Started in the background as job1."},
		{name: "without a background", args: `{"subagent":"explore","run_in_background":true,` + work + `}`, want: "nothing to run it in the background", isError: true},
		{name: "too many jobs", args: `{"subagent":"explore","run_in_background":true,` + work + `}`, jobs: &jobs{err: errors.New("10 run")},
			begun: &subagent.Start{Agent: "explore"}, want: "Task was not run: 10 run.", isError: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var begin subagent.Agents = &tt.crew
			if tt.nobody {
				begin = nil
			}
			env := &tool.Env{Call: "c", Progress: func(string) {}}
			if tt.jobs != nil {
				env.Jobs = tt.jobs
			}
			own, args := validate(t, begin, tt.args)
			res, err := own.Call(t.Context(), env, args)
			if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			if !strings.Contains(res.Text, tt.want) || res.IsError != tt.isError {
				t.Errorf("told %+v, want %q", res, tt.want)
			}
			got := tt.crew.begun
			if (got == nil) != (tt.begun == nil) {
				t.Fatalf("begun with %+v, want %+v", got, tt.begun)
			}
			if got == nil {
				return
			}
			want := *tt.begun
			want.Call, want.Description, want.Prompt = "c", "find it", "Where is it?"
			if background := tt.jobs != nil; background == (got.Progress != nil) {
				t.Errorf("in the background %v, shown to the user %v", background, got.Progress != nil)
			}
			if got.Progress = nil; got.Call != want.Call || got.Agent != want.Agent ||
				got.Description != want.Description ||
				got.Prompt != want.Prompt || got.Resume != want.Resume || got.Fork != want.Fork {
				t.Errorf("begun with %+v, want %+v", got, want)
			}
			// What has begun ends, so that its end is recorded: one that could not become a job, at once.
			if tt.crew.err == nil &&
				(len(tt.crew.worked) != 1 || (tt.crew.worked[0] != nil) != (tt.jobs != nil && tt.jobs.err != nil)) {
				t.Errorf("worked %v", tt.crew.worked)
			}
		})
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	c := &crew{}
	own, args := validate(t, c, `{"subagent":"coder",`+work+`}`)
	if _, err := own.Call(over, new(tool.Env), args); !errors.Is(err, context.Canceled) || c.begun != nil {
		t.Errorf("an interrupted turn: %v, begun with %+v", err, c.begun)
	}
}

// TestJob: how a subagent in the background ends.
func TestJob(t *testing.T) {
	failed := errors.New("disk full")
	for _, tt := range []struct {
		name   string
		crew   crew
		unable error
		want   tool.JobEnd
		out    string
		err    error
	}{
		{name: "answers", crew: crew{end: subagent.End{Text: "There."}}, out: "There."},
		{name: "has read the network", crew: crew{end: subagent.End{Text: "There.", Network: true}}, out: "There.", want: tool.JobEnd{Network: true}},
		{name: "fails", crew: crew{end: subagent.End{Text: "No.", IsError: true}}, out: "No.", want: tool.JobEnd{Exit: 1}},
		{name: "its end is not recorded", crew: crew{fails: failed}, want: tool.JobEnd{Exit: 1, Note: "disk full"}},
		{name: "its start is not recorded", unable: failed, err: failed},
		{name: "takes more than a day", crew: crew{waits: true, end: subagent.End{Text: "So far."}}, out: "So far.", want: tool.JobEnd{TimedOut: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := &jobs{unable: tt.unable}
				own, args := validate(t, &tt.crew,
					`{"subagent":"explore","description":"find it","prompt":"Where?","run_in_background":true}`)
				if _, err := own.Call(t.Context(), &tool.Env{Call: "c", Jobs: j}, args); err != nil {
					t.Fatal(err)
				}
				if j.end != tt.want || j.out.String() != tt.out || !errors.Is(j.ended, tt.err) ||
					(j.ended == nil) != (tt.err == nil) {
					t.Errorf("%+v, %q, %v", j.end, &j.out, j.ended)
				}
				if j.start.Command != "Task explore: find it" || j.start.Timeout != subagent.MaxBackground {
					t.Errorf("begun as %+v", j.start)
				}
			})
		})
	}
}

// TestSpecFor: a call reads only if its agent does and it works in no copy; the model reads which agents do.
func TestSpecFor(t *testing.T) {
	own := subagent.Tool(agents(), nil)
	for args, want := range map[string]bool{
		`{"subagent":"explore"}`: true, `{"subagent":"explore","isolation":"fork"}`: false,
		`{"subagent":"coder"}`: false, `{"subagent":"other"}`: false, `{`: false,
	} {
		if got := tool.SpecOf(own, []byte(args)).ReadOnly; got != want {
			t.Errorf("%s: read-only is %v", args, got)
		}
	}
	if text := own.Spec().Description; !strings.HasSuffix(text, "\nSubagents:\n- explore (read-only): reads files\n- coder: writes") {
		t.Error(text)
	}
}

// validate returns the tool, and a call's arguments as it gets them.
func validate(t *testing.T, begin subagent.Agents, args string) (tool.Tool, []byte) {
	t.Helper()
	r, err := tool.NewRegistry(subagent.Tool(agents(), begin))
	if err != nil {
		t.Fatal(err)
	}
	own, valid, err := r.Validate(op.Call{ID: "c", Name: subagent.ToolName, Args: args})
	if err != nil {
		t.Fatal(err)
	}
	return own, valid
}

package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/jobs"
	"anamnesis/orchestrator/gate/gatetest"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/workspace"
)

// begin begins a job that prints a text and runs until its context ends, or ends at once.
func begin(t *testing.T, js *jobs.Jobs, text string, runs bool, end tool.JobEnd) string {
	t.Helper()
	printed := make(chan struct{})
	id, err := js.Begin(t.Context(), tool.JobStart{Call: "c", Command: "make", Timeout: time.Minute,
		Run: func(ctx context.Context, out io.Writer, started func(op.ToolStarted) error) (tool.JobEnd, error) {
			if err := started(op.ToolStarted{Call: "c", PID: 1}); err != nil {
				return end, err
			}
			_, err := io.WriteString(out, text)
			close(printed)
			if runs {
				<-ctx.Done()
			}
			return end, err
		}})
	if err != nil {
		t.Fatal(err)
	}
	<-printed
	return id
}

// ended returns the last recorded end of a job.
func ended(t *testing.T, p *workspace.Place) *op.JobEnded {
	t.Helper()
	if err := p.ApplyQueued(); err != nil {
		t.Fatal(err)
	}
	o, err := p.Op(p.State().Last)
	if err != nil {
		t.Fatal(err)
	}
	b, ok := o.Body.(*op.JobEnded)
	if !ok {
		t.Fatalf("the last operation is %s", o.Kind())
	}
	return b
}

// TestEnds: how a job ended is recorded, and told to the model unless it asked for the end itself.
func TestEnds(t *testing.T) {
	for _, tt := range []struct {
		name   string
		stop   string // why it is ended; empty: it ends by itself
		end    tool.JobEnd
		why    string
		notice string
	}{
		{"by itself", "", tool.JobEnd{Exit: 3}, jobs.Exited, "[background] bg_1 (make) ended: exit 3. TaskOutput shows what it printed."},
		{"by its time", "", tool.JobEnd{Exit: -1, TimedOut: true}, jobs.TimedOut, "its time was up"},
		{"by the user", jobs.ByUser, tool.JobEnd{}, jobs.ByUser, "[background] bg_1 (make) was ended by the user."},
		{"by the agent", jobs.Stopped, tool.JobEnd{}, jobs.Stopped, ""},
		{"by the agent, with a remark", jobs.Stopped, tool.JobEnd{Note: "it left processes"}, jobs.Stopped, "[background] bg_1 (make) was ended: it left processes"},
		{"stopped, and its time was up", jobs.Stopped, tool.JobEnd{TimedOut: true}, jobs.Stopped, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := gatetest.Place(t, op.TaskOpened{})
			js := jobs.New(p.Ledger)
			tt.end.Network = true
			id := begin(t, js, "built\n", tt.stop != "", tt.end)
			if tt.stop != "" {
				if j, err := js.Stop(id, tt.stop); err != nil || j.Why != tt.why {
					t.Errorf("%+v, %v", j, err)
				}
			} else if err := js.Wait(t.Context(), id, time.Hour); err != nil {
				t.Fatal(err)
			}
			b := ended(t, p)
			if b.Job != "bg_1" || b.Why != tt.why || b.Exit != tt.end.Exit || !b.Network {
				t.Errorf("recorded %+v", b)
			}
			if !strings.Contains(b.Notice, tt.notice) || (b.Notice == "") != (tt.notice == "") {
				t.Errorf("notice %q, want %q", b.Notice, tt.notice)
			}
			if j, err := js.Stop(id, jobs.ByUser); err != nil || j.Why != tt.why {
				t.Errorf("one that has ended is ended again: %+v, %v", j, err)
			}
		})
	}
}

// TestContext: a job outlives the context of its call, and has the context's values: the deadline of commands is one.
func TestContext(t *testing.T) {
	js := jobs.New(gatetest.Place(t, op.TaskOpened{}).Ledger)
	defer js.Close()
	type key struct{}
	call, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "a value"))
	saw := make(chan any, 1)
	_, err := js.Begin(call, tool.JobStart{Command: "make",
		Run: func(ctx context.Context, _ io.Writer, started func(op.ToolStarted) error) (tool.JobEnd, error) {
			err := started(op.ToolStarted{Call: "c", PID: 1})
			<-call.Done()
			saw <- []any{ctx.Value(key{}), ctx.Err()}
			return tool.JobEnd{}, err
		}})
	cancel()
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(<-saw); got != "[a value <nil>]" {
		t.Errorf("the job's context has %s", got)
	}
}

// TestBegin: jobs are numbered on, as many as the limit run at once, and none begins that cannot be recorded or after
// the task has ended them.
func TestBegin(t *testing.T) {
	p := gatetest.Place(t, op.TaskOpened{})
	js := jobs.New(p.Ledger)
	failed := errors.New("no such program")
	none := tool.JobStart{Command: "none",
		Run: func(context.Context, io.Writer, func(op.ToolStarted) error) (tool.JobEnd, error) {
			return tool.JobEnd{}, failed
		}}
	if id, err := js.Begin(t.Context(), none); !errors.Is(err, failed) {
		t.Errorf("%q, %v; want %v", id, err, failed)
	}
	if _, err := js.Output("bg_1", 0, 9); err == nil || !strings.HasSuffix(err.Error(), "none was begun") {
		t.Errorf("a job that did not begin: %v", err)
	}
	var ids []string
	for range jobs.Max {
		ids = append(ids, begin(t, js, "", true, tool.JobEnd{}))
	}
	if _, err := js.Begin(t.Context(), none); err == nil || !strings.Contains(err.Error(), "run in the background already") {
		t.Errorf("one more than may run: %v", err)
	}
	if _, err := js.Stop(ids[0], jobs.Stopped); err != nil {
		t.Fatal(err)
	}
	next := begin(t, js, "", true, tool.JobEnd{})
	if slices.Contains(ids, next) {
		t.Errorf("the number %s is given twice", next)
	}
	list, err := js.List()
	if err != nil || len(list) != jobs.Max+1 || list[0].Why != jobs.Stopped || list[len(list)-1].Why != "" {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := js.Output("bg_99", 0, 9); err == nil || !strings.Contains(err.Error(), "there are "+ids[0]+", ") {
		t.Errorf("an unknown job: %v", err)
	}
	for _, id := range append(ids[1:], next) {
		if _, err := js.Stop(id, jobs.Stopped); err != nil {
			t.Error(err)
		}
	}
}

// TestOutput: a job's output is read from a byte on, from its end, and no further than it goes.
func TestOutput(t *testing.T) {
	p := gatetest.Place(t, op.TaskOpened{})
	js := jobs.New(p.Ledger)
	id := begin(t, js, "0123456789", false, tool.JobEnd{})
	if err := js.Wait(t.Context(), id, time.Hour); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		from       int64
		n          int
		want       string
		first, end int64
	}{
		{0, 3, "012", 0, 3}, {8, 9, "89", 8, 10}, {-3, 9, "789", 7, 10}, {-99, 2, "01", 0, 2}, {10, 5, "", 10, 10},
		{99, 5, "", 10, 10},
	} {
		o, err := js.Output(id, tt.from, tt.n)
		if err != nil || o.Text != tt.want || o.From != tt.first || o.Next != tt.end || o.Dropped != 0 ||
			o.Job.Bytes != 10 {
			t.Errorf("%d bytes from %d: %+v, %v", tt.n, tt.from, o, err)
		}
	}
}

// TestTools: what the model reads of its background commands.
func TestTools(t *testing.T) {
	p := gatetest.Place(t, op.TaskOpened{})
	js := jobs.New(p.Ledger)
	call := func(js *jobs.Jobs, name, args string) tool.Result {
		t.Helper()
		r, err := tool.NewRegistry(jobs.Tools(js)...)
		if err != nil {
			t.Fatal(err)
		}
		own, valid, err := r.Validate(op.Call{ID: "c", Name: name, Args: args})
		if err != nil {
			t.Fatal(err)
		}
		res, err := own.Call(t.Context(), new(tool.Env), valid)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	for name, args := range map[string]string{"TaskList": "{}", "TaskOutput": `{"task_id":"bg_1"}`, "TaskStop": `{"task_id":"bg_1"}`} {
		if res := call(nil, name, args); !res.IsError || res.Text != "There are no background commands here." {
			t.Errorf("%s without a task: %+v", name, res)
		}
	}
	if res := call(js, "TaskList", "{}"); res.IsError || res.Text != "No command was begun in the background." {
		t.Errorf("none began: %+v", res)
	}
	if id := begin(t, js, "one\ntwo", false, tool.JobEnd{Exit: 1, Network: true}); js.Wait(t.Context(), id, time.Hour) != nil {
		t.Fatal("no end")
	}
	if id := begin(t, js, "", false, tool.JobEnd{Network: true}); js.Wait(t.Context(), id, time.Hour) != nil {
		t.Fatal("no end")
	}
	begin(t, js, "bad \xff\n", true, tool.JobEnd{Note: "so it is"})
	const ended = "bg_1 ended with exit code 1, 7 bytes of output"
	for _, tt := range []struct {
		name, args, want string
		network, isError bool
	}{
		{"TaskList", "{}", ended + ": make\nbg_2 ended with exit code 0, 0 bytes of output: make\nbg_3 runs, 6 bytes of output: make", false, false},
		{"TaskOutput", `{"task_id":"bg_1"}`, "one\ntwo\n[" + ended + "; bytes 0 to 7 shown; from 7 continues]", true, false},
		{"TaskOutput", `{"task_id":"bg_1","wait":1}`, "one\ntwo\n[" + ended + "; bytes 0 to 7 shown; from 7 continues]", true, false},
		{"TaskOutput", `{"task_id":"bg_1","limit":3}`, "two\n[" + ended + "; bytes 4 to 7 shown; from 7 continues]", true, false},
		{"TaskOutput", `{"task_id":"bg_1","from":0,"limit":4}`, "one\n[" + ended + "; bytes 0 to 4 shown; from 4 continues]", true, false},
		{"TaskOutput", `{"task_id":"bg_1","from":-1}`, "o\n[" + ended + "; bytes 6 to 7 shown; from 7 continues]", true, false},
		{"TaskOutput", `{"task_id":"bg_1","from":7}`, "[" + ended + "; bytes 7 to 7 shown; from 7 continues]", false, false},
		{"TaskOutput", `{"task_id":"bg_2"}`, "[bg_2 ended with exit code 0, 0 bytes of output; bytes 0 to 0 shown; from 0 continues]", false, false},
		{"TaskOutput", `{"task_id":"bg_3"}`, "bad \uFFFD\n[bg_3 runs, 6 bytes of output; bytes 0 to 6 shown; from 6 continues]", false, false},
		{"TaskOutput", `{"task_id":"bg_9"}`, `there is no background task "bg_9"; there are bg_1, bg_2, bg_3.`, false, true},
		{"TaskOutput", `{"task_id":"bg_9","wait":1}`, `there is no background task "bg_9"; there are bg_1, bg_2, bg_3.`, false, true},
		{"TaskStop", `{"task_id":"bg_9"}`, `there is no background task "bg_9"; there are bg_1, bg_2, bg_3.`, false, true},
		{"TaskStop", `{"task_id":"bg_3"}`, "bg_3 was ended by TaskStop (so it is), 6 bytes of output.", false, false},
		{"TaskStop", `{"task_id":"bg_1"}`, ended + ".", false, false},
	} {
		if res := call(js, tt.name, tt.args); res.Text != tt.want || res.Network != tt.network ||
			res.IsError != tt.isError {
			t.Errorf("%s %s: %+v, want %q", tt.name, tt.args, res, tt.want)
		}
	}
}

// Package modeltest is the conformance test of model.Model, for every implementation.
package modeltest

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
)

// Situation is what the model under test meets each time it is asked.
type Situation string

// The situations. Text, Thought and the calls are defined below.
const (
	Speaks    Situation = "speaks"    // replies Text with Thought, usage Used
	Calls     Situation = "calls"     // calls Bash with {"command":"ls"} and ReadFile with {"path":"a.go"}
	Breaks    Situation = "breaks"    // the reply is cut after PartialText
	Busy      Situation = "busy"      // status 429, Retry-After 7s
	Overflows Situation = "overflows" // the request does not fit the window
	Hangs     Situation = "hangs"     // nothing comes until the request is cancelled
)

// What the model under test says.
const (
	Text        = "The parser drops the last token; I shall look at its loop."
	Thought     = "An off-by-one, probably."
	PartialText = "The parser"
)

// Used is the usage of a reply in the situation Speaks.
func Used() op.Usage { return op.Usage{Prompt: 120, Cached: 100, Completion: 20, Reasoning: 5} }

// RetryAfter is what the situation Busy asks for.
const RetryAfter = 7 * time.Second

// patience bounds the wait for what must happen promptly.
const patience = 20 * time.Second

// Run tests the models that make returns, one for each situation.
func Run(t *testing.T, make func(t *testing.T, s Situation) model.Model) {
	t.Run("speaks", func(t *testing.T) { speaks(t, make(t, Speaks)) })
	t.Run("calls", func(t *testing.T) { calls(t, make(t, Calls)) })
	t.Run("concurrent", func(t *testing.T) { concurrent(t, make(t, Speaks)) })
	t.Run("breaks", func(t *testing.T) {
		f := fault(t, make(t, Breaks), model.FaultCut)
		if f.Partial != PartialText || !f.Retryable {
			t.Errorf("partial %q, retryable %v; want %q, true", f.Partial, f.Retryable, PartialText)
		}
	})
	t.Run("busy", func(t *testing.T) {
		f := fault(t, make(t, Busy), model.FaultHTTP)
		if f.Status != 429 || f.RetryAfter != RetryAfter || !f.Retryable {
			t.Errorf("status %d, retry after %v, retryable %v; want 429, %v, true", f.Status, f.RetryAfter,
				f.Retryable, RetryAfter)
		}
	})
	t.Run("overflows", func(t *testing.T) {
		if f := fault(t, make(t, Overflows), model.FaultOverflow); f.Retryable {
			t.Error("an overflow must not be retryable: the same request never fits")
		}
	})
	t.Run("canceled before", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := make(t, Speaks).Ask(ctx, Question(), nil)
		checkCanceled(t, err)
	})
	t.Run("canceled while it hangs", func(t *testing.T) { canceledWhileHanging(t, make(t, Hangs)) })
}

// Question is the request in every situation.
func Question() model.Request {
	return model.Request{
		Purpose: model.PurposeStep,
		Messages: []model.Message{
			{Role: model.RoleSystem, Text: "You repair programs."},
			{Role: model.RoleUser, Text: "The test fails. Why?"},
		},
		Tools: []model.ToolSpec{
			{Name: "Bash", Description: "Runs a command.", Schema: []byte(`{"type":"object"}`)},
			{Name: "ReadFile", Description: "Reads a file."},
		},
		MaxTokens: 500,
	}
}

func speaks(t *testing.T, m model.Model) {
	name := m.Name()
	q := Question()
	var text, thought strings.Builder
	reply, err := m.Ask(t.Context(), q, func(d model.Delta) {
		text.WriteString(d.Text)
		thought.WriteString(d.Reasoning)
	})
	if err != nil {
		t.Fatalf("ask: %v", err)
	}
	if reply.Text != Text || reply.Reasoning != Thought {
		t.Errorf("reply %q, reasoning %q; want %q, %q", reply.Text, reply.Reasoning, Text, Thought)
	}
	if text.String() != reply.Text || thought.String() != reply.Reasoning {
		t.Errorf("streamed %q and %q; want what the reply says", text.String(), thought.String())
	}
	if reply.Finish != "stop" || len(reply.Calls) != 0 {
		t.Errorf("finish %q, %d calls; want stop, none", reply.Finish, len(reply.Calls))
	}
	if reply.Usage != Used() {
		t.Errorf("usage %+v; want %+v", reply.Usage, Used())
	}
	if !reflect.DeepEqual(q, Question()) {
		t.Error("the request was changed")
	}
	if name == "" || m.Name() != name {
		t.Errorf("named %q before and %q after; want one stable name", name, m.Name())
	}
	again, err := m.Ask(t.Context(), q, nil)
	if err != nil || again.Text != reply.Text {
		t.Errorf("asked again without a callback: %q, %v", again.Text, err)
	}
}

func calls(t *testing.T, m model.Model) {
	reply, err := m.Ask(t.Context(), Question(), nil)
	if err != nil {
		t.Fatalf("ask: %v", err)
	}
	if reply.Finish == "" {
		t.Error("a reply without a finish reason")
	}
	want := []op.Call{{Name: "Bash", Args: `{"command":"ls"}`}, {Name: "ReadFile", Args: `{"path":"a.go"}`}}
	if len(reply.Calls) != len(want) {
		t.Fatalf("calls %+v; want %+v", reply.Calls, want)
	}
	seen := make(map[string]bool)
	for i, c := range reply.Calls {
		if c.Name != want[i].Name || c.Args != want[i].Args {
			t.Errorf("call %d is %+v; want %+v", i, c, want[i])
		}
		if c.ID == "" || seen[c.ID] {
			t.Errorf("call %d has the id %q: want one of its own", i, c.ID)
		}
		seen[c.ID] = true
	}
	if reply.Usage.Prompt <= 0 || reply.Usage.Completion <= 0 {
		t.Errorf("usage %+v: want a count or an estimate", reply.Usage)
	}
}

func concurrent(t *testing.T, m model.Model) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if reply, err := m.Ask(t.Context(), Question(), func(model.Delta) {}); err != nil || reply.Text != Text {
				t.Errorf("ask: %q, %v", reply.Text, err)
			}
		})
	}
	wg.Wait()
}

func fault(t *testing.T, m model.Model, kind model.FaultKind) *model.Fault {
	t.Helper()
	reply, err := m.Ask(t.Context(), Question(), nil)
	var f *model.Fault
	if !errors.As(err, &f) {
		t.Fatalf("reply %+v, error %v; want a fault", reply, err)
	}
	if f.Kind != kind || f.Err == nil || f.Tries < 1 {
		t.Errorf("fault %q (cause %v, %d tries); want kind %q, a cause, at least one try", f.Kind, f.Err, f.Tries, kind)
	}
	if !reflect.DeepEqual(reply, model.Reply{}) {
		t.Errorf("half a reply came with the fault: %+v", reply)
	}
	return f
}

func canceledWhileHanging(t *testing.T, m model.Model) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := m.Ask(ctx, Question(), nil)
		done <- err
	}()
	select {
	case err := <-done:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v; want the context's", err)
		}
		if f := model.AsFault(err); f == nil || f.Kind != model.FaultCanceled || f.Retryable {
			t.Errorf("fault %+v; want canceled, not retryable", f)
		}
	case <-time.After(patience):
		t.Fatal("Ask goes on after its context ended")
	}
}

func checkCanceled(t *testing.T, err error) {
	t.Helper()
	var f *model.Fault
	if !errors.As(err, &f) || f.Kind != model.FaultCanceled || f.Retryable || !errors.Is(err, context.Canceled) {
		t.Errorf("error %#v; want a fault of kind canceled that is context.Canceled", err)
	}
}

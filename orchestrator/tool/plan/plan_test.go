package plan_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/plan"
)

// TestAskUser: what the user is asked, and what the model is told of the answer.
func TestAskUser(t *testing.T) {
	failed := errors.New("disk full")
	tools, err := tool.NewRegistry(plan.AskUser(), plan.Think())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, args string
		nobody     bool
		answer     string // empty: none
		err        error
		interrupt  bool // while the user is asked
		asked      string
		want       string
		isError    bool
	}{
		{name: "in words", args: `{"question":"Which port?"}`, answer: "8080", asked: "Which port?", want: "The user answered; their words follow."},
		{name: "the first choice", args: `{"question":"Port?","choices":["80","90"]}`, answer: "1", asked: "Port?\n  1. 80\n  2. 90", want: "The user chose 1: 80"},
		{name: "the last choice", args: `{"question":"Port?","choices":["80","90"]}`, answer: " 2\n", asked: "Port?\n  1. 80\n  2. 90", want: "The user chose 2: 90"},
		{name: "below the choices", args: `{"question":"Port?","choices":["80","90"]}`, answer: "0", asked: "Port?\n  1. 80\n  2. 90", want: "their words follow"},
		{name: "above the choices", args: `{"question":"Port?","choices":["80","90"]}`, answer: "3", asked: "Port?\n  1. 80\n  2. 90", want: "their words follow"},
		{name: "no answer", args: `{"question":"Port?"}`, asked: "Port?", want: "The user gave no answer.", isError: true},
		{name: "nobody is present", args: `{"question":"Port?"}`, nobody: true, want: "No user is present", isError: true},
		{name: "the question cannot be recorded", args: `{"question":"Port?"}`, err: failed, asked: "Port?"},
		{name: "interrupted", args: `{"question":"Port?"}`, answer: "80", interrupt: true, asked: "Port?", err: context.Canceled},
		{name: "without a question", args: `{"choices":["80"]}`, want: "question", isError: true},
		{name: "no choices", args: `{"question":"Port?","choices":[]}`, want: "choices", isError: true},
		{name: "ten choices", args: `{"question":"Port?","choices":["1","2","3","4","5","6","7","8","9","10"]}`, want: "choices", isError: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			asked := ""
			env := &tool.Env{Ask: func(_ context.Context, q string) (string, bool, error) {
				asked = q
				if tt.interrupt {
					cancel()
					return tt.answer, true, nil
				}
				return tt.answer, tt.answer != "", tt.err
			}}
			if tt.nobody {
				env.Ask = nil
			}
			ask, args, err := tools.Validate(op.Call{ID: "c", Name: "AskUser", Args: tt.args})
			if err != nil {
				if !tt.isError || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("the arguments: %v", err)
				}
				return
			}
			res, err := ask.Call(ctx, env, args)
			if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			if !strings.Contains(res.Text, tt.want) || res.IsError != tt.isError || asked != tt.asked {
				t.Errorf("asked %q, told %+v", asked, res)
			}
		})
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for _, name := range []string{"AskUser", "Think"} {
		own, args, err := tools.Validate(op.Call{
			ID: "c", Name: name,
			Args: map[string]string{"AskUser": `{"question":"?"}`, "Think": `{"thought":"so"}`}[name],
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := own.Call(over, new(tool.Env), json.RawMessage(args)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s of an interrupted turn: %v", name, err)
		}
	}
}

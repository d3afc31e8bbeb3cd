package agent

import (
	"strings"
	"testing"
	"time"

	"anamnesis/opstream/op"
)

// TestForModel: families of models get their words, a user's own prompt stays.
func TestForModel(t *testing.T) {
	a, err := NewLoader(&Options{Tools: known}).Load(Default)
	if err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]struct{ with, without string }{
		"gpt-4.1":                   {"- Look before you change:", "How a tool is called"},
		"openai/o3-mini":            {"- Go on until", "- Look before you change:"},
		"moonshot/kimi-k2-thinking": {"- Go on until", "- If the work has several parts,"},
		"qwen2.5-coder:7b":          {"How a tool is called", "- none"},
		"Llama-3.1-8B-Instruct":     {"How a tool is called", "- none"},
		"llama-3.1-70b":             {"How you go back", "How a tool is called"},
	} {
		text := ForModel(&a.Spec, model)
		if !strings.Contains(text, want.with) || strings.Contains(text, want.without) {
			t.Errorf("%s:\n%s", model, text)
		}
	}
	for _, f := range families() { // a line that no prompt has any more is a mistake
		for _, line := range f.Without {
			if !strings.Contains(a.Spec.Prompt, "\n"+line) {
				t.Errorf("no line begins with %q", line)
			}
		}
	}
	own := Spec{Prompt: "- Look before you change: this", From: "/home/p/a.yaml"}
	if got := ForModel(&own, "o3"); got != own.Prompt {
		t.Errorf("a user's prompt became %q", got)
	}
}

// TestUnattended: a model is told that nobody answers, and its limits.
func TestUnattended(t *testing.T) {
	got := Unattended(false, op.Limits{Steps: 100, USD: 5, Time: 2 * time.Hour})
	for _, want := range []string{"a question is not answered", "100 steps in a turn, $5.00, 2h0m0s"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if got := Unattended(true, op.Limits{}); !strings.Contains(got, "until somebody answers") ||
		strings.Contains(got, "The task may use") {
		t.Errorf("with an answer from elsewhere and no limits:\n%s", got)
	}
}

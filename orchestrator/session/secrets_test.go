package session

import (
	"slices"
	"strings"
	"testing"

	"anamnesis/orchestrator/feature/question"
	"anamnesis/orchestrator/state"
)

// TestNamesOfSecrets: a task is told of variables once, and a user of those that are not set.
func TestNamesOfSecrets(t *testing.T) {
	st := &state.State{Redact: []string{"A"}}
	if got := unknownTo(st, []string{"B", "A", "B", "C"}); !slices.Equal(got, []string{"B", "C"}) {
		t.Errorf("unknown %q", got)
	}
	getenv := func(name string) string { return map[string]string{"LONG": "long-enough-secret", "SHORT": "x"}[name] }
	if got := Unset(getenv, "t", []string{"LONG"}); got != "" {
		t.Errorf("all are set: %q", got)
	}
	if got := Unset(getenv, "t", []string{"NONE", "LONG", "SHORT"}); !strings.Contains(got, "the value of NONE, SHORT out") {
		t.Errorf("two are not: %q", got)
	}
	for _, tt := range []struct {
		set Settings
		err string
	}{
		{Settings{}, ""}, {Settings{Redact: []string{"LONG"}, Sandbox: "off", WhenAsked: string(question.Wait)}, ""},
		{Settings{Redact: []string{"LONG", "SHORT"}}, "SHORT"}, {Settings{Sandbox: "odd"}, "odd"}, {Settings{WhenAsked: "odd"}, "odd"},
		{Settings{tools: []string{"odd"}}, "odd"},
	} {
		if err := tt.set.check(getenv); (err == nil) != (tt.err == "") ||
			err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%+v: %v", tt.set, err)
		}
	}
}

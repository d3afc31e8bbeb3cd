package state

import (
	"slices"
	"strings"
	"testing"

	"anamnesis/opstream/op"
)

func TestSituationParts(t *testing.T) {
	for _, tt := range []struct {
		name, args string
		result     op.ToolReturned
		want       Trouble
	}{
		{"Bash", `{"command":"npm ci"}`, op.ToolReturned{Stdout: "added 1\n", Stderr: "npm error code EUSAGE", Text: "exit 1"}, Trouble{"npm error code EUSAGE", "npm ci"}},
		{"ReadFile", `{"path":"a/b.go"}`, op.ToolReturned{Text: "open a/b.go: no such file or directory", Reads: []string{"a/b.go"}}, Trouble{"open a/b.go: no such file or directory", "ReadFile b.go"}},
		{"mcp__x", `[1]`, op.ToolReturned{Text: "refused"}, Trouble{"refused", "mcp__x"}},
		{"Bash", `{"command":"` + strings.Repeat("\u754c", 100) + `"}`, op.ToolReturned{}, Trouble{"", strings.Repeat("\u754c", 66)}},
	} {
		if got := troubleOf(&CallState{Call: op.Call{Name: tt.name, Args: tt.args}}, &tt.result); got != tt.want {
			t.Errorf("%s %s: %+v, want %+v", tt.name, tt.args, got, tt.want)
		}
	}
	s := &State{Said: Said{Request: "mend it"}, Recall: Recall{Trouble: Trouble{"not found", "make"}}}
	if got := s.Recall.Queries("jump", s.Said.Request); !slices.Equal(got, []string{"not found", "not found\nmake", "mend it"}) {
		t.Errorf("after a jump: %q", got)
	}
	if got := s.Recall.Queries("start", s.Said.Request); !slices.Equal(got, []string{"mend it"}) {
		t.Errorf("at the start: %q", got)
	}
	s.Said.Request = NoPrompt
	if got := s.Recall.Queries("start", s.Said.Request); len(got) != 0 {
		t.Errorf("without a prompt: %q", got)
	}
}

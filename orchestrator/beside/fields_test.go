package beside_test

import (
	"strings"
	"testing"

	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/sessions"
)

// TestRenamed: doctor names a field that an agent's hooks no longer have. Nothing is said of an
// agent that only talked, or whose hooks are understood.
func TestRenamed(t *testing.T) {
	const call = `"tool_name":"Bash","tool_use_id":"c1","tool_input":{"command":"make"}`
	turn := `{"hook_event_name":"UserPromptSubmit","prompt":"p"}
{"hook_event_name":"PreToolUse",` + call + `}
{"hook_event_name":"PostToolUse",` + call + `,"tool_response":{"stdout":"ok"}}
{"hook_event_name":"Stop"}`
	for _, tt := range []struct{ old, now, want string }{
		{"", "", ""},
		{`"tool_name"`, `"tool"`, `event "PostToolUse" has no tool_name`},
		{`"tool_use_id"`, `"call_id"`, `event "PostToolUse" has no tool_use_id`},
		{`"tool_input"`, `"input"`, `event "PostToolUse" has no tool_input`},
		{`"tool_response"`, `"result"`, `event "PostToolUse" has no tool_response`},
		{`"prompt"`, `"text"`, `event "UserPromptSubmit" has no prompt`},
		{"PreToolUse", "Notification", ""},
	} {
		s := newSpeaker(t, sessions.Claude)
		for e := range strings.SplitSeq(strings.NewReplacer(tt.old, tt.now).Replace(turn), "\n") {
			s.event(e)
		}
		found := strings.Join(beside.Findings(s.svc.Home, s.dir, ""), "\n")
		if !strings.Contains(found, tt.want) || tt.want == "" && found != "" {
			t.Errorf("%s: %q, want %q", tt.old, found, tt.want)
		}
	}
}

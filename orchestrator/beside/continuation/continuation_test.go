package continuation

import (
	"strings"
	"testing"
)

// TestLastMessage: the copy ends with what the agent said about the results of the calls, before
// anything else happened.
func TestLastMessage(t *testing.T) {
	const (
		user   = `{"type":"user","uuid":"u1","cwd":"/w","message":{"content":"do it"}}`
		call   = `{"type":"assistant","uuid":"a1","cwd":"/later","message":{"content":[{"type":"tool_use","id":"c1"}]}}`
		result = `{"type":"user","uuid":"u2","message":{"content":[{"type":"tool_result","tool_use_id":"c1"}]}}`
		says   = `{"type":"assistant","uuid":"a2","message":{"content":[{"type":"text","text":"done"}]}}`
		more   = `{"type":"assistant","uuid":"a3","message":{"content":"and so on"}}`
		next   = `{"type":"assistant","uuid":"a4","message":{"content":[{"type":"tool_use","id":"c2"}]}}`
		after  = `{"type":"user","uuid":"u3","message":{"content":[{"type":"tool_result","tool_use_id":"c2"}]}}`
		side   = `{"type":"assistant","uuid":"s1","cwd":"/side","isSidechain":true,"message":{"content":"aside"}}`
		note   = `{"type":"summary","uuid":"n1","cwd":"/note"}`
		broken = `{"type":"assistant","uuid":"b1","cwd":"/broken"`
	)
	for _, tt := range []struct {
		name  string
		lines []string
		calls string
		want  string
		dir   string
	}{
		{"nothing", nil, "c1", "", ""},
		{"no such call", []string{user, says, next, after, more}, "c1", "", "/w"},
		{"nothing said", []string{user, call, result}, "c1", "a1", "/w"},
		{"said", []string{user, call, result, says}, "c1", "a2", "/w"},
		{"said twice", []string{user, call, result, says, more}, "c1", "a3", "/w"},
		{"until the next call", []string{user, call, result, says, next, after, more}, "c1", "a2", "/w"},
		{"until the user's words", []string{user, call, result, says, user, more}, "c1", "a2", "/w"},
		{"results of other calls between", []string{user, call, after, says}, "c1", "a2", "/w"},
		{"two calls", []string{user, call, result, says, next, after, more}, "c1 c2", "a3", "/w"},
		{"the result alone", []string{result, says}, "c1", "a2", ""},
		{"words before the call", []string{user, says, call, result}, "c1", "a1", "/w"},
		{"other lines", []string{broken, note, side, call, result, says, side, note, broken}, "c1", "a2", "/later"},
	} {
		message, dir := lastMessage([]byte(strings.Join(tt.lines, "\n")), strings.Fields(tt.calls))
		if message != tt.want || dir != tt.dir {
			t.Errorf("%s: %q in %q, want %q in %q", tt.name, message, dir, tt.want, tt.dir)
		}
	}
}

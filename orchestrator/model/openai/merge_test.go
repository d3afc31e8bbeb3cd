package openai

import "testing"

// TestMergeInto: only texts of one role become one message.
func TestMergeInto(t *testing.T) {
	user := func(content any) map[string]any { return map[string]any{"role": "user", "content": content} }
	with := func(m map[string]any, key string, v any) map[string]any { m[key] = v; return m }
	for _, tt := range []struct {
		name    string
		last, m map[string]any
		want    any // the content; nil if they stay apart
	}{
		{"two texts", user("a"), user("b"), "a\n\nb"},
		{"an empty one", user(""), user("b"), "b"},
		{"two roles", user("a"), with(user("b"), "role", "assistant"), nil},
		{"results of tools", with(user("a"), "role", "tool"), with(user("b"), "role", "tool"), nil},
		{"parts first", user([]any{"a"}), user("b"), nil},
		{"parts last", user("a"), user([]any{"b"}), nil},
		{"calls first", with(user("a"), "tool_calls", []any{}), user("b"), nil},
		{"calls last", user("a"), with(user("b"), "tool_calls", []any{}), nil},
	} {
		before := tt.last["content"]
		merged := mergeInto(tt.last, tt.m)
		if text, ok := before.(string); merged != (tt.want != nil) || merged && tt.last["content"] != tt.want || !merged && ok && tt.last["content"] != text {
			t.Errorf("%s: %v, %v", tt.name, merged, tt.last["content"])
		}
	}
}

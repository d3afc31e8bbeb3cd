package openai

import (
	"fmt"
	"testing"
)

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
		if text, ok := before.(string); merged != (tt.want != nil) || merged && tt.last["content"] != tt.want ||
			!merged && ok && tt.last["content"] != text {
			t.Errorf("%s: %v, %v", tt.name, merged, tt.last["content"])
		}
	}
}

// TestContinued: an index names the element that a piece continues, among the newest; without one only the first of a
// piece continues the last element, and nothing that identifies an element may differ.
func TestContinued(t *testing.T) {
	list := func(elements ...string) (out []any) {
		for _, e := range elements {
			var v any
			decode(t, e, &v)
			out = append(out, merged(nil, v, ""))
		}
		return out
	}
	var many []string
	for i := range 65 { // the limit is 64
		many = append(many, fmt.Sprintf(`{"index":%d}`, i))
	}
	for _, tt := range []struct {
		name  string
		list  []any
		piece string
		first bool
		want  int
	}{
		{"no element", nil, `{"index":0}`, true, -1},
		{"its index", list(`{"index":0}`, `{"index":1}`), `{"index":0}`, false, 0},
		{"another index", list(`{"index":0}`), `{"index":1}`, true, -1},
		{"its index and id", list(`{"index":0,"id":"a"}`), `{"index":0,"id":"a"}`, true, 0},
		{"another id", list(`{"index":0,"id":"a"}`), `{"index":0,"id":"b"}`, true, -1},
		{"the newest of two with an index", list(`{"index":0,"id":"a"}`, `{"index":0,"id":"b"}`), `{"index":0}`, true, 1},
		{"the oldest that may be continued", list(many...), `{"index":1}`, true, 1},
		{"an older one", list(many...), `{"index":0}`, true, -1},
		{"no index, first", list(`{"type":"text"}`), `{"type":"text"}`, true, 0},
		{"no index, not first", list(`{"type":"text"}`), `{"type":"text"}`, false, -1},
		{"no index, not the last element", list(`{"type":"text"}`, `{"type":"image"}`), `{"type":"text"}`, true, -1},
		{"no index, no type", list(`{"text":"a"}`), `{"text":"b"}`, true, -1},
		{"no index, a type in one", list(`{"type":"text"}`), `{"text":"b"}`, true, -1},
		{"no index after one that has it", list(`{"index":0,"type":"text"}`), `{"type":"text"}`, true, -1},
		{"an index after one that has none", list(`{"type":"text"}`), `{"index":0,"type":"text"}`, true, -1},
		{"no index behind a signature", list(`{"type":"text","signature":"s"}`), `{"type":"text"}`, true, -1},
		{"what is no object", []any{"a"}, `{"type":"text"}`, true, -1},
	} {
		var piece map[string]any
		decode(t, tt.piece, &piece)
		if got := continued(tt.list, piece, tt.first); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

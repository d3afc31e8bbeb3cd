package attention

import (
	"slices"
	"testing"
)

// TestNames: completions offer whole names of models, not pieces of patterns.
func TestNames(t *testing.T) {
	for pattern, want := range map[string][]string{
		"gpt-4{,-0314}": {"gpt-4", "gpt-4-0314"}, "{gpt,chatgpt}-4o*": {"gpt-4o", "chatgpt-4o"},
		"claude-{sonnet,opus}-{4.5,4-5}*": {"claude-sonnet-4.5", "claude-sonnet-4-5", "claude-opus-4.5", "claude-opus-4-5"},
		"qwen2.5-*-1m*":                   nil, "qwen1.5-*": nil, "gpt-5.*": nil, "*": nil, "a{b": nil,
	} {
		if got := Names(pattern); !slices.Equal(got, want) {
			t.Errorf("Names(%q) = %q, want %q", pattern, got, want)
		}
	}
}

package openai

import (
	"slices"
	"sync/atomic"
	"testing"

	"anamnesis/opstream/op"
)

// TestEndsWell: a stream that ends without a finish reason is whole if its calls can be read, or
// if it has text and an earlier text of this endpoint ended so.
func TestEndsWell(t *testing.T) {
	for _, tt := range []struct {
		name   string
		text   string
		args   []string // of its calls
		before int32    // texts that ended so
		finish string   // "" if it is not whole
		after  int32
	}{
		{"nothing", "", nil, 1, "", 1},
		{"blank", " \n", nil, 1, "", 1},
		{"first text", "hi", nil, 0, "", 1},
		{"second text", "hi", nil, 1, "stop", 2},
		{"a call", "", []string{`{"a":1}`}, 0, "tool_calls", 0},
		{"a call without arguments", "", []string{" "}, 0, "tool_calls", 0},
		{"text and a call", "hi", []string{"{}"}, 0, "tool_calls", 0},
		{"a cut call", "", []string{`{"a":`}, 1, "", 1},
		{"the last of two cut", "", []string{"{}", `{"a`}, 1, "", 1},
		{"the first of two cut", "", []string{`{"a`, "{}"}, 1, "", 1},
	} {
		a := newAssembly(nil)
		a.sieve.raw.WriteString(tt.text)
		for _, args := range tt.args {
			c := &partialCall{}
			c.args.WriteString(args)
			a.calls = append(a.calls, c)
		}
		var before atomic.Int32
		before.Store(tt.before)
		whole := a.endsWell(&before)
		if whole != (tt.finish != "") || a.finish != tt.finish || before.Load() != tt.after {
			t.Errorf("%s: whole %v, finish %q, %d texts before; want %q, %d", tt.name, whole, a.finish, before.Load(),
				tt.finish, tt.after)
		}
		if slices.Contains(a.repairs, op.RepairNoFinish) != whole {
			t.Errorf("%s: repairs %q", tt.name, a.repairs)
		}
	}
}

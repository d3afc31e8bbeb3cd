package openai

import (
	"errors"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
)

// TestLearn: each way of writing that a refusal names is learned once, and only from a refusal that
// can be about the request.
func TestLearn(t *testing.T) {
	const alternate, ids = "roles must alternate", "tool call id must be of length of 9"
	refused := func(status int, says string) error {
		return &model.Fault{Kind: model.FaultHTTP, Status: status, Err: errors.New(says)}
	}
	form := func(name string) string { return op.RepairHistory + ":" + name }
	merged, short := form("messages of one role merged"), form("call ids of nine characters")
	c := &Client{}
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"no fault", errors.New(alternate), ""},
		{"another fault", &model.Fault{Kind: model.FaultCut, Status: 400, Err: errors.New(alternate)}, ""},
		{"no key", refused(401, alternate), ""},
		{"busy", refused(429, alternate), ""},
		{"not about it", refused(400, "bad luck"), ""},
		{"the first time", refused(400, alternate), merged},
		{"a second time", refused(400, alternate), ""},
		{"another one beside it", refused(500, alternate+", and the "+ids), short},
		{"both known", refused(422, alternate+", and the "+ids), ""},
	} {
		if got := c.learn(tt.err, model.Request{}, &written{}); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	if !c.mends.merge || !c.mends.shortIDs || c.mends.oneStart || c.mends.words || c.mends.blind {
		t.Errorf("learned %+v", c.mends)
	}
}

// TestSendableName: an invented name becomes one that each endpoint accepts.
func TestSendableName(t *testing.T) {
	for name, want := range map[string]string{
		"": "unnamed", "azAZ09_-": "azAZ09_-", "a.b c/d": "a_b_c_d", "@[`{/:^": "_______", "ü": "_",
		strings.Repeat("x", 64): strings.Repeat("x", 64), strings.Repeat("y", 65): strings.Repeat("y", 64),
	} {
		if got := sendableName(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// TestSendableArgs: arguments that are no object are sent as one that quotes them.
func TestSendableArgs(t *testing.T) {
	for args, want := range map[string]string{
		`{"a":1}`: `{"a":1}`, "": "{}", " \n": "{}", `{"a":`: `{"malformed_arguments":"{\"a\":"}`,
		"[1]": `{"malformed_arguments":"[1]"}`,
	} {
		if got := sendableArgs(op.Call{Args: args}); got != want {
			t.Errorf("%q: %s, want %s", args, got, want)
		}
	}
}

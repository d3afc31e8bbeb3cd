//go:build unix

package settings

import (
	"strings"
	"testing"
	"time"

	"anamnesis/orchestrator/session"
)

// TestCheckFlags: a value that a flag cannot have is refused before a model is looked for, and names
// the flag; a limit of 0 is refused only if it was given.
func TestCheckFlags(t *testing.T) {
	for _, c := range []struct {
		change func(r *session.Request)
		given  string
		want   string // the beginning of the error; empty: none
	}{
		{func(r *session.Request) {}, "", ""},
		{func(r *session.Request) { r.Approval = "edits" }, "approval", ""},
		{func(r *session.Request) { r.Approval = "sometimes" }, "approval", `--approval: approval mode "sometimes": want ask, edits, auto or deny`},
		{func(r *session.Request) { r.Limits.Steps = -1 }, "max-steps", "--max-steps -1: "},
		{func(r *session.Request) {}, "max-steps", "--max-steps 0: "},
		{func(r *session.Request) {}, "max-cost", "--max-cost 0: "},
		{func(r *session.Request) { r.Limits.Time = -time.Second }, "", "--max-time -1s: "},
		{func(r *session.Request) { r.Images = "maybe" }, "", `--images "maybe": `},
		{func(r *session.Request) { r.ToolsWait = 0 }, "", "--tools-wait 0s: "},
		{func(r *session.Request) {}, "eas", "--eas 0: "},
		{func(r *session.Request) {}, "window", "--window 0: "},
	} {
		r := session.Request{}
		r.ToolsWait = time.Second
		c.change(&r)
		err := CheckFlags(&r, func(flag string) bool { return flag == c.given })
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.given, err, c.want)
		}
	}
}

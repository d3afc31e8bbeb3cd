package facts

import (
	"strings"
	"testing"
)

// TestPrograms: of each program a task keeps whether it ran, and whether it was missing; a first
// end that it was missing may be followed by another one.
func TestPrograms(t *testing.T) {
	none := call(127, "jq .", "bash: jq: command not found")
	fine := call(0, "jq .", "{}")
	bad := call(1, "jq .", "parse error")
	for _, tt := range []struct {
		name  string
		calls []Call
		want  string
	}{
		{"none", nil, ""},
		{"it ran", []Call{fine, fine}, "o"},
		{"it failed", []Call{bad}, ""},
		{"missing", []Call{none}, "m"},
		{"missing more than once", []Call{none, none, none}, "mm"},
		{"installed", []Call{none, bad, fine, fine, none}, "mo"},
		{"removed", []Call{fine, none, none}, "om"},
		{"refused", []Call{{Output: refused("jq .")}}, ""},
	} {
		if got := tasks(tt.calls)[0].Programs["jq"]; got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	ran := tasks([]Call{call(0, "sudo timeout 60 /usr/bin/jq .", "{}")})[0].Programs
	for program := range strings.FieldsSeq("sudo timeout jq") {
		if ran[program] != "o" {
			t.Errorf("%s of one command: %q", program, ran)
		}
	}
}

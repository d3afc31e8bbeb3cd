package shell

import (
	"strings"
	"testing"
)

// TestHidden: a line that may do more than its commands say is not plain, and the reason is named.
func TestHidden(t *testing.T) {
	for line, want := range map[string]string{
		"": "", "ls -l | wc >out 2>&1 # all": "", "(cd a && make) || { echo no; }": "", "echo \"$(cat a)\" 'b' <(ls) {a,b}": "", "time make": "",
		"if a; then b; elif c; then d; else e; fi": "", "while a; do b; done": "", "case $x in a) b;; esac": "", "A=1 make": "", "A=$B make": "", "echo $x ${x}": "",
		"for f in a b; do echo $f; done": "", "for f9 in a; do :; done": "",
		"a\n\tb":  "",
		"\x1b[2J": "a control character", "a\x1b[2J": "a control character", "a\rb": "a control character",
		"a\x00":      "a control character",
		"echo 'open": "it is not a shell command", "if": "it is not a shell command",
		strings.Repeat("a", MaxBytes): "", strings.Repeat("a", MaxBytes+1): "its length",
		"select f in a b; do :; done":       "a select loop",
		"for PATH in /x; do ls; done":       "a loop over the variable PATH",
		"for a_b in /x; do ls; done":        "a loop over the variable a_b",
		"for ((i=0; i<3; i++)); do :; done": "arithmetic", "echo $((x))": "arithmetic", "((x++))": "arithmetic",
		"A=(1 2)": "an array", "A[0]=1": "an array",
		"echo ${!x}": "an expansion", "echo ${x[0]}": "an expansion", "echo ${x:1:2}": "an expansion", "echo ${x/a/b}": "an expansion", "echo ${!x*}": "an expansion",
		"echo ${x:-a}": "an expansion", "echo ${x:=a}": "an expansion", "echo ${x#a}": "an expansion", "echo ${x^^}": "an expansion",
		"f() { ls; }": "a function", "export A=1": "a declaration", "local a": "a declaration", "let x=1": "a declaration",
		"[[ -e a ]]": "a test in [[ ]]", "coproc ls": "a coprocess",
		"ls; f() { ls; }; let x=1": "a function", "echo \"$(f() { ls; })\"": "a function",
	} {
		if got := Hidden(line); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("%.60q: %q, want %q", line, got, want)
		}
	}
}

package tool_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/tool"
)

func TestDisplay(t *testing.T) {
	long := strings.Repeat("a", 40) + strings.Repeat("z", 40)
	tests := []struct{ name, args, want string }{
		{"Bash", `{"command":"ls -la"}`, "Bash(ls -la)"},
		{"Bash", `{"timeout":5,"command":"a\nb\t\u001b[31mred"}`, `Bash(a\nb\t\x1b[31mred)`},
		{"Bash", `{"command":"` + long + `"}`, "Bash(" + strings.Repeat("a", 25) + "…" + strings.Repeat("z", 24) + ")"},
		{"Bash", `{"command":"` + long[15:65] + `"}`, "Bash(" + long[15:65] + ")"},
		{"Bash", `{"command":"` + long[15:66] + `"}`, "Bash(" + long[15:40] + "…" + long[42:66] + ")"},
		{"Bash", `{"command":"x` + "\u202e" + `y"}`, `Bash(x\u{202e}y)`},
		{"Bash", `{"command":"ls -l`, "Bash"},
		{"Bash", ``, "Bash"},
		{"Bash", `not json`, "Bash"},
		{"ReadFile", `{"n_lines":5,"path":"a/b.go"}`, "ReadFile(a/b.go)"},
		{"Grep", `{"path":"src","pattern":"x+"}`, "Grep(x+)"},
		{"jump_to_step", `{"step_id":3,"reason":"r"}`, "jump_to_step(3)"},
		{"SendDMail", `{"checkpoint_id":3,"message":"look"}`, "SendDMail(3)"}, // the message is the agent's
		{"recall", `{"op":312}`, "recall(312)"},
		{"mcp__x__y", `{"url":"http://h"}`, "mcp__x__y(http://h)"},
		{"ReadFile", `{"path":"/home/w/a/b.go"}`, "ReadFile(a/b.go)"},
		{"ReadFile", `{"path":"/home/w//a.go"}`, "ReadFile(a.go)"},
		{"ReadFile", `{"path":"/home/w/"}`, "ReadFile(.)"},
		{"ReadFile", `{"path":"/home/w-secrets/a"}`, "ReadFile(/home/w-secrets/a)"},
		{"ReadFile", `{"path":"/mnt/home/w/a"}`, "ReadFile(/mnt/home/w/a)"},
		{"ReadFile", `{"path":"/home/other/a"}`, "ReadFile(/home/other/a)"},
		{"Bash", `{"command":"cd /home/w && diff /home/w/a '/home/w/b c' >/home/w/d"}`, "Bash(cd . && diff a 'b c' >d)"},
		{"Bash", `{"command":"make DEST=/home/w/out; ls /home/w"}`, "Bash(make DEST=out; ls .)"},
		{"odd\x1bname", `{}`, `odd\x1bname`},
	}
	for _, tt := range tests {
		if got := tool.Display(op.Call{Name: tt.name, Args: tt.args}, "/home/w"); got != tt.want {
			t.Errorf("Display(%s %s) = %q, want %q", tt.name, tt.args, got, tt.want)
		}
	}
}

func FuzzDisplay(f *testing.F) {
	f.Add("Bash", `{"command":"ls \ud83d`)
	f.Add("x", `{"path":[1,{"a":"b`)
	f.Fuzz(func(t *testing.T, name, args string) {
		got := tool.Display(op.Call{Name: name, Args: args}, "/w")
		if n := utf8.RuneCountInString(got); n > 102 {
			t.Errorf("%d characters: %q", n, got)
		}
		for _, r := range got {
			if !unicode.IsPrint(r) {
				t.Errorf("%q has %U", got, r)
			}
		}
	})
}

package approval

import (
	"strings"
	"testing"
)

func TestDecide(t *testing.T) {
	read := Facts{Tool: "ReadFile", ReadOnly: true}
	write := Facts{Tool: "WriteFile", Edits: true}
	bash := Facts{Tool: "Bash"}
	command := Facts{Tool: "Bash", Command: "ls"}
	autorun := Facts{Tool: "WriteFile", Edits: true, Autorun: []string{".envrc (direnv)"}}
	rule := func(tool string, v Verdict) []Rule { return []Rule{{Tool: tool, Verdict: v}} }
	tests := []struct {
		name  string
		mode  Mode
		facts Facts
		rules []Rule
		want  Verdict
		by    string
		text  string
	}{
		{"ask reads", ModeAsk, read, nil, Allow, "read-only", ""},
		{"deny reads", ModeDeny, read, nil, Allow, "read-only", ""},
		{"unknown mode reads", "", read, nil, Allow, "read-only", ""},
		{"ask edits", ModeAsk, write, nil, Ask, "mode:ask", "WriteFile"},
		{"ask bash", ModeAsk, bash, nil, Ask, "mode:ask", "Bash"},
		{"edits edits", ModeEdits, write, nil, Allow, "mode:edits", ""},
		{"edits bash", ModeEdits, bash, nil, Ask, "mode:edits", "Bash"},
		{"auto bash", ModeAuto, bash, nil, Allow, "mode:auto", ""},
		{"deny edits", ModeDeny, write, nil, Refuse, "mode:deny", "mode edits"},
		{"deny bash", ModeDeny, bash, nil, Refuse, "mode:deny", "mode auto"},
		{"unknown mode", "yolo", bash, nil, Refuse, "mode:yolo", "want ask, edits"},
		{"no mode", "", write, nil, Refuse, "mode:", "want ask, edits"},
		{"rule allows under deny", ModeDeny, bash, rule("Bash", Allow), Allow, "rule:Bash", ""},
		{"rule refuses under auto", ModeAuto, bash, rule("B*", Refuse), Refuse, "rule:B*", "rule"},
		{"rule refuses a reader", ModeAuto, read, rule("ReadFile", Refuse), Refuse, "rule:ReadFile", "rule"},
		{"rule of another tool", ModeDeny, bash, rule("WriteFile", Allow), Refuse, "mode:deny", "deny"},
		{"strictest rule wins", ModeAuto, bash, []Rule{{Tool: "*", Verdict: Allow}, {Tool: "Bash", Verdict: Refuse}, {Tool: "B*", Verdict: Ask}}, Refuse, "rule:Bash", "rule"},
		{"order does not matter", ModeAuto, bash, []Rule{{Tool: "Bash", Verdict: Refuse}, {Tool: "*", Verdict: Allow}}, Refuse, "rule:Bash", "rule"},
		{"the first of equal rules is named", ModeAuto, bash, []Rule{{Tool: "Bash", Verdict: Refuse}, {Tool: "B*", Verdict: Refuse}}, Refuse, "rule:Bash", "a rule (Bash) refuses"},
		{"where a rule is written", ModeAuto, bash, []Rule{{Tool: "Bash", Verdict: Refuse, From: "a.yaml"}}, Refuse, "rule:Bash", "a rule of a.yaml (Bash) refuses"},
		{"rule allows a command under deny", ModeDeny, command, rule("Bash", Allow), Allow, "rule:Bash", ""},
		{"no rule for a command", ModeDeny, command, nil, Refuse, "mode:deny", "mode auto"},
		{"unknown verdict refuses", ModeAuto, bash, rule("Bash", "maybe"), Refuse, "rule:Bash", "rule"},
		{"autorun in edits", ModeEdits, autorun, nil, Ask, "autorun:.envrc (direnv)", "WriteFile"},
		{"autorun by a rule", ModeAsk, autorun, rule("WriteFile", Allow), Ask, "autorun:.envrc (direnv)", "WriteFile"},
		{"autorun by a rule under deny", ModeDeny, autorun, rule("WriteFile", Allow), Ask, "autorun:.envrc (direnv)", "WriteFile"},
		{"autorun under deny", ModeDeny, autorun, nil, Refuse, "mode:deny", "mode auto"},
		{"autorun in auto", ModeAuto, autorun, nil, Allow, "mode:auto", ""},
		{"autorun refused by a rule", ModeAuto, autorun, rule("WriteFile", Refuse), Refuse, "rule:WriteFile", "rule"},
		{"malformed pattern is a name", ModeAuto, bash, rule("[", Refuse), Allow, "mode:auto", ""},
	}
	for _, tt := range tests {
		d := Decide(tt.mode, tt.facts, tt.rules)
		if d.Verdict != tt.want || d.By != tt.by || !strings.Contains(d.Text, tt.text) ||
			(d.Text == "") != (d.Verdict == Allow) {
			t.Errorf("%s: Decide = %+v, want %s by %s, text with %q", tt.name, d, tt.want, tt.by, tt.text)
		}
	}
}

func TestParseMode(t *testing.T) {
	for _, m := range []Mode{ModeAsk, ModeEdits, ModeAuto, ModeDeny} {
		if got, err := ParseMode(string(m)); err != nil || got != m {
			t.Errorf("ParseMode(%q) = %q, %v", m, got, err)
		}
	}
	for _, s := range []string{"", "Ask", "yes"} {
		if _, err := ParseMode(s); err == nil || !strings.Contains(err.Error(), "ask, edits, auto or deny") {
			t.Errorf("ParseMode(%q): %v", s, err)
		}
	}
}

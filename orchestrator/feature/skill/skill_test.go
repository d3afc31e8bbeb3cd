package skill

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/orchestrator/guard/consent"
)

func TestExpand(t *testing.T) {
	for _, c := range []struct{ body, args, want string }{
		{"Mend $1 in $2.", `12 "the parser"`, "Mend 12 in the parser."},
		{"Mend $1 in $2.", "12", "Mend 12 in ."},
		{"All: $ARGUMENTS; costs $10", "a 'b c'", "All: a 'b c'; costs $10"},
		{"Nothing asked.", "", "Nothing asked."},
		{"Nothing asked.", "but given", "Nothing asked.\n\nARGUMENTS: but given"},
	} {
		if got := (&Skill{Body: c.body}).Expand(c.args); got != c.want {
			t.Errorf("%q with %q: %q, want %q", c.body, c.args, got, c.want)
		}
	}
}

// The names and descriptions of many skills stay within their room, and what is cut is counted.
func TestListRoom(t *testing.T) {
	make := func(n int, about string) (all []Skill) {
		for i := range n {
			all = append(all, Skill{Name: fmt.Sprintf("skill-%03d", i), Description: about})
		}
		return all
	}
	if text, cut := list(make(3, "Short.")); cut != 0 ||
		text != "- skill-000: Short.\n- skill-001: Short.\n- skill-002: Short.\n" {
		t.Errorf("few: %d cut, %q", cut, text)
	}
	text, cut := list(make(500, strings.Repeat("long ", 40)))
	if len(text) > maxListBytes || cut != 500 || !strings.Contains(text, "- skill-499: long") {
		t.Errorf("500: %d bytes, %d cut, end %q", len(text), cut, text[max(0, len(text)-60):])
	}
	if text, cut := list(make(1_000, strings.Repeat("long ", 40))); len(text) > maxListBytes || cut != 1_000 {
		t.Errorf("1000: %d bytes, %d cut", len(text), cut)
	}
}

// An approval is of the bytes: of the text, and of each file of the folder.
func TestApproval(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const skill = ".agents/skills/deploy/SKILL.md"
	write(skill, "---\ndescription: Deploys.\n---\nRun it.")
	write(".agents/skills/deploy/scripts/run.sh", "echo 1")
	write(".claude/commands/fix.md", "Mend it.")
	trust := consent.OpenTrust(filepath.Join(t.TempDir(), "approvals.json"))
	waiting := func() string {
		t.Helper()
		_, waiting, err := Approved(trust, Read("/nowhere/config", "/nowhere", []string{dir}))
		if err != nil {
			t.Fatal(err)
		}
		names := namesOf(waiting)
		if err := Approve(trust, waiting); err != nil {
			t.Fatal(err)
		}
		return names
	}
	for _, c := range []struct{ file, text, want string }{
		{"README", "nothing", "deploy, fix"},
		{"README", "something", ""},
		{".agents/skills/deploy/scripts/run.sh", "echo 2", "deploy"},
		{".agents/skills/deploy/new.sh", "echo 3", "deploy"},
		{".claude/commands/fix.md", "Break it.", "fix"},
		{skill, "---\ndescription: Deploys.\n---\nRun it twice.", "deploy"},
	} {
		write(c.file, c.text)
		if got := waiting(); got != c.want {
			t.Errorf("after a change of %s %q waits, want %q", c.file, got, c.want)
		}
	}
}

// TestTyped: a name ends at the first space or line break, and what follows stays as it was typed.
func TestTyped(t *testing.T) {
	all := []Skill{{Name: "explain"}, {Name: "broken", Err: os.ErrNotExist}}
	for line, want := range map[string]string{
		"/explain": "", " /explain this ": "this", "/explain\nthis": "this", "/explain\tthis": "this",
		"/explain this:\n```\nx\n```": "this:\n```\nx\n```",
	} {
		if s, args := Typed(all, line); s == nil || s.Name != "explain" || args != want {
			t.Errorf("Typed(%q) = %v, %q; want %q", line, s, args, want)
		}
	}
	for _, line := range []string{"explain this", "/explains", "/broken", "/", ""} {
		if s, _ := Typed(all, line); s != nil {
			t.Errorf("Typed(%q) = %s", line, s.Name)
		}
	}
}

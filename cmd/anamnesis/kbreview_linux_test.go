package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReviewAtTerminal: each waiting card is shown and asked about, again after an edit, and a card that changed
// since it was shown is not decided about.
func TestReviewAtTerminal(t *testing.T) {
	dir := t.TempDir()
	add := []string{"kb", "add", "--kb", "cards"}
	for i, issue := range []string{"the first build is slow", "a mirror refuses downloads", "tests need a display", "rows are doubled"} {
		name := fmt.Sprintf("%d.md", i)
		text := fmt.Sprintf("---\ntype: knowledge_card\ntopic: lesson %d\nsource_task: t\nid: k%d\ncreated: 2026-01-0%d\n---\n- **Issue**: %s\n", i, i, i+1, issue)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		add = append(add, name)
	}
	if code, text := atTerminal(t, dir, add...).ends(); code != 0 {
		t.Fatal(text)
	}
	t.Setenv("VISUAL", "")
	t.Setenv("EDITOR", "sed -i 's/refuses downloads/refuses large downloads/'")
	p := atTerminal(t, dir, "kb", "review", "--kb", "cards")
	p.sees("(1 of 4) y (approve), n (reject), e (edit), q (quit), anything else skips: ")
	p.types("y")
	p.sees("(2 of 4)")
	p.types("e")
	p.sees("edited k1")
	p.sees("(2 of 4)")
	p.types("n")
	p.sees("(3 of 4)")
	p.types("")
	p.sees("(4 of 4)")
	path := filepath.Join(dir, "cards", "2026-01", "lesson-3-k3.md")
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(text, "- **Solution**: none yet\n"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	p.types("y")
	if code, text := p.ends(); code != 3 || !strings.Contains(text, "the file was changed meanwhile; read it again") {
		t.Errorf("approved unseen: exit code %d:\n%s", code, text)
	}
	_, list := atTerminal(t, dir, "kb", "list", "--kb", "cards").ends()
	for _, want := range []string{"k0  lesson 0 (reviewed)", "k1  lesson 1 (retired)", "k2  lesson 2 (draft)", "k3  lesson 3 (draft)"} {
		if !strings.Contains(list, want) {
			t.Errorf("the list lacks %q:\n%s", want, list)
		}
	}
	p = atTerminal(t, dir, "kb", "review", "--kb", "cards")
	p.sees("(1 of 2)")
	p.types("q")
	if code, text := p.ends(); code != 0 || strings.Contains(text, "(2 of 2)") {
		t.Errorf("q: exit code %d:\n%s", code, text)
	}
}

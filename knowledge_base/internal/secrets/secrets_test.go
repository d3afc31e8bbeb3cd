package secrets

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/history"
	"anamnesis/opstream/durable"
)

// hide replaces the word hunter2.
func hide(text string) (string, []string) {
	out := strings.ReplaceAll(text, "hunter2", "[redacted:password:1]")
	if out == text {
		return text, nil
	}
	return out, []string{"[redacted:password:1]"}
}

// A secret is replaced in every field of a card and in what surrounds the fields; a card whose id holds one is refused.
func TestCard(t *testing.T) {
	src := "---\ntype: knowledge_card\ntopic: hunter2 is asked for\nsource_task: t\nid: k1\nmine: hunter2\ntags: [hunter2]\n---\nProse hunter2.\n\n- **Issue**: say hunter2\n"
	c, err := card.Parse([]byte(src))
	if err != nil {
		t.Fatal(err)
	}
	clean, markers, err := Redactor(hide).Card(c)
	if err != nil || len(markers) != 1 || strings.Contains(string(clean.Markdown()), "hunter2") ||
		clean.Tags[0] != "[redacted:password:1]" {
		t.Errorf("%s\n%v, %v", clean.Markdown(), markers, err)
	}
	if again, markers, err := Redactor(hide).Card(clean); err != nil || again != clean || markers != nil {
		t.Errorf("a clean card became another: %v, %v", markers, err)
	}
	c.ID = "hunter2"
	if _, _, err := Redactor(hide).Card(c); err == nil || !strings.Contains(err.Error(), "its id holds a secret") {
		t.Errorf("an id with a secret: %v", err)
	}
	c.ID = "k1"
	for _, marker := range []string{"[", "id: k2"} { // the rest is no card, or another one
		line := func(text string) (string, []string) {
			if !strings.Contains(text, "id: k1") {
				return text, nil
			}
			return strings.Replace(text, "id: k1", marker, 1), []string{marker}
		}
		if _, _, err := Redactor(line).Card(c); err == nil || !strings.Contains(err.Error(), "it holds a secret ("+marker+") that cannot be replaced") {
			t.Errorf("a secret in the form of the card: %v", err)
		}
	}
	if same, _, err := Redactor(nil).Card(c); err != nil || same != c {
		t.Errorf("without a redactor: %v", err)
	}
	one, two := Replaced([]string{"[a]"}), Replaced([]string{"[a]", "[b]"})
	if one != "a secret was replaced by [a]" || two != "2 secrets were replaced by [a] [b]" {
		t.Errorf("%q and %q", one, two)
	}
}

// A name that holds a secret is replaced wherever it occurs, and a list of JSON loses a line rather than becoming none.
func TestScrubber(t *testing.T) {
	b := NewScrubber(hide)
	if to := b.Path("2026-01/hunter2.md"); to != "2026-01/redacted-password-1.md" {
		t.Errorf("the path became %q", to)
	}
	if text, kinds := b.Text("see hunter2.md"); text != "see redacted-password-1.md" || len(kinds) != 1 ||
		kinds[0] != "name" {
		t.Errorf("%q %v", text, kinds)
	}
	list := filepath.Join(t.TempDir(), "list.jsonl")
	if err := os.WriteFile(list, []byte("{\"a\":\"hunter2\"}\nhunter2\n{\"b\":1}\n"), durable.FileMode); err != nil {
		t.Fatal(err)
	}
	if err := b.List(durable.OS{}, list); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(list); err != nil || string(got) != "{\"a\":\"[redacted:password:1]\"}\n{\"b\":1}\n" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestPlan: only regular files of texts that hold a secret change; what is too long or no text is said.
func TestPlan(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"clean.txt": "a", "a.txt": "hunter2", "hunter2.txt": "b", ".hidden": "hunter2", "bytes": "hunter2\xff", "noise": "\xff",
		"long": strings.Repeat("x", history.MaxBlobBytes+1), "longest": "hunter2" + strings.Repeat("x", history.MaxBlobBytes-len("hunter2")),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a.txt", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	names := []string{"link", "hunter2.txt", "long", "longest", "clean.txt", "noise", "bytes", "a.txt", "a.txt",
		"none", ".hidden"}
	p, err := NewScrubber(hide).Plan(dir, names)
	if err != nil {
		t.Fatal(err)
	}
	var places, files []string
	for _, at := range p.Places {
		places = append(places, at.Path+" "+strings.Join(at.Kinds, "+"))
	}
	for _, f := range p.Files {
		files = append(files, fmt.Sprintf("%s %.8s %v %v", f.Path, f.Data, f.Before != "", f.Gone))
	}
	if got, want := strings.Join(places, ", "), "a.txt password, redacted-password-1.txt name, longest password"; got != want {
		t.Errorf("places %s, want %s", got, want)
	}
	if got, want := strings.Join(files, ", "), "a.txt [redacte true false, redacted-password-1.txt b false false, hunter2.txt  true true, longest [redacte true false"; got != want {
		t.Errorf("files %s, want %s", got, want)
	}
	if got := strings.Join(p.Unread, " "); got != "bytes long" {
		t.Errorf("unread %s", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "redacted-password-1.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var conflict *NameConflictError
	if _, err := NewScrubber(hide).Plan(dir, names); !errors.As(err, &conflict) ||
		conflict.Name != "redacted-password-1.txt" {
		t.Errorf("the name is taken: %v", err)
	}
}

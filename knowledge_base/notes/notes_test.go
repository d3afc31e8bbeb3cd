package notes

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"anamnesis/knowledge_base/card"
)

func day() time.Time { return time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC) }

const agents = "Be brief.\n\n# Rules\n\n## Testing\n\n- run `make test`\n  before you commit\n- a fixture:\n\n  ```sh\n# not a heading\n  ```\n\nA paragraph\nof two lines.\n\n### Slow ones\n* never skip them\n\n## Empty\n\n# Rules\n## Testing\nSaid twice.\n"

func TestSplit(t *testing.T) {
	type part struct{ topic, solution, constraint string }
	want := []part{
		{"AGENTS: Be brief", "Be brief.", ""},
		{"Rules: Testing: run make test", "run `make test`\nbefore you commit", ""},
		{"Rules: Testing: a fixture", "a fixture:\n\n```sh\n# not a heading\n```", ""},
		{"Rules: Testing: A paragraph", "A paragraph\nof two lines.", ""},
		{"Rules: Testing: Slow ones: never skip them", "", "never skip them"},
		{"Rules: Testing: Said twice", "Said twice.", ""},
	}
	var got []part
	ids := make(map[string]bool)
	cards, skipped := Split("/x/AGENTS.md", []byte(agents), day())
	if skipped != nil {
		t.Errorf("skipped %q", skipped)
	}
	for _, c := range cards {
		got = append(got, part{c.Topic, strings.Join(c.Solution, "|"), strings.Join(c.Constraint, "|")})
		if err := c.Validate(); err != nil || !c.Provenance.Tainted || c.State != card.Draft || ids[c.ID] {
			t.Errorf("%q: %v, %+v", c.Topic, err, c)
		}
		ids[c.ID] = true
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// Items of numbered lists are cards of their own, an error and its remedy are separated, and what
// is no lesson is skipped.
func TestSplitParts(t *testing.T) {
	src := "# Rules\n- one\n1. Start it:\n   ```sh\n   | make up\n   ```\n2) two\n\n| cmd | what |\n|---|---|\n| a | b |\n\n<!-- for\n- hidden\n-->\n<!-- x -->\n" +
		"- If psql: FATAL: role \"a, b\" does not exist, run `createuser`, then\n  again\n- `open x: permission denied`: never use sudo\n- When an error shows, ask\n- `go test`: runs all\n- If ImportError: x\n"
	cards, skipped := Split("/x/AGENTS.md", []byte(src), day())
	var got []string
	for _, c := range cards {
		got = append(got, strings.TrimPrefix(c.Topic, "Rules: ")+" | "+strings.Join(c.Issue, "|")+" | "+strings.Join(c.Solution, "|")+" | "+strings.Join(c.Constraint, "|"))
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
	}
	if want := []string{
		"one |  | one | ", "Start it |  | Start it:\n```sh\n| make up\n``` | ", "two |  | two | ",
		`psql: FATAL: role "a, b" does not exist | psql: FATAL: role "a, b" does not exist | ` + "run `createuser`, then\nagain | ",
		"open x: permission denied | `open x: permission denied` |  | never use sudo",
		"When an error shows, ask |  | When an error shows, ask | ", "go test: runs all |  | `go test`: runs all | ", "If ImportError: x |  | If ImportError: x | ",
	}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if want := []string{"a table: | cmd | what |", "an HTML comment: <!-- for", "an HTML comment: <!-- x -->"}; !reflect.DeepEqual(skipped, want) {
		t.Errorf("skipped %q, want %q", skipped, want)
	}
}

// A folder: notes, cards of others that come as drafts, and what is passed by.
// A link to a note beside it is a note; one to a file elsewhere is passed by.
func TestReadLinks(t *testing.T) {
	dir, secret := t.TempDir(), filepath.Join(t.TempDir(), "secret.md")
	for path, text := range map[string]string{filepath.Join(dir, "AGENTS.md"): "# Notes\n\nRun make.\n", secret: "# Key\n\nhunter2\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"CLAUDE.md": "AGENTS.md", "out.md": secret, "gone.md": "nowhere"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	cards, skipped, err := Read(t.Context(), dir, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if len(cards) != 2 || len(skipped) != 2 {
		t.Errorf("%d cards, passed by %v; want the two notes and not what the links lead out to", len(cards), skipped)
	}
	for _, c := range cards {
		if strings.Contains(string(c.Markdown()), "hunter2") {
			t.Errorf("a file elsewhere became a card:\n%s", c.Markdown())
		}
	}
	if cards, _, err = Read(t.Context(), filepath.Join(dir, "out.md"), time.Now()); err != nil || len(cards) != 1 {
		t.Errorf("a link that a user names: %d cards, %v", len(cards), err)
	}
}

func TestRead(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.md":                "# One\ntext\n",
		"b/card.md":           "---\ntype: knowledge_card\ntopic: t\nsource_task: s\nid: k1\nstate: reviewed\nverified_at: 2026-01-01\n---\n- **Issue**: x\n",
		"b/broken.md":         "---\ntype: knowledge_card\ntopic:\n---\n",
		"list.md":             card.ListMark + "\n# Cards\n- one\n",
		"empty.md":            "# Nothing\n",
		"binary.md":           "\xff\xfe",
		"long.md":             strings.Repeat("x", MaxFileBytes+1),
		"readme.txt":          "not markdown",
		"node_modules/m/r.md": "# Not ours\ntext\n",
		".hidden/r.md":        "# Not ours\ntext\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cards, skipped, err := Read(t.Context(), dir, day())
	if err != nil || len(cards) != 2 || len(skipped) != 4 {
		t.Fatalf("%d cards, skipped %+v, %v", len(cards), skipped, err)
	}
	if c := cards[1]; c.ID != "k1" || c.State != card.Draft || c.VerifiedAt != nil || !c.Provenance.Tainted {
		t.Errorf("another's card came as %+v", c)
	}
	if _, _, err := Read(t.Context(), filepath.Join(dir, "nosuch"), day()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no such folder: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Read(ctx, dir, day()); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func FuzzSplit(f *testing.F) {
	f.Add([]byte(agents))
	f.Add([]byte("```\n# x\n- a\n\n\n  b\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		cards, _ := Split("/x/y.md", []byte(strings.ToValidUTF8(string(src), "?")), day())
		for _, c := range cards {
			if len(c.Solution)+len(c.Constraint) != 1 || c.Topic == "" {
				t.Fatalf("%+v", c)
			}
		}
	})
}

package agent

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"anamnesis/anamnesis/tokens"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// TestPrompts: what the agents that come with the program are told. A text that
// forbids or threatens keeps models from ever using what it is about.
func TestPrompts(t *testing.T) {
	l := NewLoader(&Options{Tools: known})
	entries, err := l.List()
	if err != nil || len(entries) != 4 {
		t.Fatalf("%v, %v", entries, err)
	}
	counter, err := tokens.ForEncoding("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	v := Vars{
		Now: time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC), Dir: "/home/p/w", Listing: "go.mod\nmain.go\nsrc/",
		Instructions: "What the people who work here tell agents.\n\n--- /home/p/w/AGENTS.md\nUse tabs.",
	}
	loud := regexp.MustCompile(`(?i:\b(never|forbidden|must not|prohibited)\b)|\bMUST\b|\bDO NOT\b|\bIMPORTANT\b`)
	for _, e := range entries {
		a, err := l.Load(e.Name)
		if err != nil {
			t.Fatal(err)
		}
		got := Render(&a.Spec, v)
		if found := loud.FindString(got); found != "" || strings.Contains(got, "${") {
			t.Errorf("%s: %q occurs, or something is not filled in", e.Name, found)
		}
		if n := counter.Count(a.Spec.Prompt); n > 1_000 {
			t.Errorf("%s: %d tokens before anything is filled in; want at most 1,000", e.Name, n)
		}
		path := filepath.Join("testdata", "prompt_"+e.Name+".txt")
		if *update {
			if err := os.WriteFile(path, []byte(got+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || got+"\n" != string(want) {
			t.Errorf("%s differs (%v); -update rewrites it if this is right:\n%s", path, err, got)
		}
	}
}

// TestRenderOnce: what is filled in is text, whatever it looks like.
func TestRenderOnce(t *testing.T) {
	s := Spec{Prompt: "${A} ${AGENTS_MD} $A $${A} ${unknown}", Args: map[string]string{"A": "${WORK_DIR}"}}
	if got, want := Render(&s, Vars{Instructions: "${A} $${A}", Dir: "/w"}), "${WORK_DIR} ${A} $${A} $A ${A} ${unknown}"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// writeCard puts a card's file into the knowledge base of a home.
func writeCard(t *testing.T, home, id, topic, created, body string) {
	t.Helper()
	dir := filepath.Join(home, "knowledge_base", "2026-01")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("---\ntype: knowledge_card\ntopic: %s\nsource_task: by_hand\nid: %s\nstate: draft\ncreated: %s\n---\n\n%s\n", topic, id, created, body)
	if err := os.WriteFile(filepath.Join(dir, id+".md"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestBrowserReview(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	subjects := strings.Fields("cache socket parser token branch commit index lock queue retry schema shell socket stream timer vector worker yaml zone merge")
	for i, subject := range subjects {
		writeCard(t, home, fmt.Sprintf("draft%02d", i+1), fmt.Sprintf("lesson %d", i+1),
			fmt.Sprintf("2026-01-%02dT10:00:00Z", i+1),
			fmt.Sprintf("- **Issue**: the %s is stale after a test run\n- **Solution**: build the %s anew",
				subject, subject))
	}
	browse(t, "review.cjs", startServe(t, home), map[string]any{"card": "draft01"})

	// What the page did is in the files and in their history, as from the verbs.
	approved, rejected := 0, 0
	for i := range subjects {
		text, err := os.ReadFile(filepath.Join(home, "knowledge_base", "2026-01", fmt.Sprintf("draft%02d.md", i+1)))
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case strings.Contains(string(text), "state: reviewed\n") && strings.Contains(string(text), "verified_at: "):
			approved++
		case strings.Contains(string(text), "state: retired\n"):
			rejected++
		}
		if i == 9 && !strings.Contains(string(text), "topic: lesson 10, corrected by hand\n") {
			t.Errorf("the edited card says\n%s", text)
		}
	}
	if approved != 18 || rejected != 2 {
		t.Errorf("%d approved and %d rejected, want 18 and 2", approved, rejected)
	}
	log, err := exec.Command("git", "-C", filepath.Join(home, "knowledge_base"), "log", "--format=%s").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Approve: lesson 1\n", "Taken back: Rejected: lesson 9\n", "Edit card: lesson 10, corrected by hand\n"} {
		if strings.Count(string(log), want) != 1 {
			t.Errorf("the history lacks %q:\n%s", want, log)
		}
	}
}

// TestBrowserGroups decides about the drafts of a night in groups.
func TestBrowserGroups(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	draft := func(i int, task, repo, topic, body string) {
		id := fmt.Sprintf("draft%02d", i)
		writeCard(t, home, id, topic, fmt.Sprintf("2026-01-%02dT10:00:00Z", i+1), body)
		file := filepath.Join(home, "knowledge_base", "2026-01", id+".md")
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text = []byte(strings.Replace(string(text), "source_task: by_hand\n",
			"source_task: "+task+"\nscope:\n  repo: "+repo+"\n", 1))
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	subjects := strings.Fields("cache socket parser token branch commit index lock queue retry schema shell stream timer vector worker yaml zone merge paint")
	for i, subject := range subjects {
		draft(i, fmt.Sprintf("night-%d", i/5), "shop", "the lesson about "+subject,
			fmt.Sprintf("- **Issue**: %[1]s\n- **Solution**: %[1]s", strings.Repeat(subject+" ", 4)))
	}
	for i := range 6 {
		draft(20+i, fmt.Sprintf("morning-%d", i), "sympy", "No module named pytest",
			fmt.Sprintf("- **Issue**: `pytest sympy/tests/test_%d.py` failed: No module named pytest\n- **Solution**: Run before: `bin/test sympy/tests/test_%d.py`", i, i))
	}
	browse(t, "groups.cjs", startServe(t, home), nil)
}

// TestBrowserSearch is about the card that the demo's task has written, with
// that task as its evidence.
func TestBrowserSearch(t *testing.T) {
	t.Parallel()
	counterpart(t, "ANAMNESIS_BROWSER", "the npm packages playwright-core and axe-core")
	dir := filepath.Join(t.TempDir(), "demo")
	cmd := exec.Command(os.Args[0], "demo", "--dir", dir)
	cmd.Env = append(os.Environ(), "ANAMNESIS_TEST_MAIN=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("demo: %v\n%s", err, out)
	}
	home := filepath.Join(dir, "home")
	files, err := filepath.Glob(filepath.Join(home, "knowledge_base", "20*", "adding-up-*.md"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the demo wrote the cards %v (%v)", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	args := map[string]any{"file": files[0]}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "topic: "); ok {
			args["topic"] = strings.Trim(strings.TrimSpace(value), `"'`)
		}
		if value, ok := strings.CutPrefix(line, "id: "); ok {
			args["card"] = strings.TrimSpace(value)
		}
	}
	for i, near := range [][2]string{
		{"An invoice's total in float64 loses a cent", "- **Issue**: the total of an invoice is off by a cent\n- **Solution**: add whole cents as integers"},
		{"ParseFloat rounds amounts with many digits", "- **Issue**: large amounts of money come back changed\n- **Solution**: parse the digits into whole cents"},
		{"JSON numbers beyond 2^53 lose digits", "- **Issue**: ids in JSON change when they are read\n- **Solution**: send them as strings"},
	} {
		writeCard(t, home, fmt.Sprintf("near%d", i), near[0], fmt.Sprintf("2026-01-0%dT10:00:00Z", i+1), near[1])
	}
	browse(t, "search.cjs", startServe(t, home), args)
}

func TestBrowserHostileCard(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	writeCard(t, home, "hostile1", `"hostile <script>window.hostile=1</script> <img src=x onerror=window.hostile=1>"`,
		"2026-01-01T10:00:00Z",
		`- **Issue**: <script>window.hostile=1</script> and <img src="https://evil.example/a.png" onerror="window.hostile=1">
- **Solution**: ![remote](https://evil.example/b.png) ![data](data:image/svg+xml;base64,PHN2Zy8+) [click](javascript:window.hostile=1)
- **Constraint**: pay `+"\u202e"+`nimda`+"\u202c"+` &#x202e; now

<svg onload="window.hostile=1"><script>window.hostile=1</script></svg>

<style>@import url(https://evil.example/c.css)</style>

<iframe srcdoc="<script>parent.hostile=1</script>"></iframe>

<form action="/undo" method="post"><button data-key="a">x</button></form>

<div hx-get="/undo" hx-trigger="load" hx-on::load="window.hostile=1"></div>

<meta http-equiv="refresh" content="0;url=https://evil.example/">`)
	browse(t, "hostile.cjs", startServe(t, home), map[string]any{"card": "hostile1"})
}

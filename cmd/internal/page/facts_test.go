package page

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"anamnesis/anamnesis/facts"
	"anamnesis/orchestrator/memory"
)

// TestFacts: the facts of a task's repository are a card whose lines a user corrects. The words outrank the count.
func TestFacts(t *testing.T) {
	s := openSite(t)
	newTask(t, s, "t")
	st, err := s.page.tasks.State("t")
	if err != nil {
		t.Fatal(err)
	}
	wantIn(t, "without facts", s.get(t, "/tasks/t/facts"), "No facts yet")
	repo, err := memory.OpenFacts(s.home, st.Opened.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		if err := repo.Add(facts.Task{ID: fmt.Sprint("t", i), Ended: time.Now(), Programs: map[string]string{"javac": "m"}, Commands: []facts.Command{{Words: "bin/test core", Runner: "bin/test", Ends: "r"}}}); err != nil {
			t.Fatal(err)
		}
	}
	wantIn(t, "task", s.get(t, "/tasks/t"), `href="/tasks/t/facts"`)
	page := s.get(t, "/tasks/t/facts")
	for _, want := range []string{"<h2>Issue</h2>", "`javac` (6 of 6)", "<h2>Solution</h2>", "`bin/test LABEL` (6 of 6)", "Constraint", "missing:javac, last seen "} {
		wantIn(t, "facts", page, want)
	}
	form := url.Values{"fact": {"missing:javac"}, "line": {"javac is in\n/opt/jdk/bin."}}
	if a := s.ask(t, "POST", "/tasks/t/facts", form, header("Origin", "http://evil.example")); a.code != http.StatusForbidden {
		t.Errorf("from elsewhere: %d", a.code)
	}
	if a := s.ask(t, "POST", "/tasks/t/facts", form); a.code != http.StatusSeeOther {
		t.Fatalf("%d\n%s", a.code, a.text)
	}
	wantIn(t, "corrected", s.get(t, "/tasks/t/facts"), `value="javac is in /opt/jdk/bin."`)
	text, told, err := memory.TellFacts(s.home, st.Opened.Dir)
	if f, _ := facts.NeverStarts(told, "javac A.java"); err != nil || f != nil ||
		!strings.Contains(text, "javac is in /opt/jdk/bin.") || strings.Contains(text, "6 of 6), ") {
		t.Errorf("a user's words: %v, held by %v, told:\n%s", err, f, text)
	}
	for _, tt := range []struct {
		fact, line string
		code       int
	}{{"missing:nosuch", "x", 404}, {"missing:javac", strings.Repeat("x", 201), 400}, {"missing:javac", " ", 303}} {
		if a := s.ask(t, "POST", "/tasks/t/facts", url.Values{"fact": {tt.fact}, "line": {tt.line}}); a.code != tt.code {
			t.Errorf("%.20s %.20s: %d\n%s", tt.fact, tt.line, a.code, a.text)
		}
	}
	if page := s.get(t, "/tasks/t/facts"); strings.Contains(page, "javac") {
		t.Errorf("a line without words is still there:\n%s", page)
	}
}

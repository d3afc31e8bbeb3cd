package page

import (
	"strings"
	"testing"

	"anamnesis/orchestrator/state"
)

// TestCopiedTask: a task that a bucket keeps is steered from its page while a process has it, and the page says how it
// stands there.
func TestCopiedTask(t *testing.T) {
	s := openSite(t)
	newTask(t, s, "t")
	stands := ""
	h := s.home
	h.Standing = func(string, *state.State) string { return stands }
	s.page.tasks = s.page.tasks.At(h)
	s.page.watches.tasks = s.page.tasks
	for _, tt := range []struct {
		stands, text string
		steered      bool
	}{
		{"running", "a process works on it now", true},
		{"asking", "it waits for an answer", true},
		{"waiting", "somebody who continues it", false},
		{"abandoned", "&#39;anamnesis resume&#39; takes it", false},
		{"done", "ended with an answer", false},
	} {
		stands = tt.stands
		html := s.get(t, "/tasks/t")
		wantIn(t, tt.stands, html, "In the bucket: ", tt.text)
		if got := strings.Contains(html, `action="/tasks/t/say"`); got != tt.steered {
			t.Errorf("%s: steered %v", tt.stands, got)
		}
	}
}

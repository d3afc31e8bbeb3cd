package page

import (
	"net/http"
	"strings"
	"testing"

	"anamnesis/opstream/op"
)

// TestSearchTasks: a word leads from the list of tasks to the operation that has it; what a task said is text.
func TestSearchTasks(t *testing.T) {
	s := openSite(t)
	newTask(t, s, "t").add(&op.UserSaid{Text: "zebras <b>bold</b>", Source: op.SourceSteer})
	newTask(t, s, "u")
	for address, want := range map[string][]string{
		"/tasks?q=zebras":            {"1 task found.", `href="/tasks/t/ops/4"`, "zebras &lt;b&gt;bold"},
		"/tasks?q=zebras&errors=yes": {"0 tasks found.", "Nothing was found.", " checked"},
		"/tasks":                     {`href="/tasks/u"`, `<form method="get" action="/tasks"`},
	} {
		got := s.ask(t, http.MethodGet, address, nil)
		for _, w := range want {
			if got.code != http.StatusOK || !strings.Contains(got.body(), w) {
				t.Errorf("%s: %d, without %q:\n%s", address, got.code, w, got.body())
			}
		}
	}
	if got := s.ask(t, http.MethodGet, "/tasks?q=*", nil); got.code != http.StatusBadRequest ||
		!strings.Contains(got.body(), "no word to look for") {
		t.Errorf("no word: %d %s", got.code, got.body())
	}
}

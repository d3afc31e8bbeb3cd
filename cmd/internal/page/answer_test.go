package page

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"anamnesis/opstream/op"
)

// TestAnswer: a task's page has a form for its question. The first answer counts; one that does not fit, a second
// one and one to no question are refused.
func TestAnswer(t *testing.T) {
	s := openSite(t)
	w := newTask(t, s, "task_1")
	w.add(&op.ModelAsked{LastSeq: 3},
		&op.ModelReplied{Calls: []op.Call{{ID: "c", Name: "Bash", Args: `{"command":"make"}`}}, Finish: "tool_calls"})
	seq := w.add(&op.QuestionAsked{
		About: op.AboutCall, Text: "May Bash(make) run?", Call: "c", Name: "Bash", Args: `{"command":"make"}`,
		Why: "mode:ask",
	})
	if err := w.log.Close(); err != nil {
		t.Fatal(err)
	}
	page := s.get(t, "/tasks/task_1")
	wantIn(t, "the page", page, `action="/tasks/task_1/answer"`, "command: make", "asked because approval is ask",
		`name="op" value="6"`, `value="always"`)
	if strings.Index(page, `value="no"`) > strings.Index(page, `value="yes"`) {
		t.Error("the Enter key would let the call run")
	}
	wantIn(t, "the list", s.get(t, "/tasks"), "asks: May Bash(make) run?")
	post := func(op, answer, words string) answer {
		t.Helper()
		return s.ask(t, "POST", "/tasks/task_1/answer", url.Values{"op": {op}, "answer": {answer}, "words": {words}})
	}
	for _, tt := range []struct {
		op, answer, words string
		code              int
		text              string
	}{
		{"", "yes", "", http.StatusBadRequest, "does not say which question"},
		{"6", "send", "perhaps", http.StatusBadRequest, "does not answer the question"},
		{"5", "yes", "", http.StatusBadRequest, "no open question"},
		{"6", "no", "use go build", http.StatusSeeOther, ""},
		{"6", "yes", "", http.StatusConflict, "answered already, by "},
	} {
		if got := post(tt.op, tt.answer, tt.words); got.code != tt.code || !strings.Contains(got.text, tt.text) {
			t.Errorf("%+v: %d\n%s", tt, got.code, got.text)
		}
	}
	st, err := s.page.tasks.State("task_1")
	if err != nil {
		t.Fatal(err)
	}
	if q := st.Questions[0]; q.Seq != seq || q.Answer == nil || q.Answer.Allow || q.Answer.Text != "use go build" ||
		q.Answer.From != "page" {
		t.Errorf("recorded %+v", q.Answer)
	}
	if page := s.get(t, "/tasks/task_1"); strings.Contains(page, "/answer") {
		t.Error("the page still asks")
	}
}

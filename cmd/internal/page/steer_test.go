package page

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"anamnesis/orchestrator/taskdir"
)

// TestSteer: each form of a task's page reaches the process that runs it, from this server's own pages only.
func TestSteer(t *testing.T) {
	s := openSite(t)
	w := newTask(t, s, "t")
	w.call("Bash", "one")
	var mu sync.Mutex
	var got []string
	stop, err := taskdir.Serve(s.home.Socket("t"), func(c taskdir.Command) error {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, fmt.Sprint(c.Verb, " ", c.Text+c.From, c.To, c.Reason))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()

	for _, c := range []struct {
		act  string
		form url.Values
		to   string
	}{
		{"say", url.Values{"text": {" Mind the gap. "}}, "say"},
		{"stop", nil, "stop"},
		{"jump", url.Values{"to": {"0"}, "text": {"start over"}}, "scheduled"},
	} {
		path := "/tasks/t/" + c.act
		for _, edit := range []func(*http.Request){header("Origin", ""), header("Origin", "http://evil.example"), noCookie} {
			if a := s.ask(t, "POST", path, c.form, edit); a.code != http.StatusForbidden &&
				a.code != http.StatusUnauthorized {
				t.Errorf("%v from elsewhere: %d", c.form, a.code)
			}
		}
		_ = s.ask(t, "GET", path+"?"+c.form.Encode(), nil) // it reaches no process
		a := s.ask(t, "POST", path, c.form)
		if to := a.header.Get("Location"); a.code != http.StatusSeeOther || to != "/tasks/t?did="+c.to {
			t.Errorf("%v: %d to %q\n%s", c.form, a.code, to, a.text)
		}
		wantIn(t, c.to, s.get(t, "/tasks/t?did="+c.to), did(c.to))
	}
	want := []string{"say Mind the gap.0", "stop the page0", "jump 0start over"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestSteerRefused: what does not fit is refused with its reason, and nothing is done.
func TestSteerRefused(t *testing.T) {
	s := openSite(t)
	newTask(t, s, "t")
	for _, c := range []struct {
		act  string
		form url.Values
		code int
		want string
	}{
		{"dance", nil, 405, "Method Not Allowed"},
		{"say", url.Values{"text": {" "}}, 400, "the text is empty"},
		{"say", url.Values{"text": {"Hello."}}, 400, "task is not running: t"},
		{"stop", nil, 400, "task is not running: t"},
		{"jump", url.Values{"to": {"x"}}, 400, "is not a step"},
		{"jump", url.Values{"to": {"7"}}, 404, "no such checkpoint"},
	} {
		if a := s.ask(t, "POST", "/tasks/t/"+c.act, c.form); a.code != c.code || !strings.Contains(a.text, c.want) {
			t.Errorf("%v: %d\n%s", c.form, a.code, a.text)
		}
	}
	if a := s.ask(t, "POST", "/tasks/none/stop", nil); a.code != 404 {
		t.Errorf("an unknown task: %d", a.code)
	}
	if a := s.ask(t, "GET", "/tasks/t/jump?to=9", nil); a.code != 404 {
		t.Errorf("a plan for an unknown step: %d\n%s", a.code, a.text)
	}
	if state := s.get(t, "/tasks/t"); strings.Contains(state, "End the turn") {
		t.Error("a task that does not run is offered to be stopped")
	}
}

package page

import (
	"net/http"
	"strings"
	"testing"

	"anamnesis/cmd/internal/page/door"
)

// rights says for each route which browsers may use it.
const rights = `
anyone GET /static/{name}
read   GET /{$}
read   GET /
read   GET /review
answer POST /review
read   GET /review/{card}
answer POST /undo
read   GET /cards
read   GET /cards/{card}
answer POST /cards/{card}/decide
answer GET /cards/{card}/edit
answer POST /cards/{card}/edit
answer POST /preview
read   GET /cards/{card}/history
read   GET /cards/{card}/evidence
read   GET /tasks
read   GET /tasks/{task}
read   GET /tasks/{task}/live
read   GET /tasks/{task}/report
read   GET /tasks/{task}/ops/{seq}
read   GET /tasks/{task}/ops/{seq}/context
read   GET /tasks/{task}/steps/{step}
read   GET /tasks/{task}/steps/{step}/blame
answer POST /tasks/{task}/answer
answer POST /tasks/{task}/say
answer POST /tasks/{task}/stop
jump   GET /tasks/{task}/jump
jump   POST /tasks/{task}/jump
read   GET /tasks/{task}/facts
answer POST /tasks/{task}/facts
jump   GET /sessions
jump   POST /sessions
`

// TestRights asks for every route with every right: a browser with less is refused, and nothing is done.
func TestRights(t *testing.T) {
	s := openSite(t)
	s.addCard(t, "c1", "one")
	newTask(t, s, "t").call("Bash", "x")
	stated := make(map[string]string)
	for line := range strings.Lines(strings.TrimSpace(rights)) {
		right, pattern, _ := strings.Cut(strings.TrimSpace(line), " ")
		stated[strings.TrimSpace(pattern)] = right
	}
	browsers := make(map[door.Right]*site)
	for may := door.Anyone; may <= door.Jump; may++ {
		browsers[may] = s.with(t, may)
	}
	path := strings.NewReplacer("{name}", "page.css", "{$}", "", "{card}", "c1", "{task}", "t", "{seq}", "1",
		"{step}", "0")
	for _, r := range s.page.routes() {
		if stated[r.pattern] != r.right.String() {
			t.Errorf("%s needs the right to %s, stated is %q", r.pattern, r.right, stated[r.pattern])
		}
		delete(stated, r.pattern)
		method, to, _ := strings.Cut(path.Replace(r.pattern), " ")
		for may := door.Anyone; may <= door.Jump; may++ {
			got := browsers[may].ask(t, method, to, nil)
			switch {
			case may < r.right && may == door.Anyone:
				if got.code != http.StatusUnauthorized {
					t.Errorf("%s without access: %d", r.pattern, got.code)
				}
			case may < r.right:
				if got.code != http.StatusForbidden ||
					!strings.Contains(got.text, "needs the right to "+r.right.String()) {
					t.Errorf("%s with the right to %s: %d\n%s", r.pattern, may, got.code, got.text)
				}
			case got.code == http.StatusForbidden || got.code == http.StatusUnauthorized:
				t.Errorf("%s with the right to %s: %d", r.pattern, may, got.code)
			}
		}
	}
	for pattern := range stated {
		t.Errorf("there is no route %s", pattern)
	}
}

// TestSessionsPage: the browsers are listed, one is ended, then all others, and each time the addresses are new.
func TestSessionsPage(t *testing.T) {
	s := openSite(t)
	var renewed [][]string
	s.page.renewed = func(urls []string) { renewed = append(renewed, urls) }
	reader, other := s.with(t, door.Read), s.with(t, door.Jump)
	page := s.get(t, "/sessions")
	wantIn(t, "the page", page, "3 browsers have access", "only reads", "this browser", s.token(t, door.Read),
		s.token(t, door.Answer), s.token(t, door.Jump))
	if got := s.ask(t, "POST", "/sessions", form("session", "x")); got.code != http.StatusBadRequest {
		t.Errorf("no session: %d", got.code)
	}
	old := s.token(t, door.Jump)
	if got := s.ask(t, "POST", "/sessions", form("session", "2")); got.code != http.StatusSeeOther {
		t.Errorf("%d", got.code)
	}
	if a, b := reader.ask(t, "GET", "/review", nil).code, other.ask(t, "GET", "/review", nil).code; a != 401 ||
		b != 200 {
		t.Errorf("the ended session: %d, another: %d", a, b)
	}
	s.ask(t, "POST", "/sessions", form("session", "others"))
	if a, b := other.ask(t, "GET", "/review", nil).code, s.ask(t, "GET", "/review", nil).code; a != 401 || b != 200 {
		t.Errorf("another session: %d, the own: %d", a, b)
	}
	if got := s.ask(t, "GET", "/?token="+old, nil, noCookie); got.code != 401 {
		t.Errorf("the earlier address: %d", got.code)
	}
	if len(renewed) != 2 || !strings.HasSuffix(renewed[1][0], s.token(t, door.Jump)) {
		t.Errorf("told: %q", renewed)
	}
}

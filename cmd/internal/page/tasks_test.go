package page

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/opstream"
	"anamnesis/opstream/op"
)

// stream writes a task's operations, as the program that runs it would.
type stream struct {
	t      testing.TB
	dir    string
	log    *opstream.Log
	step   int
	parent int
}

// newTask begins a task in a site's home.
func newTask(t testing.TB, s *site, id string) *stream {
	t.Helper()
	w := &stream{t: t, dir: s.home.Task(id)}
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	var err error
	if w.log, err = opstream.Open(w.dir, &opstream.Options{SealAfter: -1}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.log.Close() })
	w.add(&op.TaskOpened{
		Task: id, Dir: t.TempDir(), Store: filepath.Join(t.TempDir(), "store.git"), Model: "m", EAS: 4000,
		Window: 128000, Encoding: "r50k_base", System: "You are an agent.",
	})
	w.add(&op.UserSaid{Text: "Do it.", Source: op.SourceRequest})
	w.save()
	return w
}

func entryOf(t testing.TB, step int, b op.Body) opstream.Entry {
	t.Helper()
	body, err := op.Encode(b)
	if err != nil {
		t.Fatal(err)
	}
	return opstream.Entry{Kind: string(b.Kind()), Step: step, Tok: 10, Body: body}
}

// add appends operations of the step under way, in one write.
func (w *stream) add(bodies ...op.Body) uint64 {
	w.t.Helper()
	var entries []opstream.Entry
	for _, b := range bodies {
		entries = append(entries, entryOf(w.t, w.step, b))
	}
	first, err := w.log.Append(w.t.Context(), entries...)
	if err != nil {
		w.t.Fatal(err)
	}
	return first
}

// save ends the step under way.
func (w *stream) save() {
	w.t.Helper()
	w.add(&op.WorldSaved{
		Parent: w.parent, Commit: fmt.Sprintf("%040x", w.step+1), Tree: fmt.Sprintf("%040x", w.step+1),
		Complete: true,
	})
	w.parent = w.step
	w.step++
}

// call is a step with one call and its result: five operations.
func (w *stream) call(name, text string) {
	w.t.Helper()
	id := fmt.Sprint("c", w.step)
	last, _ := w.log.Last()
	w.add(
		&op.ModelAsked{LastSeq: last, Tokens: 100 + w.step},
		&op.ModelReplied{Text: text, Calls: []op.Call{{ID: id, Name: name, Args: "{}"}}, Finish: "tool_calls"},
		&op.ToolCalled{Call: id, Name: name, Args: "{}"},
		&op.ToolReturned{Call: id, Name: name, Text: text},
	)
	w.save()
}

// jump goes back, with a block and a card.
func (w *stream) jump(to int, reason string) {
	w.t.Helper()
	from := w.parent
	w.add(
		&op.PassDone{Trigger: "person", Block: "[ANAMNESIS_BLOCK]", Cards: []string{"card-1"}, Writer: "extractor"},
		&op.JumpIntended{From: from, To: to, Reason: reason, By: "agent", Backward: true},
		&op.JumpDone{
			From: from, To: to, Backward: true, Reverted: []string{"new.go", "old.go"}, Deleted: []string{"new.go"},
			NReverted: 2, Notice: "The files are as of step " + fmt.Sprint(to),
		},
	)
	w.parent = to
}

func (w *stream) end(reason string) { w.add(&op.TurnEnded{Reason: reason}) }

// body is the text of an answer behind its header.
func (a answer) body() string {
	_, body, _ := strings.Cut(a.text, "\r\n\r\n")
	return body
}

// get returns a page, which must exist.
func (s *site) get(t testing.TB, path string, edits ...func(*http.Request)) string {
	t.Helper()
	got := s.ask(t, "GET", path, nil, edits...)
	if got.code != http.StatusOK {
		t.Fatalf("%s: %d\n%s", path, got.code, got.text)
	}
	checkHeader(t, got.header)
	return got.body()
}

func asPart(r *http.Request) { r.Header.Set("HX-Request", "true") }

func wantIn(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%s lacks %q:\n%.6000s", what, p, text)
		}
	}
}

// TestUnlinked: an operation's text does not name the cards that links beside it name.
func TestUnlinked(t *testing.T) {
	for text, want := range map[string]string{
		"15151 tokens discarded\n→ card c1\n→ card c2\n→ no card: x":       "15151 tokens discarded\n→ no card: x",
		"2 failed commands that worked later: 2 cards c1 c2, completes c3": "2 failed commands that worked later: 2 cards, completes c3",
	} {
		if got := unlinked(text, []string{"c1", "c2"}); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestProblemPage: a refusal has its title above what was refused.
func TestProblemPage(t *testing.T) {
	s := openSite(t)
	got := s.ask(t, "GET", "/tasks/none", nil)
	if _, after, ok := strings.Cut(got.text, "<h1>Not Found</h1>"); !ok ||
		!strings.Contains(after, "no such task: none") {
		t.Errorf("%d: %s", got.code, got.text)
	}
}

// TestTaskAddresses: a missing page is Not Found, and no address leads out of the tasks.
func TestTaskAddresses(t *testing.T) {
	s := openSite(t)
	newTask(t, s, "task_1").call("Bash", "ok")
	if err := os.WriteFile(filepath.Join(s.home.State, "secret"), []byte("s"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path string
		want int
	}{
		{"/tasks", 200},
		{"/tasks?skip=5", 200},
		{"/tasks?skip=x", 400},
		{"/tasks/task_1", 200},
		{"/tasks/task_1?ops=99999&row=99999", 200},
		{"/tasks/task_1?ops=-1", 400},
		{"/tasks/task_1?row=18446744073709551616", 400},
		{"/tasks/task_2", 404},
		{"/tasks/..", 404},
		{"/tasks/%2e%2e", 404},
		{"/tasks/..%2f..%2fsecret", 404},
		{"/tasks/..%2ftasks%2ftask_1", 404},
		{"/tasks/task_1%00", 404},
		{"/tasks/task_1/ops/1", 200},
		{"/tasks/task_1/ops/9", 404},
		{"/tasks/task_1/ops/0", 404},
		{"/tasks/task_1/ops/x", 404},
		{"/tasks/task_1/ops/18446744073709551615", 404},
		{"/tasks/task_1/ops/..%2f..%2f..%2fsecret", 404},
		{"/tasks/task_1/ops/5/context", 200},
		{"/tasks/task_1/ops/9/context", 404},
		{"/tasks/task_1/ops/5/context?from=x", 400},
		{"/tasks/task_1/steps/1", 200},
		{"/tasks/task_1/steps/2", 404},
		{"/tasks/task_1/steps/18446744073709551615", 404},
		{"/tasks/task_2/steps/0", 404},
		{"/tasks/task_2/live", 404},
		{"/tasks/task_1/live?after=x", 400},
	} {
		got := s.ask(t, "GET", tt.path, nil)
		for got.code == http.StatusMovedPermanently || got.code == http.StatusTemporaryRedirect ||
			got.code == http.StatusPermanentRedirect {
			got = s.ask(t, "GET", got.header.Get("Location"), nil) // a path the mux cleans
			if got.code == http.StatusSeeOther {
				got.code = http.StatusNotFound // it led to the first page
			}
		}
		if got.code != tt.want {
			t.Errorf("%s: %d, want %d\n%.2000s", tt.path, got.code, tt.want, got.text)
		}
		if strings.Contains(got.body(), s.home.State) {
			t.Errorf("%s tells where the tasks stand", tt.path)
		}
	}
}

// Subagents' tasks are listed only on request, and link to their parent.
func TestSubagentTasks(t *testing.T) {
	s := openSite(t)
	newTask(t, s, "whole").call("Bash", "ok")
	part := s.home.Task("whole.1")
	if err := os.MkdirAll(part, 0o700); err != nil {
		t.Fatal(err)
	}
	log, err := opstream.Open(part, &opstream.Options{SealAfter: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	opened := &op.TaskOpened{
		Task: "whole.1", Dir: t.TempDir(), Model: "m", EAS: 4000,
		Parent: &op.Parent{Task: "whole", Op: 5, Call: "c1", Agent: "explore"},
	}
	if _, err := log.Append(t.Context(), entryOf(t, 0, opened)); err != nil {
		t.Fatal(err)
	}
	list := s.get(t, "/tasks")
	if strings.Contains(list, "/tasks/whole.1") {
		t.Errorf("the list holds a subagent's task:\n%s", list)
	}
	wantIn(t, "the list", list, `href="/tasks/whole"`, "1 to 1 of 1", "The task of a subagent is not among them",
		`href="/tasks?all=yes"`)
	wantIn(t, "the list of all", s.get(t, "/tasks?all=yes"), `href="/tasks/whole"`, `href="/tasks/whole.1"`,
		"1 to 2 of 2", "a subagent of whole")
	wantIn(t, "a subagent's task", s.get(t, "/tasks/whole.1"), `A subagent (explore) of <a href="/tasks/whole/ops/5">`)
}

// TestTimelinePage: the steps, the branch that was left, the jump, the block,
// the card, the figures and the operations of a task are on its page.
func TestTimelinePage(t *testing.T) {
	s := openSite(t)
	w := newTask(t, s, "task_1")
	w.call("ReadFile", "first")
	w.call("Bash", "a wrong path")
	w.jump(1, "it was wrong")
	w.call("WriteFile", "the right one")
	w.end("done")
	page := s.get(t, "/tasks/task_1")
	wantIn(t, "the page", page,
		`<span class="chip done" title="the last turn ended with an answer">done</span> the last turn ended with an answer`, `aria-current="step"`, `id="step-2" data-parent="1"`,
		`aria-label="Branch from step 1, left: it was wrong"`, "block, 1 ✦", `↩ <span class="short">to 1<`,
		"card card-1",
		"Last request 103 tokens", "of the EAS of 4000", "window 128000", "Operations 1 to 22 of 22.", `id="op-22"`, `class="jump"`, `class="dot left`, `class="dot here"`)
	if strings.Contains(page, "<style") || strings.Contains(page, " style=") ||
		strings.Contains(page, " on") && strings.Contains(page, "onclick") {
		t.Error("a style or a script stands in the page")
	}
	wantIn(t, "the list of tasks", s.get(t, "/tasks"), `href="/tasks/task_1"`,
		"3 steps · 22 operations · 1 jump", " · /")
	wantIn(t, "the step", s.get(t, "/tasks/task_1/steps/2"), "Left: it was wrong", "not in", "any more",
		`/tasks/task_1/ops/9`, `/tasks/task_1/ops/16`)
	wantIn(t, "the operation", s.get(t, "/tasks/task_1/ops/7"), "tool.returned", "first", `/tasks/task_1/ops/7/context`)
	part := s.get(t, "/tasks/task_1/ops/7", asPart)
	if strings.Contains(part, "<html") || !strings.Contains(part, `id="opened"`) {
		t.Errorf("the part is not one:\n%s", part)
	}
}

// TestContextPage: the context shown is that of the operation; for a request, the one sent.
func TestContextPage(t *testing.T) {
	s := openSite(t)
	w := newTask(t, s, "task_1")
	w.call("ReadFile", "first")
	w.call("Bash", "second")
	early := s.get(t, "/tasks/task_1/ops/4/context")
	wantIn(t, "the first request", early, "As the request of op 4 carried it", "up to op 3",
		"You are an agent.", "Do it.")
	if strings.Contains(early, "first") {
		t.Error("the first request carried what came after it")
	}
	late := s.get(t, "/tasks/task_1/ops/13/context")
	wantIn(t, "the context at the end", late, "As it stood after op 13.", "second", "▸ Bash")
}

// hostileText would act if a page did not escape it.
const hostileText = "<script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31mred\x1b]0;title\a \u202Eevil\u2066 javascript:alert(3) {{.}} \"'><svg onload=alert(4)>"

// TestHostileText: no text of a model, a tool or a user acts, wherever a page shows it.
func TestHostileText(t *testing.T) {
	s := openSite(t)
	w := newTask(t, s, "task_1")
	w.call(hostileText, hostileText)
	w.add(&op.CardsRecalled{Why: "jump", Text: hostileText, Cards: []op.CardRef{{ID: hostileText, Topic: hostileText}}})
	w.jump(0, hostileText)
	w.add(&op.UserSaid{Text: hostileText, Source: op.SourceSteer})
	w.add(&op.JumpDropped{Why: hostileText})
	w.end(hostileText)
	if _, err := w.log.Append(t.Context(), opstream.Entry{Kind: "x.note", Step: w.step, Body: []byte(`{"html":"<script>alert(5)</script>"}`)}); err != nil {
		t.Fatal(err)
	}
	paths := []string{
		"/tasks", "/tasks/task_1", "/tasks/task_1/steps/1",
		"/tasks/task_1/live?after=3&tree=0.1&state=x&ended=false&first=1",
	}
	last, _ := w.log.Last()
	for seq := range last {
		paths = append(paths, fmt.Sprintf("/tasks/task_1/ops/%d", seq+1),
			fmt.Sprintf("/tasks/task_1/ops/%d/context", seq+1))
	}
	for _, path := range paths {
		page := s.get(t, path)
		for _, bad := range []string{"<script>", "<img", "<svg on", "\x1b", "\a", "\u202E", "\u2066", `href="javascript`} {
			if strings.Contains(page, bad) {
				t.Errorf("%s holds %q as it is", path, bad)
			}
		}
	}
	wantIn(t, "the reply", s.get(t, "/tasks/task_1/ops/5"), "&lt;script&gt;alert(1)", `\x1b[31mred`, `\u202e`)
	wantIn(t, "the kind of another program", s.get(t, fmt.Sprintf("/tasks/task_1/ops/%d", last)), "x.note",
		"does not know", "&lt;script&gt;alert(5)")
}

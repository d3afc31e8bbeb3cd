package page

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"anamnesis/opstream"
	"anamnesis/opstream/op"
)

// nextOf returns the address that a page, or an answer to its polling, polls next.
func nextOf(t *testing.T, html string) string {
	t.Helper()
	m := regexp.MustCompile(`<div id="live" hx-get="([^"]+)" hx-trigger="every [15]s"`).FindStringSubmatch(html)
	if m == nil {
		t.Fatalf("nothing follows the task:\n%.3000s", html)
	}
	return strings.ReplaceAll(m[1], "&amp;", "&")
}

// shownOps returns the operations in a page.
func shownOps(html string) (seqs []string) {
	for _, m := range regexp.MustCompile(`id="op-(\d+)"`).FindAllStringSubmatch(html, -1) {
		seqs = append(seqs, m[1])
	}
	return seqs
}

// TestFollow: a page that follows a task receives each operation once, the tree if it has
// changed, and nothing while nothing is new.
func TestFollow(t *testing.T) {
	s := openSite(t)
	w := newTask(t, s, "task_1")
	url := nextOf(t, s.get(t, "/tasks/task_1"))
	quiet := func() {
		t.Helper()
		if got := s.ask(t, "GET", url, nil, asPart); got.code != http.StatusNoContent || got.body() != "" {
			t.Fatalf("nothing is new, and the answer is %d:\n%s", got.code, got.body())
		}
	}
	quiet()
	seen := 3
	for range 3 {
		w.call("Bash", "x")
		news := s.get(t, url, asPart)
		for _, seq := range shownOps(news) {
			if seen++; seq != fmt.Sprint(seen) {
				t.Fatalf("operation %s was sent where %d is the next", seq, seen)
			}
		}
		wantIn(t, "the answer", news, fmt.Sprintf(`id="step-%d"`, w.parent), `id="tree" hx-swap-oob`,
			fmt.Sprintf("Operations 1 to %d of %d.", seen, seen))
		url = nextOf(t, news)
		quiet()
	}
	if seen != 18 {
		t.Fatalf("the page has %d of 18 operations", seen)
	}
	// The middle of a step: the operation is sent, the tree stays.
	w.add(&op.ModelAsked{LastSeq: 18, Tokens: 5})
	url = nextOf(t, s.get(t, url, asPart))
	w.add(&op.ModelReplied{Text: "Done.", Finish: "stop"})
	news := s.get(t, url, asPart)
	if strings.Contains(news, `id="tree"`) || len(shownOps(news)) != 1 {
		t.Errorf("a reply in the middle of a step brings:\n%s", news)
	}
	url = nextOf(t, news)
	w.save()
	w.end("done")
	wantIn(t, "the answer at the end", s.get(t, url, asPart), `id="standing" hx-swap-oob`, "ended with an answer")
}

// TestFollowOlder: a page that shows older operations receives the number of new ones, and
// none of them.
func TestFollowOlder(t *testing.T) {
	s := openSite(t)
	w := newTask(t, s, "task_1")
	for range 60 {
		w.call("Bash", "x")
	}
	url := nextOf(t, s.get(t, "/tasks/task_1?ops=1&row=0"))
	w.call("Bash", "x")
	news := s.get(t, url, asPart)
	if got := shownOps(news); len(got) != 0 {
		t.Errorf("operations %v were sent to a page of older ones", got)
	}
	wantIn(t, "the answer", news, "308 operations", "ops=1&amp;")
}

// TestFollowFarBehind: in a page that is far behind, or has grown long, the newest operations
// replace those shown.
func TestFollowFarBehind(t *testing.T) {
	s := openSite(t)
	w := newTask(t, s, "task_1")
	url := nextOf(t, s.get(t, "/tasks/task_1"))
	for range 90 {
		w.call("Bash", "x")
	}
	news := s.get(t, url, asPart)
	got := shownOps(news)
	if len(got) != opsShown || got[len(got)-1] != "453" || !strings.Contains(news, `id="oplist" hx-swap-oob`) {
		t.Errorf("%d operations, up to %s", len(got), got[len(got)-1])
	}
	wantIn(t, "the next question", nextOf(t, news), "first=254", "after=453")
}

// TestFollowTakenBack: if operations that a page shows were withdrawn, as by a crash before
// they were durable, the page reloads.
func TestFollowTakenBack(t *testing.T) {
	s := openSite(t)
	w := newTask(t, s, "task_1")
	w.call("Bash", "x")
	if err := w.log.Close(); err != nil { // seals; the seal is taken away
		t.Fatal(err)
	}
	url := nextOf(t, s.get(t, "/tasks/task_1"))
	file := filepath.Join(w.dir, "ops", "0000000000000001.jsonl")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data = data[:strings.LastIndexByte(strings.TrimSuffix(string(data), "\n"), '\n')+1]
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	got := s.ask(t, "GET", url, nil, asPart)
	if got.header.Get("HX-Refresh") != "true" {
		t.Errorf("%d, the page goes on with what is no longer there:\n%s", got.code, got.body())
	}
	wantIn(t, "the page loaded again", s.get(t, "/tasks/task_1"), "Operations 1 to 8 of 8.")
}

// spoil changes a byte in the middle of one line of a stream.
func (w *stream) spoil(seq int) {
	w.t.Helper()
	file := filepath.Join(w.dir, "ops", "0000000000000001.jsonl")
	data, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	at := len(strings.Join(lines[:seq-1], "")) + len(lines[seq-1])/2
	data[at] ^= 1
	if err := os.WriteFile(file, data, 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// TestDamagedStream: a corrupt stream is shown up to the damage, with its place and the
// remedy. The server and the other tasks are not affected.
func TestDamagedStream(t *testing.T) {
	s := openSite(t)
	newTask(t, s, "task_2")
	w := newTask(t, s, "task_1")
	w.call("Bash", "before")
	w.call("Bash", "after")
	if err := w.log.Close(); err != nil {
		t.Fatal(err)
	}
	w.spoil(10)
	page := s.get(t, "/tasks/task_1")
	wantIn(t, "the page", page, "damaged in", "0000000000000001.jsonl at byte", "at operation 10", "doctor task_1",
		"before", "Operations 1 to 9 of 9.")
	wantIn(t, "how it stands", page, `unreadable</span>`,
		"It can be read up to operation 9, and cannot be continued as it is.")
	if strings.Contains(page, "resume task_1") {
		t.Error("the page offers to go on with a damaged stream")
	}
	if strings.Contains(page, "task_1/ops/10") {
		t.Error("an operation behind the damage is shown")
	}
	got := s.ask(t, "GET", "/tasks/task_1/ops/10", nil)
	if got.code != http.StatusInternalServerError {
		t.Errorf("operation 10: %d", got.code)
	}
	wantIn(t, "operation 10", got.text, "<h1>This cannot be shown</h1>", "corrupt", "doctor task_1")
	wantIn(t, "an operation before it", s.get(t, "/tasks/task_1/ops/7"), "before")
	wantIn(t, "the list", s.get(t, "/tasks"), "task_2", "unreadable")
	wantIn(t, "another task", s.get(t, "/tasks/task_2"), "Operations 1 to 3 of 3.")
}

// TestImpossibleStream: a task is refused whose operations contradict one another, each time.
func TestImpossibleStream(t *testing.T) {
	s := openSite(t)
	w := newTask(t, s, "task_1")
	w.call("Bash", "x")
	w.add(&op.ToolReturned{Call: "nobody's", Name: "Bash"})
	for range 2 {
		got := s.ask(t, "GET", "/tasks/task_1", nil)
		if got.code != http.StatusInternalServerError {
			t.Errorf("%d", got.code)
		}
		wantIn(t, "the page", got.text, "cannot follow one another", "op 9", "doctor task_1")
	}
}

// TestEmptyStream: a task that has no operation yet has a page that says so.
func TestEmptyStream(t *testing.T) {
	s := openSite(t)
	log, err := opstream.Open(s.home.Task("task_1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	wantIn(t, "the page", s.get(t, "/tasks/task_1"), "stream is empty", "No operation can be read.",
		"No step has begun.")
}

// TestManyTasks: with more tasks than stay open, each page shows its own task.
func TestManyTasks(t *testing.T) {
	s := openSite(t)
	for i := range 2 * maxWatched {
		newTask(t, s, fmt.Sprintf("task_%d", i)).call("Bash", fmt.Sprintf("said by %d", i))
	}
	for range 2 {
		for i := range 2 * maxWatched {
			wantIn(t, "the page", s.get(t, fmt.Sprintf("/tasks/task_%d", i)), fmt.Sprintf("said by %d", i))
		}
	}
	if n := len(s.page.watches.open); n != maxWatched {
		t.Errorf("%d tasks are kept read, at most %d may be", n, maxWatched)
	}
}

// fetch is get for a test's goroutine.
func (s *site) fetch(path string) (string, error) {
	r, err := http.NewRequest("GET", s.URL+path, nil)
	if err != nil {
		return "", err
	}
	r.AddCookie(s.cookie)
	resp, err := s.Client().Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return string(text), err
}

// TestManyReaders: while a task is written, several clients read pages and parts at once, and
// tasks are closed to make room. Each answer is complete.
func TestManyReaders(t *testing.T) {
	s := openSite(t)
	w := newTask(t, s, "task_1")
	for i := range maxWatched {
		newTask(t, s, fmt.Sprintf("other_%d", i))
	}
	paths := []string{"/tasks/task_1", "/tasks/task_1/ops/2", "/tasks/task_1/ops/3/context",
		"/tasks/task_1/steps/0", "/tasks"}
	for i := range maxWatched {
		paths = append(paths, fmt.Sprintf("/tasks/other_%d", i))
	}
	var readers sync.WaitGroup
	written := make(chan struct{})
	for range 3 {
		readers.Go(func() {
			for again := true; again; {
				select {
				case <-written:
					again = false // once more, over all of it
				default:
				}
				for _, path := range paths {
					if text, err := s.fetch(path); err != nil || !strings.Contains(text, "</html>") {
						t.Errorf("%s: %v\n%s", path, err, text)
					}
				}
			}
		})
	}
	for range 20 {
		w.call("Bash", "x")
	}
	close(written)
	readers.Wait()
	wantIn(t, "the page at the end", s.get(t, "/tasks/task_1"), "Operations 1 to 103 of 103.")
}

// TestReportHead: a task's page begins with its report, whose lines lead to the operations that they rest on, and
// asks for it again when the task's state has changed.
func TestReportHead(t *testing.T) {
	s := openSite(t)
	w := newTask(t, s, "task_1")
	w.call("Bash", "x")
	w.call("Bash", "y")
	w.jump(1, "the <b>wrong</b> way")
	page := s.get(t, "/tasks/task_1")
	wantIn(t, "the page", page, `hx-get="/tasks/task_1/report" hx-trigger="load"`)
	wantIn(t, "the report", s.get(t, "/tasks/task_1/report", asPart), "<dt>Asked</dt><dd>Do it.",
		`<div id="figures" hx-swap-oob="innerHTML">`)
	wantIn(t, "the jumps", page,
		`<a href="/tasks/task_1/ops/16">↩ 2 back to 1</a> <span class="quiet">by the agent</span><div>the &lt;b&gt;wrong&lt;/b&gt; way</div>`)
	w.end("done")
	wantIn(t, "the news", s.get(t, nextOf(t, page), asPart),
		`<section id="report" aria-label="Report" hx-swap-oob="outerHTML"`)
	wantIn(t, "the report", s.get(t, "/tasks/task_1/report", asPart), "<dt>Ended</dt><dd>done")
	if got := s.ask(t, "GET", "/tasks/none/report", nil, asPart); got.code != http.StatusNotFound {
		t.Errorf("of no task: %d", got.code)
	}
}

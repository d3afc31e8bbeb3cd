package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/taskdir"
)

// record appends operations to a task's stream, each in a step of its own.
func record(t *testing.T, h taskdir.Home, task string, bodies ...op.Body) {
	t.Helper()
	if err := os.MkdirAll(h.Task(task), 0o700); err != nil {
		t.Fatal(err)
	}
	log, err := opstream.Open(h.Task(task), &opstream.Options{SealAfter: -1})
	if err != nil {
		t.Fatal(err)
	}
	last, _ := log.Last()
	for i, b := range bodies {
		body, err := op.Encode(b)
		if err == nil {
			_, err = log.Append(t.Context(), opstream.Entry{Kind: string(b.Kind()), Step: int(last) + i, Body: body})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
}

func said(text string) op.Body { return &op.UserSaid{Text: text} }

func find(t *testing.T, h taskdir.Home, q Query) *Found {
	t.Helper()
	f, err := Find(t.Context(), h, q, func(int, int) {})
	if err != nil {
		t.Fatalf("%q: %v", q.Words, err)
	}
	return f
}

// hits returns the hits of a query as task/kind.
func hits(t *testing.T, h taskdir.Home, q Query) (out []string) {
	t.Helper()
	for _, hit := range find(t, h, q).Hits {
		out = append(out, hit.Task+"/"+hit.Kind)
	}
	return out
}

func opened(dir string) *op.TaskOpened { return &op.TaskOpened{Dir: dir} }

func exited(code int, text string) op.Body {
	return &op.ToolReturned{Name: "Bash", Text: text, Exit: &code}
}

func TestFind(t *testing.T) {
	h := taskdir.Home{State: t.TempDir()}
	src, err := filepath.EvalSymlinks(t.TempDir())
	if err == nil {
		err = errors.Join(os.MkdirAll(src+"/web's/api", 0o700), os.Mkdir(src+"/we", 0o700))
	}
	if err != nil {
		t.Fatal(err)
	}
	record(t, h, "dates", opened("/src/app"), said("parseDate drops the timezone"),
		&op.ToolCalled{Name: "Bash", Args: `{"command":"go test ./foo -run TestX/sub"}`},
		exited(1, "--- FAIL: TestX/sub\n    foo/bar_test.go:12: want 3 hours\nFAIL"),
		&op.ModelReplied{Text: "I will look at the layout.", Calls: []op.Call{{ID: "1"}}},
		&op.JumpIntended{Reason: "the regexp cannot say which zone", Learned: "time.Parse wants a layout"},
		&op.ModelReplied{Text: "It parses the zone now."})
	record(t, h, "node", opened(src+"/web's"), said("start the server"),
		exited(1, "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'left-pad'"),
		exited(0, "listening on port 3000"), said("исправь ошибку в разборе даты"), said("修复日期解析错误"))
	record(t, h, "sql", opened("/src/db"), said("columns of tables"),
		exited(1, "sqlite3.OperationalError: no such table: users, in the statement of line 3"))
	record(t, h, "long", opened("/src/db"),
		exited(0, strings.Repeat("early ", 2000)+"middleword "+strings.Repeat("late ", 2000)+" lastword"))
	record(t, h, "node.1", &op.TaskOpened{Dir: src + "/web's/api", Parent: &op.Parent{Task: "node"}},
		said("which port do we use"))

	for words, want := range map[string]string{
		"parseDate":                 "dates/you said",
		"parsedate":                 "dates/you said",
		"timezones dropped":         "dates/you said",
		"foo/bar_test.go":           "dates/error",
		"bar_test.go:12":            "dates/error",
		"TestX/sub":                 "dates/error",
		"which zone did the regexp": "dates/why it was left",
		`"wants a layout"`:          "dates/why it was left",
		`"复日期"`:                     "node/you said",
		`"解析日期"`:                    "", // a phrase, unlike the words without quotes
		`"layout a wants"`:          "",
		"ERR_MODULE_NOT_FOUND":      "node/error",
		"module not found":          "node/error",
		"left-pad":                  "node/error",
		"padLeftPad":                "node/error",            // no text has the whole: its parts
		"whichLayout":               "dates/why it was left", // of its parts, "which" says nothing
		`"do"`:                      "node.1/you said",
		"listening":                 "node/output",
		"no such table":             "sql/error", // "no" and "such" say something beside "table"
		"lastword":                  "long/output",
		"middleword":                "",
		"EXTRA":                     "",
		"ошибка в дате":             "node/you said",
		"日期":                        "node/you said",
		"解析日期":                      "node/you said",
		"nowhere":                   "",
		"port":                      "node.1/you said node/output",
		"' OR 1=1; INDEX texts--":   "",
		"NEAR(zone":                 "dates/why it was left",
		"layout*":                   "dates/why it was left",
	} {
		if got := strings.Join(hits(t, h, Query{Words: words}), " "); got != want {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
	for _, words := range []string{"", "  ", `"`, `""`, "*", "AND OR NOT", "-- ( ) ^", "\x00\xff"} {
		if _, err := Find(t.Context(), h, Query{Words: words}, func(int, int) {}); !errors.Is(err, ErrNoWords) {
			t.Errorf("%q: %v", words, err)
		}
	}
	long := find(t, h,
		Query{Words: "zone " + strings.Repeat("x1 y2 "+strings.Repeat("z", 90)+" ", 500) + manyWords(100)})
	if len(long.Hits) != 1 || len(long.Notes) != 1 || !strings.Contains(long.Notes[0], "first 40 words") {
		t.Errorf("a long query: %+v", long)
	}

	if got := hits(t, h, Query{Words: "port package zone", Errors: true}); !slices.Equal(got, []string{"node/error"}) {
		t.Errorf("errors: %q", got)
	}
	if got := hits(t, h, Query{Words: "port zone", Here: src + "/web's"}); !slices.Equal(got, []string{"node.1/you said", "node/output"}) {
		t.Errorf("here: %q", got)
	}
	if got := hits(t, h, Query{Words: "port zone", Here: src + "/we"}); got != nil {
		t.Errorf("in a directory without tasks: %q", got)
	}
	if got := hits(t, h, Query{Words: "port", Since: time.Now().Add(-time.Hour), Most: 1}); !slices.Equal(got, []string{"node.1/you said"}) {
		t.Errorf("since an hour ago, one: %q", got)
	}
	if got := hits(t, h, Query{Words: "port", Since: time.Now().Add(2 * time.Hour)}); got != nil {
		t.Errorf("since later: %q", got)
	}
	f := find(t, h, Query{Words: "TestX/sub"})
	if hit := f.Hits[0]; hit.Step != 3 || hit.Op != 4 || hit.More != 1 || !hit.CanJump ||
		hit.Request != "parseDate drops the timezone" || !strings.Contains(hit.Text, "FAIL: TestX/sub") {
		t.Errorf("the hit: %+v", hit)
	}
	if hit := find(t, h, Query{Words: "which port do we use"}).Hits[0]; hit.CanJump {
		t.Errorf("a subagent's task: %+v", hit)
	}

	record(t, h, "fork", &op.TaskOpened{Dir: "/forks/one", Worktree: &op.Worktree{From: src + "/we"}},
		said("move the port"))
	record(t, h, "dates", &op.TaskResumed{Dir: src + "/we/dates"})
	got := find(t, h, Query{Words: "zone port", Here: src + "/we"}).Hits
	if len(got) != 2 || got[0].Task != "dates" || got[0].Dir != src+"/we/dates" || got[1].Task != "fork" {
		t.Errorf("a task that moved there and one in a worktree of it: %+v", got)
	}
}

func manyWords(n int) string {
	var words []string
	for i := range n {
		words = append(words, fmt.Sprintf("word%d", i))
	}
	return strings.Join(words, " ")
}

// TestAlike: tasks that say the same are one hit, the latest of them, and one task does not fill the list.
func TestAlike(t *testing.T) {
	h := taskdir.Home{State: t.TempDir()}
	for i := range 4 {
		record(t, h, fmt.Sprintf("try%d", i), opened("/a"), said("cache the albert model"), said("albert albert"),
			said("and albert"))
	}
	record(t, h, "other", opened("/a"), said("cache the albert model in the home"))
	f := find(t, h, Query{Words: "albert model", Most: 2})
	if len(f.Hits) != 2 || f.Hits[0].Also != 3 || f.Hits[0].More != 2 || f.Hits[1].Task != "other" {
		t.Errorf("hits: %+v", f.Hits)
	}
}

// TestIndexFollows: a search finds what was recorded since, and nothing of what is gone; the file does not hold it
// either.
func TestIndexFollows(t *testing.T) {
	h := taskdir.Home{State: t.TempDir()}
	record(t, h, "a", opened("/a"), said("zebras"))
	record(t, h, "b", opened("/b"), said("quokkaword here"))
	if got := hits(t, h, Query{Words: "zebras quokkaword"}); len(got) != 2 {
		t.Fatalf("at first: %q", got)
	}
	record(t, h, "a", said("lemurword"))
	if got := hits(t, h, Query{Words: "lemurword"}); !slices.Equal(got, []string{"a/you said"}) {
		t.Errorf("grown: %q", got)
	}
	if holds(t, h, "quokkaword") != true {
		t.Fatal("the index holds no words: the test looks at the wrong file")
	}
	if err := os.RemoveAll(h.Task("b")); err != nil {
		t.Fatal(err)
	}
	if got := hits(t, h, Query{Words: "quokkaword"}); got != nil || holds(t, h, "quokkaword") {
		t.Errorf("removed: %q, in the file: %t", got, holds(t, h, "quokkaword"))
	}
	if err := os.RemoveAll(h.Task("a")); err != nil {
		t.Fatal(err)
	}
	record(t, h, "a", opened("/a"), said("another one"), said("more"), said("still more"))
	if got := hits(t, h, Query{Words: "lemurword zebras another"}); !slices.Equal(got, []string{"a/you said"}) ||
		holds(t, h, "lemurword") {
		t.Errorf("another task of that name: %q", got)
	}
	if err := Remove(h); err != nil {
		t.Fatal(err)
	}
	if f := find(t, h, Query{Words: "another"}); len(f.Hits) != 1 || f.Notes != nil {
		t.Errorf("without the file: %+v", f)
	}
}

// holds reports whether the files of the index hold a word.
func holds(t *testing.T, h taskdir.Home, word string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(h.State, "search.db*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%q: %v", files, err)
	}
	return slices.ContainsFunc(files, func(f string) bool {
		data, err := os.ReadFile(f)
		return err != nil || bytes.Contains(data, []byte(word))
	})
}

// TestIndexRebuilt: an index that cannot be used is built again with one line, and a search without a place for one
// reads all.
func TestIndexRebuilt(t *testing.T) {
	h := taskdir.Home{State: t.TempDir()}
	record(t, h, "a", opened("/a"), said("zebras"))
	for name, harm := range map[string]func() error{
		"damaged": func() error { return os.WriteFile(path(h), bytes.Repeat([]byte("no database "), 1000), 0o600) },
		"of another version": func() error {
			x, err := connect(t.Context(), h, "file:"+path(h)+"?")
			if err == nil {
				_, err = x.db.Exec("PRAGMA user_version = 99")
				err = errors.Join(err, x.db.Close())
			}
			return err
		},
	} {
		find(t, h, Query{Words: "zebras"})
		if err := harm(); err != nil {
			t.Fatal(err)
		}
		if f := find(t, h, Query{Words: "zebras"}); len(f.Hits) != 1 || len(f.Notes) != 1 ||
			!strings.HasPrefix(f.Notes[0], "the index is damaged or of another version") {
			t.Errorf("%s: %+v", name, f)
		}
		if f := find(t, h, Query{Words: "zebras"}); len(f.Hits) != 1 || f.Notes != nil {
			t.Errorf("%s, the next time: %+v", name, f)
		}
	}
	if err := errors.Join(Remove(h), os.Mkdir(path(h), 0o700)); err != nil {
		t.Fatal(err)
	}
	if f := find(t, h, Query{Words: "zebras"}); len(f.Hits) != 1 || len(f.Notes) != 1 ||
		!strings.HasPrefix(f.Notes[0], "the index cannot be written") {
		t.Errorf("without a place: %+v", f)
	}
}

// TestIndexHarmed cuts and overwrites the file in many places: a search finds the task, or says what hinders it.
func TestIndexHarmed(t *testing.T) {
	h := taskdir.Home{State: t.TempDir()}
	for i := range 30 {
		record(t, h, fmt.Sprintf("t%d", i), opened("/a"), said("zebras "+manyWords(200)))
	}
	find(t, h, Query{Words: "zebras"})
	whole, err := os.ReadFile(path(h))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 24 {
		data := bytes.Clone(whole)
		if at := len(data) * i / 24; i%2 == 0 {
			data = data[:at]
		} else {
			copy(data[at:], bytes.Repeat([]byte{0xa5}, 3000))
		}
		if err := errors.Join(Remove(h), os.WriteFile(path(h), data, 0o600)); err != nil {
			t.Fatal(err)
		}
		if f := find(t, h, Query{Words: "zebras", Most: 30}); len(f.Hits) == 0 {
			t.Errorf("harm %d: %+v", i, f)
		}
	}
}

// TestIndexInterrupted: what a search that was interrupted has built counts, and the next one builds the rest once.
func TestIndexInterrupted(t *testing.T) {
	h := taskdir.Home{State: t.TempDir()}
	for i := range 6 {
		record(t, h, fmt.Sprintf("t%d", i), opened("/a"), said(fmt.Sprintf("zebras number%d", i)))
	}
	ctx, stop := context.WithCancel(t.Context())
	if _, err := Find(ctx, h, Query{Words: "zebras"}, func(read, _ int) {
		if read == 3 {
			stop()
		}
	}); !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted: %v", err)
	}
	read := 0
	f, err := Find(t.Context(), h, Query{Words: "zebras"}, func(n, _ int) { read = n })
	if err != nil || len(f.Hits) != 6 || read != 3 {
		t.Errorf("afterwards: %d hits, %d tasks read, %v", len(f.Hits), read, err)
	}
}

// TestSearchesAtOnce: searches that build the index at once each find everything, and nothing is in it twice.
func TestSearchesAtOnce(t *testing.T) {
	h := taskdir.Home{State: t.TempDir()}
	for i := range 10 {
		record(t, h, fmt.Sprintf("t%d", i), opened("/a"), said(fmt.Sprintf("zebras number%d", i)))
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if f, err := Find(t.Context(), h, Query{Words: "zebras", Most: 20}, func(int, int) {}); err != nil ||
				len(f.Hits) != 10 || f.Notes != nil {
				t.Errorf("%+v, %v", f, err)
			}
		})
	}
	all.Wait()
	for _, hit := range find(t, h, Query{Words: "zebras", Most: 20}).Hits {
		if hit.More != 0 {
			t.Errorf("twice: %+v", hit)
		}
	}
}

// TestDamagedTask: a task that cannot be read to its end is found up to there, and no further.
func TestDamagedTask(t *testing.T) {
	h := taskdir.Home{State: t.TempDir()}
	record(t, h, "a", opened("/a"), said("zebras"), said("middle"), said("lemurs"))
	segs, err := filepath.Glob(filepath.Join(h.Task("a"), "ops", "*"))
	if err != nil || len(segs) != 1 {
		t.Fatalf("%q: %v", segs, err)
	}
	data, err := os.ReadFile(segs[0])
	if err == nil {
		err = os.WriteFile(segs[0], bytes.Replace(data, []byte("middle"), []byte("muddle"), 1), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if f := find(t, h, Query{Words: "zebras lemurs"}); len(f.Hits) != 1 || f.Hits[0].More != 0 {
			t.Errorf("%+v", f)
		}
	}
}

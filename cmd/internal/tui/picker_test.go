//go:build unix

package tui

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"anamnesis/cmd/internal/timeline"
	"anamnesis/cmd/internal/tui/editor"
	"anamnesis/cmd/internal/tui/feed"
	"anamnesis/cmd/internal/tui/paint"
	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/state"
)

// TestPickerKeys: a key moves within the list and never beyond its ends.
func TestPickerKeys(t *testing.T) {
	for _, row := range []struct {
		at   int
		keys string
		want int
	}{
		{0, "up", 0}, {3, "up", 2}, {3, "ctrl+p", 2}, {3, "down", 4}, {3, "ctrl+n", 4}, {29, "down", 29},
		{9, "pgup", 0}, {20, "pgup", 10}, {5, "pgdown", 15}, {25, "pgdown", 29}, {7, "home", 0}, {7, "end", 29}, {7, "y", 7},
	} {
		p := &picker{rows: make([]pickRow, 30), at: row.at}
		m := &screen{pick: p}
		if p.press(m, row.keys); p.at != row.want || m.pick != p {
			t.Errorf("%s at %d: at %d, want %d", row.keys, row.at, p.at, row.want)
		}
	}
	m := &screen{pick: &picker{rows: make([]pickRow, 1)}}
	if m.pick.press(m, "esc"); m.pick != nil {
		t.Error("esc leaves the list open")
	}
}

// TestPickerView: the chosen row is shown, with as many others as there is room for, three at least.
func TestPickerView(t *testing.T) {
	for _, row := range []struct{ rows, at, height, first, shown int }{
		{30, 0, 12, 1, 6}, {30, 3, 12, 1, 6}, {30, 4, 12, 2, 6}, {30, 26, 12, 24, 6}, {30, 27, 12, 25, 6}, {30, 29, 12, 25, 6},
		{30, 29, 100, 16, 15}, {30, 15, 1, 15, 3}, {2, 1, 12, 1, 2},
	} {
		p := &picker{title: "Pick", at: row.at}
		for i := range row.rows {
			p.rows = append(p.rows, pickRow{text: fmt.Sprint("row ", i+1)})
		}
		lines, cursor := p.view(80, row.height)
		var got []string
		for _, l := range lines {
			if l = paint.Strip(l); strings.Contains(l, "row ") {
				got = append(got, l)
			}
		}
		at := fmt.Sprint("❯ row ", row.at+1)
		if len(got) != row.shown || !strings.HasSuffix(got[0], fmt.Sprint(" row ", row.first)) || cursor == nil ||
			paint.Strip(lines[cursor.Y]) != at {
			t.Errorf("%+v: %q, cursor %+v", row, got, cursor)
		}
		if end := paint.Strip(lines[len(lines)-1]); !strings.HasPrefix(end, fmt.Sprintf("%d of %d", row.at+1, row.rows)) {
			t.Errorf("%+v: the last line is %q", row, end)
		}
	}
}

// TestPickStep: steps are listed newest first, a branch leaves the line it came from, and the step before the last is
// chosen.
func TestPickStep(t *testing.T) {
	svc := &session.Service{}
	svc.Home.State = t.TempDir()
	if err := os.MkdirAll(svc.Home.Task("t"), 0o700); err != nil {
		t.Fatal(err)
	}
	log, err := opstream.Open(svc.Home.Task("t"), nil)
	if err != nil {
		t.Fatal(err)
	}
	add := func(step int, bodies ...op.Body) {
		for _, b := range bodies {
			data, err := op.Encode(b)
			if err == nil {
				_, err = log.Append(t.Context(), opstream.Entry{Kind: string(b.Kind()), Step: step, Body: data})
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	step := func(id, parent int, changed ...string) {
		add(id, &op.ModelAsked{}, &op.ModelReplied{Text: fmt.Sprint("Did ", id, "."), Finish: "stop"},
			&op.WorldSaved{Parent: parent, Commit: fmt.Sprint("c", id), Changed: changed, NChanged: len(changed)})
	}
	add(0, &op.TaskOpened{Task: "t", Dir: "/w", Model: "m", EAS: 4000},
		&op.UserSaid{Text: "Go.", Source: op.SourceRequest}, &op.WorldSaved{Commit: "c0"})
	step(1, 0, "a", "b")
	step(2, 1)
	step(3, 2)
	add(4, &op.JumpIntended{From: 3, To: 1, By: "user", Reason: "wrong", Backward: true},
		&op.JumpDone{From: 3, To: 1, Backward: true})
	step(4, 1, "a")
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	m := &screen{
		ctx: t.Context(), feed: feed.New(), scrollback: scrollback{width: 80}, st: new(state.State),
		edit: editor.New(&editor.History{}, "", nil), o: Options{Service: svc, Task: "t"},
	}
	msg, ok := m.pickStep()().(pickedMsg)
	if !ok {
		t.Fatal("there is no list")
	}
	var got []string
	for i, r := range msg.pick.rows {
		mark := " "
		if i == msg.pick.at {
			mark = ">"
		}
		got = append(got, mark+strings.TrimRight(r.text, " ")+" | "+r.more)
	}
	want := strings.TrimPrefix(`
 ◉   4   1 file   answer "Did 4." | changed a · the task is here
 │ ○ 3            answer "Did 3." | changed no file · left: wrong
 ├─○ 2            answer "Did 2." | changed no file · left: wrong
>●   1   2 files  answer "Did 1." | changed a, b
 ●   0            beginning | the files as they were before the first change`, "\n")
	if strings.Join(got, "\n") != want {
		t.Errorf("the list is\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	m.o.Task = ""
	if cmd := m.pickStep(); cmd != nil {
		t.Error("there is a list without a task")
	}
}

// TestNamed: at most eight paths are named, and the rest is counted.
func TestNamed(t *testing.T) {
	nine := strings.Split("abcdefghi", "")
	for _, row := range []struct {
		paths []string
		n     int
		want  string
	}{
		{nil, 0, ""}, {nine[:2], 2, "a, b"}, {nine[:8], 8, "a, b, c, d, e, f, g, h"}, {nine, 9, "a, b, c, d, e, f, g, h and 1 more"}, {nine[:2], 5, "a, b and 3 more"},
	} {
		if got := named(row.paths, row.n); got != row.want {
			t.Errorf("%d of %d: %q", len(row.paths), row.n, got)
		}
	}
	for _, row := range []struct {
		node timeline.Node
		row  timeline.Row
		want string
	}{
		{timeline.Node{}, timeline.Row{}, "the files as they were before the first change"},
		{timeline.Node{Step: 1, OnPath: true}, timeline.Row{}, "changed no file"},
		{timeline.Node{Step: 1, OnPath: true, Current: true}, timeline.Row{Changed: 1, Paths: nine[:1]}, "changed a · the task is here"},
		{timeline.Node{Step: 1}, timeline.Row{}, "changed no file · left"},
		{timeline.Node{Step: 1, LeftBy: "wrong"}, timeline.Row{}, "changed no file · left: wrong"},
	} {
		if got := about(row.node, row.row); got != row.want {
			t.Errorf("%+v: %q, want %q", row.node, got, row.want)
		}
	}
}

// TestLinesBesideTheInput: what waits is listed above the input, the last message with the key that edits it; a hint is
// shown for a while.
func TestLinesBesideTheInput(t *testing.T) {
	m := &screen{
		ctx: t.Context(), feed: feed.New(), scrollback: scrollback{width: 80}, st: new(state.State),
		edit: editor.New(&editor.History{}, "", nil), now: time.Unix(1000, 0),
	}
	lines := func(list []string) string { return paint.Strip(strings.Join(list, "\n")) }
	if got := lines(m.queued()); got != "" {
		t.Errorf("nothing waits: %q", got)
	}
	m.hint, m.hinted = "press again", m.now.Add(1-hintFor)
	if got := lines(m.status()); got != "press again" {
		t.Errorf("within its time the hint is %q", got)
	}
	if m.hinted = m.now.Add(-hintFor); strings.Contains(lines(m.status()), m.hint) {
		t.Error("the hint is still shown after its time")
	}
}

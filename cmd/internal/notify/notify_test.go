//go:build unix

package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/state"
)

// place is a session whose events one or more notifiers get, the first of which keeps them in a file.
type place struct {
	n      *Notifier
	client session.Client
	file   string
	warned []string
}

func newPlace(t *testing.T, limit time.Duration, c session.Client, more ...string) *place {
	t.Helper()
	p := &place{file: filepath.Join(t.TempDir(), "events")}
	p.n = New(t.Context(), append([]string{"cat >>'" + p.file + "'"}, more...), limit)
	p.client = p.n.Watch(c)
	p.client.Started(session.Info{Task: "t", Title: "Mend\nit.", Dir: filepath.Dir(p.file)})
	return p
}

// end closes the notifier and returns what was sent.
func (p *place) end(t *testing.T) []Event {
	t.Helper()
	p.n.Close(func(texts ...string) { p.warned = append(p.warned, texts...) })
	data, err := os.ReadFile(p.file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	var events []Event
	for line := range strings.Lines(string(data)) {
		var e Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

// words are the events with their texts.
func words(events []Event) []string {
	var all []string
	for _, e := range events {
		all = append(all, e.Event+": "+e.Text)
	}
	return all
}

// TestEnds: done, stuck, limit and failed are sent with the task, its request, its directory and what to do next; a
// turn that the user ended is not. The session's own callbacks are called, too.
func TestEnds(t *testing.T) {
	ops := 0
	p := newPlace(t, time.Minute, session.Client{Callbacks: session.Callbacks{Op: func(op.Op) { ops++ }}})
	p.client.Op(op.Op{Step: 7, Body: &op.TurnEnded{Reason: "done"}})
	long := "all\nis \x1b[1mwell " + strings.Repeat("é", 2000)
	for _, out := range []runtime.Outcome{{Reason: "done", Answer: long}, {Reason: "stuck", Detail: "a loop"}, {Reason: "idle"},
		{Reason: "limit", Detail: "9 steps"}, {Reason: "interrupted"}, {Reason: "evicted"}, {Reason: "failed", Detail: "disk full"},
		{Reason: "failed", Detail: "stopped", Err: fmt.Errorf("save: %w", context.Canceled)}} {
		p.client.Ended(out)
	}
	events := p.end(t)
	if len(events) != 4 || len(p.warned) > 0 || ops != 1 {
		t.Fatalf("%+v, %q, %d operations", events, p.warned, ops)
	}
	if got, want := words(events[1:]), []string{"stuck: a loop", "limit: 9 steps", "failed: disk full"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	e := events[0]
	if e.Task != "t" || e.Prompt != "Mend it." || e.Dir != filepath.Dir(p.file) || e.Next != "anamnesis report t" ||
		events[1].Next != "anamnesis resume t" {
		t.Errorf("%+v", e)
	}
	if !strings.HasPrefix(e.Text, `all is \x1b[1mwell é`) || strings.Contains(e.Text, "\n") || len(e.Text) > 1000 {
		t.Errorf("text %q", e.Text)
	}
}

// TestWaiting: an outage is sent once, and only if it lasts more than a minute: the waits together, or the one
// that the provider names.
func TestWaiting(t *testing.T) {
	p := newPlace(t, time.Minute, session.Client{})
	now := time.Date(2026, 11, 28, 3, 0, 0, 0, time.UTC)
	fail := func(since, until time.Duration) {
		p.client.Op(op.Op{Time: now, Step: 4, Body: &op.ModelFailed{Error: "busy",
			Wait: &op.Wait{Since: now.Add(since), Until: now.Add(until)}}})
	}
	fail(0, time.Minute)
	fail(-30*time.Second, 31*time.Second)
	fail(-90*time.Second, 2*time.Minute)
	p.client.Op(op.Op{Time: now, Body: &op.ModelReplied{}})
	fail(0, time.Second)
	p.client.Op(op.Op{Time: now, Body: &op.ModelFailed{Error: "refused"}})
	fail(39*time.Minute, 40*time.Minute)
	events := p.end(t)
	clock := func(d time.Duration) string {
		return "waiting: waits for the provider until " + state.Clock(now.Add(d), now) + ": busy"
	}
	if got := words(events); !slices.Equal(got, []string{clock(31 * time.Second), clock(40 * time.Minute)}) {
		t.Errorf("%+v", events)
	}
}

// TestAsked: a question is sent when it is asked, with the command that answers it.
func TestAsked(t *testing.T) {
	p := newPlace(t, time.Minute, session.Client{})
	p.client.Op(op.Op{Body: &op.QuestionAsked{About: op.AboutCall, Text: "May Bash(go test ./...) run?"}})
	p.client.Op(op.Op{Body: &op.QuestionAsked{About: op.AboutAnswer, Text: "which\none?", Task: "sub"}})
	p.client.Op(op.Op{Body: &op.QuestionAnswered{}})
	events := p.end(t)
	want := []string{"asked: May Bash(go test ./...) run?", "asked: subagent sub: which one?"}
	if got := words(events); !slices.Equal(got, want) || events[0].Next != "anamnesis answer t" {
		t.Errorf("%q, %+v", got, events)
	}
}

// TestHanging: a notifier that hangs delays neither the task nor the other notifiers, is killed with its processes,
// and is one line.
func TestHanging(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	p := newPlace(t, time.Second, session.Client{}, "exec 3>'"+fifo+"'; sleep 1000 & sleep 1000")
	for range 2 * maxQueued { // would not end here
		p.client.Ended(runtime.Outcome{Reason: "done"})
	}
	f, err := os.Open(fifo) // once it runs
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got := p.end(t); len(got) == 0 {
		t.Error("the other notifier got nothing")
	}
	p.client.Ended(runtime.Outcome{Reason: "done"})   // after the end
	if _, err := io.Copy(io.Discard, f); err != nil { // until no process has it open
		t.Error(err)
	}
	if !slices.Contains(p.warned, "notifier 2 of config.yaml failed: it did not end in time") {
		t.Errorf("%q", p.warned)
	}
}

// TestTenAtOnce: all are sent, in order.
func TestTenAtOnce(t *testing.T) {
	p := newPlace(t, time.Minute, session.Client{})
	var want []string
	for i := range 10 {
		p.client.Ended(runtime.Outcome{Reason: "stuck", Detail: fmt.Sprint(i)})
		want = append(want, fmt.Sprintf("stuck: %d", i))
	}
	if got := words(p.end(t)); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestFailing: a notifier that fails is one line, however often it does; the others get each event. Its command
// is not named.
func TestFailing(t *testing.T) {
	p := newPlace(t, time.Minute, session.Client{}, "echo 'no \x1bhost' >&2; exit 6 # password", "echo much; exit 0",
		"head -c 100000 /dev/zero | tr '\\0' x >&2; exit 1")
	for range 3 {
		p.client.Ended(runtime.Outcome{Reason: "done"})
	}
	if got := p.end(t); len(got) != 3 || len(p.warned) != 2 {
		t.Fatalf("%d sent, %q", len(got), p.warned)
	}
	if want := `notifier 2 of config.yaml failed: exit status 6 no \x1bhost`; p.warned[0] != want {
		t.Errorf("%q", p.warned[0])
	}
	if got := p.warned[1]; !strings.HasPrefix(got, "notifier 4 of config.yaml failed: exit status 1 xxx") ||
		len(got) > 500 {
		t.Errorf("%q", got)
	}
}

// TestBuiltIn: the bell and the notifications of terminals and desktops; a text cannot act on any of them.
func TestBuiltIn(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir) // no osascript
	e := Event{Event: "done", Text: "a <b> & c"}
	for _, c := range []struct{ to, term, vte, want string }{
		{"bell", "xterm-256color", "", "[sh -c trap '' TTOU; { cat >/dev/tty; } 2>/dev/null || :] \a\x1b]9;Anamnesis: done: a <b> & c\x1b\\"},
		{"bell", "xterm-256color", "7600", "[sh -c trap '' TTOU; { cat >/dev/tty; } 2>/dev/null || :] \a\x1b]777;notify;Anamnesis: done;a <b> & c\x1b\\"},
		{"bell", "foot", "", "[sh -c trap '' TTOU; { cat >/dev/tty; } 2>/dev/null || :] \a\x1b]777;notify;Anamnesis: done;a <b> & c\x1b\\"},
		{"desktop", "", "", "[notify-send --app-name=anamnesis -- Anamnesis: done a &lt;b&gt; &amp; c] "},
		{"bell && true", "", "", "[sh -c exec >/dev/null\nbell && true] " + `{"event":"done","task":"","prompt":"","dir":"","text":"a \u003cb\u003e \u0026 c","next":""}` + "\n"},
	} {
		t.Setenv("TERM", c.term)
		t.Setenv("VTE_VERSION", c.vte)
		args, input, err := command(c.to, e)
		if got := fmt.Sprint(args, " ", input); got != c.want || err != nil {
			t.Errorf("%s: %q, %v", c.to, got, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "osascript"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if args, _, _ := command("desktop", e); args[0] != "osascript" || args[len(args)-1] != e.Text {
		t.Errorf("%q", args)
	}
}

// TestParse: a notifier, or a list of them.
func TestParse(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"bell", `["bell"]`},
		{"[bell, desktop, 'mail -s done me']", `["bell" "desktop" "mail -s done me"]`},
		{"[]", `[]`},
		{"", "want bell, desktop, a command, or a list of these"},
		{"{a: b}", "want bell, desktop, a command, or a list of these"},
		{"[bell, [desktop]]", "want bell, desktop, a command, or a list of these"},
		{"[' ']", "want bell, desktop, a command, or a list of these"},
	} {
		var nodes map[string]yaml.Node
		if err := yaml.Unmarshal([]byte("notify: "+c.text), &nodes); err != nil {
			t.Fatal(err)
		}
		node := nodes["notify"]
		to, err := Parse(&node)
		got := fmt.Sprintf("%q", to)
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %s", c.text, got)
		}
	}
	if New(t.Context(), nil, Limit).Watch(session.Client{}).Op != nil {
		t.Error("without a notifier there is something to call")
	}
}

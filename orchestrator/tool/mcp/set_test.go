package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard/consent"
	"anamnesis/orchestrator/tool"
)

// fake is a server of this test binary.
func fake(t *testing.T, name, how string) Server {
	t.Helper()
	return Server{
		Name: name, Command: os.Args[0],
		Env: map[string]string{fakeMark: how, "FAKE_MARK": filepath.Join(t.TempDir(), "mark")},
	}
}

// open starts servers with limits that a busy machine does not reach, unless the
// test sets them.
func open(t *testing.T, o Options, servers ...Server) *Set {
	t.Helper()
	const enough = time.Hour
	o.Dir = cmp.Or(o.Dir, t.TempDir())
	o.FirstWait = cmp.Or(o.FirstWait, enough)
	s := Open(t.Context(), servers, o)
	s.Hold(o.Sandbox)
	t.Cleanup(s.Close)
	return s
}

// offered returns a set's tools by name.
func offered(t *testing.T, s *Set) (map[string]tool.Tool, []string) {
	t.Helper()
	o := s.Tools(t.Context())
	out := make(map[string]tool.Tool)
	for _, tl := range o.Tools {
		out[tl.Spec().Name] = tl
	}
	return out, o.News
}

func call(t *testing.T, tl tool.Tool, env *tool.Env) tool.Result {
	t.Helper()
	if tl == nil {
		t.Fatal("there is no such tool")
	}
	if env == nil {
		env = new(tool.Env)
	}
	res, err := tl.Call(t.Context(), env, json.RawMessage(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestResults(t *testing.T) {
	t.Parallel()
	tools, news := offered(t, open(t, Options{}, fake(t, "f", "ok")))
	if len(news) > 0 {
		t.Errorf("news: %q", news)
	}
	res := call(t, tools["mcp__f__mixed"], nil)
	want := "words\n[image 1: image/png, 1x1 pixels, 71 bytes]\n[audio 2: audio/wav, 3 bytes]\n[resource f://a, text/plain]\ninside\n" +
		"[blob 3: application/zip, f://b, 4 bytes]\n[resource link: see, f://c]"
	if res.Text != want || res.IsError || !res.Network {
		t.Errorf("got %+v\nwant %s", res, want)
	}
	var kinds []op.PartKind
	for _, p := range res.Parts {
		kinds = append(kinds, p.Kind)
	}
	if len(kinds) != 3 || kinds[0] != op.PartImage || kinds[1] != op.PartAudio || kinds[2] != op.PartBlob {
		t.Errorf("parts %v", kinds)
	}
	res = call(t, tools["mcp__f__long"], nil)
	if n := len([]rune(res.Text)); n > MaxResultRunes+100 || !strings.HasPrefix(res.Text, "HEAD") ||
		!strings.HasSuffix(res.Text, "TAIL") || res.Cut == 0 {
		t.Errorf("a long result has %d characters, %d bytes cut", n, res.Cut)
	}
}

// What a server says hides nothing, and a command gets no secrets.
func TestForeignTexts(t *testing.T) {
	t.Setenv("SOME_API_KEY", "hidden-value")
	t.Setenv("PLAIN", "seen")
	tools, _ := offered(t, open(t, Options{}, fake(t, "f", "noinfo")))
	spec := tools["mcp__f__env"].Spec()
	if want := `Tool \u{200b}\x1b[31menv \u{e0041}`; spec.Description != want {
		t.Errorf("description %q, want %q", spec.Description, want)
	}
	if want := `an\u{202e} x`; spec.Schema.Properties["x"].Description != want {
		t.Errorf("parameter %q, want %q", spec.Schema.Properties["x"].Description, want)
	}
	if spec.ReadOnly {
		t.Error("a tool nobody called read-only needs no approval")
	}
	res := call(t, tools["mcp__f__env"], nil)
	if strings.Contains(res.Text, "hidden-value") || !strings.Contains(res.Text, "PLAIN=seen") {
		t.Errorf("environment: %s", res.Text)
	}
}

// A dead and a slow server cost their own tools only.
func TestDeadAndSlow(t *testing.T) {
	t.Parallel()
	slow := fake(t, "slow", "hang")
	slow.StartTimeoutSeconds = 1
	missing := Server{Name: "missing", Command: "no-such-program-here"}
	tools, news := offered(t,
		open(t, Options{}, fake(t, "a", "ok"), fake(t, "dead", "exit"), slow, missing, fake(t, "z", "ok")))
	if tools["mcp__a__pid"] == nil || tools["mcp__z__pid"] == nil || len(tools) != 24 {
		t.Errorf("%d tools", len(tools))
	}
	all := strings.Join(news, "\n")
	for _, want := range []string{
		"server dead is not there: it ended with exit code 7: no licence found (",
		"server slow is not there: it did not answer in time.",
		"server missing is not there: no-such-program-here is not installed, or not in PATH.",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
	if len(news) != 3 {
		t.Errorf("%d lines of news", len(news))
	}
}

// Many servers print a line to people on their standard output: it costs them
// nothing, and is told where nothing else comes.
func TestLinesThatAreNoMessages(t *testing.T) {
	t.Parallel()
	silent := fake(t, "silent", "talks only")
	silent.StartTimeoutSeconds = 5
	tools, news := offered(t, open(t, Options{}, fake(t, "f", "talks"), silent))
	if res := call(t, tools["mcp__f__pid"], nil); res.IsError {
		t.Errorf("a call: %+v", res)
	}
	if want := `it did not answer in time; its output has lines that are not messages, the last is "{debug: [1, 2]}"`; len(news) != 1 || !strings.Contains(news[0], want) {
		t.Errorf("news %q, want %q", news, want)
	}
}

// A server that is still starting does not hold the first step up forever.
func TestFirstWait(t *testing.T) {
	t.Parallel()
	s := open(t, Options{FirstWait: time.Millisecond}, fake(t, "h", "hang"))
	tools, news := offered(t, s)
	if len(tools) != 0 || len(news) != 1 || !strings.Contains(news[0], "still starting") {
		t.Errorf("%d tools, news %q", len(tools), news)
	}
	if _, again := offered(t, s); len(again) > 0 {
		t.Errorf("said again: %q", again)
	}
}

func TestKilledBetweenCalls(t *testing.T) {
	t.Parallel()
	s := open(t, Options{}, fake(t, "f", "ok"))
	tools, _ := offered(t, s)
	before := call(t, tools["mcp__f__pid"], nil).Text
	pid, err := strconv.Atoi(before)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	after := call(t, tools["mcp__f__pid"], nil)
	if after.IsError || after.Text == before {
		t.Errorf("after the kill: %+v", after)
	}
}

// A server that dies during a call is started again; only a call that can do
// no harm twice is made twice.
func TestKilledDuringCall(t *testing.T) {
	t.Parallel()
	tools, _ := offered(t, open(t, Options{}, fake(t, "f", "ok")))
	if res := call(t, tools["mcp__f__die_once"], nil); res.IsError || res.Text != "the second time" {
		t.Errorf("an idempotent call: %+v", res)
	}
	res := call(t, tools["mcp__f__die"], nil)
	if !res.IsError || !strings.Contains(res.Text, "Outcome unknown") || !strings.Contains(res.Text, "exit code 3") {
		t.Errorf("another call: %+v", res)
	}
	if res := call(t, tools["mcp__f__pid"], nil); res.IsError {
		t.Errorf("the server is not back: %+v", res)
	}
}

func TestCallTimeout(t *testing.T) {
	t.Parallel()
	cfg := fake(t, "f", "ok")
	cfg.CallTimeoutSeconds = 3
	tools, _ := offered(t, open(t, Options{}, cfg))
	var mu sync.Mutex
	var shown []string
	env := &tool.Env{Progress: func(text string) {
		mu.Lock()
		defer mu.Unlock()
		shown = append(shown, text)
	}}
	// Longer than the limit, with progress on the way.
	if res := call(t, tools["mcp__f__slow"], env); res.IsError || res.Text != "slow and sure" {
		t.Errorf("with progress: %+v", res)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(shown) < 7 || shown[0] != "1 of 8, half a second" {
		t.Errorf("progress %q", shown)
	}
	if res := call(t, tools["mcp__f__hang"], nil); !res.IsError || !strings.Contains(res.Text, "Timed out") {
		t.Errorf("without: %+v", res)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tools["mcp__f__pid"].Call(ctx, new(tool.Env), nil); err == nil {
		t.Error("an ended context is no error")
	}
}

// settled asks a set until it is as wanted: what a server says by itself has no
// order with its answers. Calls in between give it time.
func settled(t *testing.T, s *Set, probe tool.Tool, want func(map[string]tool.Tool, []string) bool) {
	t.Helper()
	for range 2_000 {
		if want(offered(t, s)) {
			return
		}
		call(t, probe, nil)
	}
	t.Error("what the server announced never came")
}

func TestListChanged(t *testing.T) {
	t.Parallel()
	s := open(t, Options{}, fake(t, "f", "ok"))
	tools, _ := offered(t, s)
	version := s.Tools(t.Context()).Version
	if tools["mcp__f__grown"] != nil {
		t.Fatal("grown too early")
	}
	call(t, tools["mcp__f__grow"], nil)
	settled(t, s, tools["mcp__f__pid"],
		func(now map[string]tool.Tool, _ []string) bool { return now["mcp__f__grown"] != nil })
	if s.Tools(t.Context()).Version == version {
		t.Error("the version is the same")
	}
}

// Nothing of a server is alive when the set is closed.
func TestCloseReaps(t *testing.T) {
	t.Parallel()
	s := open(t, Options{}, fake(t, "f", "ok"))
	tools, _ := offered(t, s)
	pid, err := strconv.Atoi(call(t, tools["mcp__f__pid"], nil).Text)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
		t.Errorf("signal to the server: %v, want no such process", err)
	}
}

// A project's server runs when its command was approved, and its tools are
// offered when they were; either one changed, and neither is.
func TestTrust(t *testing.T) {
	t.Parallel()
	trust := consent.OpenTrust(filepath.Join(t.TempDir(), "approvals.json"))
	dir := t.TempDir()
	cfg := fake(t, "p", "ok")
	cfg.Project = dir
	o := Options{Dir: dir, Trust: trust}
	tools, news := offered(t, open(t, o, cfg))
	if len(tools) != 0 || len(news) != 1 || !strings.Contains(news[0], "not approved") {
		t.Fatalf("unapproved: %d tools, %q", len(tools), news)
	}
	if err := ApproveCommand(cfg, trust); err != nil {
		t.Fatal(err)
	}
	tools, news = offered(t, open(t, o, cfg))
	if len(tools) != 0 || len(news) != 1 || !strings.Contains(news[0], "says of them") {
		t.Fatalf("unapproved tools: %d tools, %q", len(tools), news)
	}
	r, err := Probe(t.Context(), cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := ApproveTools(cfg, r, trust); err != nil {
		t.Fatal(err)
	}
	s := open(t, o, cfg)
	tools, news = offered(t, s)
	if len(tools) != 12 || len(news) != 0 {
		t.Fatalf("approved: %d tools, %q", len(tools), news)
	}
	call(t, tools["mcp__p__grow"], nil) // it says something new
	settled(t, s, tools["mcp__p__pid"],
		func(now map[string]tool.Tool, news []string) bool { return len(now) == 0 && len(news) == 1 })
	// It is approved elsewhere while the task runs.
	if err := ApproveTools(cfg, Report{hash: s.servers[0].said}, trust); err != nil {
		t.Fatal(err)
	}
	if tools, news = offered(t, s); len(tools) != 13 || len(news) != 0 {
		t.Errorf("approved meanwhile: %d tools, %q", len(tools), news)
	}
	for what, change := range map[string]func(*Server){
		"argument":  func(s *Server) { s.Args = []string{"x"} },
		"variable":  func(s *Server) { s.Env = map[string]string{fakeMark: "ok", "X": "y"} },
		"command":   func(s *Server) { s.Command = "true" },
		"address":   func(s *Server) { s.URL = "https://example.org" },
		"header":    func(s *Server) { s.Headers = map[string]string{"X": "y"} },
		"tools":     func(s *Server) { s.ReadOnlyTools = []string{"die"} },
		"directory": func(s *Server) { s.Project = t.TempDir() },
	} {
		other := cfg
		change(&other)
		if _, err := Granted(other, trust); !errors.Is(err, ErrUnapproved) {
			t.Errorf("another %s: %v; want %v", what, err, ErrUnapproved)
		}
	}
}

// An approval covers what is in the project's own files that are run, and
// a user who is there is asked.
func TestTrustAsks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := filepath.Join(dir, "server.sh")
	cfg := Server{
		Name: "p", Command: "./server.sh", Args: []string{"\u202e\x1b[2J"}, Project: dir,
		Env: map[string]string{fakeMark: "ok"},
	}
	write := func(extra string) {
		if err := os.WriteFile(script, []byte("#!/bin/sh\n"+extra+"exec "+os.Args[0]+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	var asked []string
	o := Options{Dir: dir, Trust: consent.OpenTrust(filepath.Join(t.TempDir(), "a.json")),
		Ask: func(_ context.Context, q string) bool {
			asked = append(asked, q)
			return true
		}}
	for range 2 {
		if tools, _ := offered(t, open(t, o, cfg)); len(tools) != 12 {
			t.Fatalf("%d tools", len(tools))
		}
	}
	if len(asked) != 2 || !strings.Contains(asked[0], `./server.sh \u{202e}\x1b[2J`) ||
		!strings.Contains(asked[1], `\u{200b}`) || !strings.Contains(asked[1], `"description":"an\\u{202e} x"`) {
		t.Errorf("asked %q", asked)
	}
	write("echo changed >&2\n")
	offered(t, open(t, o, cfg))
	if len(asked) != 3 {
		t.Errorf("a changed file was asked about %d times in all, want 3", len(asked))
	}
}

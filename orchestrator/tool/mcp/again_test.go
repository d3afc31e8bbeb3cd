package mcp

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/guard/consent"
	"anamnesis/orchestrator/tool"
)

// A call that kills its server each time is made twice and not more.
func TestRetriedOnce(t *testing.T) {
	t.Parallel()
	cfg := fake(t, "f", "ok")
	tools, _ := offered(t, open(t, Options{}, cfg))
	if res := call(t, tools["mcp__f__dies"], nil); !res.IsError {
		t.Errorf("%+v", res)
	}
	data, err := os.ReadFile(cfg.Env["FAKE_MARK"])
	if n := strings.Count(string(data), "called"); n != 2 || err != nil {
		t.Errorf("it was called %d times, %v; want 2", n, err)
	}
}

// What a user calls read-only needs no approval and may be called twice; what
// the server itself calls so does need one.
func TestReadOnlyTools(t *testing.T) {
	t.Parallel()
	cfg := fake(t, "f", "ok")
	cfg.ReadOnlyTools = []string{"die"}
	tools, _ := offered(t, open(t, Options{}, cfg))
	if !tools["mcp__f__die"].Spec().ReadOnly || tools["mcp__f__die_once"].Spec().ReadOnly {
		t.Error("the server's word counts, or the user's does not")
	}
	// It dies the second time, too: that it was called then is what is asked.
	if res := call(t, tools["mcp__f__die"], nil); !res.IsError || strings.Contains(res.Text, "Outcome unknown") {
		t.Errorf("%+v", res)
	}
}

// A project's server whose file changed while the task runs is not started again.
func TestChangedWhileRunning(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := filepath.Join(dir, "server.sh")
	write := func(more string) {
		if err := os.WriteFile(script, []byte("#!/bin/sh\n"+more+"exec "+os.Args[0]+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	started := filepath.Join(dir, "started")
	cfg := Server{Name: "p", Command: "./server.sh", Project: dir, Env: map[string]string{fakeMark: "ok"}}
	trust := consent.OpenTrust(filepath.Join(t.TempDir(), "a.json"))
	o := Options{Dir: dir, Trust: trust}
	r, err := Probe(t.Context(), cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := ApproveCommand(cfg, trust); err != nil {
		t.Fatal(err)
	}
	if err := ApproveTools(cfg, r, trust); err != nil {
		t.Fatal(err)
	}
	tools, _ := offered(t, open(t, o, cfg))
	write("touch " + started + "\n")
	res := call(t, tools["mcp__p__die"], nil)
	if _, err := os.Stat(started); err == nil || !strings.Contains(res.Text, "its current content is not approved") {
		t.Errorf("started again: %v; %s", err == nil, res.Text)
	}
}

// A server that never lists its tools, or lists too many, costs its own.
func TestLists(t *testing.T) {
	t.Parallel()
	quiet := fake(t, "quiet", "lists nothing")
	quiet.StartTimeoutSeconds = 1
	tools, news := offered(t, open(t, Options{}, fake(t, "a", "ok"), quiet, fake(t, "many", "many")))
	all := strings.Join(news, "\n")
	if len(tools) != 12 || len(news) != 2 || !strings.Contains(all, "quiet is not there: ") ||
		!strings.Contains(all, "it did not answer in time") ||
		!strings.Contains(all, "it offers more than 1000 tools") {
		t.Errorf("%d tools, news %q", len(tools), news)
	}
}

// Progress does not hold a call open forever.
func TestLongestCall(t *testing.T) {
	t.Parallel()
	s := open(t, Options{}, fake(t, "f", "ok"))
	tools, _ := offered(t, s)
	s.servers[0].longest = time.Second
	if res := call(t, tools["mcp__f__slow"], nil); !res.IsError ||
		!strings.Contains(res.Text, "reported progress and gave no answer for 1s") {
		t.Errorf("%+v", res)
	}
}

// A server that announces tools and then never lists them holds one step up,
// and is ended: the next announcement would hold the next one up.
func TestAnnouncesAndHangs(t *testing.T) {
	t.Parallel()
	cfg := fake(t, "f", "lists once")
	s := open(t, Options{}, cfg, fake(t, "a", "ok"))
	tools, _ := offered(t, s)
	pid, err := strconv.Atoi(call(t, tools["mcp__f__pid"], nil).Text)
	if err != nil {
		t.Fatal(err)
	}
	s.servers[0].StartTimeoutSeconds = 1 // of the list that never comes
	call(t, tools["mcp__f__grow"], nil)
	settled(t, s, tools["mcp__a__pid"], func(now map[string]tool.Tool, news []string) bool {
		return len(now) == 12 && len(news) == 1 &&
			strings.Contains(news[0], "f is not there: list its tools: it did not answer in time")
	})
	if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
		t.Errorf("signal to the server: %v, want no such process", err)
	}
}

// A server need not name itself, in any version of the protocol.
func TestNoServerInfo(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"noinfo", "stateless"} {
		r, err := Probe(t.Context(), fake(t, "f", how), Options{Dir: t.TempDir()})
		if err != nil || r.Info != "" || len(r.Tools) != 12 {
			t.Errorf("%s: %q, %d tools, %v", how, r.Info, len(r.Tools), err)
		}
	}
}

// A server that asks back instead of answering is told of, and not taken for one
// that said nothing.
func TestAsksBack(t *testing.T) {
	t.Parallel()
	tools, _ := offered(t, open(t, Options{}, fake(t, "f", "stateless")))
	if res := call(t, tools["mcp__f__asks"], nil); !res.IsError ||
		!strings.Contains(res.Text, "asked a question back") {
		t.Errorf("%+v", res)
	}
}

// An answer that cannot be read is no lost connection: the server stays.
func TestUnreadableAnswer(t *testing.T) {
	t.Parallel()
	tools, _ := offered(t, open(t, Options{}, fake(t, "f", "ok")))
	pid := call(t, tools["mcp__f__pid"], nil).Text
	if res := call(t, tools["mcp__f__odd"], nil); !res.IsError ||
		!strings.Contains(res.Text, "The answer of the MCP server f cannot be read: ") {
		t.Errorf("%+v", res)
	}
	if now := call(t, tools["mcp__f__pid"], nil).Text; now != pid {
		t.Errorf("the server was started again: %s, then %s", pid, now)
	}
}

// Of what a server writes on its stderr the end is kept, however much it is.
func TestStderr(t *testing.T) {
	t.Parallel()
	p := new(process)
	for range 1_000 {
		p.keep([]byte(strings.Repeat("x", 999) + "\n"))
	}
	p.keep([]byte("the last words\n"))
	p.done = make(chan struct{})
	close(p.done)
	p.setExit(guard.Outcome{Exit: 7}, nil)
	if why := p.why(); why != "it ended with exit code 7: the last words" || len(p.errText) > stderrBytes {
		t.Errorf("%q, %d bytes kept", why, len(p.errText))
	}
}

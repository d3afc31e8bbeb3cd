//go:build unix

package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"anamnesis/cmd/internal/exit"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/taskdir"
)

// endless is a command that never ends by itself and says in a file that it runs.
const endless = `echo $$ > started; exec cat /dev/zero > /dev/null`

// slowServer is an MCP server that hangs: at its start, or in a call.
const slowServer = `while read -r line; do
	test "$1" = start && touch "$2" && exec sleep 10000
	id=$(sed -n 's/.*"id":\([0-9]*\).*/\1/p' <<<"$line")
	case $line in
	*'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"slow","version":"1"}}}' ;;
	*'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"hang","inputSchema":{"type":"object"}}]}}' ;;
	*'"tools/call"'*) touch "$2"; exec sleep 10000 ;;
	*) test -n "$id" && echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"no such method"}}' ;;
	esac
done
`

// interruptCase is something that a turn waits for when it is interrupted.
type interruptCase struct {
	name  string
	words string // the recording; empty: a server that never answers
	slow  string // where an MCP server hangs: start or call; empty: there is none
	child string // the subagent's task, where one is at work
}

func interruptCases() []interruptCase {
	return []interruptCase{
		{name: "command", words: fmt.Sprintf("turns:\n  - calls: [{name: Bash, arguments: {command: %q, timeout: 300}}]\n", endless)},
		{name: "background", words: fmt.Sprintf("turns:\n  - calls: [{name: Bash, arguments: {command: %q, run_in_background: true}}]\n  - reply: Never.\n    fault: {delay: 1h}\n", endless)},
		{name: "subagent", child: "t.1", words: fmt.Sprintf("turns:\n  - calls: [{name: Task, arguments: {subagent: coder, description: d, prompt: p}}]\n"+
			"subagents:\n  - agent: coder\n    turns:\n      - calls: [{name: Bash, arguments: {command: %q, timeout: 300}}]\n", endless)},
		{name: "model"},
		{name: "mcp start", slow: "start", words: "turns:\n  - reply: Never.\n"},
		{name: "mcp call", slow: "call", words: "turns:\n  - calls: [{name: mcp__slow__hang}]\n"},
	}
}

// start runs the program and waits until it is at the place of the case.
func (c interruptCase) start(t *testing.T) *running {
	t.Helper()
	dir := t.TempDir()
	r := &running{world: filepath.Join(dir, "w"), home: filepath.Join(dir, "home")}
	if err := errors.Join(os.Mkdir(r.world, 0o755), os.Mkdir(r.home, 0o700)); err != nil {
		t.Fatal(err)
	}
	started := filepath.Join(r.world, "started")
	args := []string{"run", "--dir", r.world, "--approval", "auto", "--task", "t", "--tools-wait", "5m", "Go."}
	env := append(os.Environ(), "ANAMNESIS_TEST_MAIN=1", "ANAMNESIS_HOME="+r.home)
	if c.words == "" {
		gone := make(chan struct{})
		srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			_ = os.WriteFile(started, []byte("x"), 0o600)
			<-gone
		}))
		t.Cleanup(func() { close(gone); srv.Close() })
		args = append(args, "--model", "silent", "--base-url", srv.URL)
		env = append(env, "OPENAI_API_KEY=x")
	} else {
		script := filepath.Join(dir, "words.yaml")
		if err := os.WriteFile(script, []byte(c.words), 0o644); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--model", "script:"+script)
	}
	if c.slow != "" {
		server := filepath.Join(dir, "slow.sh")
		config := fmt.Sprintf(`{"mcpServers":{"slow":{"command":"bash","args":[%q,%q,%q]}}}`, server, c.slow, started)
		if err := errors.Join(os.WriteFile(server, []byte(slowServer), 0o644), os.WriteFile(filepath.Join(r.home, "mcp.json"), []byte(config), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	r.cmd = exec.Command(os.Args[0], args...)
	r.cmd.Env = env
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.out
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.cmd.Process.Kill() })
	r.await(t, func() bool {
		st, err := taskdir.ReadState(taskdir.Home{State: r.home}, "t")
		_, missing := os.Stat(started)
		return err == nil && st.Turn.Open && missing == nil
	})
	return r
}

// TestInterruptAnywhere: whatever a turn waits for, the first Ctrl-C ends it with
// everything recorded and nothing left running. How long it took is logged.
func TestInterruptAnywhere(t *testing.T) {
	t.Parallel()
	heavy(t)
	for _, c := range interruptCases() {
		t.Run(c.name, func(t *testing.T) {
			r := c.start(t)
			begin := time.Now()
			if err := r.cmd.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
			var ended *exec.ExitError
			if err := r.cmd.Wait(); !errors.As(err, &ended) || ended.ExitCode() != exit.Interrupted {
				t.Fatalf("ended with %v, want exit code %d\n%s", err, exit.Interrupted, r.out.String())
			}
			t.Logf("ended %v after Ctrl-C", time.Since(begin).Round(time.Millisecond))
			if !r.commandGone(t) {
				t.Error("a process is still at work in the directory")
			}
			r.recordedEnd(t, "t")
			if c.child != "" {
				r.recordedEnd(t, c.child)
			}
		})
	}
}

// recordedEnd checks that a task's turn is recorded as interrupted, with a result
// for each call that began and an end for what ran in the background.
func (r *running) recordedEnd(t *testing.T, id string) {
	t.Helper()
	st, err := taskdir.ReadState(taskdir.Home{State: r.home}, id)
	if err != nil {
		t.Fatal(err)
	}
	if st.Turn.End == nil || st.Turn.End.Reason != "interrupted" || st.Reply != nil || len(st.Jobs.Running) > 0 {
		t.Errorf("%s: end %+v, open reply %v, jobs %v", id, st.Turn.End, st.Reply != nil, st.Jobs.Running)
	}
	for _, c := range st.Subagents {
		if c.Running || c.Reason != "interrupted" {
			t.Errorf("%s: subagent %+v", id, c)
		}
	}
}

// TestInterruptTwice: the second Ctrl-C ends the program at once, and the
// commands with it; the task can be resumed, the subagent's record is whole.
func TestInterruptTwice(t *testing.T) {
	t.Parallel()
	heavy(t)
	c := interruptCases()[2]
	c.words = strings.Replace(c.words, "echo $$", "trap '' TERM INT; echo $$", 1)
	r := c.start(t)
	begin := time.Now()
	var err error
	ended := make(chan error, 1)
	go func() { ended <- r.cmd.Wait() }()
	for tick := time.NewTicker(time.Millisecond); ; {
		select {
		case err = <-ended:
		case <-tick.C:
			_ = r.cmd.Process.Signal(syscall.SIGINT)
			continue
		}
		tick.Stop()
		break
	}
	t.Logf("ended %v after the first Ctrl-C: %v", time.Since(begin).Round(time.Millisecond), err)
	r.await(t, func() bool { return r.commandGone(t) })
	for _, id := range []string{"t", "t.1"} {
		err := taskdir.EachOp(taskdir.Home{State: r.home}, id, func(op.Op) error { return nil })
		if err != nil {
			t.Errorf("%s cannot be read: %v", id, err)
		}
	}
}

package acp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	assets "anamnesis"
	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/sessions"
)

// gotVariable makes this binary an agent, which writes what it gets to a file.
const gotVariable = "ANAMNESIS_TEST_ACP_GOT"

func TestMain(m *testing.M) {
	guard.SuperviseMain() // this binary also supervises commands
	if file := os.Getenv(gotVariable); file != "" {
		agent(file)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// odd is a line that no program here would write.
const odd = `{ "jsonrpc":"2.0",  "method":"_vendor/status", "params":{"x":1.0, "y":"é"} }`

// agent answers on standard output, as an agent does that deletes a folder.
func agent(file string) {
	got, err := os.Create(file)
	if err != nil {
		panic(err)
	}
	say := func(format string, args ...any) { fmt.Printf(format+"\n", args...) }
	update := func(text string) {
		say(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":%s}}`, text)
	}
	dir := ""
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		fmt.Fprintln(got, in.Text())
		var m message
		if json.Unmarshal(in.Bytes(), &m) != nil {
			continue
		}
		switch m.Method {
		case "session/new":
			var q params
			_ = json.Unmarshal(m.Params, &q)
			dir = q.Cwd
			say(`{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s-1"}}`, m.ID)
			update(`{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"plan","description":"Plan."}]}`)
			say("%s", odd)
		case "session/prompt":
			say(`{"jsonrpc":"2.0","id":"p1","method":"session/request_permission","params":{"sessionId":"s-1","toolCall":{"toolCallId":"c1","title":"rm -r lib","kind":"execute"}}}`)
			if !in.Scan() { // the permission
				return
			}
			fmt.Fprintln(got, in.Text())
			_ = os.RemoveAll(filepath.Join(dir, "lib"))
			update(`{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed","kind":"execute","title":"rm -r lib","rawOutput":{"exit_code":0,"output":"gone"}}`)
			update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Done."}}`)
			say(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, m.ID)
		}
	}
}

// editor is the other side of the proxy.
type editor struct {
	*testing.T
	to  io.Writer
	out *bufio.Scanner
}

func (e *editor) say(format string, args ...any) {
	e.Helper()
	if _, err := fmt.Fprintf(e.to, format+"\n", args...); err != nil {
		e.Fatal(err)
	}
}

// until reads lines up to one that has a text, and returns them.
func (e *editor) until(text string) string {
	e.Helper()
	all := ""
	for e.out.Scan() {
		all += e.out.Text() + "\n"
		if strings.Contains(e.out.Text(), text) {
			return all
		}
	}
	e.Fatalf("no line has %s: %s", text, all)
	return ""
}

func TestProxy(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("lib/x", "kept")
	env := map[string]string{"HOME": home, "ANAMNESIS_HOME": filepath.Join(home, ".anamnesis")}
	svc, err := session.New(session.Options{Getenv: func(name string) string { return env[name] }, Version: "test", EAS: assets.EAS})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(home, "got")
	t.Setenv(gotVariable, file)
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- Run(t.Context(), svc, nil, []string{os.Args[0]}, inRead, outWrite, os.Stderr)
		outWrite.Close()
	}()
	e := &editor{t, inWrite, bufio.NewScanner(outRead)}

	e.say("%s", odd)
	e.say(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":%q,"mcpServers":[]}}`, dir)
	begun := e.until("_vendor/status")
	for _, want := range []string{`"name":"plan"`, `"name":"jump"`, `"name":"timeline"`, `"name":"cards"`, odd + "\n"} {
		if !strings.Contains(begun, want) {
			t.Errorf("the session begins without %s: %s", want, begun)
		}
	}
	ask := `{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":"s-1","prompt":[{"type":"text","text":%q}]}}`
	e.say(ask, 2, "Clean up.")
	e.until("session/request_permission")
	e.say(`{"jsonrpc":"2.0","id":"p1","result":{"outcome":{"outcome":"selected","optionId":"yes"}}}`)
	e.until(`"id":2,`)
	e.say(ask, 3, "/timeline")
	if text := e.until(`"id":3,`); !strings.Contains(text, "● 1  Bash") {
		t.Errorf("timeline: %s", text)
	}
	put("mine", "the user's")
	e.say(ask, 4, "/jump 0 lib is needed")
	if text := e.until(`"id":4,`); !strings.Contains(text, "end of step 0") {
		t.Errorf("jump: %s", text)
	}
	for name, want := range map[string]string{"lib/x": "kept", "mine": "the user's"} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); string(data) != want {
			t.Errorf("%s holds %q, %v", name, data, err)
		}
	}
	e.say(ask, 5, "/jump nowhere")
	if text := e.until(`"id":5,`); !strings.Contains(text, "name a step") {
		t.Errorf("a wrong jump: %s", text)
	}
	e.say(ask, 6, "/cards AssertionError")
	e.until("No card fits")
	e.until(`"id":6,`)
	e.say(ask, 7, "Go on.")
	e.until("session/request_permission")
	e.say(`{"jsonrpc":"2.0","id":"p1","result":{"outcome":{"outcome":"cancelled"}}}`)
	e.until(`"id":7,`)
	inWrite.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(string(data), "\n")
	if got[0] != odd || !strings.Contains(string(data), `"outcome":"cancelled"`) {
		t.Errorf("the agent got %s", data)
	}
	for _, line := range got {
		if strings.Contains(line, "/jump") || strings.Contains(line, "/cards") {
			t.Errorf("a command reached the agent: %s", line)
		}
		if strings.Contains(line, "Go on.") && (!strings.Contains(line, "lib is needed") || !strings.Contains(line, "lib/x")) {
			t.Errorf("the agent is not told of the jump: %s", line)
		}
	}
	st, err := svc.State(beside.TaskOf(beside.ACP, "s-1"))
	if err != nil || st.Turn.End == nil || st.EndedSteps() != 4 {
		t.Errorf("%d steps, ended %v, %v", st.EndedSteps(), st.Turn.End, err)
	}
}

// TestHooked: a session that the agent's own hooks record is forwarded, not recorded
// twice.
func TestHooked(t *testing.T) {
	env := map[string]string{"HOME": t.TempDir(), "ANAMNESIS_HOME": t.TempDir()}
	svc, err := session.New(session.Options{Getenv: func(name string) string { return env[name] }, Version: "test", EAS: assets.EAS})
	if err != nil {
		t.Fatal(err)
	}
	in := fmt.Sprintf(`{"session_id":"s-1","cwd":%q,"hook_event_name":"UserPromptSubmit","prompt":"p"}`, t.TempDir())
	if err := beside.Hook(t.Context(), svc, sessions.Claude, strings.NewReader(in), "", nil, func([]byte) {}); err != nil {
		t.Fatal(err)
	}
	p := &Proxy{svc: svc, sessions: map[string]*chat{}}
	p.begin("s-1", t.TempDir())
	p.begin("s-2", t.TempDir())
	if p.chat("s-1") != nil || p.chat("s-2") == nil {
		t.Errorf("recorded are %v", p.sessions)
	}
}

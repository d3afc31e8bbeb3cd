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
	"anamnesis/cmd/internal/install"
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
			if strings.Contains(in.Text(), "Write it.") {
				say(`{"jsonrpc":"2.0","id":"w1","method":"fs/write_text_file","params":{"sessionId":"s-1","path":%q,"content":"made"}}`, filepath.Join(dir, "made"))
				in.Scan() // the editor wrote it
				say(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, m.ID)
				continue
			}
			if strings.Contains(in.Text(), "Announce it.") { // as opencode and claude-agent-acp do
				update(`{"sessionUpdate":"tool_call","toolCallId":"o1","title":"bash","kind":"execute","status":"pending","rawInput":{"cwd":"/p"}}`)
				update(`{"sessionUpdate":"tool_call_update","toolCallId":"o1","title":"make one","kind":"execute","status":"in_progress","rawInput":{"command":"make one","cwd":"/p"}}`)
				update(`{"sessionUpdate":"tool_call_update","toolCallId":"o1","status":"completed"}`)
				update(`{"sessionUpdate":"tool_call","toolCallId":"o2","name":"Bash","title":"Terminal","kind":"execute","status":"pending","rawInput":{}}`)
				update(`{"sessionUpdate":"tool_call_update","toolCallId":"o2","title":"make two","rawInput":{"command":"make two"}}`)
				update(`{"sessionUpdate":"tool_call_update","toolCallId":"o2","status":"completed"}`)
				say(`{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`, m.ID)
				continue
			}
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

// proxied is an editor that has begun a session with an agent through the proxy.
type proxied struct {
	*editor
	svc       *session.Service
	dir, file string // the world, and what the agent got
	begun     string // what it said first
	close     func() // ends the editor's input, and waits for the proxy
}

func (p *proxied) put(name, text string) {
	p.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
}

func (p *proxied) holds(name, want string) {
	p.Helper()
	if data, err := os.ReadFile(filepath.Join(p.dir, name)); string(data) != want {
		p.Errorf("%s holds %q, %v", name, data, err)
	}
}

// ask is a prompt.
const ask = `{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":"s-1","prompt":[{"type":"text","text":%q}]}}`

func start(t *testing.T) *proxied {
	t.Helper()
	home, dir := t.TempDir(), t.TempDir()
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"HOME": home, "ANAMNESIS_HOME": filepath.Join(home, ".anamnesis")}
	getenv := func(name string) string { return env[name] }
	svc, err := session.New(session.Options{Getenv: getenv, Version: "test", EAS: assets.EAS})
	if err != nil {
		t.Fatal(err)
	}
	p := &proxied{svc: svc, dir: dir, file: filepath.Join(home, "got")}
	t.Setenv(gotVariable, p.file)
	inRead, inWrite := io.Pipe()
	outRead, outWrite := io.Pipe()
	ended := make(chan error, 1)
	places := &install.Places{Home: home, State: svc.Home.State, Data: env["ANAMNESIS_HOME"], Program: "/bin/anamnesis",
		Getenv: getenv}
	go func() {
		ended <- Run(t.Context(), svc, nil, places, []string{os.Args[0]}, inRead, outWrite, os.Stderr)
		outWrite.Close()
	}()
	p.editor = &editor{t, inWrite, bufio.NewScanner(outRead)}
	p.close = func() {
		t.Helper()
		inWrite.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	p.put("lib/x", "kept")
	p.say("%s", odd)
	p.say(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":%q,"mcpServers":[]}}`, dir)
	p.begun = p.until("_vendor/status")
	return p
}

func TestProxy(t *testing.T) {
	e := start(t)
	for _, want := range []string{`"name":"plan"`, `"name":"jump"`, `"name":"timeline"`, `"name":"cards"`, odd + "\n"} {
		if !strings.Contains(e.begun, want) {
			t.Errorf("the session begins without %s: %s", want, e.begun)
		}
	}
	e.say(ask, 1, "/timeline")
	if text := e.until(`"id":1,`); !strings.Contains(text, "begins with your first prompt") {
		t.Errorf("timeline of a session without a prompt: %s", text)
	}
	e.say(ask, 2, "Clean up.")
	e.until("session/request_permission")
	e.say(`{"jsonrpc":"2.0","id":"p1","result":{"outcome":{"outcome":"selected","optionId":"yes"}}}`)
	e.until(`"id":2,`)
	e.say(ask, 3, "/timeline")
	if text := e.until(`"id":3,`); !strings.Contains(text, "● 1  Bash") {
		t.Errorf("timeline: %s", text)
	}
	e.put("mine", "the user's")
	e.say(ask, 4, "/jump 0 lib is needed")
	if text := e.until(`"id":4,`); !strings.Contains(text, "end of step 0") {
		t.Errorf("jump: %s", text)
	}
	e.holds("lib/x", "kept")
	e.holds("mine", "the user's")
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
	e.close()
	data, err := os.ReadFile(e.file)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Split(string(data), "\n")
	server := fmt.Sprintf(`"mcpServers":[{"args":["mcp","serve","--dir",%q],"command":"/bin/anamnesis","env":[{"name":"ANAMNESIS_HOME","value":%q}],"name":"anamnesis"}]`, e.dir, e.svc.Home.State)
	if !strings.Contains(got[1], server) {
		t.Errorf("the session begins with %s, want %s", got[1], server)
	}
	if got[0] != odd || !strings.Contains(string(data), `"outcome":"cancelled"`) {
		t.Errorf("the agent got %s", data)
	}
	for _, line := range got {
		if strings.Contains(line, "/jump") || strings.Contains(line, "/cards") {
			t.Errorf("a command reached the agent: %s", line)
		}
		if strings.Contains(line, "Go on.") &&
			(!strings.Contains(line, "lib is needed") || !strings.Contains(line, "lib/x")) {
			t.Errorf("the agent is not told of the jump: %s", line)
		}
	}
	st, err := e.svc.State(beside.TaskOf(beside.ACP, "s-1"))
	if err != nil || st.Turn.End == nil || st.Steps.CountEnded() != 4 {
		t.Errorf("%d steps, ended %v, %v", st.Steps.CountEnded(), st.Turn.End, err)
	}
}

// TestWritesFile: a file that the agent has the editor write is the agent's change, also
// if it told of no call; what the user changed before is theirs.
func TestWritesFile(t *testing.T) {
	e := start(t)
	e.put("mine", "the user's")
	e.say(ask, 2, "Write it.")
	e.until("fs/write_text_file")
	e.put("made", "made")
	e.say(`{"jsonrpc":"2.0","id":"w1","result":{}}`)
	e.until(`"id":2,`)
	e.say(ask, 3, "/timeline")
	if text := e.until(`"id":3,`); !strings.Contains(text, "● 1  WriteFile(made)") {
		t.Errorf("timeline: %s", text)
	}
	e.say(ask, 4, "/jump 0 not asked for")
	e.until(`"id":4,`)
	e.holds("made", "")
	e.holds("mine", "the user's")
	e.close()
}

// TestAnnounced: a call is recorded with its command, also if the agent announces it first.
func TestAnnounced(t *testing.T) {
	e := start(t)
	e.say(ask, 2, "Announce it.")
	e.until(`"id":2,`)
	e.say(ask, 3, "/timeline")
	if text := e.until(`"id":3,`); !strings.Contains(text, "● 1  Bash(make one)") ||
		!strings.Contains(text, "● 2  Bash(make two)") {
		t.Errorf("timeline: %s", text)
	}
	e.close()
}

// TestUnchanged: what the proxy has nothing to add to is forwarded byte for byte.
func TestUnchanged(t *testing.T) {
	p := &Proxy{program: "/bin/anamnesis"}
	for _, line := range []string{
		`{ "id":1, "method":"session/new", "params":{"cwd":"/p", "mcpServers":[ {"name":"anamnesis", "command":"mine"} ]} }` + "\n",
		`{"id":1,"method":"session/new","params":{"cwd":"/p","mcpServers":{"a":1}}}` + "\n",
		`{"id":1,"method":"session/new","params":[]}` + "\n",
		`{"id":1,"method":"session/new"}` + "\n",
	} {
		if got := p.withServer([]byte(line), "/p"); string(got) != line {
			t.Errorf("%s became %s", line, got)
		}
	}
	const own = `{"method":"session/update", "params":{"update":{"availableCommands":[{"name":"jump"},{"name":"timeline"},{"name":"cards"}]}}}` + "\n"
	if got := withCommands([]byte(own)); string(got) != own {
		t.Errorf("%s became %s", own, got)
	}
	if got := new(Proxy).withServer([]byte(`{"params":{}}`), "/p"); string(got) != `{"params":{}}` {
		t.Errorf("an agent that has the server gets %s", got)
	}
}

// TestForwards: where nothing can be recorded, the agent runs all the same.
func TestForwards(t *testing.T) {
	const in = `{ "id":1, "method":"session/new", "params":{"cwd":"/p", "mcpServers":[]} }` +
		"\nno message, no end of line"
	var out, stderr strings.Builder
	if err := Run(t.Context(), nil, nil, nil, []string{"sh", "-c", "cat; echo told >&2"}, strings.NewReader(in), &out, &stderr); err != nil || out.String() != in || stderr.String() != "told\n" {
		t.Errorf("%v: %q, %q", err, out.String(), stderr.String())
	}
	if err := Run(t.Context(), nil, nil, nil, []string{"sh", "-c", "exit 7"}, strings.NewReader(""), &out, &stderr); err == nil || err.Error() != "exit status 7" {
		t.Errorf("exit: %v", err)
	}
}

// TestHooked: a session that the agent's own hooks record is forwarded, not recorded
// twice.
func TestHooked(t *testing.T) {
	env := map[string]string{"HOME": t.TempDir(), "ANAMNESIS_HOME": t.TempDir()}
	svc, err := session.New(
		session.Options{Getenv: func(name string) string { return env[name] }, Version: "test", EAS: assets.EAS})
	if err != nil {
		t.Fatal(err)
	}
	in := fmt.Sprintf(`{"session_id":"s-1","cwd":%q,"hook_event_name":"UserPromptSubmit","prompt":"p"}`, t.TempDir())
	if err := beside.Hook(t.Context(), svc, sessions.Claude, strings.NewReader(in), nil, func([]byte) error { return nil }); err != nil {
		t.Fatal(err)
	}
	p := &Proxy{svc: svc, sessions: map[string]*chat{}}
	p.begin("s-1", t.TempDir())
	p.begin("s-2", t.TempDir())
	if p.chat("s-1") != nil || p.chat("s-2") == nil {
		t.Errorf("recorded are %v", p.sessions)
	}
}

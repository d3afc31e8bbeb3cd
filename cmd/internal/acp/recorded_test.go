package acp

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	assets "anamnesis"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/session"
)

// replay is an editor and an agent that say lines written down before.
type replay struct {
	*testing.T
	p       *Proxy
	svc     *session.Service
	dir     string
	session string
}

func newReplay(t *testing.T) *replay {
	home := t.TempDir()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"HOME": home, "ANAMNESIS_HOME": filepath.Join(home, ".anamnesis")}
	svc, err := session.New(
		session.Options{Getenv: func(name string) string { return env[name] }, Version: "test", EAS: assets.EAS})
	if err != nil {
		t.Fatal(err)
	}
	p := newProxy(svc, nil, io.Discard, io.Discard)
	return &replay{t, p, svc, dir, ""}
}

// say passes one line of the editor's or the agent's.
func (r *replay) say(from, line string) {
	r.Helper()
	pass := r.p.fromAgent
	if from == "editor" {
		pass = r.p.fromEditor
	}
	var m message
	var q params
	if json.Unmarshal([]byte(line), &m) == nil && json.Unmarshal(m.Result, &q) == nil && r.session == "" {
		r.session = q.SessionID
	}
	if err := pass(r.Context(), []byte(line+"\n")); err != nil {
		r.Fatal(err)
	}
}

// begin begins a session whose answer to session/new has more fields.
func (r *replay) begin(more string) {
	r.Helper()
	r.say("editor",
		fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":%q,"mcpServers":[]}}`, r.dir))
	r.say("agent", `{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s-1"`+more+`}}`)
	r.say("editor", fmt.Sprintf(ask, 2, "Make it pass."))
}

func (r *replay) update(text string) {
	r.Helper()
	r.say("agent", `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":`+text+`}}`)
}

// end ends the turn.
func (r *replay) end() { r.say("agent", `{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}`) }

// calls lists what was recorded: each call with its exit code, ! for a failure, / for a refusal and ? for an outcome
// that was not reported; and the answer. model is the session's.
func (r *replay) calls() (list []string, answer, model string, results []op.ToolReturned) {
	r.Helper()
	args := map[string]string{}
	task := beside.TaskOf(beside.ACP, r.session)
	err := r.svc.Ops(task, 0, func(o op.Op) error {
		switch b := o.Body.(type) {
		case *op.ToolCalled:
			args[b.Call] = b.Args
		case *op.ToolReturned:
			results = append(results, *b)
			text := b.Name
			var a struct{ Command string }
			if _ = json.Unmarshal([]byte(args[b.Call]), &a); a.Command != "" {
				text += "(" + a.Command + ")"
			}
			switch {
			case b.Unknown:
				text += "?"
			case b.Refused:
				text += "/"
			case b.Exit != nil:
				text += fmt.Sprint("=", *b.Exit)
			case b.IsError:
				text += "!"
			}
			list = append(list, text)
		case *op.ModelReplied:
			answer = b.Text
		}
		return nil
	})
	st, stErr := r.svc.State(task)
	if err := cmp.Or(err, stErr); err != nil {
		r.Fatal(err)
	}
	return list, answer, st.Model.Name, results
}

// TestRecordedEditors plays what was said between an editor and five agents. All of them worked at one
// task, but not all of them say how a command ended.
func TestRecordedEditors(t *testing.T) {
	dir := filepath.Join(cmp.Or(os.Getenv("ANAMNESIS_BENCH_DATA"),
		filepath.Join("..", "..", "..", "..", "shared", "data")), "agents", "acp")
	if _, err := os.Stat(dir); err != nil {
		if os.Getenv("ANAMNESIS_CI") != "" {
			t.Fatalf("CI must have the recorded sessions: %v", err)
		}
		t.Skipf("SKIPPED: no recorded sessions (%v); set ANAMNESIS_BENCH_DATA to the folder that holds agents/", err)
	}
	for agent, want := range map[string]struct{ calls, model string }{
		"claude":   {"Bash(TEST)/ ReadFile StrReplaceFile Bash(TEST)/ mcp__anamnesis__big! mcp__anamnesis__ask! WriteFile Bash(TEST && NOTE)/ StrReplaceFile!", "claude-opus-5-5"},
		"codex":    {"Bash(TEST)=1 ReadFile=0 StrReplaceFile Bash(TEST)=1 think! mcp__anamnesis__big!", "m1"},
		"gemini":   {"Bash(TEST)? ReadFile StrReplaceFile Bash(TEST)? mcp__anamnesis__big mcp__anamnesis__ask StrReplaceFile Bash(TEST && NOTE)? edit!", "gemini-3.8-flash"},
		"kimi":     {"Bash(TEST)=1 ReadFile StrReplaceFile Bash(TEST)=1 mcp__anamnesis__big mcp__anamnesis__ask WriteFile Bash(TEST && NOTE)=0 StrReplaceFile!", "m1"},
		"opencode": {"Bash(TEST)=1 ReadFile StrReplaceFile Bash(TEST)=1 anamnesis_big anamnesis_ask WriteFile StrReplaceFile! Bash(TEST && NOTE)=0", "mock/m1"},
	} {
		f, err := os.Open(filepath.Join(dir, agent, "proxy.jsonl.gz"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		r := newReplay(t)
		in := bufio.NewScanner(z)
		in.Buffer(nil, 1<<24)
		for in.Scan() {
			var l struct {
				Dir string          `json:"dir"`
				M   json.RawMessage `json:"m"`
			}
			if err := json.Unmarshal(in.Bytes(), &l); err != nil || l.Dir != "editor" && l.Dir != "agent" {
				continue
			}
			line := string(l.M)
			if strings.Contains(line, `"session/new"`) {
				if r.session != "" {
					break // another recording follows
				}
				line = strings.ReplaceAll(line, "/home/dev/"+agent+"/proj", r.dir)
			}
			r.say(l.Dir, line)
		}
		list, answer, model, _ := r.calls()
		got := strings.NewReplacer("python3 test_totals.py", "TEST", "echo note > NOTES.md",
			"NOTE").Replace(strings.Join(list, " "))
		if got != want.calls || answer != "The total is a Decimal string now; the test passes." &&
			answer != "All done." || model != want.model {
			t.Errorf("%s with %s: %s: %q; want %s", agent, model, got, answer, want)
		}
	}
}

// TestReported: how a call ended is recorded as far as the agent or the editor says so. The rest is not
// reported, and no success.
func TestReported(t *testing.T) {
	const (
		bash   = `{"sessionUpdate":"tool_call","toolCallId":"c","name":"Bash","title":"Terminal","kind":"execute","status":"pending","rawInput":{}}`
		make   = `{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"make","rawInput":{"command":"make"}}`
		shell  = `{"sessionUpdate":"tool_call","toolCallId":"c","title":"make","kind":"execute","status":"in_progress","content":[]}`
		result = `{"sessionUpdate":"tool_call_update","toolCallId":"c","_meta":{"claudeCode":{"toolName":"Bash","toolResponse":%s}}}`
		ended  = `{"sessionUpdate":"tool_call_update","toolCallId":"c","status":%q,"rawOutput":%s}`
		asks   = `{"jsonrpc":"2.0","id":9,"method":"session/request_permission","params":{"sessionId":"s-1","options":[{"optionId":"y","kind":"allow_once"},{"optionId":"n","kind":"reject_once"}],"toolCall":{"toolCallId":"c","title":"Bash","content":[{"type":"content","content":{"type":"text","text":"Requesting approval"}}]}}}`
		says   = `{"jsonrpc":"2.0","id":9,"result":{"outcome":%s}}`
		kimi   = `{"sessionUpdate":"tool_call","toolCallId":"c","title":"Bash","kind":"execute","status":"pending","content":[{"type":"content","content":{"type":"text","text":"{\"command\": \"make\"}"}}]}`
		create = `{"jsonrpc":"2.0","id":3,"method":"terminal/create","params":{"sessionId":"s-1","command":"/bin/bash","args":["-c","make"]}}`
		inside = `{"sessionUpdate":"tool_call_update","toolCallId":"c","status":%q,"content":[{"type":"terminal","terminalId":"t"}]}`
		output = `{"jsonrpc":"2.0","id":4,"method":"terminal/output","params":{"sessionId":"s-1","terminalId":"t"}}`
		again  = `{"sessionUpdate":"tool_call_update","toolCallId":"c","title":"make","kind":"execute","rawInput":{"command":"make"},"rawOutput":"once more"}`
		mcp    = `{"sessionUpdate":"tool_call","toolCallId":"c","kind":"execute","title":"mcp.db.ask","status":"in_progress","rawInput":{"server":"db","tool":"ask","arguments":{"n":1}}}`
		titled = `{"sessionUpdate":"tool_call","toolCallId":"c","kind":"other","title":"ask (db MCP Server)","status":"in_progress","content":[{"type":"content","content":{"type":"text","text":"{\"n\":1}"}}]}`
	)
	say := func(format string, args ...any) string { return fmt.Sprintf(format, args...) }
	for name, tt := range map[string]struct {
		lines      []string // an update, or a line of the agent's or, with a result, the editor's
		want, text string
	}{
		"Claude's success":      {[]string{bash, make, say(result, `{"stdout":"ok","stderr":"","interrupted":false}`), say(ended, "completed", `"ok"`)}, "Bash(make)=0", "ok"},
		"Claude's failure":      {[]string{bash, make, say(ended, "failed", `"Exit code 2\nno rule"`)}, "Bash(make)=2", "no rule"},
		"Claude's background":   {[]string{bash, make, say(result, `{"stdout":"","backgroundTaskId":"b"}`), say(ended, "completed", `"Running with ID: b"`)}, "Bash(make)?", "Running with ID: b"},
		"Claude's refusal":      {[]string{bash, make, say(result, `{"decisionReasonType":"rule","message":"no"}`), say(ended, "failed", `"denied"`), again}, "Bash(make)/", "denied"},
		"Gemini's silence":      {[]string{shell, say(ended, "completed", "null")}, "Bash(make)?", "The outcome was not reported."},
		"Gemini's server":       {[]string{titled, `{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed","content":[{"type":"content","content":{"type":"text","text":"{}"}}]}`}, "mcp__db__ask", "{}"},
		"Kimi's announcement":   {[]string{kimi, asks, say(says, `{"outcome":"selected","optionId":"y"}`), say(inside, "in_progress"), say(ended, "failed", `"x"`)}, "Bash(make)!", "x"},
		"an editor's terminal":  {[]string{kimi, create, `{"jsonrpc":"2.0","id":3,"result":{"terminalId":"t"}}`, say(inside, "in_progress"), output, `{"jsonrpc":"2.0","id":4,"result":{"output":"red","exitStatus":{"exitCode":1}}}`, say(inside, "failed")}, "Bash(make)=1", "red"},
		"a command in one":      {[]string{`{"sessionUpdate":"tool_call","toolCallId":"c","title":"Bash","kind":"execute","status":"pending"}`, create, `{"jsonrpc":"2.0","id":3,"result":{"terminalId":"t"}}`, say(inside, "in_progress"), say(inside, "completed")}, "Bash(make)?", "The outcome was not reported."},
		"a user's refusal":      {[]string{kimi, asks, say(says, `{"outcome":"selected","optionId":"n"}`), say(ended, "failed", `"Rejected."`)}, "Bash(make)/", "Rejected."},
		"a cancelled question":  {[]string{kimi, asks, say(says, `{"outcome":"cancelled"}`)}, "Bash(make)/", "The user refused the call."},
		"no end":                {[]string{shell}, "Bash(make)?", "The outcome was not reported."},
		"a server's error":      {[]string{mcp, say(ended, "failed", `{"result":null,"error":{"message":"no table"}}`)}, "mcp__db__ask!", "no table"},
		"a server's own error":  {[]string{mcp, say(ended, "completed", `{"result":{"content":[{"type":"text","text":"no table"}],"isError":true}}`)}, "mcp__db__ask!", "no table"},
		"a server's result":     {[]string{mcp, say(ended, "completed", `{"result":{"content":[{"type":"text","text":"5"}]},"error":null}`)}, "mcp__db__ask", "5"},
		"a code and both texts": {[]string{shell, say(ended, "completed", `{"stdout":"a","stderr":"b","exit_code":3}`)}, "Bash(make)=3", "a\nb"},
		"an odd field":          {[]string{shell, `{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed","rawOutput":{"exit_code":"0","output":"ok"},"locations":"none"}`}, "Bash(make)?", "ok"},
	} {
		r := newReplay(t)
		r.begin("")
		for _, line := range tt.lines {
			switch {
			case strings.Contains(line, "sessionUpdate"):
				r.update(line)
			case strings.Contains(line, `"method"`):
				r.say("agent", line)
			default:
				r.say("editor", line)
			}
		}
		r.end()
		list, _, _, results := r.calls()
		if got := strings.Join(list, " "); got != tt.want || results[0].Text != tt.text {
			t.Errorf("%s: %s %q, want %s %q", name, got, results[0].Text, tt.want, tt.text)
		}
	}
}

// TestEditorModel: the model is what the session's settings or the agent's usage name, the latter
// before the former.
func TestEditorModel(t *testing.T) {
	option := func(id, value string) string {
		return `"configOptions":[{"id":"mode","category":"mode","currentValue":"auto"},{"id":"` + id +
			`","category":"model","currentValue":` + value + `}]`
	}
	use := func(text string) string {
		return `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s-1","update":` + text + `}}`
	}
	for name, tt := range map[string]struct {
		begin string
		lines []string
		want  string
	}{
		"of the session":   {`,"models":{"currentModelId":"m-1","availableModels":[]}`, nil, "m-1"},
		"an option":        {"," + option("llm", `"m-2"`), nil, "m-2"},
		"an odd option":    {"," + option("llm", `true`), nil, "acp"},
		"none":             {"", nil, "acp"},
		"the agent's own":  {"," + option("model", `"default"`), nil, "acp"},
		"set":              {`,"models":{"currentModelId":"m-1"}`, []string{`{"jsonrpc":"2.0","id":7,"method":"session/set_model","params":{"sessionId":"s-1","modelId":"m-3"}}`, `{"jsonrpc":"2.0","id":7,"result":{}}`}, "m-3"},
		"set in vain":      {`,"models":{"currentModelId":"m-1"}`, []string{`{"jsonrpc":"2.0","id":7,"method":"session/set_model","params":{"sessionId":"s-1","modelId":"m-3"}}`, `{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"no"}}`}, "m-1"},
		"an option set":    {"," + option("model", `"m-2"`), []string{`{"jsonrpc":"2.0","id":7,"method":"session/set_config_option","params":{"sessionId":"s-1","configId":"model","value":"m-4"}}`, `{"jsonrpc":"2.0","id":7,"result":{` + option("model", `"m-4"`) + `}}`}, "m-4"},
		"an option's news": {"", []string{use(`{"sessionUpdate":"config_option_update",` + option("model", `"m-5"`) + `}`)}, "m-5"},
		"a model's news":   {"", []string{use(`{"sessionUpdate":"current_model_update","currentModelId":"m-6"}`)}, "m-6"},
		"of a reply":       {"," + option("model", `"default"`), []string{use(`{"sessionUpdate":"usage_update","_meta":{"_claude/model":"m-7"}}`)}, "m-7"},
		"said once more":   {"," + option("model", `"opus"`), []string{use(`{"sessionUpdate":"usage_update","_meta":{"_claude/model":"m-7"}}`), use(`{"sessionUpdate":"config_option_update",` + option("model", `"opus"`) + `}`)}, "m-7"},
		"of the turn":      {`,"models":{"currentModelId":"auto"}`, []string{`{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn","_meta":{"quota":{"model_usage":[{"model":"m-8"},{"model":"auto"}]}}}}`}, "m-8"},
	} {
		r := newReplay(t)
		r.begin(tt.begin)
		for _, line := range tt.lines {
			from := "agent"
			if strings.Contains(line, "session/set_") {
				from = "editor"
			}
			r.say(from, line)
		}
		r.say("editor", fmt.Sprintf(ask, 3, "Go on."))
		r.say("agent", `{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}`)
		if _, _, model, _ := r.calls(); model != tt.want {
			t.Errorf("%s: model %q, want %q", name, model, tt.want)
		}
	}
}

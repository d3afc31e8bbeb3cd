package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	nightSteps = 300
	// nightClock lets half a minute of the program pass in a second.
	nightClock = 30
)

// nightServer plays a model that works for a night, and the provider that serves it. It imitates what public
// reports say of several providers; no model and no provider was asked. Like DeepSeek and Kimi it refuses a
// history in which a call lacks what came beside it.
type nightServer struct {
	t       *testing.T
	mu      sync.Mutex
	served  int            // replies of the model
	faults  map[int]fault  // before the reply of that number, once
	beside  map[string]any // by call: what came beside it, byte for byte
	wrong   []string       // what requests lacked
	asked   map[string]int // how often which fault was served
	reached map[int]chan struct{}
}

// fault answers a request instead of the model.
type fault struct {
	name string
	send func(w http.ResponseWriter)
}

func status(code int, header, value, body string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		if header != "" {
			w.Header().Set(header, value)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
}

func streamed(lines ...string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, l := range lines {
			fmt.Fprintf(w, "data: %s\n\n", l)
		}
	}
}

func hangUp(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		conn.Close()
	}
}

// finish ends a reply without calls.
const finish = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`

// delta is a part of a reply's text, given as JSON.
func delta(content string) string {
	return `{"choices":[{"index":0,"delta":{"role":"assistant","content":` + content + `}}]}`
}

// nightFaults are twelve faults and two quotas, by the reply that they come before.
func nightFaults() map[int]fault {
	return map[int]fault{
		5: {"overloaded", status(503, "", "", `{"error":{"message":"The server is overloaded"}}`)},
		12: {"529",
			status(529, "", "", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)},
		25: {"rate limit", status(429, "Retry-After", "20", `{"error":{"message":"Rate limit reached"}}`)},
		40: {"quota by header", status(429, "Retry-After", "600", `{"error":{"message":"Usage limit reached"}}`)},
		55: {"hang up", hangUp},
		70: {"a page", status(502, "Content-Type", "text/html", "<html><body>Bad Gateway</body></html>")},
		85: {"empty", streamed(delta(`""`), finish, "[DONE]")},
		100: {
			"thought only",
			streamed(`{"choices":[{"index":0,"delta":{"reasoning_content":"Well."}}]}`, finish, "[DONE]"),
		},
		130: {"cut stream", streamed(delta(`"I will"`))},
		150: {"error in the stream", streamed(`{"error":{"message":"Internal error, try again","code":500}}`)},
		170: {
			"quota by text",
			status(429, "", "", `{"error":{"message":"You have hit your usage limit. Try again in 11 minutes."}}`),
		},
		190: {"not JSON", streamed("{oops")},
		210: {
			"refused option",
			status(400, "", "",
				`{"error":{"message":"Unrecognized request argument supplied: stream_options","type":"invalid_request_error"}}`),
		},
		230: {"500", status(500, "", "", `{"error":{"message":"The model crashed"}}`)},
	}
}

// nightCheck prints what go test would of three tests.
const nightCheck = `failed=
for f in one two three; do grep -qx ok $f || { echo "--- FAIL: Test_$f (0.00s)"; failed=1; }; done
[ -z "$failed" ] || { echo FAIL; exit 1; }
echo "ok  	night	0.01s"
`

var stepMark = regexp.MustCompile(`\[step (\d+) [a-z]+\]`)

func (s *nightServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return // the program was killed
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var request struct {
		Messages []struct {
			Role      string
			Content   any
			Reasoning any `json:"reasoning_content"`
			ToolCalls []struct {
				ID string
			} `json:"tool_calls"`
		}
		Tools []struct {
			Function struct{ Name string }
		}
	}
	if err := json.Unmarshal(data, &request); err != nil {
		s.wrong = append(s.wrong, "not JSON: "+err.Error())
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	at := 0
	for _, m := range request.Messages {
		for _, c := range m.ToolCalls {
			if want, ok := s.beside[c.ID]; !ok || want != m.Reasoning {
				s.wrong = append(s.wrong, fmt.Sprintf("call %s: beside it %v, want %v", c.ID, m.Reasoning, want))
			}
		}
		for _, mark := range stepMark.FindAllStringSubmatch(fmt.Sprint(m.Content), -1) {
			at, _ = strconv.Atoi(mark[1])
		}
	}
	if f, ok := s.faults[s.served]; ok {
		if s.asked[f.name]++; s.asked[f.name] == 1 || f.name == "overloaded" && s.asked[f.name] < 4 {
			f.send(w)
			return
		}
	}
	// Where the machine is quick enough for a check after each step, twelve of them are no better, and the
	// Reflect-Agent is asked. It has no tool to write.
	if !slices.ContainsFunc(request.Tools, func(t struct{ Function struct{ Name string } }) bool { return t.Function.Name == "WriteFile" }) {
		streamed(delta(`"{\"diagnosis\":\"two parts are missing\",\"abandon\":[],\"plan\":[\"write the parts in order\"],\"question\":\"\"}"`), finish, "[DONE]")(w)
		return
	}
	n := s.served
	s.served++
	if c := s.reached[n]; c != nil {
		close(c)
	}
	s.reply(w, n, at)
}

// reply plays the model: a call for each step, and an answer when it believes that it is done.
func (s *nightServer) reply(w http.ResponseWriter, n, at int) {
	name, args := nightCall(n, at)
	if name == "" {
		streamed(delta(`"All parts are written and checked."`), finish, "[DONE]")(w)
		return
	}
	id, thought := fmt.Sprintf("call_%d", n), fmt.Sprintf("Reply %d: next. ", n)
	s.beside[id] = thought
	arguments, err := json.Marshal(args)
	if err != nil {
		panic(err) // maps of this file always encode
	}
	call, err := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": map[string]any{
		"role": "assistant", "content": nil, "reasoning_content": thought,
		"tool_calls": []any{map[string]any{"index": 0, "id": id, "type": "function", "function": map[string]any{"name": name, "arguments": string(arguments)}}},
	}}}})
	if err != nil {
		panic(err)
	}
	streamed(string(call), `{"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`, "[DONE]")(w)
}

// nightCall is what the model does in its reply of a number, at the end of a step.
func nightCall(n, at int) (name string, args map[string]any) {
	write := func(path, content string) (string, map[string]any) {
		return "WriteFile", map[string]any{"path": path, "content": content}
	}
	jump := func(back int, reason string) (string, map[string]any) {
		return "jump_to_step", map[string]any{"step_id": at - back, "reason": reason}
	}
	switch n {
	case 60:
		return write("parser", "by hand\n")
	case 62:
		return jump(2, "a parser by hand misses quoted fields; use the library")
	case 120:
		return write("cache", "in memory\n")
	case 122:
		return jump(2, "a cache in memory is lost at a restart; keep it in a file")
	case 180:
		return write("one", "broken\n") // the check fails from here
	case 183:
		return write("one", "ok\n")
	case 240:
		return write("retry", "for ever\n")
	case 242:
		return jump(2, "retrying for ever hides the fault; give up after three")
	case 90:
		return "AskUser", map[string]any{"question": "Which port?", "choices": []string{"8080", "9090"}}
	case 20:
		return write("one", "ok\n")
	case 200:
		return write("two", "ok\n")
	case nightSteps:
		return write("three", "ok\n")
	case 182:
		return "", nil // it believes that it is done
	}
	if n > nightSteps {
		return "", nil
	}
	if n%10 == 0 {
		return write(fmt.Sprintf("part%d", n), fmt.Sprintf("part %d\n", n))
	}
	return "Think", map[string]any{"thought": fmt.Sprintf("Part %d needs no file.", n)}
}

// TestNight is a task of a night that nobody watches: 300 steps, twelve faults of its provider, two quotas that
// reset, a question, a kill and an eviction, a check that broke and was repaired, three paths that
// were left. It ends done, and the report names all of it.
func TestNight(t *testing.T) {
	t.Parallel()
	heavy(t)
	s := &nightServer{t: t, faults: nightFaults(), beside: map[string]any{}, asked: map[string]int{},
		reached: map[int]chan struct{}{90: make(chan struct{}), 140: make(chan struct{}), 220: make(chan struct{})}}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	home, dir := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "check.sh"), []byte(nightCheck), 0o600); err != nil {
		t.Fatal(err)
	}
	clock := nightClock
	if *nightly {
		clock = 1
	}
	env := append(os.Environ(), "ANAMNESIS_TEST_MAIN=1",
		fmt.Sprintf("%s=%d:%d", clockVariable, time.Now().UnixNano(), clock),
		"ANAMNESIS_HOME="+home, "HOME="+home, "OPENAI_BASE_URL="+srv.URL+"/v1", "OPENAI_API_KEY=test")
	begin := func(args ...string) (*exec.Cmd, *bytes.Buffer) {
		cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
		var out bytes.Buffer
		cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = env, dir, &out, &out
		cmd.Cancel = func() error { return cmd.Process.Kill() }
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, &out
	}
	run := func(args ...string) string {
		t.Helper()
		cmd, out := begin(args...)
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%s: %v\n%s", args, err, tail(out.String()))
		}
		return out.String()
	}
	cmd, _ := begin("run", "--task", "night", "--model", "deepseek-chat", "--approval", "auto", "--max-steps", "400",
		"--when-asked", "wait", "--until", "sh check.sh", "write one, two and three")
	<-s.reached[90]
	for { // the question takes a moment to be asked
		answer, _ := begin("answer", "night", "Port 9090, please.")
		if answer.Wait() == nil || t.Context().Err() != nil {
			break
		}
	}
	<-s.reached[140]
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	cmd, out := begin("resume", "night")
	<-s.reached[220]
	_ = cmd.Process.Signal(syscall.SIGTERM)
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 143 {
		t.Fatalf("an eviction: %v\n%s", err, tail(out.String()))
	}
	run("resume", "night")
	for _, w := range s.wrong {
		t.Error(w)
	}
	for _, f := range s.faults {
		if s.asked[f.name] == 0 {
			t.Errorf("the fault %q was not met", f.name)
		}
	}
	for file, want := range map[string]bool{"one": true, "two": true, "three": true, "part290": true, "parser": false, "cache": false, "retry": false} {
		if _, err := os.Stat(filepath.Join(dir, file)); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %v", file, err, want)
		}
	}
	report := run("report", "night") + run("report", "night", "--long")
	for _, want := range []string{
		"(?m)^Ended +done, at ", `the agent: All parts are written and checked\.`, "first: step 0: 0 of 3", `step 1[89]\d: 0 of 3`, `last: step \d+: 3 of 3 passed, the check passed`,
		"misses quoted fields; use the library", "lost at a restart; keep it in a file", "hides the fault; give up after three",
		"overloaded", "Overloaded", "Rate limit reached", "Usage limit reached", `status 502\): \(a web page\)`, "Try again in 11 minutes", "The model crashed",
		"stream_options", "Which port", `waiting for the provider 2[1-9]m`, `added +\+1 +-0 +three`,
	} {
		if !regexp.MustCompile(want).MatchString(report) {
			t.Errorf("the report lacks %s", want)
		}
	}
	if t.Failed() {
		t.Logf("%s", report)
	}
}

// tail is the end of a long text.
func tail(text string) string { return text[max(0, len(text)-3000):] }

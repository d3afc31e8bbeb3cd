package bench

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/pair"
)

var (
	runsDir = flag.String("data", "", "the directory of the recorded runs that Replay and Facts read")
	source  = flag.String("source", "swebench_gemini3pro",
		"the recorded runs NAME, or NAME@MODEL of some models; for Facts a list, the first to learn first")
	outFile = flag.String("out", "", "write what the data's own judge reads to this file")
)

// recorded is one run and its place in time.
type recorded struct {
	ID, Repo string
	Calls    []pair.Call
	model    string
	started  string
	order    int // where no start is known
}

// readRuns returns the runs of a source in their order in time.
func readRuns(b testing.TB, source string) []*recorded {
	name, model, _ := strings.Cut(source, "@")
	var runs []*recorded
	eachLine(b, name+".jsonl.gz", func(line []byte) error {
		r, err := decodeRun(line)
		if err == nil && strings.HasPrefix(r.model, model) {
			runs = append(runs, r)
		}
		return err
	})
	slices.SortStableFunc(runs, func(x, y *recorded) int {
		return cmp.Or(strings.Compare(x.started, y.started), x.order-y.order)
	})
	return runs
}

// eachLine reads a packed file of JSON lines of the data.
func eachLine(b testing.TB, file string, visit func([]byte) error) {
	b.Helper()
	if *runsDir == "" {
		b.Skip("NOT MEASURED: name the directory of the recorded runs with -data")
	}
	f, err := os.Open(filepath.Join(*runsDir, file))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		b.Fatalf("%s: %v", file, err)
	}
	lines := bufio.NewScanner(z)
	lines.Buffer(nil, 64<<20)
	for n := 1; lines.Scan(); n++ {
		if err := visit(lines.Bytes()); err != nil {
			b.Fatalf("%s, line %d: %v", file, n, err)
		}
	}
	if err := lines.Err(); err != nil {
		b.Fatalf("%s: %v", file, err)
	}
}

// judged returns a function that writes a line for the data's judge.
func judged(b *testing.B) func(any) {
	if *outFile == "" {
		return func(any) {}
	}
	f, err := os.Create(*outFile)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := f.Close(); err != nil {
			b.Error(err)
		}
	})
	lines := json.NewEncoder(f)
	return func(v any) {
		if err := lines.Encode(v); err != nil {
			b.Fatal(err)
		}
	}
}

func decodeRun(line []byte) (*recorded, error) {
	var in struct {
		ID       string `json:"id"`
		Repo     string `json:"repo"`
		Model    string `json:"model"`
		Started  string `json:"started"`
		Order    int    `json:"x_order"`
		Messages []struct {
			Role       string          `json:"role"`
			Content    json.RawMessage `json:"content"`
			ToolCallID string          `json:"tool_call_id"`
			Exit       *int            `json:"x_exit"`
			ToolCalls  []struct {
				ID       string `json:"id"`
				Function struct {
					Arguments json.RawMessage `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(line, &in); err != nil {
		return nil, err
	}
	r := &recorded{ID: in.ID, Repo: in.Repo, model: in.Model, started: in.Started, order: in.Order}
	pending := map[string]string{} // commands by call
	for _, m := range in.Messages {
		content := textOf(m.Content)
		if m.Role == "tool" && !strings.HasPrefix(content, notRun) {
			o := recordedOutput(pending[m.ToolCallID], content)
			if !o.HasExit && m.Exit != nil { // what the recorder knew
				o.Exit, o.HasExit = *m.Exit, true
			}
			r.Calls = append(r.Calls, pair.Call{Output: o, Step: len(r.Calls)})
		}
		for _, c := range m.ToolCalls {
			pending[c.ID] = commandOf(c.Function.Arguments)
		}
	}
	return r, nil
}

// textOf is a message's content: a string, or a list of parts that hold text.
func textOf(content json.RawMessage) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []struct{ Text string }
	_ = json.Unmarshal(content, &parts) // of another form: no text
	var texts []string
	for _, p := range parts {
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, "\n")
}

// commandOf is the command in a call's arguments, which are an object or its text: under the names that shells' tools
// give it, a text or a list of words. A call without one has no command.
func commandOf(arguments json.RawMessage) string {
	var text string
	if json.Unmarshal(arguments, &text) == nil {
		arguments = json.RawMessage(text)
	}
	args := map[string]json.RawMessage{}
	if json.Unmarshal(arguments, &args) != nil {
		return text
	}
	for _, name := range []string{"command", "cmd", "code", "script", "query", "sql", "input"} {
		var command string
		var words []string
		if json.Unmarshal(args[name], &command) == nil {
			return command
		} else if json.Unmarshal(args[name], &words) == nil {
			if n := len(words); n > 2 && shellOption.MatchString(words[n-2]) {
				return words[n-1]
			}
			return strings.Join(words, " ")
		}
	}
	return ""
}

var (
	shellOption = regexp.MustCompile(`^-\w*c$`) // the next word is a command
	returnCode  = regexp.MustCompile(`^\s*<returncode>(-?\d+)</returncode>\s*`)
	timeLimit   = regexp.MustCompile(`(?s)^The last command <command>.*</command> timed out and has been killed\.\s*(?:The output of the command was:\s*)?`)
	envelope    = regexp.MustCompile(`(?s)^(?:<warning>.*?</warning>)?\s*<output(?:_head)?>\n?(.*?)\n?</output(?:_tail)?>\s*$`)
)

// notRun begins a result of a reply that the harness refused.
const notRun = "Please always provide EXACTLY ONE action"

// recordedOutput unwraps a recorded result. The data's own marks of failure are not read.
func recordedOutput(command, text string) failure.Output {
	o := failure.Output{Command: command, Text: text}
	if m := returnCode.FindStringSubmatch(text); m != nil {
		code, err := strconv.Atoi(m[1])
		o.Exit, o.HasExit = code, err == nil
		o.Text = text[len(m[0]):]
		if m := envelope.FindStringSubmatch(o.Text); m != nil {
			o.Text = m[1]
		}
	} else if m := timeLimit.FindString(text); m != "" {
		o.Text, o.Exit, o.HasExit = text[len(m):], 124, true
	}
	return o
}

// TestDecodeRun reads what recorders write otherwise: contents of several parts, arguments that are an object or no
// JSON, other names, no start, no repository.
func TestDecodeRun(t *testing.T) {
	for call, want := range map[string]string{
		`{"arguments":"{\"command\":\"make\"}"}`:                         "make",
		`{"arguments":{"command":"make"}}`:                               "make",
		`{"arguments":{"cmd":["bash","-lc","make all"]}}`:                "make all",
		`{"arguments":{"command":["make","all"]}}`:                       "make all",
		`{"arguments":"SELECT 1"}`:                                       "SELECT 1",
		`{"arguments":{"path":"a.go"}}`:                                  "",
		`{}`:                                                             "",
		`{"arguments":"{\"code\":\"print(1)\",\"timeout\":3}","x":null}`: "print(1)",
	} {
		r, err := decodeRun([]byte(`{"id":"r","started":null,"messages":[{"role":"user","content":[{"type":"text","text":"do"},{"type":"image"}]},
			{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":` + call + `}]},
			{"role":"tool","tool_call_id":"1","content":[{"text":"no rule"}]}]}`))
		if err != nil || len(r.Calls) != 1 || r.Calls[0].Command != want || r.Calls[0].Text != "no rule" {
			t.Errorf("%s: got %+v, %v; want command %q", call, r, err, want)
		}
	}
	for text, want := range map[string]string{
		"<returncode>127</returncode>\n<output>\nbash: pytest: not found\n</output>": "127 true bash: pytest: not found",
		"The last command <command>pytest</command> timed out and has been killed.":  "124 true ",
		"ok": "0 false ok",
	} {
		if o := recordedOutput("pytest", text); fmt.Sprint(o.Exit, " ", o.HasExit, " ", o.Text) != want {
			t.Errorf("%s: %+v", text, o)
		}
	}
}

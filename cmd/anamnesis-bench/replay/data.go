package replay

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/pair"
)

// maxRecordBytes bounds one line of the data.
const maxRecordBytes = 64 << 20

// ErrUsage is wrapped by errors in what the caller asked for.
var ErrUsage = errors.New("replay")

// source is one set of recorded runs, in their order in time, and its
// questions.
type source struct {
	name      string
	runs      []*recorded
	questions []*question
}

// question is one recorded failed call.
type question struct {
	ID     string    `json:"id"`
	Run    string    `json:"run"`
	Call   int       `json:"call"`
	First  bool      `json:"first"`  // of a chain of nearly equal failing calls
	Repair *struct{} `json:"repair"` // whether the call succeeded later
}

// recorded is one run and its place in time.
type recorded struct {
	ID, Repo string
	Calls    []pair.Call
	model    string
	started  string
	order    int // where no start is known
}

// Sources lists the sources of a data directory.
func Sources(dir string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(dir, "questions", "dev_*.jsonl.gz"))
	if err != nil {
		return nil, err
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(strings.TrimPrefix(filepath.Base(f), "dev_"), ".jsonl.gz")
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%w: no questions/dev_*.jsonl.gz in %s", ErrUsage, dir)
	}
	return files, nil
}

func readSource(dir, name string) (*source, error) {
	s := &source{name: name}
	var err error
	if s.questions, err = readQuestions(filepath.Join(dir, "questions", "dev_"+name+".jsonl.gz")); err != nil {
		return nil, err
	}
	s.runs, err = readRuns(dir, name, "")
	return s, err
}

// readRuns returns the runs of a source in their order in time: those of models whose name begins with model.
func readRuns(dir, name, model string) ([]*recorded, error) {
	var runs []*recorded
	err := eachLine(filepath.Join(dir, name+".jsonl.gz"), func(line []byte) error {
		r, err := decodeRun(line)
		if err == nil && strings.HasPrefix(r.model, model) {
			runs = append(runs, r)
		}
		return err
	})
	slices.SortStableFunc(runs, func(a, b *recorded) int {
		return cmp.Or(strings.Compare(a.started, b.started), a.order-b.order)
	})
	return runs, err
}

func readQuestions(file string) ([]*question, error) {
	var out []*question
	err := eachLine(file, func(line []byte) error {
		q := new(question)
		out = append(out, q)
		return json.Unmarshal(line, q)
	})
	return out, err
}

// eachLine reads a file of JSON lines, compressed where its name says so.
func eachLine(file string, line func([]byte) error) (err error) {
	f, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: no file %s", ErrUsage, file)
	} else if err != nil {
		return err
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(file, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
	}
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, maxRecordBytes)
	for n := 1; sc.Scan(); n++ {
		if err := line(sc.Bytes()); err != nil {
			return fmt.Errorf("read %s, line %d: %w", file, n, err)
		}
	}
	if err := sc.Err(); err != nil {
		return fmt.Errorf("read %s: %w", file, err)
	}
	return nil
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
		switch {
		case m.Role == "tool" && strings.HasPrefix(content, notRun):
		case m.Role == "tool":
			o := output(pending[m.ToolCallID], content)
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
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	texts := make([]string, 0, len(parts))
	for _, p := range parts {
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, "\n")
}

// commandOf is the command in a call's arguments, which are an object or its text: under
// the names that shells' tools give it, a text or a list of words. A call without one has
// no command.
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

	returnCode = regexp.MustCompile(`^\s*<returncode>(-?\d+)</returncode>\s*`)
	timeLimit  = regexp.MustCompile(`(?s)^The last command <command>.*</command> timed out and has been killed\.\s*(?:The output of the command was:\s*)?`)
	envelope   = regexp.MustCompile(`(?s)^(?:<warning>.*?</warning>)?\s*<output(?:_head)?>\n?(.*?)\n?</output(?:_tail)?>\s*$`)
)

// notRun begins a result of a reply that the harness refused.
const notRun = "Please always provide EXACTLY ONE action"

// output takes a recorded result out of what its recorder wrapped it in. The
// data's own marks of failure are not read.
func output(command, text string) failure.Output {
	o := failure.Output{Command: command, Text: text}
	if m := returnCode.FindStringSubmatch(text); m != nil {
		code, err := strconv.Atoi(m[1])
		o.Exit, o.HasExit = code, err == nil
		o.Text = text[len(m[0]):]
		if m := envelope.FindStringSubmatch(o.Text); m != nil {
			o.Text = m[1]
		}
		return o
	}
	if m := timeLimit.FindString(text); m != "" {
		o.Text, o.Exit, o.HasExit = text[len(m):], 124, true
	}
	return o
}

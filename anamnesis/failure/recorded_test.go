package failure

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var (
	half    = flag.String("half", "", "the half of the labels to measure: choose or report; empty: both")
	verbose = flag.Bool("misses", false, "print what was not read right")
)

// mark is one label: which lines of a recorded output tell, and what trouble it is.
type mark struct {
	Run     string
	Call    int
	Half    string
	Lines   []int
	Trouble string
	None    string // why there is nothing to learn; empty: there is
}

// recorded is a labelled output with its label.
type recorded struct {
	mark
	Output
}

// recordings reads the labelled outputs, or skips, saying so.
func recordings(t *testing.T) []recorded {
	t.Helper()
	dir := cmp.Or(os.Getenv("ANAMNESIS_BENCH_DATA"), filepath.Join("..", "..", "..", "shared", "data"))
	if _, err := os.Stat(filepath.Join(dir, "runs")); err != nil {
		if os.Getenv("ANAMNESIS_CI") != "" {
			t.Fatalf("CI must have the recorded runs: %v", err)
		}
		t.Skipf("SKIPPED: no recorded runs (%v); set ANAMNESIS_BENCH_DATA to the folder that holds runs/ and transcripts/", err)
	}
	outputs := make(map[string]map[int]Output)
	put := func(run string, call int, o Output) {
		if outputs[run] == nil {
			outputs[run] = make(map[int]Output)
		}
		outputs[run][call] = o
	}
	for _, name := range []string{"swebench_gemini3pro", "intercode_sql", "intercode_bash_python", "sweagent_demos"} {
		readRuns(t, filepath.Join(dir, "runs", name+".jsonl.gz"), put)
	}
	readSession(t, filepath.Join(dir, "transcripts", "pi-large-session.jsonl.gz"), put)
	readTau(t, filepath.Join(dir, "transcripts", "tau-bench-gpt-4o-airline.json.gz"), put)
	var out []recorded
	f, err := os.Open("testdata/labels.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for dec := json.NewDecoder(f); dec.More(); {
		var m mark
		if err := dec.Decode(&m); err != nil {
			t.Fatal(err)
		}
		o, ok := outputs[m.Run][m.Call]
		if !ok {
			t.Fatalf("label for %s call %d: no such output", m.Run, m.Call)
		}
		out = append(out, recorded{m, o})
	}
	return out
}

func open(t *testing.T, name string) *json.Decoder {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return json.NewDecoder(bufio.NewReader(z))
}

func command(args string) string {
	var a struct{ Command string }
	if json.Unmarshal([]byte(args), &a) != nil {
		return ""
	}
	return a.Command
}

func readRuns(t *testing.T, name string, put func(string, int, Output)) {
	for dec := open(t, name); dec.More(); {
		var run struct {
			ID       string
			Messages []struct {
				Role, Content string
				ToolCallID    string `json:"tool_call_id"`
				Failed        *bool  `json:"x_failed"`
				ToolCalls     []struct {
					ID       string
					Function struct{ Arguments string }
				} `json:"tool_calls"`
			}
		}
		if err := dec.Decode(&run); err != nil {
			t.Fatal(err)
		}
		asked := make(map[string]string)
		for i, m := range run.Messages {
			for _, c := range m.ToolCalls {
				asked[c.ID] = command(c.Function.Arguments)
			}
			if m.Role == "tool" {
				c := asked[m.ToolCallID]
				put(run.ID, i, Output{Command: c, Text: m.Content, Error: m.Failed != nil && *m.Failed})
			}
		}
	}
}

func readSession(t *testing.T, name string, put func(string, int, Output)) {
	type part struct {
		Type, Text, ID string
		Arguments      json.RawMessage
	}
	asked := make(map[string]string)
	n := 0
	for dec := open(t, name); dec.More(); {
		var line struct {
			Type    string
			Message struct {
				Role, ToolCallID string
				IsError          bool
				Content          json.RawMessage
			}
		}
		if err := dec.Decode(&line); err != nil {
			t.Fatal(err)
		}
		var parts []part
		if line.Type != "message" || json.Unmarshal(line.Message.Content, &parts) != nil {
			continue
		}
		var text strings.Builder
		for _, p := range parts {
			text.WriteString(p.Text)
			if p.Type == "toolCall" {
				asked[p.ID] = command(string(p.Arguments))
			}
		}
		if line.Message.Role == "toolResult" {
			c := asked[line.Message.ToolCallID]
			put("pi-large-session", n, Output{Command: c, Text: text.String(), Error: line.Message.IsError})
			n++
		}
	}
}

func readTau(t *testing.T, name string, put func(string, int, Output)) {
	var runs []struct {
		Traj []struct{ Role, Content string }
	}
	if err := open(t, name).Decode(&runs); err != nil {
		t.Fatal(err)
	}
	for k, run := range runs {
		for i, m := range run.Traj {
			if m.Role == "tool" {
				put("tau:"+itoa(k), i, Output{Text: m.Content, Error: strings.HasPrefix(m.Content, "Error")})
			}
		}
	}
}

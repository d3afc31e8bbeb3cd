package anamnesis

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/opstream/op"
)

// transcript opens one of the public recorded runs, or skips, saying so.
func transcript(t *testing.T, name string) *json.Decoder {
	t.Helper()
	dir := cmp.Or(os.Getenv("ANAMNESIS_BENCH_DATA"), filepath.Join("..", "..", "shared", "data"))
	f, err := os.Open(filepath.Join(dir, "transcripts", name))
	if err != nil {
		if os.Getenv("ANAMNESIS_CI") != "" {
			t.Fatalf("CI must have the recorded runs: %v", err)
		}
		t.Skipf("SKIPPED: no recorded runs (%v); set ANAMNESIS_BENCH_DATA to the folder that holds transcripts/%s", err,
			name)
	}
	t.Cleanup(func() { f.Close() })
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	return json.NewDecoder(bufio.NewReader(z))
}

// checkRun runs the extractor over a recorded run at three sizes of span:
// every quoted error occurs in the run (pass checks that), every failed call
// is in the block or its pointers, and the block keeps its cap.
func checkRun(t *testing.T, s *span, count func(string) int) (failed int) {
	t.Helper()
	for _, eas := range []int{4_000, 16_000, 128_000} {
		r := s.request(eas)
		r.Count = count
		res := pass(t, nil, r, nil)
		failed = 0
		for _, rec := range records(&r) {
			if rec.failed() {
				failed++
			}
		}
		if pointers := "Pointers: ops " + r.Ranges[0].String() + " "; !strings.Contains(res.Block, pointers) {
			t.Errorf("EAS %d: no %q in the block, so failed calls without room are lost:\n%s", eas, pointers, res.Block)
		}
		if failed > 0 && len(res.Notes.Falsified) == 0 && !strings.Contains(res.Block, "succeeded later") {
			t.Errorf("EAS %d: %d failed calls and no falsified path:\n%s", eas, failed, res.Block)
		}
	}
	return failed
}

// TestTauBench: 200 recorded conversations with tools of an airline.
func TestTauBench(t *testing.T) {
	dec := transcript(t, "tau-bench-gpt-4o-airline.json.gz")
	var runs []struct {
		Traj []struct {
			Role, Content, Name string
			ToolCallID          string `json:"tool_call_id"`
			ToolCalls           []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
	}
	if err := dec.Decode(&runs); err != nil {
		t.Fatal(err)
	}
	failed := 0
	for _, run := range runs {
		s := newSpan(7, 1)
		for _, m := range run.Traj {
			switch m.Role {
			case "user":
				s.add(&op.UserSaid{Text: m.Content, Source: op.SourceRequest})
			case "assistant":
				s.add(&op.ModelReplied{Text: m.Content, Finish: "stop"})
				for _, c := range m.ToolCalls {
					s.add(&op.ToolCalled{Call: c.ID, Name: c.Function.Name, Args: c.Function.Arguments})
				}
			case "tool":
				s.add(&op.ToolReturned{Call: m.ToolCallID, Name: m.Name, Text: m.Content,
					IsError: strings.HasPrefix(m.Content, "Error")})
			}
		}
		if len(s.ops) > 0 {
			failed += checkRun(t, s, words)
		}
	}
	if failed < 50 {
		t.Errorf("%d failed calls found, the data's description says 73", failed)
	}
}

// TestCodingSession: one long real coding session, with the real tokenizer.
func TestCodingSession(t *testing.T) {
	dec := transcript(t, "pi-large-session.jsonl.gz")
	s := newSpan(7, 1)
	for dec.More() {
		var line struct {
			Type    string
			Message struct {
				Role, ToolCallID, ToolName string
				IsError                    bool
				Content                    json.RawMessage
			}
		}
		if err := dec.Decode(&line); err != nil {
			t.Fatal(err)
		}
		if line.Type != "message" {
			continue
		}
		var parts []struct {
			Type, Text, ID, Name string
			Arguments            json.RawMessage
		}
		if json.Unmarshal(line.Message.Content, &parts) != nil {
			continue // a lone text
		}
		var text strings.Builder
		for _, p := range parts {
			text.WriteString(p.Text)
			if p.Type == "toolCall" {
				s.add(&op.ToolCalled{Call: p.ID, Name: p.Name, Args: string(p.Arguments)})
			}
		}
		switch line.Message.Role {
		case "user":
			s.add(&op.UserSaid{Text: text.String(), Source: op.SourceRequest})
		case "assistant":
			s.say(text.String())
		case "toolResult":
			s.add(&op.ToolReturned{
				Call: line.Message.ToolCallID, Name: line.Message.ToolName, Text: text.String(),
				IsError: line.Message.IsError,
			})
		}
	}
	if failed := checkRun(t, s, o200k(t)); failed == 0 {
		t.Error("no failed call found in the session")
	} else {
		t.Logf("%d operations, %d failed calls", len(s.ops), failed)
	}
}

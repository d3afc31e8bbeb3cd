package extractor

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"anamnesis/opstream/op"
)

// The recorded runs, in the folder transcripts of the public data.
const (
	tauFile     = "tau-bench-gpt-4o-airline.json.gz"
	sessionFile = "pi-large-session.jsonl.gz"
)

// recorded is one recorded run as the operations it would have left.
type recorded struct {
	name string
	ops  []op.Op
}

// firstSeq is where a span begins: not at 1, so that numbers are not positions.
const firstSeq = 7

func (r *recorded) add(b op.Body) {
	r.ops = append(r.ops, op.Op{Seq: firstSeq + uint64(len(r.ops)), Step: 1, Body: b})
}

// openRecorded opens a recorded file for decoding.
func openRecorded(data, name string) (*json.Decoder, func() error, error) {
	f, err := os.Open(filepath.Join(data, "transcripts", name))
	if err != nil {
		return nil, nil, err
	}
	z, err := gzip.NewReader(bufio.NewReader(f))
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("read %s: %w", name, err), f.Close())
	}
	return json.NewDecoder(z), f.Close, nil
}

// tauRuns reads 200 recorded conversations with tools, in OpenAI's message
// format (sierra-research/tau-bench).
func tauRuns(data string) (runs []*recorded, err error) {
	dec, done, err := openRecorded(data, tauFile)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	var all []struct {
		Traj []struct {
			Role, Content, Name string
			ToolCallID          string `json:"tool_call_id"`
			ToolCalls           []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
	}
	if err := dec.Decode(&all); err != nil {
		return nil, fmt.Errorf("read %s: %w", tauFile, err)
	}
	for i, run := range all {
		r := &recorded{name: fmt.Sprintf("tau-bench %d", i)}
		for _, m := range run.Traj {
			switch m.Role {
			case "user":
				r.add(&op.UserSaid{Text: m.Content, Source: op.SourceRequest})
			case "assistant":
				r.add(&op.ModelReplied{Text: m.Content, Finish: "stop"})
				for _, c := range m.ToolCalls {
					r.add(&op.ToolCalled{Call: c.ID, Name: c.Function.Name, Args: c.Function.Arguments})
				}
			case "tool":
				r.add(&op.ToolReturned{Call: m.ToolCallID, Name: m.Name, Text: m.Content, IsError: strings.HasPrefix(m.Content, "Error")})
			}
		}
		if len(r.ops) > 0 {
			runs = append(runs, r)
		}
	}
	return runs, nil
}

// session reads one long coding session (badlogic/pi-mono).
func session(data string) (r *recorded, err error) {
	dec, done, err := openRecorded(data, sessionFile)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	r = &recorded{name: "pi session"}
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
			return nil, fmt.Errorf("read %s: %w", sessionFile, err)
		}
		if line.Type == "message" {
			r.addMessage(line.Message.Role, line.Message.ToolCallID, line.Message.ToolName, line.Message.IsError, line.Message.Content)
		}
	}
	return r, nil
}

func (r *recorded) addMessage(role, call, tool string, isError bool, content json.RawMessage) {
	var parts []struct {
		Type, Text, ID, Name string
		Arguments            json.RawMessage
	}
	if json.Unmarshal(content, &parts) != nil {
		return // a lone text
	}
	var text strings.Builder
	for _, p := range parts {
		text.WriteString(p.Text)
	}
	switch role {
	case "user":
		r.add(&op.UserSaid{Text: text.String(), Source: op.SourceRequest})
	case "assistant":
		r.add(&op.ModelReplied{Text: text.String(), Finish: "stop"})
		for _, p := range parts {
			if p.Type == "toolCall" {
				r.add(&op.ToolCalled{Call: p.ID, Name: p.Name, Args: string(p.Arguments)})
			}
		}
	case "toolResult":
		r.add(&op.ToolReturned{Call: call, Name: tool, Text: text.String(), IsError: isError})
	}
}

// failures are the ops of results that are errors.
func (r *recorded) failures() []uint64 {
	var out []uint64
	for _, o := range r.ops {
		if b, ok := o.Body.(*op.ToolReturned); ok && b.IsError {
			out = append(out, o.Seq)
		}
	}
	return out
}

// repeats counts failed calls, and those of them that were made again to the
// letter and failed again.
func (r *recorded) repeats() (failed, again int) {
	type made struct {
		what  string
		error bool
	}
	var calls []made
	open := make(map[string]string)
	for _, o := range r.ops {
		switch b := o.Body.(type) {
		case *op.ToolCalled:
			open[b.Call] = b.Name + "\x00" + b.Args
		case *op.ToolReturned:
			calls = append(calls, made{open[b.Call], b.IsError})
		}
	}
	for i, c := range calls {
		if !c.error {
			continue
		}
		failed++
		for _, later := range calls[i+1:] {
			if later == c {
				again++
				break
			}
		}
	}
	return failed, again
}

// spans cuts a run into pieces of at most size tokens, whole operations each.
func (r *recorded) spans(size int, count func(string) int) []*recorded {
	var out []*recorded
	part, used := &recorded{name: r.name}, 0
	for _, o := range r.ops {
		n := 0
		switch b := o.Body.(type) {
		case *op.ToolReturned:
			n = count(b.Text)
		case *op.ToolCalled:
			n = count(b.Args)
		case *op.ModelReplied:
			n = count(b.Text)
		case *op.UserSaid:
			n = count(b.Text)
		}
		if _, result := o.Body.(*op.ToolReturned); used+n > size && len(part.ops) > 0 && !result {
			out, part, used = append(out, part), &recorded{name: r.name}, 0
		}
		part.ops = append(part.ops, o)
		used += n
	}
	if len(part.ops) > 0 {
		out = append(out, part)
	}
	return out
}

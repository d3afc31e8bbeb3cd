package sessions

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"anamnesis/anamnesis/shell"
)

// kimiLine is a line of ~/.kimi-code/sessions/WORKDIR/SESSION/agents/AGENT/wire.jsonl.
// It has each call twice; the events of the loop are read.
type kimiLine struct {
	Type            string          `json:"type"`
	ProtocolVersion string          `json:"protocol_version"`
	CreatedAt       int64           `json:"created_at"`
	Model           string          `json:"model"`
	Input           json.RawMessage `json:"input"`
	Origin          struct {
		Kind string `json:"kind"`
	} `json:"origin"`
	Event struct {
		Type       string          `json:"type"`
		ToolCallID string          `json:"toolCallId"`
		Name       string          `json:"name"`
		Args       json.RawMessage `json:"args"`
		Part       struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"part"`
		Result struct {
			Output  json.RawMessage `json:"output"`
			IsError bool            `json:"isError"`
		} `json:"result"`
		Usage struct {
			Other int `json:"inputOther"`
			Read  int `json:"inputCacheRead"`
			Made  int `json:"inputCacheCreation"`
			Out   int `json:"output"`
		} `json:"usage"`
	} `json:"event"`
	Environment struct {
		Cwd string `json:"cwd"`
	} `json:"environmentDisclosure"`
	Count int `json:"count"`
}

func readKimi(path string, data []byte) (*Session, error) {
	s := &Session{Agent: Kimi}
	kimiState(s, path)
	var said []string
	var turns []int // the step before each turn of the user's
	current := -1   // the step that the next one continues
	err := s.eachLine(data, func(raw []byte) error {
		var kind struct {
			Type string `json:"type"`
		}
		if err := decode(raw, &kind); err != nil {
			return err
		}
		switch kind.Type {
		case "metadata", "profile.bind", "turn.prompt", "llm.request", "context.append_loop_event", "context.undo":
		default:
			return nil
		}
		var l kimiLine
		if err := decode(raw, &l); err != nil {
			return err
		}
		switch l.Type {
		case "metadata":
			s.Version, s.Start = l.ProtocolVersion, time.UnixMilli(l.CreatedAt).UTC()
			return major(Kimi, l.ProtocolVersion, "1")
		case "profile.bind":
			s.Dir = cmp.Or(s.Dir, l.Environment.Cwd)
		case "llm.request":
			s.Model = l.Model
		case "turn.prompt":
			if l.Origin.Kind == "user" {
				said, turns = append(said, Text(l.Input)), append(turns, current)
			}
		case "context.undo":
			if l.Count > len(turns) && len(turns) > 0 && len(s.Damage) > 0 { // a turn's line is damaged
				l.Count = len(turns)
			}
			if l.Count < 1 || l.Count > len(turns) {
				return fmt.Errorf("%w: an undo of %d turns, of %d", ErrNewer, l.Count, len(turns))
			}
			current, turns, said = turns[len(turns)-l.Count], turns[:len(turns)-l.Count], nil
		case "context.append_loop_event":
			if l.Event.Type == "step.begin" {
				s.begin(current, said)
				said, current = nil, len(s.Steps)-1
			} else if len(s.Steps) > 0 {
				return s.kimiEvent(&l)
			}
		}
		return nil
	})
	return s, err
}

// kimiState reads the session's own file, two folders above its agents' ones.
func kimiState(s *Session, path string) {
	agent := filepath.Dir(path)
	root := filepath.Dir(filepath.Dir(agent))
	s.ID = filepath.Base(root)
	var st struct {
		ID  string `json:"id"`
		Cwd string `json:"cwd"`
	}
	if data, err := os.ReadFile(filepath.Join(root, "state.json")); err == nil && json.Unmarshal(data, &st) == nil &&
		st.ID != "" {
		s.ID, s.Dir = st.ID, st.Cwd
	}
	if name := filepath.Base(agent); name != "main" {
		s.ID += "_" + name
	}
}

func (s *Session) kimiEvent(l *kimiLine) error {
	st, e := &s.Steps[len(s.Steps)-1], &l.Event
	switch e.Type {
	case "content.part":
		if e.Part.Type == "text" {
			st.Text += e.Part.Text
		}
	case "tool.call":
		st.Calls = append(st.Calls, Call{ID: e.ToolCallID, Tool: e.Name, Args: string(e.Args)})
	case "tool.result":
		c := s.call(e.ToolCallID)
		if c == nil {
			return nil
		}
		c.Done, c.Text = true, Text(e.Result.Output)
		if e.Result.IsError {
			c.KimiFailed(c.Text)
			c.Refused = strings.HasPrefix(c.Text, "Tool call rejected")
		} else if c.Tool == bash {
			c.Exit = new(0)
		}
	case "step.end":
		st.Usage = Usage{e.Usage.Other + e.Usage.Read + e.Usage.Made, e.Usage.Out}
	}
	return nil
}

// KimiAnswer returns the text of the last step in the end of a wire.jsonl; empty if that step made a
// call, or the user spoke since.
func KimiAnswer(end []byte) (text string) {
	for line := range bytes.Lines(end) {
		var l kimiLine
		if json.Unmarshal(line, &l) != nil {
			continue
		}
		switch e := &l.Event; {
		case l.Type == "turn.prompt", e.Type == "step.begin", e.Type == "tool.call":
			text = ""
		case e.Type == "content.part" && e.Part.Type == "text":
			text += e.Part.Text
		}
	}
	return text
}

// kimiExit is the line by which Kimi Code names the exit code of a command.
var kimiExit = shell.Pattern(`\n?Command failed with exit code: (\d+)\.\s*$`)

// KimiFailed takes over the message of a call that failed.
func (c *Call) KimiFailed(message string) {
	c.Done, c.Failed = true, true
	c.Exit, c.Text = exitCode(kimiExit(), message), kimiExit().ReplaceAllString(message, "")
}

package sessions

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// openCodeInfo describes the session in what `opencode export` writes.
type openCodeInfo struct {
	ID        string `json:"id"`
	Directory string `json:"directory"`
	Version   string `json:"version"`
	Time      struct {
		Created int64 `json:"created"`
	} `json:"time"`
}

type openCodeMessage struct {
	Info struct {
		Role    string          `json:"role"`
		ModelID string          `json:"modelID"`
		Summary json.RawMessage `json:"summary"` // true of a compaction's; of the user's it is an object
		Tokens  struct {
			Input  int `json:"input"`
			Output int `json:"output"`
			Cache  struct {
				Read  int `json:"read"`
				Write int `json:"write"`
			} `json:"cache"`
		} `json:"tokens"`
	} `json:"info"`
	Parts []openCodePart `json:"parts"`
}

type openCodePart struct {
	Type      string `json:"type"`
	Text      string `json:"text"`
	Synthetic bool   `json:"synthetic"`
	Ignored   bool   `json:"ignored"`
	Tool      string `json:"tool"`
	CallID    string `json:"callID"`
	State     struct {
		Status   string          `json:"status"`
		Input    json.RawMessage `json:"input"`
		Output   string          `json:"output"`
		Error    string          `json:"error"`
		Metadata struct {
			Exit *int `json:"exit"`
		} `json:"metadata"`
	} `json:"state"`
}

func readOpenCode(o *object) (*Session, error) {
	var e openCodeInfo
	if err := decode(o.fields["info"], &e); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNewer, err)
	}
	if e.ID == "" || e.Directory == "" {
		return nil, ErrNotSession
	}
	if err := major(OpenCode, e.Version, "1"); err != nil {
		return nil, err
	}
	s := &Session{Agent: OpenCode, ID: e.ID, Dir: e.Directory, Version: e.Version,
		Start: time.UnixMilli(e.Time.Created).UTC()}
	var said []string
	err := s.eachMessage(o, func(raw []byte) error {
		var m openCodeMessage
		if err := decode(raw, &m); err != nil {
			return err
		}
		if m.Info.Role == "user" {
			for _, p := range m.Parts {
				if p.Type == "text" && !p.Synthetic && !p.Ignored {
					said = append(said, unquoted(p.Text))
				}
			}
			return nil
		}
		if string(m.Info.Summary) == "true" { // a compaction, no step of the agent
			return nil
		}
		st := s.begin(len(s.Steps)-1, said)
		said, s.Model = nil, m.Info.ModelID
		t := m.Info.Tokens
		st.Usage = Usage{t.Input + t.Cache.Read + t.Cache.Write, t.Output}
		for _, p := range m.Parts {
			if err := st.openCodePart(&p); err != nil {
				return err
			}
		}
		return nil
	})
	return s, err
}

// unquoted removes the quotes that 'opencode run' puts around a prompt with spaces.
func unquoted(text string) string {
	inner, ok := strings.CutPrefix(text, `"`)
	inner, closed := strings.CutSuffix(inner, `"`)
	if !ok || !closed || strings.Contains(inner, `"`) {
		return text
	}
	return inner
}

func (st *Step) openCodePart(p *openCodePart) error {
	switch p.Type {
	case "text":
		st.Text += p.Text
	case "tool":
		c := Call{ID: p.CallID, Tool: p.Tool, Args: string(p.State.Input), Text: p.State.Output,
			Exit: p.State.Metadata.Exit, Network: openCodeMCP(p.Tool)}
		switch p.State.Status {
		case "completed":
			c.Done, c.Failed = true, c.Exit != nil && *c.Exit != 0
		case "error":
			c.Done, c.Failed, c.Text = true, true, p.State.Error
			c.Refused = strings.Contains(c.Text, "rejected permission")
		}
		st.Calls = append(st.Calls, c)
	case "reasoning", "step-start", "step-finish", "patch", "file", "snapshot", "compaction", "agent",
		"subtask", "retry":
	default:
		return fmt.Errorf("%w: a part %q", ErrNewer, p.Type)
	}
	return nil
}

// openCodeMCP reports whether a tool is an MCP server's: those are named
// SERVER_TOOL, and the program's own have no underscore.
func openCodeMCP(tool string) bool {
	server, _, ok := strings.Cut(tool, "_")
	return ok && server != "apply" && server != "multi"
}

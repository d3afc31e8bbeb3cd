package sessions

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// openCodeExport is what `opencode export` writes.
type openCodeExport struct {
	Info struct {
		ID        string `json:"id"`
		ProjectID string `json:"projectID"`
		Directory string `json:"directory"`
		Version   string `json:"version"`
		Time      struct {
			Created int64 `json:"created"`
		} `json:"time"`
	} `json:"info"`
	Messages []struct {
		Info struct {
			Role    string `json:"role"`
			ModelID string `json:"modelID"`
			Tokens  struct {
				Input  int `json:"input"`
				Output int `json:"output"`
				Cache  struct {
					Read  int `json:"read"`
					Write int `json:"write"`
				} `json:"cache"`
			} `json:"tokens"`
			Time struct {
				Created int64 `json:"created"`
			} `json:"time"`
		} `json:"info"`
		Parts []openCodePart `json:"parts"`
	} `json:"messages"`
}

type openCodePart struct {
	Type      string `json:"type"`
	Snapshot  string `json:"snapshot"` // a git tree
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

func readOpenCode(data []byte) (*Session, error) {
	var e openCodeExport
	if err := decode(data, &e); err != nil {
		return nil, err
	}
	if e.Info.ID == "" || e.Info.Directory == "" {
		return nil, ErrNotSession
	}
	if err := major(OpenCode, e.Info.Version, "1"); err != nil {
		return nil, err
	}
	s := &Session{Agent: OpenCode, ID: e.Info.ID, Dir: e.Info.Directory, Version: e.Info.Version, Project: e.Info.ProjectID, Kept: map[int]Kept{}, Start: time.UnixMilli(e.Info.Time.Created).UTC()}
	var said []string
	for i := range e.Messages {
		m := &e.Messages[i]
		if m.Info.Role == "user" {
			for _, p := range m.Parts {
				if p.Type == "text" && !p.Synthetic && !p.Ignored {
					said = append(said, unquoted(p.Text))
				}
			}
			continue
		}
		st := s.begin(len(s.Steps)-1, said, time.UnixMilli(m.Info.Time.Created).UTC())
		said, s.Model = nil, m.Info.ModelID
		t := m.Info.Tokens
		st.Usage = Usage{t.Input + t.Cache.Read + t.Cache.Write, t.Output}
		for _, p := range m.Parts {
			if err := st.openCodePart(&p); err != nil {
				return nil, err
			}
			if at := len(s.Steps) - 1; p.Type == "step-finish" && p.Snapshot != "" {
				s.Kept[at] = Kept{Tree: p.Snapshot}
			} else if p.Type == "step-start" && at == 0 && p.Snapshot != "" && s.Kept[-1].Tree == "" {
				s.Kept[-1] = Kept{Tree: p.Snapshot}
			}
		}
	}
	return s, nil
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
		c := Call{ID: p.CallID, Tool: p.Tool, Args: string(p.State.Input), Text: p.State.Output, Exit: p.State.Metadata.Exit, Network: openCodeMCP(p.Tool)}
		switch p.State.Status {
		case "completed":
			c.Done, c.Failed = true, c.Exit != nil && *c.Exit != 0
		case "error":
			c.Done, c.Failed, c.Text = true, true, p.State.Error
			c.Refused = strings.Contains(c.Text, "rejected permission")
		}
		st.Calls = append(st.Calls, c)
	case "reasoning", "step-start", "step-finish", "patch", "file", "snapshot", "compaction", "agent", "subtask", "retry":
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

package sessions

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
)

// codexItem is the payload of a line of ~/.codex/sessions/…/rollout-*.jsonl.
type codexItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Name      string          `json:"name"`
	Namespace string          `json:"namespace"`
	Arguments string          `json:"arguments"`
	Input     string          `json:"input"`
	CallID    string          `json:"call_id"`
	Output    json.RawMessage `json:"output"`
	Message   json.RawMessage `json:"message"`
	Model     string          `json:"model"`
	Action    struct {
		Command []string `json:"command"`
	} `json:"action"`
	Item struct {
		Type     string          `json:"type"`
		ID       string          `json:"id"`
		Content  json.RawMessage `json:"content"`
		Status   string          `json:"status"`
		ExitCode *int            `json:"exit_code"`
	} `json:"item"`
	Usage struct {
		Input  int `json:"input_tokens"`
		Output int `json:"output_tokens"`
	} `json:"usage"`

	// Of compacted.
	ReplacementHistory []struct {
		Content json.RawMessage `json:"content"`
	} `json:"replacement_history"`

	// Of session_meta; turn_context has the directory, too.
	Cwd          string          `json:"cwd"`
	CLIVersion   string          `json:"cli_version"`
	Timestamp    string          `json:"timestamp"`
	ThreadSource json.RawMessage `json:"thread_source"`
}

var (
	codexExit   = shell.Pattern(`(?m)^(?:Process exited with code|Exit code:) (\d+)$`)
	codexFrame  = shell.Pattern(`(?s)^(?:Chunk ID: |Wall time: |Exit code: ).*?^?Output:\n`)
	codexFile   = shell.Pattern(`^rollout-.{19}-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})`)
	codexDenied = shell.Pattern(`^(?:rejected by user|Automatic approval review|exec command rejected|` +
		`exec_command failed)`)
)

// codexReader makes steps of a flat list: a call or a text that follows a result
// begins one.
type codexReader struct {
	s        *Session
	said     []string
	answered bool // a result came since the last step began
	exits    map[string]*codexItem
	text     string // the last one of the model
}

func readCodex(path string, data []byte) (*Session, error) {
	r := codexReader{s: &Session{Agent: Codex}, answered: true, exits: map[string]*codexItem{}}
	err := r.s.eachLine(data, func(raw []byte) error {
		var l struct {
			Type    string          `json:"type"`
			Payload json.RawMessage `json:"payload"`
		}
		if err := decode(raw, &l); err != nil {
			return err
		}
		switch l.Type {
		case "session_meta", "response_item", "event_msg", "turn_context", "token_usage_record", "compacted":
		default: // world_state and others repeat what other lines have
			return nil
		}
		var p codexItem
		if err := decode(l.Payload, &p); err != nil {
			if l.Type == "event_msg" { // a form of its own for each
				return nil
			}
			return err
		}
		return r.line(l.Type, &p)
	})
	if err != nil {
		return nil, err
	}
	if m := codexFile().FindStringSubmatch(filepath.Base(path)); r.s.ID == "" && m != nil {
		r.s.ID = m[1] // its first line is damaged
	}
	// A thread that was reverted goes on in a file of its own: THREAD_NEW.jsonl.
	if _, part, ok := strings.Cut(strings.TrimSuffix(filepath.Base(path), ".jsonl"), r.s.ID+"_"); ok && r.s.ID != "" {
		r.s.ID += "_" + part
	}
	return r.s, nil
}

func (r *codexReader) line(kind string, p *codexItem) error {
	s := r.s
	switch kind {
	case "session_meta":
		if s.ID != "" {
			return nil // of the thread that a fork copied
		}
		if strings.Contains(string(p.ThreadSource), "guardian") {
			return fmt.Errorf("%w: a review that Codex made of its own calls", ErrLeftOut)
		}
		s.ID, s.Dir, s.Version, s.Start = p.ID, p.Cwd, p.CLIVersion, timeOf(p.Timestamp)
		return major(Codex, p.CLIVersion, "0")
	case "turn_context":
		s.Model = p.Model
		s.Dir = cmp.Or(s.Dir, p.Cwd)
	case "compacted":
		r.compacted(p)
	case "token_usage_record":
		if n := len(s.Steps); n > 0 {
			s.Steps[n-1].Usage = Usage{p.Usage.Input, p.Usage.Output}
		}
	case "event_msg":
		r.event(p)
	case "response_item":
		return r.item(p)
	}
	return nil
}

// compacted removes the summary, which the model wrote as an answer just before, from what it
// said. The line about the compaction has it once more.
func (r *codexReader) compacted(p *codexItem) {
	var summary string
	_ = json.Unmarshal(p.Message, &summary) // a text, or none
	in := []string{summary}
	for _, item := range p.ReplacementHistory {
		in = append(in, Text(item.Content))
	}
	n := len(r.s.Steps) - 1
	ends := func(text string) bool { return strings.HasSuffix(strings.TrimSpace(text), strings.TrimSpace(r.text)) }
	if n < 0 || r.text == "" || !slices.ContainsFunc(in, ends) {
		return
	}
	st := &r.s.Steps[n]
	st.Text = strings.TrimSuffix(st.Text, r.text)
	r.text, r.answered = "", true
	if st.Text == "" && len(st.Calls) == 0 {
		r.said, r.s.Steps = append(st.Said, r.said...), r.s.Steps[:n]
	}
}

// event reads what the user said, and how commands ended.
func (r *codexReader) event(p *codexItem) {
	var text string
	switch {
	case p.Type == "user_message":
		_ = json.Unmarshal(p.Message, &text) // a text, or none
	case p.Type == "item_completed" && p.Item.Type == "UserMessage":
		text = Text(p.Item.Content)
	case p.Type == "item_completed":
		item := *p
		r.exits[p.Item.ID] = &item
		if c := r.s.call(p.Item.ID); c != nil && c.Done {
			r.applyEnd(c)
		}
	}
	if n := len(r.said); text != "" && (n == 0 || r.said[n-1] != text) {
		r.said, r.answered = append(r.said, text), true
	}
}

func (r *codexReader) step() *Step {
	if n := len(r.s.Steps); !r.answered && n > 0 {
		return &r.s.Steps[n-1]
	}
	st := r.s.begin(len(r.s.Steps)-1, r.said)
	r.said, r.answered = nil, false
	return st
}

func (r *codexReader) item(p *codexItem) error {
	add := func(name, args string) {
		st := r.step()
		st.Calls = append(st.Calls, Call{ID: p.CallID, Tool: name, Args: args, Network: p.Namespace != ""})
	}
	switch p.Type {
	case "message":
		if p.Role == "assistant" {
			r.text = Text(p.Content)
			r.step().Text += r.text
		}
	case "function_call":
		name := p.Name
		if p.Namespace != "" {
			name = p.Namespace + "__" + p.Name
		}
		add(name, p.Arguments)
	case "custom_tool_call":
		data, err := json.Marshal(map[string]string{"input": p.Input})
		if err != nil {
			return err
		}
		add(p.Name, string(data))
	case "local_shell_call":
		data, err := json.Marshal(map[string][]string{"command": p.Action.Command})
		if err != nil {
			return err
		}
		add("local_shell", string(data))
	case "function_call_output", "custom_tool_call_output":
		if c := r.s.call(p.CallID); c != nil && !c.Done {
			r.answered = true
			c.CodexOutput(p.Output)
			r.applyEnd(c)
		}
	// These hold nothing of a step. An unknown item is refused: a newer format may keep calls in it.
	case "reasoning", "web_search_call", "ghost_snapshot", "compaction", "compaction_summary", "context_compaction",
		"image_generation_call", "tool_search_call", "tool_search_output", "agent_message":
	default:
		return fmt.Errorf("%w: an item %q", ErrNewer, p.Type)
	}
	return nil
}

// CodexOutput takes over a call's output as a rollout has it.
func (c *Call) CodexOutput(output json.RawMessage) {
	c.Done, c.Text = true, codexText(output)
	c.Exit = exitCode(codexExit(), c.Text)
	c.Text = codexFrame().ReplaceAllString(c.Text, "")
	c.Text = codexFrame().ReplaceAllString(c.Text, "") // a patch's result has a frame within
	c.Refused = codexDenied().MatchString(c.Text)
	c.Failed = c.Refused || c.Exit != nil && *c.Exit != 0 ||
		strings.HasPrefix(c.Text, "apply_patch verification failed") || strings.HasPrefix(c.Text, "unsupported call")
}

// applyEnd takes over what an event says of how a call ended.
func (r *codexReader) applyEnd(c *Call) {
	e := r.exits[c.ID]
	if e == nil {
		return
	}
	if e.Item.ExitCode != nil {
		c.Exit = e.Item.ExitCode
	}
	c.Failed = c.Failed || e.Item.Status == "failed" || c.Exit != nil && *c.Exit != 0
	c.Refused = c.Refused || e.Item.Status == "declined"
}

// codexText is a call's output: a text, parts, or an object with both of a text and
// the exit code, as older versions have it.
func codexText(raw json.RawMessage) string {
	var old struct {
		Output   *string `json:"output"`
		Metadata struct {
			ExitCode int `json:"exit_code"`
		} `json:"metadata"`
	}
	text := Text(raw)
	if strings.HasPrefix(text, "{") && json.Unmarshal([]byte(text), &old) == nil && old.Output != nil {
		return fmt.Sprintf("Exit code: %d\nOutput:\n%s", old.Metadata.ExitCode, *old.Output)
	}
	return text
}

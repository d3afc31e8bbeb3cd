package sessions

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
)

// geminiMessage is a message of ~/.gemini/tmp/PROJECT/chats/session-*.jsonl.
type geminiMessage struct {
	ID      string          `json:"id"`
	Type    string          `json:"type"`
	Content json.RawMessage `json:"content"`
	Model   string          `json:"model"`
	Tokens  struct {
		Input  int `json:"input"`
		Output int `json:"output"`
	} `json:"tokens"`
	ToolCalls []geminiCall `json:"toolCalls"`
}

type geminiCall struct {
	ID     string          `json:"id"`
	Name   string          `json:"name"`
	Args   json.RawMessage `json:"args"`
	Status string          `json:"status"`
	Result json.RawMessage `json:"result"`
}

// geminiLine is a line: the head, a message, or a change of what stands before.
type geminiLine struct {
	SessionID string `json:"sessionId"`
	StartTime string `json:"startTime"`
	Set       *struct {
		Messages []geminiMessage `json:"messages"`
	} `json:"$set"`
	RewindTo string `json:"$rewindTo"`
	geminiMessage
}

var (
	geminiExit  = shell.Pattern(`(?m)^Exit Code: (\d+)$`)
	geminiFile  = shell.Pattern(`^session-[-0-9T]{16}-([0-9a-f]{8})\.json`) // with the beginning of the id
	geminiFrame = shell.Pattern(`(?m)^</?untrusted_context>\n?|^(?:Process Group PGID|Exit Code): \d+\n?|^Output: `)
	geminiPlace = shell.Pattern(`(?s)^\s*<session_context>.*?\n- \*\*Workspace Directories:\*\*\n  - (/[^\n]*)`)
	geminiNotes = shell.Pattern(`(?s)^\s*<(session_context|environment_context|state_snapshot)>`)
)

// geminiReader keeps the messages in order. An id written again takes the place of
// what it held before; what was rewound stays, as a path that was left. In an editor
// Gemini writes all calls of a turn into its first message, again and again: a call that
// is new in an older message is of the newest reply.
type geminiReader struct {
	s        *Session
	messages []geminiMessage
	at       map[string]int
	from     map[int]int // the message that one continues, where that is not the one before
	next     int         // the message that the next one continues, after a rewind; -2: none
}

// readGemini reads lines, or the older form, which is one object.
func readGemini(path string, data []byte, o *object) (*Session, error) {
	r := geminiReader{s: &Session{Agent: Gemini}, at: map[string]int{}, from: map[int]int{}, next: -2}
	read := func(raw []byte) error {
		var l geminiLine
		if err := decode(raw, &l); err != nil {
			return err
		}
		return r.line(raw, &l)
	}
	err := r.s.eachLine(data, read)
	if err == nil && o != nil {
		_ = json.Unmarshal(o.fields["sessionId"], &r.s.ID) // without one it is refused
		var start string
		_ = json.Unmarshal(o.fields["startTime"], &start) // advice only
		r.s.Start = timeOf(start)
		err = r.s.eachMessage(o, read)
	}
	if err != nil {
		return nil, err
	}
	if m := geminiFile().FindStringSubmatch(filepath.Base(path)); r.s.ID == "" && m != nil {
		r.s.ID = m[1] // its first line is damaged
	}
	if root, err := os.ReadFile(filepath.Join(filepath.Dir(filepath.Dir(path)), ".project_root")); err == nil {
		r.s.Dir = string(bytes.TrimSpace(root))
	}
	for i := range r.messages {
		if m := geminiPlace().FindStringSubmatch(Text(r.messages[i].Content)); m != nil && r.s.Dir == "" {
			r.s.Dir = m[1]
		}
	}
	return r.s, r.steps()
}

func (r *geminiReader) line(raw []byte, l *geminiLine) error {
	switch {
	case l.SessionID != "":
		r.s.ID, r.s.Start = l.SessionID, timeOf(l.StartTime)
	case l.Set != nil:
		for i := range l.Set.Messages {
			r.put(&l.Set.Messages[i])
		}
	case l.RewindTo != "":
		if i, ok := r.at[l.RewindTo]; ok { // this message is taken back, too: the next one continues the one before it
			r.next = i - 1
		}
	case l.ID != "":
		r.put(&l.geminiMessage)
	case bytes.HasPrefix(raw, []byte(`{"$`)):
		return fmt.Errorf("%w: a change %.40q", ErrNewer, raw)
	}
	return nil
}

func (r *geminiReader) put(m *geminiMessage) {
	if i, ok := r.at[m.ID]; ok {
		r.replace(i, *m)
		return
	}
	r.at[m.ID] = len(r.messages)
	if r.next > -2 {
		r.from[len(r.messages)] = r.next
		r.next = -2
	}
	r.messages = append(r.messages, *m)
}

// replace takes message i as it was written once more.
func (r *geminiReader) replace(i int, m geminiMessage) {
	newest := i
	for k := len(r.messages) - 1; k > i; k-- {
		if r.messages[k].Type == "gemini" {
			newest = k
			break
		}
	}
	calls := m.ToolCalls
	m.ToolCalls = r.messages[i].ToolCalls
	r.messages[i] = m
	for _, c := range calls {
		in, at := newest, -1
		for k := newest; k >= i && at < 0; k-- {
			at = slices.IndexFunc(r.messages[k].ToolCalls, func(o geminiCall) bool { return o.ID == c.ID })
			if at >= 0 {
				in = k
			}
		}
		if list := &r.messages[in].ToolCalls; at >= 0 {
			(*list)[at] = c
		} else {
			*list = append(*list, c)
		}
	}
}

func (r *geminiReader) steps() error {
	step := make([]int, len(r.messages)) // the last step up to each message
	var said []string
	for i := range r.messages {
		m := &r.messages[i]
		before := -1
		if from, ok := r.from[i]; ok {
			said = nil
			if from >= 0 {
				before = step[from]
			}
		} else if i > 0 {
			before = step[i-1]
		}
		step[i] = before
		switch m.Type {
		case "user":
			if text := ownMarks(Text(m.Content)); strings.TrimSpace(text) != "" && !geminiNotes().MatchString(text) {
				said = append(said, strings.TrimSpace(text))
			}
		case "gemini":
			step[i] = len(r.s.Steps)
			st := r.s.begin(before, said)
			said = nil
			st.Text, st.Usage = Text(m.Content), Usage{m.Tokens.Input, m.Tokens.Output}
			if m.Model != "" {
				r.s.Model = m.Model
			}
			r.calls(st, m)
		case "info", "warning", "error":
		default:
			return fmt.Errorf("%w: a message of type %q", ErrNewer, m.Type)
		}
	}
	return nil
}

func (r *geminiReader) calls(st *Step, m *geminiMessage) {
	for _, t := range m.ToolCalls {
		c := Call{ID: t.ID, Tool: t.Name, Args: string(t.Args), Network: strings.HasPrefix(t.Name, "mcp_")}
		var parts []struct {
			FunctionResponse struct {
				Response struct {
					Output string          `json:"output"`
					Error  json.RawMessage `json:"error"`
				} `json:"response"`
			} `json:"functionResponse"`
		}
		switch t.Status {
		case "success", "error", "cancelled":
			c.Done = true
			if json.Unmarshal(t.Result, &parts) == nil && len(parts) > 0 {
				answer := parts[0].FunctionResponse.Response
				c.Text = answer.Output
				if answer.Error != nil {
					c.Text = strings.Trim(string(answer.Error), `"`)
				}
			}
		}
		c.Refused = t.Status == "cancelled"
		c.geminiEnded(t.Status == "error", t.Status == "success")
		st.Calls = append(st.Calls, c)
	}
}

// geminiEnded takes the exit code and Gemini's frame out of a result's text. ran reports
// whether the tool itself reported no error: of a shell, the command may have failed.
func (c *Call) geminiEnded(failed, ran bool) {
	c.Failed = failed
	if toolNames[strings.ToLower(c.Tool)] == bash && ran {
		if c.Exit = exitCode(geminiExit(), c.Text); c.Exit == nil { // named only where it is not 0
			c.Exit = new(0)
		}
		c.Failed = *c.Exit != 0
	}
	c.Text = geminiFrame().ReplaceAllString(c.Text, "")
}

// GeminiResponse takes over a result as Gemini's hooks have it. Without one the outcome of the
// call is not known: only a text can say that a command failed.
func (c *Call) GeminiResponse(raw json.RawMessage) {
	c.Done = true
	text, failed := ResultText(raw)
	c.Text = text
	c.geminiEnded(failed, !failed && len(raw) > 0 && string(raw) != "null")
}

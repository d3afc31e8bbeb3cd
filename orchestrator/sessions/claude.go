package sessions

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
)

// claudeLine is a line of ~/.claude/projects/DIR/SESSION.jsonl.
type claudeLine struct {
	Type              string          `json:"type"`
	UUID              string          `json:"uuid"`
	ParentUUID        string          `json:"parentUuid"`
	LogicalParentUUID string          `json:"logicalParentUuid"`
	SessionID         string          `json:"sessionId"`
	AgentID           string          `json:"agentId"`
	IsSidechain       bool            `json:"isSidechain"`
	IsMeta            bool            `json:"isMeta"`
	IsCompactSummary  bool            `json:"isCompactSummary"`
	Cwd               string          `json:"cwd"`
	Version           string          `json:"version"`
	Timestamp         string          `json:"timestamp"`
	ToolUseResult     json.RawMessage `json:"toolUseResult"`
	ToolDenialKind    string          `json:"toolDenialKind"`
	Message           *struct {
		ID      string          `json:"id"`
		Model   string          `json:"model"`
		Content json.RawMessage `json:"content"`
		Usage   struct {
			Input       int `json:"input_tokens"`
			CacheWrite  int `json:"cache_creation_input_tokens"`
			CacheRead   int `json:"cache_read_input_tokens"`
			OutputCount int `json:"output_tokens"`
		} `json:"usage"`
	} `json:"message"`
}

// claudeExit is how a failed command's result begins.
var claudeExit = shell.Pattern(`^Exit code (\d+)\n?`)

var claudeDenied = shell.Pattern(`^(?:The user doesn't want to proceed|Permission to use |` +
	`Claude requested permissions to |This (?:Bash )?command [^\n]{0,200}requires? approval)`)

// ClaudeDenied reports whether a result of Claude Code says that a user or a rule refused
// the call.
func ClaudeDenied(text string) bool { return claudeDenied().MatchString(text) }

// claudeNotes begin what the program wrote in the user's place.
var claudeNotes = []string{"[Request interrupted", "<command-", "<local-command-", "<bash-", "Caveat: "}

// claudeReader follows the tree of lines: each names its parent. One reply is spread
// over several lines with one message id.
type claudeReader struct {
	s      *Session
	parent map[string]string // of each line
	step   map[string]int    // of the lines that belong to a step
	said   map[string]string // words of the user, by line
	reply  map[string]int    // steps by message id
	last   string            // the line before, of those in parent
	main   bool              // a line that is no subagent's was seen
}

func readClaude(data []byte) (*Session, error) {
	r := claudeReader{s: &Session{Agent: Claude}, parent: map[string]string{}, step: map[string]int{},
		said: map[string]string{}, reply: map[string]int{}}
	var side []claudeLine
	err := r.s.eachLine(data, func(raw []byte) error {
		var l claudeLine
		var kind struct {
			Type string `json:"type"`
		}
		if err := decode(raw, &kind); err != nil {
			return err
		}
		switch kind.Type { // others say nothing of the work, and may have any form
		case "user", "assistant", "system", "attachment":
		default:
			return nil
		}
		if err := decode(raw, &l); err != nil {
			return err
		}
		if err := major(Claude, l.Version, "2"); err != nil {
			return err
		}
		if l.IsSidechain {
			side = append(side, l)
			return nil
		}
		r.main = true
		return r.line(&l)
	})
	if err != nil {
		return nil, err
	}
	if r.main {
		return r.s, nil
	}
	for i := range side { // a subagent's own file
		if err := r.line(&side[i]); errors.Is(err, errField) {
			r.s.damaged("message %s: %v", side[i].UUID, err)
		} else if err != nil {
			return nil, err
		}
		if id := side[i].AgentID; id != "" {
			r.s.ID = id
		}
	}
	return r.s, nil
}

func (r *claudeReader) line(l *claudeLine) error {
	s := r.s
	if s.ID == "" {
		s.ID, s.Dir, s.Version, s.Start = l.SessionID, l.Cwd, l.Version, timeOf(l.Timestamp)
	}
	if l.UUID == "" {
		return nil
	}
	parent := cmp.Or(l.ParentUUID, l.LogicalParentUUID) // the latter after a compaction
	if _, known := r.parent[parent]; !known && parent != "" {
		parent = r.last // its own line is damaged, or of a type that is not read
	}
	r.parent[l.UUID], r.last = parent, l.UUID
	if l.Message == nil || l.Type != "user" && l.Type != "assistant" {
		return nil
	}
	content, err := blocks(l.Message.Content)
	if err != nil {
		return err
	}
	if l.Type == "user" {
		return r.user(l, content)
	}
	return r.assistant(l, content)
}

func (r *claudeReader) user(l *claudeLine, content []block) error {
	var words []string
	for _, b := range content {
		switch b.Type {
		case "text":
			if !slices.ContainsFunc(claudeNotes, func(p string) bool { return strings.HasPrefix(b.Text, p) }) {
				words = append(words, b.Text)
			}
		case "tool_result":
			r.result(l, b)
		case "image", "document":
		default:
			return fmt.Errorf("%w: a user's message with a part %q", ErrNewer, b.Type)
		}
	}
	if !l.IsMeta && !l.IsCompactSummary && len(words) > 0 {
		r.said[l.UUID] = strings.Join(words, "\n")
	}
	return nil
}

func (r *claudeReader) result(l *claudeLine, b block) {
	c := r.s.call(b.ToolUseID)
	if c == nil || c.Done {
		return
	}
	for i := range slices.Backward(r.s.Steps) {
		if slices.ContainsFunc(r.s.Steps[i].Calls, func(o Call) bool { return o.ID == b.ToolUseID }) {
			r.step[l.UUID] = i
			break
		}
	}
	c.Done, c.Text, c.Failed = true, Text(b.Content), b.IsError
	c.Refused = b.IsError && (l.ToolDenialKind != "" || ClaudeDenied(c.Text))
	if c.Tool != bash || c.Refused {
		return
	}
	if c.Exit = exitCode(claudeExit(), c.Text); c.Exit != nil {
		c.Text = claudeExit().ReplaceAllString(c.Text, "")
		return
	}
	if !b.IsError && ExitedZero(l.ToolUseResult) {
		c.Exit = new(0)
	}
}

func (r *claudeReader) assistant(l *claudeLine, content []block) error {
	if l.Message.Model == "<synthetic>" { // an error of the provider's, in words
		return nil
	}
	at, known := r.reply[l.Message.ID]
	if !known || l.Message.ID == "" {
		parent, said := r.above(l.UUID)
		st := r.s.begin(parent, said)
		u := l.Message.Usage
		st.Usage = Usage{Prompt: u.Input + u.CacheWrite + u.CacheRead, Completion: u.OutputCount}
		r.s.Model = l.Message.Model
		at = len(r.s.Steps) - 1
		r.reply[l.Message.ID] = at
	}
	r.step[l.UUID] = at
	st := &r.s.Steps[at]
	for _, b := range content {
		switch b.Type {
		case "text":
			st.Text += b.Text
		case "tool_use":
			st.Calls = append(st.Calls, Call{ID: b.ID, Tool: b.Name, Args: string(b.Input)})
		case "thinking", "redacted_thinking", "fallback", "server_tool_use", "web_search_tool_result",
			"web_fetch_tool_result":
		default:
			return fmt.Errorf("%w: a reply with a part %q", ErrNewer, b.Type)
		}
	}
	return nil
}

// above returns the step that a new one continues, and what the user said since.
func (r *claudeReader) above(uuid string) (step int, said []string) {
	for at, n := r.parent[uuid], 0; at != "" && n <= len(r.parent); at, n = r.parent[at], n+1 {
		if step, ok := r.step[at]; ok {
			return step, said
		}
		if text, ok := r.said[at]; ok {
			said = slices.Insert(said, 0, text)
		}
	}
	return -1, said
}

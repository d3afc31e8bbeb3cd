// Package sessions reads the session files of other coding agents: Claude Code,
// Codex, opencode, Gemini CLI and Kimi Code. All become one form, in which the usual
// tools have the names and arguments of our own. It depends on no task and no stream.
//
// A file that is no session, or whose format is newer than the reader, is an error:
// nothing is guessed. Damaged lines are left out and named in [Session.Damage].
package sessions

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// maxFileBytes is the size of a session file, unpacked.
const maxFileBytes = 1 << 30

// Agent names a program whose sessions are read.
type Agent string

const (
	Claude   Agent = "claude-code"
	Codex    Agent = "codex"
	OpenCode Agent = "opencode"
	Gemini   Agent = "gemini"
	Kimi     Agent = "kimi"
)

func Agents() []Agent { return []Agent{Claude, Codex, OpenCode, Gemini, Kimi} }

// Names lists the agents, for messages.
func Names() string {
	var names []string
	for _, a := range Agents() {
		names = append(names, string(a))
	}
	return strings.Join(names, ", ")
}

var (
	// ErrNotSession is returned for a file that no reader recognises.
	ErrNotSession = errors.New("not a session file of Claude Code, Codex, opencode, Gemini CLI or Kimi Code")
	// ErrNewer is returned for a session in a format that the reader does not know.
	ErrNewer = errors.New("format newer than this program reads; nothing was taken from it")
	// ErrDamaged is returned for a session file of which too little is left to read.
	ErrDamaged = errors.New("a damaged session file")
	// ErrLeftOut is returned for a file that holds no work: a review that the agent
	// made of itself, or a session without a reply.
	ErrLeftOut = errors.New("left out")
)

// Session is one session, as far as it is complete.
type Session struct {
	Agent   Agent
	ID      string // the agent's own id of it
	Dir     string // the directory it began in; empty where the file does not say
	Model   string
	Version string // of the agent
	Start   time.Time
	Steps   []Step
	// Damage names each part of the file that could not be read and was left out.
	Damage []string
}

// Step is one reply of the model, and what came of its calls.
type Step struct {
	// Parent is the index of the step it continues; -1: the session's beginning.
	// It is not always the step before: a user can go back.
	Parent int
	Said   []string // what the user said before it
	Text   string
	Calls  []Call
	Usage  Usage
}

// Usage is the number of tokens of a request and its reply.
type Usage struct{ Prompt, Completion int }

// Call is one tool call. Tool and Args are those of our own tools where the agent's
// tool does the same.
type Call struct {
	ID      string
	Tool    string
	Args    string // JSON
	Text    string // the result; empty without one
	Done    bool   // it has a result
	Failed  bool
	Refused bool // a user or a rule said no: nothing ran
	Exit    *int // exit code, where a process ran and it is known
	Reads   []string
	Writes  []string // relative to the session's directory where they lie in it
	Network bool     // the result may hold text from the network or of an MCP server
}

// Read reads a session file. Parts that are damaged are left out; the session names them.
func Read(path string) (*Session, error) {
	data, cut, err := readFile(path)
	if err != nil {
		return nil, err
	}
	s, err := parse(path, bytes.TrimPrefix(data, byteOrderMark))
	if err == nil && cut != nil {
		s.damaged("the end: %v", cut)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, errors.Join(err, cut))
	}
	s.finish()
	switch {
	case len(s.Steps) == 0 && len(s.Damage) > 0:
		err = fmt.Errorf("%w: no reply is left in it: %s", ErrDamaged, s.Damage[0])
	case len(s.Steps) == 0:
		err = fmt.Errorf("%w: no reply in it", ErrLeftOut)
	case s.ID == "":
		err = fmt.Errorf("%w: the line that names the session is missing", ErrDamaged)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// readFile reads a file and unpacks it. If a packed file is cut or damaged, cut says so, and
// data is what stands before.
func readFile(path string) (data []byte, cut, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s: %w: not a regular file", path, ErrNotSession)
	}
	var src io.Reader = f
	packed := strings.HasSuffix(path, ".gz")
	if packed {
		z, err := gzip.NewReader(f)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w: %w", path, ErrDamaged, err)
		}
		defer z.Close()
		src = z
	}
	data, err = io.ReadAll(io.LimitReader(src, maxFileBytes+1))
	switch {
	case err != nil && packed:
		return data, err, nil
	case err != nil:
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	case len(data) > maxFileBytes:
		return nil, nil, fmt.Errorf("%s: larger than %d bytes, which is the limit", path, maxFileBytes)
	}
	return data, nil, nil
}

// byteOrderMark is how some programs begin a text in UTF-8.
var byteOrderMark = []byte("\ufeff")

// head holds the fields by which a file's lines are recognised.
type head struct {
	Type            string          `json:"type"`
	ID              string          `json:"id"`
	SessionID       string          `json:"sessionId"`
	StartTime       string          `json:"startTime"`
	ProtocolVersion string          `json:"protocol_version"`
	Payload         json.RawMessage `json:"payload"`
}

// headLines is how many lines are read to recognise a file.
const headLines = 20

func parse(path string, data []byte) (*Session, error) {
	if bytes.HasPrefix(data, []byte("SQLite format 3\x00")) {
		return nil, fmt.Errorf("%w: a database; for opencode, write the session to a file with 'opencode export ID > "+
			"FILE' and name that", ErrNotSession)
	}
	if o, ok := readObject(data); ok {
		switch {
		case o.fields["info"] != nil:
			return readOpenCode(o)
		case o.fields["sessionId"] != nil && o.fields["startTime"] != nil:
			return readGemini(path, nil, o)
		case o.damage == "":
			return nil, ErrNotSession
		}
	}
	n := 0
	for line := range bytes.Lines(data) {
		for _, text := range texts(line) {
			var h head
			if json.Unmarshal(text, &h) != nil {
				continue
			}
			n++
			switch {
			case h.Payload != nil && (h.Type == "session_meta" || h.Type == "turn_context" ||
				h.Type == "response_item"):
				return readCodex(path, data)
			case h.Type == "metadata" && h.ProtocolVersion != "", strings.Contains(h.Type, ".") &&
				strings.HasPrefix(filepath.Base(path), "wire.jsonl"):
				return readKimi(path, data)
			case h.Type == "" && h.SessionID != "" && h.StartTime != "", h.Type == "gemini" && h.ID != "":
				return readGemini(path, data, nil)
			case h.SessionID != "" && h.Type != "":
				return readClaude(data)
			}
		}
		if n > headLines { // a session says what it is at its beginning
			break
		}
	}
	if n == 0 && strings.HasSuffix(strings.TrimSuffix(path, ".gz"), ".jsonl") && bytes.ContainsAny(data, "\n\x00") {
		return nil, fmt.Errorf("%w: no line of it is JSON", ErrDamaged)
	}
	return nil, ErrNotSession
}

// damaged records a part that was left out.
func (s *Session) damaged(format string, args ...any) {
	s.Damage = append(s.Damage, fmt.Sprintf(format, args...))
}

// texts splits a line at NUL bytes, which a crash of the machine leaves in a file, and removes
// white space and byte order marks. No text is empty.
func texts(line []byte) (list [][]byte) {
	for text := range bytes.SplitSeq(line, []byte{0}) {
		text = bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(text), byteOrderMark))
		if len(text) > 0 {
			list = append(list, text)
		}
	}
	return list
}

// maxOddShare: if more than one line in this many has a field of another type, the format is
// another one and not the line damaged.
const maxOddShare = 4

// eachLine visits the lines of a file. Damaged ones are left out and recorded, except a last
// one without a line break, which is being written.
func (s *Session) eachLine(data []byte, visit func(line []byte) error) error {
	n, odd := 0, 0
	var other error
	for line := range bytes.Lines(data) {
		n++
		why := ""
		if bytes.IndexByte(line, 0) >= 0 {
			why = "NUL bytes"
		}
		list := texts(line)
		for i, text := range list {
			if !json.Valid(text) {
				if i < len(list)-1 || bytes.HasSuffix(line, []byte("\n")) {
					why = "not JSON"
				}
				continue
			}
			err := visit(text)
			if errors.Is(err, errField) {
				odd++
				why, other = err.Error(), cmp.Or(other, err)
			} else if err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
		}
		if why != "" {
			s.damaged("line %d: %s", n, why)
		}
	}
	if odd*maxOddShare > n {
		return fmt.Errorf("%w: %d of %d lines: %w", ErrNewer, odd, n, other)
	}
	return nil
}

// object is a file that is one JSON object with a list of messages, as far as it can be read.
type object struct {
	fields   map[string]json.RawMessage // all but the messages
	messages []json.RawMessage
	damage   string // why reading ended early; empty: it did not
}

// readObject reads a file as one object. It returns false for a file of lines, and for an
// object without messages.
func readObject(data []byte) (o *object, ok bool) {
	d := json.NewDecoder(bytes.NewReader(data))
	o = &object{fields: map[string]json.RawMessage{}}
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	field := func() error {
		name, err := d.Token()
		if err != nil {
			return err
		}
		var value json.RawMessage
		if name != "messages" {
			err = d.Decode(&value)
			o.fields[fmt.Sprint(name)] = value
			return err
		}
		t, err := d.Token()
		if ok = t == json.Delim('['); err != nil || !ok {
			return cmp.Or(err, ErrNotSession)
		}
		for d.More() {
			if err := d.Decode(&value); err != nil {
				return err
			}
			o.messages, value = append(o.messages, value), nil
		}
		_, err = d.Token()
		return err
	}
	for d.More() {
		if err := field(); err != nil {
			// The agent may still be writing the file: what comes before the damage is imported.
			o.damage = fmt.Sprintf("from byte %d on: %v", d.InputOffset(), err)
			return o, ok
		}
	}
	if _, err := d.Token(); err != nil {
		o.damage = fmt.Sprintf("from byte %d on: %v", d.InputOffset(), err)
	}
	return o, ok && len(bytes.Trim(data[d.InputOffset():], "\x00 \r\n\t")) == 0
}

// eachMessage visits the messages of an object. Damaged ones are left out and recorded.
func (s *Session) eachMessage(o *object, visit func(message []byte) error) error {
	odd := 0
	for i, m := range o.messages {
		err := visit(m)
		if errors.Is(err, errField) {
			odd++
			s.damaged("message %d: %v", i+1, err)
		} else if err != nil {
			return fmt.Errorf("message %d: %w", i+1, err)
		}
	}
	if odd*maxOddShare > len(o.messages) {
		return fmt.Errorf("%w: %d of %d messages: %s", ErrNewer, odd, len(o.messages), s.Damage[0])
	}
	if o.damage != "" {
		s.damaged("%s", o.damage)
	}
	return nil
}

// errField: a field has another type than in the known format.
var errField = errors.New("a field of another type")

func decode(line []byte, v any) error {
	if err := json.Unmarshal(line, v); err != nil {
		return fmt.Errorf("%w (%v)", errField, err)
	}
	return nil
}

// ModelIn returns the model of the last reply in the end of a session file of Claude Code or
// Gemini CLI, without subagents' replies and notes of the program; empty if there is none.
func ModelIn(end []byte) string {
	for len(end) > 0 {
		n := bytes.LastIndexByte(bytes.TrimRight(end, "\n"), '\n') + 1
		line := end[n:]
		end = end[:n]
		if !bytes.Contains(line, []byte(`"model"`)) {
			continue
		}
		var l struct {
			Type, Model string
			IsSidechain bool
			Message     struct{ Model string }
		}
		_ = json.Unmarshal(line, &l) // what is cut or odd names none
		switch model := cmp.Or(l.Message.Model, l.Model); {
		case l.IsSidechain, model == "", strings.HasPrefix(model, "<"):
		case l.Type == "assistant", l.Type == "gemini":
			return model
		}
	}
	return ""
}

// major refuses versions of an agent past the ones whose files are known.
func major(agent Agent, version, known string) error {
	got, _, _ := strings.Cut(version, ".")
	if version != "" && got > known || len(got) > len(known) {
		return fmt.Errorf("%w: written by %s %s, and %s.x is known", ErrNewer, agent, version, known)
	}
	return nil
}

func (s *Session) begin(parent int, said []string) *Step {
	s.Steps = append(s.Steps, Step{Parent: parent, Said: said})
	return &s.Steps[len(s.Steps)-1]
}

// call returns the call with an id, the newest first; nil if there is none.
func (s *Session) call(id string) *Call {
	for i := range slices.Backward(s.Steps) {
		for j := range s.Steps[i].Calls {
			if s.Steps[i].Calls[j].ID == id {
				return &s.Steps[i].Calls[j]
			}
		}
	}
	return nil
}

// finish leaves out last steps whose calls have not returned, or of which nothing was
// written yet, and puts every call into our own form.
func (s *Session) finish() {
	waits := func(st Step) bool {
		return len(st.Calls) == 0 && st.Text == "" || slices.ContainsFunc(st.Calls,
			func(c Call) bool { return !c.Done })
	}
	for n := len(s.Steps) - 1; n >= 0 && waits(s.Steps[n]); n-- {
		s.Steps = s.Steps[:n]
	}
	for i := range s.Steps {
		st := &s.Steps[i]
		st.Text = ownMarks(st.Text)
		for j := range st.Said {
			st.Said[j] = ownMarks(st.Said[j])
		}
		st.Said = slices.DeleteFunc(st.Said, func(text string) bool { return strings.TrimSpace(text) == "" })
		for j := range st.Calls {
			st.Calls[j].Normalise(s.Dir)
		}
	}
}

// Find lists the session files that an agent keeps for a user, the oldest first. An
// agent that is not installed has none.
func Find(agent Agent, home string, getenv func(string) string) ([]string, error) {
	at := func(variable, fallback string, rest ...string) string {
		return filepath.Join(append([]string{cmp.Or(getenv(variable), filepath.Join(home, fallback))}, rest...)...)
	}
	var patterns []string
	switch agent {
	case Claude:
		dir := at("CLAUDE_CONFIG_DIR", ".claude", "projects")
		patterns = []string{filepath.Join(dir, "*", "*.jsonl"), filepath.Join(dir, "*", "*", "subagents", "*.jsonl")}
	case Codex:
		dir := at("CODEX_HOME", ".codex")
		patterns = []string{filepath.Join(dir, "sessions", "*", "*", "*", "rollout-*.jsonl"),
			filepath.Join(dir, "archived_sessions", "rollout-*.jsonl")}
	case Gemini:
		patterns = []string{at("GEMINI_CLI_HOME", "", ".gemini", "tmp", "*", "chats", "session-*.json*")}
	case Kimi:
		patterns = []string{at("KIMI_CODE_HOME", ".kimi-code", "sessions", "*", "*", "agents", "*", "wire.jsonl")}
	case OpenCode:
		return nil, nil // a database: see parse
	}
	type file struct {
		path string
		at   time.Time
	}
	var found []file
	for _, p := range patterns {
		paths, err := filepath.Glob(p)
		if err != nil {
			return nil, fmt.Errorf("find sessions of %s: %w", agent, err)
		}
		for _, path := range paths {
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				found = append(found, file{path, info.ModTime()})
			}
		}
	}
	slices.SortFunc(found, func(a, b file) int { return cmp.Or(a.at.Compare(b.at), strings.Compare(a.path, b.path)) })
	var out []string
	for _, f := range found {
		out = append(out, f.path)
	}
	return out, nil
}

func timeOf(text string) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, text) // advice only
	return t
}

// Package sessions reads the session files of other coding agents: Claude Code,
// Codex, opencode, Gemini CLI and Kimi Code. All become one form, in which the usual
// tools have the names and arguments of our own. It knows no tasks and no streams.
//
// A file that is no session, or whose format is newer than the reader, is an error:
// nothing is guessed.
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

// The agents.
const (
	Claude   Agent = "claude-code"
	Codex    Agent = "codex"
	OpenCode Agent = "opencode"
	Gemini   Agent = "gemini"
	Kimi     Agent = "kimi"
)

// Agents lists the agents.
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
	// Kept says what the agent itself kept of files, by the index of the step that had just
	// ended; -1: when the session began.
	Kept    map[int]Kept
	Project string // opencode's id of the project, by which its snapshots are found
}

// Kept is what an agent kept of files at one moment.
type Kept struct {
	// Files are copies, by the path in the session's directory. Where none can be read, the
	// file was not there, or is not known.
	Files map[string]string
	Tree  string // opencode: the git tree of all files, in its snapshots
}

// keep notes a copy of a file as it was when step i had ended. Files outside the session's
// directory are left out.
func (s *Session) keep(i int, path, from string) {
	path = inside(s.Dir, path)
	if !filepath.IsLocal(path) {
		return
	}
	if s.Kept == nil {
		s.Kept = map[int]Kept{}
	}
	if s.Kept[i].Files == nil {
		s.Kept[i] = Kept{Files: map[string]string{}}
	}
	s.Kept[i].Files[filepath.ToSlash(filepath.Clean(path))] = from
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
	At     time.Time
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

// Read reads a session file.
func Read(path string) (*Session, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	s, err := parse(path, data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	s.finish()
	if len(s.Steps) == 0 {
		return nil, fmt.Errorf("%s: %w: no reply in it", path, ErrLeftOut)
	}
	return s, nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: %w: not a regular file", path, ErrNotSession)
	}
	var src io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		z, err := gzip.NewReader(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w: %w", path, ErrNotSession, err)
		}
		defer z.Close()
		src = z
	}
	data, err := io.ReadAll(io.LimitReader(src, maxFileBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	case len(data) > maxFileBytes:
		return nil, fmt.Errorf("%s: %w: larger than %d bytes", path, ErrNotSession, maxFileBytes)
	}
	return data, nil
}

// head holds the fields by which a file's first lines are recognised.
type head struct {
	Type            string          `json:"type"`
	SessionID       string          `json:"sessionId"`
	StartTime       string          `json:"startTime"`
	ProtocolVersion string          `json:"protocol_version"`
	Info            json.RawMessage `json:"info"`
	Messages        json.RawMessage `json:"messages"`
	Payload         json.RawMessage `json:"payload"`
}

// headLines is how many lines are looked at to recognise a file.
const headLines = 20

func parse(path string, data []byte) (*Session, error) {
	if bytes.HasPrefix(data, []byte("SQLite format 3\x00")) {
		return nil, fmt.Errorf("%w: a database; for opencode, write the session to a file with 'opencode export ID > FILE' and name that", ErrNotSession)
	}
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return nil, ErrNotSession
	}
	var whole head
	if json.Unmarshal(data, &whole) == nil && whole.Messages != nil {
		switch {
		case whole.Info != nil:
			return readOpenCode(data)
		case whole.SessionID != "" && whole.StartTime != "":
			return readGemini(path, data)
		}
		return nil, ErrNotSession
	}
	n := 0
	for line := range bytes.Lines(data) {
		var h head
		if n++; n > headLines || json.Unmarshal(line, &h) != nil {
			break
		}
		switch {
		case h.Type == "session_meta" && h.Payload != nil:
			return readCodex(path, data)
		case h.Type == "metadata" && h.ProtocolVersion != "":
			return readKimi(path, data)
		case h.Type == "" && h.SessionID != "" && h.StartTime != "":
			return readGemini(path, data)
		case h.SessionID != "" && h.Type != "":
			return readClaude(path, data)
		}
	}
	return nil, ErrNotSession
}

// eachLine visits the lines of a file. The last one may be half written; a bad one
// before it is an error.
func eachLine(data []byte, visit func(line []byte) error) error {
	n := 0
	for line := range bytes.Lines(data) {
		n++
		whole := bytes.HasSuffix(line, []byte("\n"))
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if !json.Valid(line) {
			if !whole {
				return nil
			}
			return fmt.Errorf("%w: line %d is not JSON", ErrNotSession, n)
		}
		if err := visit(line); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return nil
}

// decode reads a line into v; a field of another type means another format.
func decode(line []byte, v any) error {
	if err := json.Unmarshal(line, v); err != nil {
		return fmt.Errorf("%w (%v)", ErrNewer, err)
	}
	return nil
}

// major refuses versions of an agent past the ones whose files are known.
func major(agent Agent, version, known string) error {
	got, _, _ := strings.Cut(version, ".")
	if version != "" && got > known || len(got) > len(known) {
		return fmt.Errorf("%w: written by %s %s, and %s.x is known", ErrNewer, agent, version, known)
	}
	return nil
}

// begin adds a step.
func (s *Session) begin(parent int, said []string, at time.Time) *Step {
	s.Steps = append(s.Steps, Step{Parent: parent, Said: said, At: at})
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
		return len(st.Calls) == 0 && st.Text == "" || slices.ContainsFunc(st.Calls, func(c Call) bool { return !c.Done })
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
		patterns = []string{filepath.Join(dir, "sessions", "*", "*", "*", "rollout-*.jsonl"), filepath.Join(dir, "archived_sessions", "rollout-*.jsonl")}
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

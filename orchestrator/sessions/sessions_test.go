package sessions_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"anamnesis/orchestrator/sessions"
)

// The same work in the file of each agent: a failing test, a wrong edit, a word of
// the user's, and the right edit with the test. Where the agent can go back, the user
// left the wrong edit.
var samples = map[sessions.Agent]struct {
	path, id string
	parents  string
}{
	sessions.Claude:   {"claude.jsonl", "c-1", "-1 0 0 2"},
	sessions.Codex:    {"codex.jsonl", "x-1", "-1 0 1 2"},
	sessions.Gemini:   {"gemini/chats/session-a.jsonl", "g-1", "-1 0 0 2"},
	sessions.Kimi:     {"kimi/session_k/agents/main/wire.jsonl", "session_k", "-1 0 0 2"},
	sessions.OpenCode: {"opencode.json", "ses_o", "-1 0 1 2"},
}

const told = `[Make it pass] I run it.
  Bash {"command":"go test ./..."} failed: a_test.go:3: want 2
[] 
  StrReplaceFile {"edit":{"old":"1","new":"3"},"path":"a.go"} [a.go]: updated
[Two, not three.] 
  WriteFile {"content":"2\n","path":"a.go"} [a.go]: written
  Bash {"command":"go test ./..."} exit 0: ok
[] Done.
`

// TestRead reads one story out of the five forms.
func TestRead(t *testing.T) {
	for agent, tt := range samples {
		s, err := sessions.Read(filepath.Join("testdata", filepath.FromSlash(tt.path)))
		if err != nil {
			t.Errorf("%s: %v", agent, err)
			continue
		}
		if s.Agent != agent || s.ID != tt.id || s.Dir != "/p" || s.Model != "m" || s.Start.Year() != 2026 {
			t.Errorf("%s: %+v", agent, s)
		}
		var b strings.Builder
		var parents []string
		for _, st := range s.Steps {
			parents = append(parents, fmt.Sprint(st.Parent))
			if agent == sessions.Kimi { // its story has the words that were undone, too
				st.Said = strings.Fields(strings.ReplaceAll(strings.Join(st.Said, " "), "Three.", ""))
			}
			fmt.Fprintf(&b, "[%s] %s\n", strings.Join(st.Said, " "), st.Text)
			for _, c := range st.Calls {
				how := ""
				switch {
				case c.Failed && (c.Exit == nil || *c.Exit == 1):
					how = " failed"
				case c.Exit != nil && c.Tool == "Bash":
					how = fmt.Sprintf(" exit %d", *c.Exit)
				case len(c.Writes) > 0:
					how = fmt.Sprintf(" %s", c.Writes)
				}
				fmt.Fprintf(&b, "  %s %s%s: %s\n", c.Tool, c.Args, how, strings.TrimSpace(c.Text))
			}
		}
		got := strings.Replace(b.String(), `{"edit":{"old":"","new":"2"},"path":"a.go"}`, `{"content":"2\n","path":"a.go"}`, 1)
		got = strings.Replace(got, "StrReplaceFile {\"content\"", "WriteFile {\"content\"", 1) // Codex adds a file by a patch
		if got != told {
			t.Errorf("%s tells:\n%s\nwant:\n%s", agent, got, told)
		}
		if p := strings.Join(parents, " "); p != tt.parents {
			t.Errorf("%s: the steps continue %s, want %s", agent, p, tt.parents)
		}
		if u := s.Steps[0].Usage; u.Prompt != 10 || u.Completion != 2 {
			t.Errorf("%s: usage %+v", agent, u)
		}
	}
}

// TestKeptFiles: copies that Kimi made of files belong to the step before the turn that
// edits them, or to the turn's last one. What lies outside its folder is no copy.
func TestKeptFiles(t *testing.T) {
	s, err := sessions.Read(filepath.Join("testdata", filepath.FromSlash(samples[sessions.Kimi].path)))
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join("testdata", "kimi", "session_k", "agents", "main", "file-history")
	want := map[int]sessions.Kept{
		0: {Files: map[string]string{"a.go": filepath.Join(folder, "a@v1"), "b.go": ""}},
		3: {Files: map[string]string{"a.go": filepath.Join(folder, "a@v2"), "c.go": "", "d.go": ""}},
	}
	if !reflect.DeepEqual(s.Kept, want) {
		t.Errorf("kept %v, want %v", s.Kept, want)
	}
}

// TestOther: what is no session is refused, and so is a newer form. A file that is
// being written is read up to its last whole step.
func TestOther(t *testing.T) {
	claude, err := os.ReadFile("testdata/claude.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(claude, []byte("\n"))
	half := bytes.Join(lines[:14], nil)
	for name, tt := range map[string]struct {
		data string
		want error
	}{
		"empty":             {"", sessions.ErrNotSession},
		"no JSON":           {"hello\n", sessions.ErrNotSession},
		"other JSON":        {`{"a":1}`, sessions.ErrNotSession},
		"a database":        {"SQLite format 3\x00", sessions.ErrNotSession},
		"a bad line":        {string(bytes.Join(lines[:3], nil)) + "{\n" + string(lines[4]), sessions.ErrNotSession},
		"a newer version":   {strings.ReplaceAll(string(claude), `"2.1.0"`, `"10.0.0"`), sessions.ErrNewer},
		"an unknown part":   {strings.Replace(string(claude), `"type":"tool_use"`, `"type":"tool_call_2"`, 1), sessions.ErrNewer},
		"another type":      {strings.Replace(string(claude), `"uuid":"s1"`, `"uuid":{"a":1}`, 1), sessions.ErrNewer},
		"a newer wire":      {`{"type":"metadata","protocol_version":"2.0"}` + "\n", sessions.ErrNewer},
		"a newer export":    {`{"info":{"id":"a","directory":"/p","version":"2.0.1"},"messages":[]}`, sessions.ErrNewer},
		"a review of Codex": {`{"type":"session_meta","payload":{"id":"a","cwd":"/p","thread_source":"guardian_review"}}` + "\n", sessions.ErrLeftOut},
		"no reply":          {string(bytes.Join(lines[:3], nil)), sessions.ErrLeftOut},
		"growing":           {string(half), nil},
		"half a line":       {string(half) + string(lines[14][:40]), nil},
	} {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, []byte(tt.data), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := sessions.Read(path)
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
		if tt.want == nil && (s == nil || len(s.Steps) != 2) {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if _, err := sessions.Read(t.TempDir()); !errors.Is(err, sessions.ErrNotSession) {
		t.Errorf("a folder: %v", err)
	}
}

// TestFind lists the files of agents where they keep them.
func TestFind(t *testing.T) {
	home := t.TempDir()
	want := filepath.Join(home, ".codex", "sessions", "2026", "01", "02", "rollout-a.jsonl")
	for _, path := range []string{want, filepath.Join(home, ".codex", "sessions", "notes.txt")} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	getenv := func(string) string { return "" }
	if got, err := sessions.Find(sessions.Codex, home, getenv); err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("found %v, %v", got, err)
	}
	if got, err := sessions.Find(sessions.Claude, home, getenv); err != nil || len(got) != 0 {
		t.Errorf("found %v, %v", got, err)
	}
}

// TestEditor: in an editor Gemini CLI writes all calls of a turn into its first message
// that has one. Each belongs to the reply before it. Without a file that names it, the
// directory is the workspace's.
func TestEditor(t *testing.T) {
	const context = `{"id":"0","type":"user","content":[{"text":"<session_context>\nGemini CLI.\n- **Workspace Directories:**\n  - /p\n- **Directory Structure:**"}]}`
	call := func(id, status string) string {
		return fmt.Sprintf(`{"id":%q,"name":"read_file","args":{"file_path":"/p/%s"},"status":%q,"result":[{"functionResponse":{"response":{"output":"x"}}}]}`, id, id, status)
	}
	lines := []string{
		`{"sessionId":"g-1","startTime":"2026-01-02T03:04:05.000Z"}`, `{"$set":{"messages":[` + context + `]}}`,
		`{"id":"1","type":"user","content":[{"text":"Do it."}]}`,
		`{"id":"2","type":"gemini","content":""}`, `{"id":"2","type":"gemini","content":"","toolCalls":[` + call("a", "executing") + `]}`,
		`{"id":"2","type":"gemini","content":"","toolCalls":[` + call("a", "success") + `]}`,
		`{"id":"3","type":"gemini","content":"Then b."}`, `{"id":"2","type":"gemini","content":"","toolCalls":[` + call("a", "success") + "," + call("b", "success") + `]}`,
		`{"id":"4","type":"gemini","content":"Then c."}`, `{"id":"2","type":"gemini","content":"","toolCalls":[` + call("a", "success") + "," + call("b", "error") + "," + call("c", "success") + `]}`,
		`{"id":"5","type":"gemini","content":"Done."}`,
	}
	path := filepath.Join(t.TempDir(), "session-a.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := sessions.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, st := range s.Steps {
		got += st.Text
		for _, c := range st.Calls {
			got += fmt.Sprint(" ", c.ID, c.Reads, c.Failed)
		}
		got += "\n"
	}
	if want := " a[a] false\nThen b. b[b] true\nThen c. c[c] false\nDone.\n"; got != want || s.Dir != "/p" {
		t.Errorf("in %s:\n%s\nwant:\n%s", s.Dir, got, want)
	}
}

// TestGrows: what is read of a session that is being written agrees with what is read of
// it later, wherever the file ends. To the last step text and calls may come.
func TestGrows(t *testing.T) {
	for agent, tt := range samples {
		from := filepath.Join("testdata", filepath.FromSlash(tt.path))
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		last, err := sessions.Read(from)
		if err != nil {
			t.Fatal(err)
		}
		seen, path := 0, filepath.Join(t.TempDir(), filepath.FromSlash(tt.path))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		for n := 1; n < len(data); n++ {
			if n%20 != 0 && data[n-1] != '\n' {
				continue
			}
			if err := os.WriteFile(path, data[:n], 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := sessions.Read(path)
			if errors.Is(err, sessions.ErrNotSession) || errors.Is(err, sessions.ErrLeftOut) {
				continue
			}
			if err != nil || s.ID != last.ID && s.ID != "" || len(s.Steps) < seen || len(s.Steps) > len(last.Steps) {
				t.Fatalf("%s, %d of %d bytes: %+v, %v", agent, n, len(data), s, err)
			}
			seen = len(s.Steps)
			for i, st := range s.Steps {
				want := last.Steps[i]
				if i == len(s.Steps)-1 {
					want.Calls, want.Text = want.Calls[:min(len(st.Calls), len(want.Calls))], want.Text[:min(len(st.Text), len(want.Text))]
				}
				if len(st.Calls) != len(want.Calls) || st.Parent != want.Parent || st.Text != want.Text {
					t.Fatalf("%s, %d of %d bytes: step %d is %+v, later %+v", agent, n, len(data), i, st, want)
				}
			}
		}
		if seen == 0 && agent != sessions.OpenCode { // an export is written whole
			t.Errorf("%s: nothing was read of any part", agent)
		}
	}
}

// FuzzRead reads files that are nearly those of the five agents.
func FuzzRead(f *testing.F) {
	for _, s := range samples {
		data, err := os.ReadFile(filepath.Join("testdata", filepath.FromSlash(s.path)))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	path := filepath.Join(f.TempDir(), "f")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := sessions.Read(path)
		if err != nil {
			return
		}
		for i, st := range s.Steps {
			if st.Parent < -1 || st.Parent >= i {
				t.Errorf("step %d continues %d", i, st.Parent)
			}
			for _, c := range st.Calls {
				if i == len(s.Steps)-1 && !c.Done {
					t.Errorf("the last step has a call without a result: %+v", c)
				}
			}
		}
	})
}

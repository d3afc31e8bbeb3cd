package sessions_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
		got := strings.Replace(b.String(), `{"edit":{"old":"","new":"2"},"path":"a.go"}`,
			`{"content":"2\n","path":"a.go"}`, 1)
		// Codex adds a file by a patch
		got = strings.Replace(got, "StrReplaceFile {\"content\"", "WriteFile {\"content\"", 1)
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
		"metadata alone":    {`{"type":"metadata"}` + "\n{}\n", sessions.ErrNotSession},
		"a wire's line":     {`{"type":"turn.prompt"}` + "\n{}\n", sessions.ErrNotSession},
		"no payload":        {`{"type":"session_meta"}` + "\n{}\n", sessions.ErrNotSession},
		"another payload":   {`{"type":"other","payload":{}}` + "\n{}\n", sessions.ErrNotSession},
		"no start":          {`{"sessionId":"a"}` + "\n{}\n", sessions.ErrNotSession},
		"no session":        {`{"startTime":"2026-01-02T03:04:05Z"}` + "\n" + `{"type":"user"}` + "\n", sessions.ErrNotSession},
		"an object's id":    {`{"sessionId":"a","messages":[]}`, sessions.ErrNotSession},
		"an object's start": {`{"startTime":"2026-01-02T03:04:05Z","messages":[]}`, sessions.ErrNotSession},
		"odd messages":      {`{"info":{"id":"a","directory":"/p","version":"1.0.0"},"messages":[1,2]}`, sessions.ErrNewer},
		"no id":             {`{"type":"gemini"}` + "\n{}\n", sessions.ErrNotSession},
		"a database":        {"SQLite format 3\x00", sessions.ErrNotSession},
		"no reply left":     {string(bytes.Join(lines[:3], nil)) + "{\n" + string(lines[4]), sessions.ErrDamaged},
		"a newer version":   {strings.ReplaceAll(string(claude), `"2.1.0"`, `"10.0.0"`), sessions.ErrNewer},
		"an unknown part":   {strings.Replace(string(claude), `"type":"tool_use"`, `"type":"tool_call_2"`, 1), sessions.ErrNewer},
		"another type":      {strings.ReplaceAll(string(claude), `"uuid":"`, `"uuid":{},"a":"`), sessions.ErrNewer},
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

// TestDamage: of a file with one damaged line, or one that is cut, the rest is read, and the damage is
// named. Nothing else changes: no step moves to the beginning because the line that it continues is lost.
func TestDamage(t *testing.T) {
	for agent, tt := range samples {
		from := filepath.Join("testdata", filepath.FromSlash(tt.path))
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := sessions.Read(from)
		if err != nil {
			t.Fatal(err)
		}
		name := tt.path
		if agent == sessions.Codex {
			name = "rollout-2026-01-02T03-04-05-01a2042d-5faa-7723-88a9-3ac5115e9f97.jsonl"
		}
		read := func(what, text string, harmed bool) *sessions.Session {
			path := filepath.Join(t.TempDir(), filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			s, err := sessions.Read(path)
			if errors.Is(err, sessions.ErrDamaged) && harmed {
				return nil
			}
			if err != nil || harmed != (len(s.Damage) == 1) {
				t.Errorf("%s, %s: %v, %+v", agent, what, err, s)
				return nil
			}
			return s
		}
		all := strings.SplitAfter(strings.TrimSpace(string(data)), "\n")
		harmless := map[string]string{"a byte order mark": "\ufeff" + string(data)}
		if agent == sessions.OpenCode { // one object, not lines
			for n := strings.Index(string(data), "edit"); n < len(data)-2; n += 97 {
				if s := read("cut", string(data[:n]), true); s == nil || s.ID != whole.ID || len(s.Steps) == 0 ||
					len(s.Steps) >= len(whole.Steps) {
					t.Errorf("cut at %d: %+v", n, s)
				}
			}
			if s := read("odd", strings.Replace(string(data), `"callID":"t2"`, `"callID":2`, 1), true); s == nil ||
				len(s.Steps) != 3 {
				t.Errorf("an odd message: %+v", s)
			}
			all = nil
		}
		for what, text := range harmless {
			if s := read(what, text, false); s == nil || len(s.Steps) != len(whole.Steps) {
				t.Errorf("%s, %s: %+v", agent, what, s)
			}
		}
		for i, line := range all {
			for what, text := range map[string]string{
				"half":         line[:len(line)/2] + "\n",
				"an odd field": `{"sessionId":"c-1","version":5,"protocol_version":5,"id":5,"timestamp":5,` + line[1:],
				"NUL":          strings.Repeat("\x00", 4096) + "\n",
			} {
				what = fmt.Sprintf("%s line %d", what, i+1)
				if strings.Contains(what, "odd") && (agent != sessions.Claude || !strings.Contains(line, `"version"`)) {
					continue
				}
				s := read(what, strings.Join(all[:i], "")+text+strings.Join(all[i+1:], ""), true)
				if s == nil && i > 0 {
					t.Errorf("%s: %s loses the session", agent, what)
				}
				if s == nil {
					continue
				}
				if !strings.HasPrefix(s.Damage[0], fmt.Sprintf("line %d: ", i+1)) || len(s.Steps) < len(whole.Steps)-2 {
					t.Errorf("%s, %s: %q, %d of %d steps", agent, what, s.Damage, len(s.Steps), len(whole.Steps))
				}
				for k, st := range s.Steps {
					if k > 0 && st.Parent < 0 && agent != sessions.Kimi { // its turns are counted

						t.Errorf("%s, %s: step %d continues the beginning", agent, what, k)
					}
				}
			}
			// A crash leaves NUL bytes before a whole line, or after half of one.
			if s := read("NUL before", strings.Join(all[:i], "")+"\x00\x00"+strings.Join(all[i:], ""), true); s == nil || len(s.Steps) != len(whole.Steps) {
				t.Errorf("%s: NUL before line %d: %+v", agent, i+1, s)
			}
			read("a mark before", strings.Join(all[:i], "")+"\ufeff"+strings.Join(all[i:], ""), false)
		}
	}
}

// TestDamagedFile: a packed file that was cut is read up to there. A file that holds nothing that can be
// read is called damaged, not another kind of file.
func TestDamagedFile(t *testing.T) {
	data, err := os.ReadFile("testdata/claude.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err = z.Write(
		bytes.Replace(data, []byte(`"text":"Done."`), []byte(`"text":"`+strings.Repeat("Done. ", 1e5)+`"`), 1))
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	gemini := `{"id":"2","timestamp":"2026-01-02T03:04:05.000Z","type":"gemini","content":"Done."}` + "\n"
	for name, tt := range map[string]struct {
		data  []byte
		want  error
		steps int
	}{
		"cut.jsonl.gz":    {packed.Bytes()[:packed.Len()*4/5], nil, 3},
		"sum.jsonl.gz":    {append(bytes.Clone(packed.Bytes()[:packed.Len()-8]), 1, 2, 3, 4, 5, 6, 7, 8), nil, 4},
		"head.jsonl.gz":   {[]byte("no gzip"), sessions.ErrDamaged, 0},
		"zero.jsonl":      {make([]byte, 4096), sessions.ErrDamaged, 0},
		"noise.jsonl":     {[]byte("{\"a\n}\n"), sessions.ErrDamaged, 0},
		"session-a.jsonl": {[]byte("{\"sessi\n" + gemini), sessions.ErrDamaged, 0},
		"session-2026-01-02T03-04-e8f1cf91.jsonl": {[]byte("{\"sessi\n" + gemini), nil, 1},
		"session-b.json":    {[]byte(`{"sessionId":"g","startTime":"2026-01-02T03:04:05Z","messages":[` + gemini + `,{"id":`), nil, 1},
		"tsconfig.json":     {[]byte("{ // a comment\n}"), sessions.ErrNotSession, 0},
		"other.jsonl":       {[]byte("{\"a\":1}\n{\"b\n"), sessions.ErrNotSession, 0},
		"half.jsonl":        {[]byte(`{"type":"us`), sessions.ErrNotSession, 0},
		"only-a-meta.jsonl": {[]byte("{\"half\n" + `{"type":"response_item","payload":{"type":"message","role":"assistant","content":"x"}}` + "\n"), sessions.ErrDamaged, 0},
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, tt.data, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := sessions.Read(path)
		if !errors.Is(err, tt.want) || tt.want == nil && (s == nil || len(s.Steps) != tt.steps || len(s.Damage) != 1) {
			t.Errorf("%s: %v, want %v; %+v", name, err, tt.want, s)
		}
	}
}

// TestCompacted: the summary of a compaction is no answer.
func TestCompacted(t *testing.T) {
	line := func(kind, payload string) string { return `{"type":"` + kind + `","payload":` + payload + "}\n" }
	said := func(text string) string {
		return line("response_item",
			`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"`+text+`"}]}`)
	}
	call := func(id string) string {
		return line("response_item",
			`{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"make\"}","call_id":"`+id+`"}`) +
			line("response_item", `{"type":"function_call_output","call_id":"`+id+`","output":"x"}`)
	}
	meta := line("session_meta", `{"id":"x","cwd":"/p","cli_version":"0.1.0"}`)
	old := line("compacted", `{"message":"Another model wrote:\nSUMMARY"}`)
	now := line("compacted",
		`{"message":"","replacement_history":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Another model wrote:\nSUMMARY"}]}]}`)
	message := func(role, more, parts string) string {
		return `{"info":{"role":"` + role + `"` + more + `},"parts":[` + parts + `]}`
	}
	for name, tt := range map[string]struct{ data, want string }{
		"in a turn":      {meta + said("I run it.") + call("1") + said("SUMMARY") + old + call("2") + said("Done."), "I run it.[Bash] [Bash] Done. "},
		"after a turn":   {meta + call("1") + said("Done.") + said("SUMMARY") + now + call("2") + said("Once more."), "[Bash] Done. [Bash] Once more. "},
		"without a text": {meta + call("1") + said("Done.") + line("compacted", `{"message":""}`), "[Bash] Done. "},
		"of opencode": {`{"info":{"id":"o","directory":"/p","version":"1.0.0"},"messages":[` + message("user", `,"summary":{"diffs":[]}`, `{"type":"compaction"}`) + "," +
			message("assistant", `,"summary":true`, `{"type":"text","text":"SUMMARY"}`) + "," +
			message("assistant", "", `{"type":"text","text":"Done."}`) + "]}", "Done. "},
	} {
		path := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(path, []byte(tt.data), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := sessions.Read(path)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := ""
		for _, st := range s.Steps {
			got += st.Text
			for _, c := range st.Calls {
				got += "[" + c.Tool + "]"
			}
			got += " "
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestFind lists the files of agents where they keep them.
func TestFind(t *testing.T) {
	home := t.TempDir()
	want := filepath.Join(home, ".codex", "sessions", "2026", "01", "02", "rollout-a.jsonl")
	if err := os.MkdirAll(filepath.Join(filepath.Dir(want), "rollout-folder.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
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
		`{"id":"2","type":"gemini","content":""}`,
		`{"id":"2","type":"gemini","content":"","toolCalls":[` + call("a", "executing") + `]}`,
		`{"id":"2","type":"gemini","content":"","toolCalls":[` + call("a", "success") + `]}`,
		`{"id":"3","type":"gemini","content":"Then b."}`, `{"id":"2","type":"gemini","content":"","toolCalls":[` +
			call("a", "success") + "," + call("b", "success") + `]}`,
		`{"id":"4","type":"gemini","content":"Then c."}`, `{"id":"2","type":"gemini","content":"","toolCalls":[` +
			call("a", "success") + "," + call("b", "error") + "," + call("c", "success") + `]}`,
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
			if errors.Is(err, sessions.ErrNotSession) || errors.Is(err, sessions.ErrLeftOut) ||
				errors.Is(err, sessions.ErrDamaged) && agent == sessions.OpenCode {
				continue
			}
			if err != nil || s.ID != last.ID && s.ID != "" || len(s.Steps) < seen || len(s.Steps) > len(last.Steps) {
				t.Fatalf("%s, %d of %d bytes: %+v, %v", agent, n, len(data), s, err)
			}
			seen = len(s.Steps)
			for i, st := range s.Steps {
				want := last.Steps[i]
				if i == len(s.Steps)-1 {
					want.Calls, want.Text = want.Calls[:min(len(st.Calls), len(want.Calls))],
						want.Text[:min(len(st.Text), len(want.Text))]
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

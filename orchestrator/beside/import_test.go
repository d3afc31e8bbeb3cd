package beside_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	assets "anamnesis"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/memory"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/sessions"
	"anamnesis/orchestrator/taskdir"
)

func service(t *testing.T) *session.Service {
	t.Helper()
	home := t.TempDir()
	env := map[string]string{"HOME": home, "ANAMNESIS_HOME": filepath.Join(home, ".anamnesis")}
	svc, err := session.New(
		session.Options{Getenv: func(name string) string { return env[name] }, Version: "test", EAS: assets.EAS})
	if err != nil {
		t.Fatal(err)
	}
	return svc
}

// stopping is a context that ends after some looks at it.
type stopping struct {
	context.Context
	left int
}

func (s *stopping) Err() error {
	if s.left--; s.left < 0 {
		return context.Canceled
	}
	return nil
}

func example() *sessions.Session {
	exit := func(n int) *int { return &n }
	return &sessions.Session{Agent: sessions.Codex, ID: "one", Dir: "/no/such/p", Model: "m", Steps: []sessions.Step{
		{Parent: -1, Said: []string{"Make it pass"}, Calls: []sessions.Call{{ID: "1", Tool: "Bash", Args: `{"command":"go test ./..."}`, Done: true, Failed: true, Exit: exit(1), Text: "a_test.go:3: want 2, got 1"}}},
		{Parent: 0, Calls: []sessions.Call{{ID: "2", Tool: "StrReplaceFile", Args: `{"path":"a.go","edit":{"old":"return 1","new":"return 3"}}`, Done: true, Writes: []string{"a.go"}}}},
		{Parent: 0, Said: []string{"Two."}, Calls: []sessions.Call{{ID: "3", Tool: "StrReplaceFile", Args: `{"path":"a.go","edit":{"old":"return 1","new":"return 2"}}`, Done: true, Writes: []string{"a.go"}}}},
		{Parent: 2, Calls: []sessions.Call{{ID: "4", Tool: "Bash", Args: `{"command":"go test ./..."}`, Done: true, Exit: exit(0), Text: "ok"}}},
	}}
}

// TestInterruptedImport: an import that was interrupted after any step is completed by
// the next one, and says the same as one that was not.
func TestInterruptedImport(t *testing.T) {
	var want []op.Kind
	for after := len(example().Steps); after >= 0; after-- {
		svc := service(t)
		im := beside.NewImporter(svc)
		s := example()
		_, err := im.Import(&stopping{t.Context(), after}, s, "f")
		if after < len(s.Steps) && !errors.Is(err, context.Canceled) {
			t.Fatalf("interrupted after %d steps: %v", after, err)
		}
		done, err := im.Import(t.Context(), s, "f")
		if err != nil || done.Steps+done.Had != len(s.Steps) {
			t.Fatalf("after %d steps: %+v, %v", after, done, err)
		}
		var kinds []op.Kind
		pairs := 0
		err = taskdir.EachOp(svc.Home, done.Task, func(o op.Op) error {
			if o.Kind() != "log.sealed" {
				kinds = append(kinds, o.Kind())
			}
			if b, ok := o.Body.(*op.RepairsFound); ok {
				pairs = b.Pairs
			}
			return nil
		})
		if err != nil || pairs != 1 {
			t.Errorf("after %d steps: %d repairs, %v", after, pairs, err)
		}
		if want == nil {
			want = kinds
		}
		if !slices.Equal(kinds, want) {
			t.Errorf("after %d steps: %v, want %v", after, kinds, want)
		}
		st, err := taskdir.ReadState(svc.Home, done.Task)
		if err != nil || st.Steps.At(3).Parent != 1 || st.Steps.At(4).Parent != 3 || !st.Opened.Origin.Imported() {
			t.Errorf("the steps continue %+v, %v", st.Steps.At(3), err)
		}
	}
}

// TestGrowingSession: a session that is imported while it is written, again and again,
// has the same calls in the end.
func TestGrowingSession(t *testing.T) {
	svc := service(t)
	im := beside.NewImporter(svc)
	for _, name := range []string{"claude.jsonl", "codex.jsonl", "gemini/chats/session-a.jsonl", "kimi/session_k/agents/main/wire.jsonl"} {
		data, err := os.ReadFile(filepath.Join("..", "sessions", "testdata", filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		want, task, times := 0, "", 0
		for line := range bytes.Lines(data) {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write(line); err != nil {
				t.Fatal(err)
			}
			f.Close()
			s, err := sessions.Read(path)
			if err != nil {
				continue // nothing in it yet
			}
			want = 0
			for _, st := range s.Steps {
				want += len(st.Calls)
			}
			done, err := im.Import(t.Context(), s, path)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			task, times = done.Task, times+min(done.Steps, 1)
		}
		st, err := svc.State(task)
		if err != nil || times < 3 {
			t.Fatalf("%s: imported %d times, %v", name, times, err)
		}
		got := 0
		for i := range st.Steps.CountEnded() {
			got += len(st.Steps.At(i + 1).Calls)
		}
		if got != want || want != 4 {
			t.Errorf("%s: %d calls were imported, want %d", name, got, want)
		}
	}
}

// TestChangedSession: a session that no longer says what was imported of it is left
// as it was.
func TestChangedSession(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(s *sessions.Session)
		want   string // a part of the error; "" if there is none
	}{
		{"as it was", func(*sessions.Session) {}, ""},
		{"one more step", func(s *sessions.Session) { s.Steps = append(s.Steps, sessions.Step{Parent: 3, Text: "Done."}) }, ""},
		{"fewer steps", func(s *sessions.Session) { s.Steps = s.Steps[:1] }, ""},
		{"a step without its calls", func(s *sessions.Session) {
			s.Steps[1].Calls = nil
			s.Steps = append(s.Steps, sessions.Step{Parent: 3, Text: "Done."})
		}, "step 2 has the calls []"},
		{"another call", func(s *sessions.Session) {
			s.Steps[1].Calls = []sessions.Call{{Tool: "Other"}}
			s.Steps = append(s.Steps, sessions.Step{Parent: 3, Text: "Done."})
		}, "step 2 has the calls [Other]"},
	} {
		im := beside.NewImporter(service(t))
		s := example()
		if _, err := im.Import(t.Context(), s, "f"); err != nil {
			t.Fatal(err)
		}
		tt.change(s)
		_, err := im.Import(t.Context(), s, "f")
		if errors.Is(err, beside.ErrChanged) != (tt.want != "") ||
			err != nil && (tt.want == "" || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// TestDamagedImport: a session whose task is damaged is reported, and the others are imported.
func TestDamagedImport(t *testing.T) {
	svc := service(t)
	im := beside.NewImporter(svc)
	files := []string{
		filepath.Join("..", "sessions", "testdata", "claude.jsonl"),
		filepath.Join("..", "sessions", "testdata", "codex.jsonl"),
	}
	s, err := sessions.Read(files[0])
	if err != nil {
		t.Fatal(err)
	}
	done, err := im.Import(t.Context(), s, files[0])
	if err != nil {
		t.Fatal(err)
	}
	streams, err := filepath.Glob(filepath.Join(svc.Home.Task(done.Task), "ops", "*.jsonl"))
	if err != nil || len(streams) != 1 {
		t.Fatalf("%q, %v", streams, err)
	}
	text, err := os.ReadFile(streams[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(streams[0], bytes.Replace(text, []byte("Make it pass"), []byte("Make it fail"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := im.Examine(t.Context(), beside.Sessions{Paths: files}, func(int, int) {})
	if err != nil || len(b.Todo) != 1 || b.Todo[0].Path != files[1] || len(b.Skipped) != 1 ||
		!strings.Contains(b.Skipped[0], done.Task) {
		t.Errorf("%+v, %v", b, err)
	}
}

// TestImportedDate: a list of tasks shows an imported session by the time it began.
func TestImportedDate(t *testing.T) {
	svc := service(t)
	im := beside.NewImporter(svc)
	began := time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)
	s := &sessions.Session{
		Agent: sessions.Codex, ID: "s-1", Dir: t.TempDir(), Start: began,
		Steps: []sessions.Step{{Parent: -1, Text: "Done."}},
	}
	if _, err := im.Import(t.Context(), s, "f"); err != nil {
		t.Fatal(err)
	}
	rows, err := svc.Tasks()
	if err != nil || len(rows) != 1 || !rows[0].Changed.Equal(began) {
		t.Errorf("listed %+v, %v", rows, err)
	}
}

// TestOtherAgent: of files that are named after an agent, only its sessions are read.
func TestOtherAgent(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "s.json")
	const text = `{"info":{"id":"o","directory":"/p","version":"1.0.0"},"messages":[{"info":{"role":"user"},"parts":[{"type":"text","text":"Go"}]},{"info":{"role":"assistant"},"parts":[{"type":"text","text":"Done."}]}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	im := beside.NewImporter(service(t))
	for _, c := range []struct {
		args          []string
		todo, skipped int
	}{{[]string{"opencode", file}, 1, 0}, {[]string{"codex", dir}, 0, 0}, {[]string{"codex", file}, 0, 1}} {
		src, err := beside.FindSessions(c.args, false, func(string) string { return "" })
		if err != nil {
			t.Fatal(err)
		}
		if b, err := im.Examine(t.Context(), src, func(int, int) {}); err != nil || len(b.Todo) != c.todo ||
			len(b.Skipped) != c.skipped {
			t.Errorf("%v: %+v, %v", c.args, b, err)
		}
	}
}

// TestImportedFacts: an imported session counts for the facts of its repository, once.
func TestImportedFacts(t *testing.T) {
	svc := service(t)
	for range 2 {
		if _, err := beside.NewImporter(svc).Import(t.Context(), example(), "f"); err != nil {
			t.Fatal(err)
		}
	}
	r, err := memory.OpenFacts(svc.Home, "/no/such/p")
	if err != nil || len(r.Tasks) != 1 || r.Tasks[0].Agent != "codex" || len(r.Tasks[0].Commands) != 1 ||
		r.Tasks[0].Commands[0].Ends != "fo" {
		t.Fatalf("%+v, %v", r, err)
	}
}

//go:build unix

package seat

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/cmd/internal/console"
	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/settings"
	"anamnesis/orchestrator/session"
)

// seat returns a seat without a terminal, in a new home, and the directory that it works in.
func seat(t *testing.T) (s *Seat, dir string, warned *[]string) {
	t.Helper()
	root := t.TempDir()
	env := func(name string) string {
		return map[string]string{"ANAMNESIS_HOME": filepath.Join(root, "home"), "HOME": root, "TERM": "xterm"}[name]
	}
	dir = filepath.Join(root, "w")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	warned = new([]string)
	s = &Seat{
		Console: &console.Console{In: strings.NewReader(""), Out: new(bytes.Buffer),
			Err: new(bytes.Buffer), Getenv: env},
		Configured: func(string) (*session.Service, *settings.Settings, error) {
			svc, err := session.New(session.Options{Getenv: env, Version: "test"})
			return svc, new(settings.Settings), err
		},
		Warn: func(texts ...string) { *warned = append(*warned, texts...) },
	}
	return s, dir, warned
}

// TestInteractPlain: what a session without a terminal can do, and what to do instead of the rest.
func TestInteractPlain(t *testing.T) {
	for _, tt := range []struct {
		name string
		work Work
		want string
	}{
		{"pick a task", Work{Pick: true}, "-r needs a terminal that can be drawn on"},
		{"pick, with a request", Work{Pick: true, Request: session.Request{Text: "go"}}, "-r needs a terminal"},
		{"no request", Work{}, "no request: give it as an argument"},
		{"continue without a task", Work{Last: true}, "no task has worked in"},
		{"continue in a worktree", Work{Last: true, Tree: AnyName}, "leave -c and -r out"},
		{"pick in a worktree", Work{Pick: true, Tree: "x"}, "leave -c and -r out"},
		{"a worktree of a wrong name", Work{Tree: "../x"}, "../x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, dir, _ := seat(t)
			tt.work.Dir = dir
			err := s.Interact(t.Context(), tt.work)
			if err == nil || !strings.Contains(err.Error(), tt.want) || exit.Code(err) != exit.Usage {
				t.Errorf("%v, want a usage error with %q", err, tt.want)
			}
			if _, err := os.Stat(dir + "-forks"); err == nil {
				t.Error("a worktree is left")
			}
		})
	}
}

// TestInTree: work is done in a worktree of its own, which goes again if no task began there.
func TestInTree(t *testing.T) {
	s, dir, warned := seat(t)
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("1"), 0o644); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("no model")
	var worked Work
	err := s.inTree(t.Context(), Work{Request: session.Request{Dir: dir}, Tree: "x"},
		func(_ context.Context, w Work) error {
			worked = w
			if got, err := os.ReadFile(filepath.Join(w.Dir, "f")); string(got) != "1" {
				t.Errorf("the worktree lacks a file: %v", err)
			}
			return failed
		})
	if !errors.Is(err, failed) {
		t.Errorf("%v, want %v", err, failed)
	}
	if worked.Tree != "" || worked.Worktree == nil || worked.Worktree.From == "" ||
		filepath.Base(worked.Worktree.Root) != "x" {
		t.Errorf("worked with %+v", worked)
	}
	if text := strings.Join(*warned, "\n"); !strings.Contains(text, "a copy of ") ||
		strings.Contains(text, "anamnesis apply") {
		t.Errorf("warned %q", text)
	}
	if _, err := os.Stat(worked.Dir); err == nil {
		t.Error("a worktree without a task is left")
	}
}

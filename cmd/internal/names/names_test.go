package names

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
)

func TestTask(t *testing.T) {
	root := t.TempDir()
	svc, err := session.New(session.Options{Getenv: func(name string) string {
		return map[string]string{"ANAMNESIS_HOME": root}[name]
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"fix_a", "fix_ab", "fix_b", "7", "other", "task_10_a", "task_1_z", "task_1_z.1", "task_20_a", "task_21_a"} {
		if err := os.MkdirAll(svc.Home.Task(id), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{"fix_a": "fix_a", "fix_ab": "fix_ab", "o": "other", "task_1": "task_1_z", "task_10": "task_10_a", "fix_b": "fix_b", "none": "none", "../x": "../x", "": ""} {
		if got, err := Task(svc.Home, name); err != nil || got != want {
			t.Errorf("Task(%q) = %q, %v; want %q", name, got, err, want)
		}
	}
	if _, err := Task(svc.Home, "fix"); err == nil || !strings.Contains(err.Error(), "could be fix_a, fix_ab, fix_b") {
		t.Errorf("an ambiguous name: %v", err)
	}
	if _, err := Task(svc.Home, "task_20_b"); !errors.Is(err, taskdir.ErrNoTask) ||
		!strings.HasSuffix(err.Error(), ": task_20_b; did you mean task_20_a?") {
		t.Errorf("a misspelt name: %v", err)
	}
	if _, err := Task(svc.Home, "task_2"); err == nil {
		t.Error("task_2 is taken for task_20 or task_21")
	}
	for _, row := range []struct {
		args        []string
		least, most int
		task, rest  string // task "": the last one, of which there is none here
	}{
		{[]string{"o"}, 0, 0, "other", ""}, {nil, 0, 0, "", ""},
		{[]string{"o", "3"}, 1, 1, "other", "3"}, {[]string{"3"}, 1, 1, "", ""},
		{[]string{"3"}, 0, 1, "", ""}, {[]string{"7"}, 0, 1, "7", ""}, {[]string{"o"}, 0, 1, "other", ""}, {[]string{"7", "2"}, 0, 1, "7", "2"},
	} {
		task, rest, err := OnTask(svc, row.args, row.least, row.most)
		if row.task == "" {
			if err == nil || !strings.Contains(err.Error(), "no task has worked in") {
				t.Errorf("%q: %q, %v; want no task", row.args, task, err)
			}
			continue
		}
		if err != nil || task != row.task || strings.Join(rest, " ") != row.rest {
			t.Errorf("%q: %q %q, %v; want %q %q", row.args, task, rest, err, row.task, row.rest)
		}
	}
	// What a usage line names is what is offered there.
	s := Source{
		Service: func() (*session.Service, error) { return svc, nil },
		Models:  func() []string { return []string{"m"} },
	}
	other := &cobra.Command{Use: "root"}
	for _, row := range []struct {
		use   string
		args  []string
		want  string
		files bool // the shell's own names are offered
	}{
		{"verdict good|bad", nil, "good,bad", false}, {"show MODEL", nil, "m", false}, {"show MODEL", []string{"m"}, "", false},
		{"add FILE…", nil, "", true}, {"add FILE…", []string{"a", "b"}, "", true}, {"diff [PATH…]", nil, "", true}, {"out DIR", nil, "", true},
		{"search WORDS…", nil, "", false}, {"show ID", nil, "", false}, {"say TEXT FILE", nil, "", false}, {"say TEXT FILE", []string{"t"}, "", true},
	} {
		got, directive := s.arguments(placeholders(row.use), row.args, other)
		if files := directive&cobra.ShellCompDirectiveNoFileComp == 0; strings.Join(got, ",") != row.want ||
			files != row.files {
			t.Errorf("%s after %q: %q, files %v; want %q, %v", row.use, row.args, got, files, row.want, row.files)
		}
	}
}

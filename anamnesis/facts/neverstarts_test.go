package facts

import (
	"fmt"
	"testing"
)

// TestNeverStarts: a call is held only where five tasks agree and none of the last ten disagrees, no user words the
// fact, and the line has no other way out. What runs the tests comes with it.
func TestNeverStarts(t *testing.T) {
	known := func(ends ...string) []Fact {
		var tasks []Task
		for i, end := range ends {
			tasks = append(tasks,
				Task{ID: fmt.Sprint("t", i), Programs: map[string]string{"javac": end}, Commands: []Command{
					{Words: "pytest -q", Runner: "pytest", Ends: map[string]string{"m": "f", "o": "r"}[end]}, {Words: "bin/test core", Runner: "bin/test", Ends: "r"},
				}})
		}
		return Count(tasks)
	}
	agree := known("m", "m", "m", "m", "m")
	for _, tt := range []struct {
		name    string
		known   []Fact
		command string
		want    string
	}{
		{"five agree", agree, "javac A.java", "missing:javac"},
		{"a runner", agree, "cd . && pytest tests/a.py | tail", "never:pytest"},
		{"a runner elsewhere", agree, "cd src && pytest tests/a.py", ""},
		{"a runner by another path", agree, "venv/bin/pytest tests/a.py", ""},
		{"behind a wrapper", agree, "timeout 60 pytest -x", "never:pytest"},
		{"another command", agree, "bin/test core", ""},
		{"named only", agree, "grep pytest setup.cfg; which javac", ""},
		{"another way out", agree, "pytest || bin/test", ""},
		{"it installs", agree, "pip install pytest && pytest", ""},
		{"its version", agree, "javac -version || true", ""},
		{"four", known("m", "m", "m", "m"), "javac A.java", ""},
		{"one disagreed", known("m", "m", "m", "m", "o", "m", "m", "m", "m", "m"), "javac A.java", ""},
	} {
		f, works := NeverStarts(tt.known, tt.command)
		got := ""
		if f != nil {
			got = f.ID()
		}
		if got != tt.want || (f != nil) != (len(works) == 1) {
			t.Errorf("%s: held by %q, want %q; %d ways work", tt.name, got, tt.want, len(works))
		}
	}
	for i := range agree {
		agree[i].Line, agree[i].Match = "It is in /opt.", "" // an ID that somebody wrote into the file
	}
	if f, _ := NeverStarts(agree, "javac A.java"); f != nil {
		t.Errorf("a user's words are outranked: held by %s", f.ID())
	}
}

package pair

import (
	"fmt"
	"slices"
	"testing"

	"anamnesis/anamnesis/failure"
)

// run is a call of a shell command that ended with an exit code.
func run(step int, command string, exit int, text string, changed ...string) Call {
	return Call{Output: failure.Output{Command: command, Text: text, Exit: exit, HasExit: true}, Step: step,
		Changed: changed}
}

// edit is a call of a file tool.
func edit(step int, file string) Call {
	return Call{Step: step, Wrote: []string{file}, Changed: []string{file}}
}

const (
	red   = "--- FAIL: TestSum (0.00s)\n    a_test.go:7: Sum(1, 2) = -1, want 3\nFAIL\n"
	other = "--- FAIL: TestMean (0.00s)\n    a_test.go:9: Mean(1, 2) = 0, want 1\nFAIL\n"
	green = "ok  \tm\t0.1s\n"
)

// TestFind: each call is of a step of its own, and a pair is what changed between a failure and the
// next success of the same command.
func TestFind(t *testing.T) {
	const test = "go test ./..."
	for name, tt := range map[string]struct {
		calls []Call
		want  string
	}{
		"an edit":          {[]Call{run(1, test, 1, red), edit(2, "a.go"), run(3, test, 0, green)}, "[0-2 ran [] files [a.go]]"},
		"a command":        {[]Call{run(1, test, 1, red), run(2, "go generate ./...", 0, "", "a.go"), run(3, test, 0, green)}, "[0-2 ran [go generate ./...] files [a.go]]"},
		"nothing":          {[]Call{run(1, test, 1, red), run(2, "git diff", 0, "x"), run(3, test, 0, green)}, "[]"},
		"a failed command": {[]Call{run(1, test, 1, red), run(2, "go generate ./...", 1, "error: no generator", "a.go"), run(3, test, 0, green)}, "[]"},
		"twice the same":   {[]Call{run(1, test, 1, red), edit(2, "a.go"), run(3, test, 1, red), edit(4, "b.go"), run(5, test, 0, green)}, "[0-4 ran [] files [a.go b.go]]"},
		"another failure":  {[]Call{run(1, test, 1, red), edit(2, "a.go"), run(3, test, 1, other), edit(4, "b.go"), run(5, test, 0, green)}, "[2-4 ran [] files [b.go]]"},
		"another command":  {[]Call{run(1, test, 1, red), edit(2, "a.go"), run(3, "go test ./a", 0, green)}, "[]"},
		"behind a filter":  {[]Call{run(1, "cd m && "+test+" 2>&1 | tail -3", 1, red), edit(2, "a.go"), run(3, test, 0, green)}, "[0-2 ran [] files [a.go]]"},
		"no test ran": {[]Call{run(1, "python -m unittest", 1, "Traceback (most recent call last):\nImportError: No module named m\n"), edit(2, "a.py"),
			run(3, "python -m unittest", 0, "\nRan 0 tests in 0.000s\n\nOK\n")}, "[]"},
		"its own files": {[]Call{run(1, test, 1, red, "cover.out"), edit(2, "a.go"), run(3, "make gen", 0, "", "cover.out", "b.go"), run(4, test, 0, green, "cover.out")},
			"[0-3 ran [make gen] files [a.go b.go]]"},
		"in the same line": {[]Call{run(1, test, 1, red), run(2, "sed -i s/-/+/ a.go && "+test, 0, green, "a.go")}, "[0-1 ran [sed -i s/-/+/ a.go] files [a.go]]"},
		"installed in the same line": {[]Call{run(1, "npm test", 1, "Error: Cannot find module 'left'"), run(2, "npm ci && npm test", 0, "ok", "package-lock.json")},
			"[0-1 ran [npm ci] files [package-lock.json]]"},
		"programs from elsewhere": {[]Call{run(1, "cat one.py | python -", 1, "NameError: name 'x' is not defined"), edit(2, "a.py"), run(3, "cat two.py | python -", 0, "ok")}, "[]"},
		"programs of its own": {[]Call{run(1, "python - <<'EOF'\nimport m\nEOF", 1, "ImportError: No module named m"), edit(2, "m.py"),
			run(3, "python - <<'EOF'\nimport m\nEOF", 0, "ok")}, "[0-2 ran [] files [m.py]]"},
		"two programs": {[]Call{run(1, "python - <<'EOF'\nimport m\nEOF", 1, "ImportError: No module named m"), edit(2, "m.py"),
			run(3, "python - <<'EOF'\nimport os\nEOF", 0, "ok")}, "[]"},
		"a look":                  {[]Call{run(1, "ls out", 2, "ls: cannot access 'out': No such file or directory"), edit(2, "out"), run(3, "ls out", 0, "out")}, "[]"},
		"a search without hits":   {[]Call{run(1, "grep -q port a.ini", 1, ""), edit(2, "a.ini"), run(3, "grep -q port a.ini", 0, "")}, "[]"},
		"a failure without words": {[]Call{run(1, "./check", 1, "running\n"), edit(2, "a.go"), run(3, "./check", 0, "")}, "[]"},
		"a timeout":               {[]Call{run(1, "timeout 5 ./serve", 124, "error: no port"), edit(2, "a.go"), run(3, "timeout 5 ./serve", 0, "")}, "[]"},
		"what came before":        {[]Call{run(1, "rm gone && "+test, 1, red, "gone"), edit(2, "a.go"), run(3, test, 0, green)}, "[0-2 ran [] files [a.go]]"},
		"refused":                 {[]Call{{Output: failure.Output{Command: test, Text: red, Exit: 1, HasExit: true, Refused: true}, Step: 1}, edit(2, "a.go"), run(3, test, 0, green)}, "[]"},
	} {
		got := []string{}
		for _, p := range Find(tt.calls) {
			got = append(got, fmt.Sprintf("%d-%d ran %v files %v", p.Failed, p.Fixed, p.Ran, p.Files))
		}
		if fmt.Sprint(got) != tt.want {
			t.Errorf("%s: %v, want %s", name, got, tt.want)
		}
	}
}

func TestMainCommand(t *testing.T) {
	for line, want := range map[string]string{
		"cd web && npm test -- sum | tail -5":     "npm test -- sum",
		"go build ./... ; go test || true":        "go test",
		"echo done":                               "",
		"python3 -":                               "",
		"bash":                                    "",
		"cat x.py | python3":                      "",
		"pytest $(find t -name 't_*') 2>&1":       "pytest $(find t -name 't_*') 2>&1",
		"for f in a b; do pytest $f; done":        "pytest $f",
		"make 'a; b' # c; d":                      "make 'a; b'",
		"python - <<'EOF'\nmake()\nEOF":           "python - <<'EOF'\nmake()\nEOF",
		"cat > a.py <<'EOF'\nx\nEOF\npython a.py": "python a.py",
	} {
		if got := Main(line); got != want {
			t.Errorf("Main(%q) = %q, want %q", line, got, want)
		}
	}
}

// TestLimits: a pair of a long path names the first changes only.
func TestLimits(t *testing.T) {
	calls := []Call{run(1, "make", 1, "error: no rule")}
	for i := range 50 {
		calls = append(calls, edit(2+i, fmt.Sprint("f", i)), run(2+i, fmt.Sprint("make ", i), 0, ""))
	}
	calls = append(calls, run(100, "make", 0, ""))
	pairs := Find(calls)
	if len(pairs) != 1 || len(pairs[0].Files) != maxFiles || len(pairs[0].Ran) != maxRan ||
		!slices.Contains(pairs[0].Files, "f0") {
		t.Errorf("%+v", pairs)
	}
}

// TestSame: two lines are about one command whatever stands around it.
func TestSame(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{
		{"cd m && go test ./... | tail", "go test ./...", true},
		{"cat  a.txt", "cat a.txt", true}, // looks only, and is the same to the letter
		{"cat a.txt", "cat b.txt", false},
		{"go test ./...", "go test ./a", false},
		{"echo a", "go test", false},
	} {
		if got := SameCommand(tt.a, tt.b); got != tt.want {
			t.Errorf("Same(%q, %q) = %v", tt.a, tt.b, got)
		}
	}
}

package goal

import (
	"slices"
	"strings"
	"testing"

	"anamnesis/opstream/op"
)

// TestReadBy: what a check reads is what it names, and what looks like its tests.
func TestReadBy(t *testing.T) {
	changed := []string{
		"a.go", "a_test.go", "tests/x.py", "src/main.rs", "check.sh", "app.test.ts", "conftest.py",
		"src/test/java/ATest.java", "contest.py", "latest/x",
	}
	want := []string{"a_test.go", "tests/x.py", "check.sh", "app.test.ts", "conftest.py", "src/test/java/ATest.java"}
	if got := readBy([]string{"go test ./... && sh ./check.sh"}, changed); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestWords: the model reads how the goal stands when it has to know.
func TestWords(t *testing.T) {
	failed := []op.Check{{Command: "make test", Exit: 1, Text: "boom"}, {Command: "true"}}
	for _, tt := range []struct {
		name  string
		run   op.CheckRan
		reads []string
		has   []string
	}{
		{"first, failing", op.CheckRan{First: true, Checks: failed}, nil, []string{"`make test`, then `true`", "1 of 2 passed", "boom"}},
		{"first, passing", op.CheckRan{First: true, Checks: failed[1:], Passed: true}, nil, []string{"passes already"}},
		{"said to be done", op.CheckRan{Checks: failed, Asked: true}, nil, []string{"did not pass", "$ make test\nboom", "!$ true"}},
		{"no test ran", op.CheckRan{Checks: []op.Check{{Command: "pytest x", Status: "none"}}, Asked: true}, nil, []string{"It ran no test."}},
		{"frozen", op.CheckRan{Checks: failed[1:], Asked: true, Refused: true}, []string{"a_test.go"}, []string{"may not be changed: a_test.go"}},
		{"broke", op.CheckRan{Checks: failed, Broke: &op.Broke{Good: 1, Step: 2, Text: "TestA"}}, nil, []string{"step 2", ". What fails: TestA."}},
		{"broke, nothing is named", op.CheckRan{Checks: failed, Broke: &op.Broke{Good: 1, Step: 2}}, nil, []string{"step 2", "!What fails"}},
		{"broke, said to be done", op.CheckRan{Checks: failed, Asked: true, Broke: &op.Broke{Good: 1, Step: 2}}, nil, []string{"did not pass", "step 2"}},
		{"meanwhile", op.CheckRan{Checks: failed}, nil, nil},
		{"passed", op.CheckRan{Checks: failed[1:], Asked: true, Passed: true}, nil, nil},
	} {
		got := words(&tt.run, tt.reads)
		for _, want := range tt.has {
			if want, not := strings.CutPrefix(want, "!"); strings.Contains(got, want) == not {
				t.Errorf("%s: %q, want %q: %v", tt.name, got, want, !not)
			}
		}
		if tt.has == nil && got != "" {
			t.Errorf("%s: %q", tt.name, got)
		}
	}
}

// TestTail: the end of an output, whole lines.
func TestTail(t *testing.T) {
	if got := tail(strings.Repeat("line\n", 100) + "last\n"); strings.Count(got, "\n") != maxLines-1 ||
		!strings.HasSuffix(got, "last") {
		t.Errorf("%q", got)
	}
	for size, cut := range map[int]bool{maxText: false, maxText + 1: true} {
		if got := tail(strings.Repeat("x", size)); strings.HasPrefix(got, "…") != cut {
			t.Errorf("of %d bytes: %.20q", size, got)
		}
	}
	if got := tail(strings.Repeat("é", 5_000)); len(got) > maxText+len("…") || !strings.HasPrefix(got, "…é") {
		t.Errorf("%d bytes, %.20q", len(got), got)
	}
}

// TestFirstLine: the line of a failed check says what fails, or at least how it ended.
func TestFirstLine(t *testing.T) {
	for _, tt := range []struct {
		check op.Check
		want  string
	}{
		{op.Check{Exit: 1, Names: []string{"TestA", "TestB"}}, "TestA"},
		{op.Check{Exit: 2, Text: "make: *** No rule to make target 'all'.  Stop."}, "make: *** No rule to make target 'all'.  Stop."},
		{op.Check{Exit: 7, Text: "[exit 7]"}, "exit code 7"},
		{op.Check{Exit: 1}, "exit code 1"},
	} {
		if got := firstLine(tt.check); got != tt.want {
			t.Errorf("%+v: %q", tt.check, got)
		}
	}
}

// TestCountGo: go test names every test that fails, unless a package did not compile or its run broke off.
func TestCountGo(t *testing.T) {
	for _, tt := range []struct {
		output    string
		failing   int
		passing   int
		uncounted bool
	}{
		{"--- FAIL: TestA (0.00s)\nFAIL\nFAIL\tm/a\t0.01s\nok  \tm/b\t0.02s\nFAIL\n", 1, 1, true},
		{"ok  \tm/a\t(cached)\nok  \tm/b\t0.02s\n", 0, 2, true},
		{"--- PASS: TestA (0.00s)\n--- PASS: TestB (0.00s)\nPASS\nok  \tm/a\t0.01s\n", 0, 2, false},
		{"FAIL\tm/a [build failed]\nok  \tm/b\t0.02s\nFAIL\n", 0, 1, false},
		{"FAIL\tm/a [setup failed]\n", 0, 0, false},
		{"no test files\n", 0, 0, false},
		{"--- FAIL: TestA (0.00s)\npanic: nil map [recovered]\nFAIL\tm/a\t0.01s\n", 1, 0, false},
	} {
		c := op.Check{Failing: tt.failing}
		if countGo(&c, tt.output); c.Passing != tt.passing || c.Uncounted != tt.uncounted {
			t.Errorf("%q: %d passing, uncounted %v", tt.output, c.Passing, c.Uncounted)
		}
	}
}

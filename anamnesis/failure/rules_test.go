package failure

import (
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// example gives an example without its mark, and the number of the marked line.
func example(text string) (string, int) {
	before, _, found := strings.Cut(text, "»")
	if !found {
		return text, -1
	}
	return strings.Replace(text, "»", "", 1), strings.Count(before, "\n")
}

// TestRules: each rule's example is read right with the rule, and wrong without it.
func TestRules(t *testing.T) {
	for i := range rules {
		r := rules[i]
		text, want := example(r.example)
		if want < 0 {
			t.Errorf("the rule %s has no example", r.re())
			continue
		}
		if f, ok := Read(Output{Text: text, Error: true}); !ok || f.Index != want {
			t.Errorf("the rule %s: line %d %q tells, want %d:\n%s", r.re(), f.Index, f.Line, want, r.example)
		}
		rules[i].re, rules[i].has = re(`^\z.`), ""
		if f, _ := Read(Output{Text: text, Error: true}); f.Index == want {
			t.Errorf("the rule %s moves nothing: without it %q tells, too", r.re(), f.Line)
		}
		rules[i] = r
	}
}

// TestVariants: each variant's example has the normal form it names, and
// another one without the variant.
func TestVariants(t *testing.T) {
	for i := range variants {
		v := variants[i]
		line, want, _ := strings.Cut(v.example, " => ")
		if got := Normal(line); got != want {
			t.Errorf("%s: %q, want %q", v.re(), got, want)
		}
		variants[i].re = re(`\z.`)
		if Normal(line) == want {
			t.Errorf("the variant %s moves nothing", v.re())
		}
		variants[i] = v
	}
}

// TestEndings: each way in which a call ends before it is done holds no lesson.
func TestEndings(t *testing.T) {
	for _, e := range endings {
		if ok, reason := Lesson(Output{Text: e.example, Error: true}); ok || reason != e.reason {
			t.Errorf("%q: %v, %q, want %q", e.example, ok, reason, e.reason)
		}
	}
}

// TestEndingsOfRuns: where a process ran, its own words about its arguments are not the harness's.
func TestEndingsOfRuns(t *testing.T) {
	for _, e := range endings {
		if !e.notRun {
			continue
		}
		for _, o := range []Output{{Text: e.example, HasExit: true, Exit: 2}, {Text: e.example + "\n[exit 0]", Error: true}, {Text: e.example + "\n[exit 2]", Error: true}} {
			if ok, reason := Lesson(o); !ok {
				t.Errorf("%q: %q", o.Text, reason)
			}
		}
	}
}

// TestEndingsInPlace: a harness says in its first or last words that it ended a call; in between a program said it.
func TestEndingsInPlace(t *testing.T) {
	said := "" // by a harness, in one line
	for _, e := range endings {
		if said == "" && !strings.Contains(e.example, "\n") {
			said = e.example
		}
	}
	for _, tt := range []struct {
		before, after int // lines
		ended         bool
	}{
		{0, 0, true}, {2, 0, true}, {3, 0, true}, {9, 0, true}, {0, 9, true}, {2, 9, true}, {9, 2, true},
		{3, 2, true}, {2, 3, true}, {3, 3, false}, {9, 9, false},
	} {
		text := strings.Repeat("line\n\n", tt.before) + said + strings.Repeat("\n\nline", tt.after)
		if ok, reason := Lesson(Output{Text: text, Error: true}); ok == tt.ended {
			t.Errorf("after %d lines and before %d: %q, want an end %v", tt.before, tt.after, reason, tt.ended)
		}
	}
}

// TestPrograms: which programs a command names, without what stands before them.
func TestPrograms(t *testing.T) {
	for command, want := range map[string]string{
		"": "", "ls -l": "ls", "/usr/bin/grep a": "grep", "a | b; c && d & (e f)": "a b c d e", "a\nb": "a b", "A=1 sudo env B=2 make x": "make", "! test -f a": "test",
		"if git grep -q a; then git; fi": "git grep git fi", "git": "git", "git -C a log": "git -C", "echo 'a; grep b' | \"x | y\"": "echo \"x", "echo \"it's; a\"; rg x": "echo rg", "A=1": "",
	} {
		if got := strings.Join(programs(command), " "); got != want {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
}

func TestNormal(t *testing.T) {
	for line, want := range map[string]string{
		"a.ts(3,5): error TS2304: Cannot find name 'f'.":              "error TS2304: Cannot find name 'f'",
		"ERROR 1146 (42S02) at line 1: Table 'a.b' doesn't exist":     "ERROR 1146 (#) at line #: Table 'a.b' doesn't exist",
		"error[E0425]: cannot find value `x2` in this scope":          "error[E0425]: cannot find value x2 in this scope",
		"OSError: [Errno 40] Too many levels: '/a/b'":                 "OSError: [Errno 40] Too many levels: 'b'",
		"AssertionError: Lists differ: [5, 6, 3] != [1, 2]":           "AssertionError: Lists differ: [#] != [#]",
		"Error: not enough seats on flight HAT229":                    "Error: not enough seats on flight HAT#",
		"npm error 404 Not Found - GET https://r.org/a":               "npm error 404 Not Found - GET r.org",
		"'ascii' codec can't decode byte 0xc2 in position 257: range": "'ascii' codec can't decode #: range",
		"bash: jq: command not found":                                 "jq: command not found",
		"/bin/sh: 1: jq: command not found":                           "jq: command not found",
		"bash: line 12: jq: command not found":                        "jq: command not found",
	} {
		if got := Normal(line); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// TestLesson: what answers a question with no, and prints nothing, is no failure
// to learn from; what prints something, or ends in another way, is one.
// TestFiltered: after a filter the output of a build or a run of tests decides, not the exit code.
func TestFiltered(t *testing.T) {
	const failed, passed = "total_test.go:24: Total() = 3\n--- FAIL: TestTotal (0.00s)\nFAIL\n",
		"error: this one is expected\nok  \tshop/cart\t0.004s\n"
	for _, tt := range []struct {
		command, text string
		want          bool
	}{
		{"cd shop && go test ./... 2>&1 | tail -3", failed, true},
		{"go test ./... |& grep -v PASS | head", failed, true},
		{"go test ./... | tail -3", passed, false},
		{"go test ./...", failed, false},
		{"set -o pipefail; go test ./... | tail -3", failed, false},
		{"go test ./... | tail -3; echo done", failed, false},
		{"cat go.log | tail -3", failed, false},
		{"go test ./... | ./report", failed, false},
	} {
		f, got := Read(Output{Command: tt.command, Text: tt.text, HasExit: true})
		if got != tt.want || got && f.Line != "total_test.go:24: Total() = 3" {
			t.Errorf("%s: %v, %q", tt.command, got, f.Line)
		}
	}
}

func TestLesson(t *testing.T) {
	for _, tt := range []struct {
		o    Output
		want string
	}{
		{Output{Command: "grep -n 'a|b' f", HasExit: true, Exit: 1}, "no hit"},
		{Output{Command: "cd a && rg x", Text: "Command exited with code 1"}, "no hit"},
		{Output{Command: "sed -n 1,9p f | grep x", Text: "[no output]\n[exit 1]"}, "no hit"},
		{Output{Command: "[ -f a ]", HasExit: true, Exit: 1}, "no hit"},
		{Output{Command: "LANG=C diff a b", HasExit: true, Exit: 1}, "no hit"},
		{Output{Command: "grep a f; grep b f", Text: "a is here", HasExit: true, Exit: 1}, "no hit"},
		{Output{Command: "grep -r a . | grep b", Text: "grep: a.pyc: binary file matches", HasExit: true, Exit: 1}, "no hit"},
		{Output{Command: "if git grep -q a; then true; fi", HasExit: true, Exit: 1}, "no hit"},
		{Output{Command: "git diff --quiet", HasExit: true, Exit: 1}, "no hit"},
		{Output{Command: "command -v jq", HasExit: true, Exit: 1}, "no hit"},
		{Output{Command: "git push", Text: "error: failed to push", HasExit: true, Exit: 1}, ""},
		{Output{Command: "shop add", Text: "Invalid arguments for add", HasExit: true, Exit: 1}, ""},
		{Output{Command: "sleep 900", Text: "^C", HasExit: true, Exit: 130}, "aborted"},
		{Output{Command: "timeout 5 ./serve", HasExit: true, Exit: 124}, "timeout"},
		{Output{Command: "./serve", HasExit: true, Exit: 124}, ""},
		{Output{Command: "timeout 5 ./serve", HasExit: true, Exit: 1}, ""},
		{Output{Command: "./serve", HasExit: true, Exit: 130}, "aborted"},
		{Output{Command: "./serve", HasExit: true, Exit: 129}, ""},
		{Output{Command: "timeout -s KILL 5 ./serve", HasExit: true, Exit: 137}, "timeout"},
		{Output{Command: "./serve", Text: "Terminated", HasExit: true, Exit: 143}, "aborted"},
		{Output{Command: "./serve", Text: "Killed", HasExit: true, Exit: 137}, ""},
		{Output{Command: "go vet ./... && grep a f", Text: "a.go:3:2: undefined: b", HasExit: true, Exit: 1}, ""},
		{Output{Command: "./check && grep a f", Text: "4 of 5 pass", HasExit: true, Exit: 1}, ""},
		{Output{Command: "diff want got", Text: "1c1\n< a\n---\n> b", HasExit: true, Exit: 1}, ""},
		{Output{Command: "grep x f", HasExit: true, Exit: 2, Stderr: "grep: f: No such file or directory"}, ""},
		{Output{Command: "echo 'a; grep b'; false", HasExit: true, Exit: 1}, ""},
		{Output{Command: "go test ./...", HasExit: true, Exit: 1}, ""},
		{Output{Command: "rm -rf /", Refused: true, Error: true}, "refused"},
	} {
		if ok, got := Lesson(tt.o); got != tt.want || ok != (tt.want == "") {
			t.Errorf("%q: %v, %q, want %q", tt.o.Command, ok, got, tt.want)
		}
	}
}

// TestOutputs: of each output the marked line tells; outputs of one
// trouble have one signature and no two troubles share one.
func TestOutputs(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/outputs.txt")
	if err != nil {
		t.Fatal(err)
	}
	troubles := make(map[string]string) // by signature
	signatures := make(map[string]string)
	for _, f := range archive.Files {
		text, want := example(string(f.Data))
		command := ""
		if strings.HasPrefix(text, "$ ") {
			command, text, _ = strings.Cut(text[2:], "\n")
			want--
		}
		got, ok := Read(Output{Command: command, Text: text, Error: true})
		if !ok || got.Index != want {
			t.Errorf("%s: line %d %q tells, want %d", f.Name, got.Index, got.Line, want)
			continue
		}
		name, _, _ := strings.Cut(f.Name, "/")
		if other, ok := troubles[got.Signature]; ok && other != name {
			t.Errorf("%s and %s share %q", other, name, got.Signature)
		}
		if other, ok := signatures[name]; ok && other != got.Signature {
			t.Errorf("%s has %q and %q", name, other, got.Signature)
		}
		troubles[got.Signature], signatures[name] = name, got.Signature
	}
}

// TestElsewhere: on another machine, in another folder, at other lines and times, a trouble
// has the same signature.
func TestElsewhere(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/outputs.txt")
	if err != nil {
		t.Fatal(err)
	}
	places := regexp.MustCompile(`(?:\.\w+[:(]|, line )\d+(?:[:,]\d+)?|0x[0-9a-f]{4,}|/tmp/cc\w+\.o|\d\d:\d\d:\d\d`)
	for _, f := range archive.Files {
		here, _ := example(string(f.Data))
		there := strings.NewReplacer("/home/a/", "/builds/ci-42/ann.lee/").Replace(here)
		there = places.ReplaceAllStringFunc(there, func(s string) string {
			return strings.NewReplacer("1", "4", "2", "7", "3", "1", "9", "6").Replace(s)
		})
		a, _ := Read(Output{Text: here, Error: true})
		b, _ := Read(Output{Text: there, Error: true})
		if a.Signature != b.Signature {
			t.Errorf("%s: %q here, %q there", f.Name, a.Signature, b.Signature)
		}
	}
}

// FuzzRead: whatever was printed, the telling line lies in it.
func FuzzRead(f *testing.F) {
	for _, r := range rules {
		f.Add(r.example, "", 1)
	}
	f.Add("\x1b[31m\r\n»\xff", "E   \n", 0)
	f.Fuzz(func(t *testing.T, text, stderr string, exit int) {
		o := Output{Text: text, Stderr: stderr, Exit: exit, HasExit: exit > 0}
		got, ok := Read(o)
		Lesson(o)
		if lines := strings.Count(text+"\n"+stderr, "\n") + 1; got.Index >= lines || got.Index < -1 {
			t.Errorf("line %d of %d", got.Index, lines)
		}
		if !ok && exit > 0 {
			t.Errorf("exit %d is no failure", exit)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	o := Output{Text: strings.Repeat("ok  \texample.com/shop/cart\t0.004s: 12 errors were expected\n",
		4000) + "cart.go:3:2: undefined: total\n", Error: true}
	b.SetBytes(int64(len(o.Text)))
	for b.Loop() {
		Read(o)
	}
}

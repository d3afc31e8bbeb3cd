package failure

import (
	"strings"
	"testing"
)

// TestRead: without an exit code the output decides whether a call failed: by an error, by a harness's note, or by a
// complaint of a program that the command starts, in the first words.
func TestRead(t *testing.T) {
	for _, tt := range []struct {
		o    Output
		want bool
	}{
		{Output{Text: "fine"}, false}, {Output{}, false}, {Output{Command: "jq ."}, false},
		{Output{Text: "error: no unit"}, true}, {Output{Text: "the build failed"}, false},
		{Output{Text: "error: no unit\n[exit 0]"}, false}, {Output{Text: "fine\n[exit 2]"}, true},
		{Output{Text: "fine\n[exit 0]"}, false},
		{Output{Text: "EXECUTION TIMED OUT"}, true},
		{Output{Command: "jq .", Text: "jq: bad input"}, true},
		{Output{Command: "jq .", Text: "\njq: bad input"}, true},
		{Output{Command: "jq .", Text: "fine\njq: bad input"}, false},
		{Output{Command: "cat a", Text: "jq: bad input"}, false},
		{Output{Command: "jq .", Text: "jq"}, false}, {Output{Command: "/usr/bin/jq .", Text: "jq: bad input"}, true},
		{Output{Text: "fine", Error: true}, true}, {Output{Text: "error: no unit", HasExit: true}, false},
		{Output{HasExit: true, Exit: 1}, true}, {Output{HasExit: true, Error: true}, true},
	} {
		if _, got := Read(tt.o); got != tt.want {
			t.Errorf("%+v: %v", tt.o, got)
		}
	}
}

// TestTelling: which line tells, as it is quoted, where the output is coloured, wrapped, prefixed, long or in two
// parts.
func TestTelling(t *testing.T) {
	const file = "  File \"a.py\", line 3, in f\n"
	const chained = "Traceback (most recent call last):\n" + file + "    g()\nKeyError: 'a'\n\n%\n\n" +
		"Traceback (most recent call last):\n" + file + "    h()\nValueError: no unit\n"
	// as wide as a terminal
	wrapped := "error: the compiler that this package asks for, version fourteen, is gone from h"
	for _, tt := range []struct {
		name string
		o    Output
		line string
		at   int
	}{
		{"the first of equal errors", Output{Text: "error: a\nerror: b"}, "error: a", 0},
		{"the last of plain lines", Output{Text: "one two\nthree four\n"}, "three four", 1},
		{"in the second part", Output{Text: "fine\n", Stderr: "error: no unit\n"}, "error: no unit", 1},
		{"without a line's end", Output{Text: "fine", Stderr: "error: no unit"}, "error: no unit", 1},
		{"colour", Output{Text: "\x1b[31merror\x1b[0m: no unit"}, "error: no unit", 0},
		{"progress", Output{Text: "10%\r20%\rerror: no unit"}, "error: no unit", 0},
		{"a time", Output{Text: "01:02:03 error: no unit"}, "error: no unit", 0},
		{"a log's level", Output{Text: "E0102 03:04:05.6 7 a.go:8] error: no unit"}, "error: no unit", 0},
		{"a service", Output{Command: "docker compose up", Text: "web  | error: no unit"}, "error: no unit", 0},
		{"a service, once more", Output{Command: "docker-compose up", Text: "web  | error: no unit"}, "error: no unit",
			0},
		{"no service", Output{Command: "./run", Text: "web  | error: no unit"}, "web  | error: no unit", 0},
		{"a step of a build", Output{Text: "0.12 error: no unit\nfailed to solve: it"}, "error: no unit", 0},
		{"a ruler", Output{Text: "=== error: no unit ==="}, "error: no unit", 0},
		{"the cause of another",
			Output{Text: strings.Replace(chained, "%",
				"The above exception was the direct cause of the following exception:", 1)}, "KeyError: 'a'", 3},
		{"beside another", Output{Text: strings.Replace(chained, "%",
			"During handling of the above exception, another exception occurred:", 1)}, "ValueError: no unit", 10},
		{"behind a traceback", Output{Text: "Traceback (most recent call last):\n" + file +
			"    raise E\nValueError: no unit\nNote: see the docs\n"}, "ValueError: no unit", 3},
		{"six lines below a frame", Output{Text: file + strings.Repeat("    x\n", 5) + "Odd\nerror: bye\n"}, "Odd", 6},
		{"seven lines below a frame", Output{Text: file + strings.Repeat("    x\n", 6) + "Odd\nerror: bye\n"},
			"error: bye", 8},
		{"wrapped", Output{Text: wrapped + "\nere and there\nit was fine\n"}, wrapped + "ere and there", 0},
		{"wrapped twice", Output{Text: wrapped + "\n" + strings.Repeat("x", 80) + "\nre\nit was fine\n"}, wrapped +
			strings.Repeat("x", 80) + "re", 0},
		{"wrapped before a label", Output{Text: wrapped + "\nnote: it was fine\n"}, wrapped, 0},
		{"wrapped before another", Output{Text: wrapped + "\nerror: it was bad\n"}, wrapped, 0},
		{"not wrapped", Output{Text: wrapped + "\n" + strings.Repeat("y", 81) + "\n"}, wrapped, 0},
		{"its whole size", Output{Text: "error: early\n" + strings.Repeat("x\n",
			(maxScanBytes-len("error: early\n"))/2)}, "error: early", 0},
		{"beyond its size", Output{Text: "error: early\n" + strings.Repeat("x\n", maxScanBytes/2) + "error: late\n"},
			"error: late", 1 + maxScanBytes/2},
		{"in the middle of a line", Output{Text: "zz error: halfs\n" + strings.Repeat("x\n", (maxScanBytes-26)/2) +
			"error: late\n"}, "error: late", 1 + (maxScanBytes-26)/2},
		{"one line beyond it", Output{Text: "an end\n" + strings.Repeat("x", 2*maxScanBytes)},
			strings.Repeat("x", maxLineBytes), 1},
	} {
		tt.o.Error = true
		if f, _ := Read(tt.o); f.Line != tt.line || f.Index != tt.at {
			t.Errorf("%s: line %d %.90q, want %d %.90q", tt.name, f.Index, f.Line, tt.at, tt.line)
		}
	}
}

// TestCertain: a label names a failure for certain; an output without a word of failure is silent.
func TestCertain(t *testing.T) {
	for text, want := range map[string][2]bool{
		"error: no unit": {true, false}, "the build failed": {false, false}, "all is well": {false, true},
		"": {false, false},
	} {
		if f, _ := Read(Output{Text: text, Error: true}); f.Certain != want[0] || f.Silent != want[1] {
			t.Errorf("%q: certain %v, silent %v", text, f.Certain, f.Silent)
		}
	}
}

// TestPlaceOf: the place of a failure stands on its line, in the frames above, below, or just above, and is the
// project's.
func TestPlaceOf(t *testing.T) {
	const told = "Odd: error: no unit\n"
	frame := "  File \"a.py\", line 3, in f\n"
	for _, tt := range []struct{ name, text, want string }{
		{"none", told, ""},
		{"on the line", "c.py:1: x\nb.py:9: error: no unit\n", "b.py:9"},
		{"frames above", frame + "    x()\n    y()\n" + told + "see b.py:9\n", "a.py:3"},
		{"frames of a library above", strings.Replace(frame, "a.py", "/usr/lib/a.py", 1) + "    x()\n" + told +
			"see b.py:9\n", "b.py:9"},
		{"no frame above", "c.py:1\n" + told + "see b.py:9\n", "b.py:9"},
		{"the first line below", told + "see b.py:9\nsee c.py:8\n", "b.py:9"},
		{"six below", told + strings.Repeat("so\n", 5) + "see b.py:9\n", "b.py:9"},
		{"seven below", told + strings.Repeat("so\n", 6) + "see b.py:9\n", ""},
		{"three above", "see c.py:1\n" + strings.Repeat("so\n", 2) + told, "c.py:1"},
		{"four above", "see c.py:1\n" + strings.Repeat("so\n", 3) + told, ""},
	} {
		if f, _ := Read(Output{Text: tt.text, Error: true}); f.Place != tt.want {
			t.Errorf("%s: %q of %q, want %q", tt.name, f.Place, f.Line, tt.want)
		}
	}
}

// TestTestNear: the test that failed is the nearest named above, else the nearest below, up to a limit.
func TestTestNear(t *testing.T) {
	const told = "error: no unit\n"
	name := func(s string) string { return "--- FAIL: " + s + " (0.00s)\n" }
	for _, tt := range []struct{ name, text, want string }{
		{"above", name("T1") + name("T2") + told + name("T3"), "T2"},
		{"below", told + name("T3") + name("T4"), "T3"},
		{"at the limit above", name("T1") + strings.Repeat("x\n", maxTestLines-1) + told, "T1"},
		{"beyond it above", name("T1") + strings.Repeat("x\n", maxTestLines) + told, ""},
		{"at the limit below", told + strings.Repeat("x\n", maxTestLines-1) + name("T3"), "T3"},
		{"beyond it below", told + strings.Repeat("x\n", maxTestLines) + name("T3"), ""},
	} {
		if f, _ := Read(Output{Text: tt.text, Error: true}); f.Test != tt.want || f.Line != "error: no unit" {
			t.Errorf("%s: %q at %q, want %q", tt.name, f.Test, f.Line, tt.want)
		}
	}
}

// TestSignatureSize: a long quoted value varies, a short one is part of the trouble; a line that says no more than the
// kind of a failure is told apart by its place.
func TestSignatureSize(t *testing.T) {
	for n, want := range map[int]string{longValueBytes - 1: "x", longValueBytes: "#"} {
		got := Normal(`no such value "` + strings.Repeat("x", n) + `" here`)
		if got = strings.ReplaceAll(got, `"`+strings.Repeat("x", n)+`"`, "x"); got != "no such value "+want+" here" {
			t.Errorf("%d bytes: %q", n, got)
		}
	}
	for line, want := range map[string]string{
		"ValueError: six of": "ValueError: six of @ a.py f", "ValueError: seven of": "ValueError: seven of",
		"KeyError: 12 + 34 = 46": "KeyError: # + # = # @ a.py f",
	} {
		if f, _ := Read(Output{Text: "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    g()\n" +
			line, Error: true}); f.Signature != want {
			t.Errorf("%s: %q, want %q", line, f.Signature, want)
		}
	}
}

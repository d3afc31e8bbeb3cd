package loops

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"anamnesis/orchestrator/loop"
)

// read reads a run: a letter a call, each with the same arguments and result
// at any place; a digit before it means another result, ! makes it fail,
// * means that the world changes after it.
func read(text string) []loop.Recorded {
	var out []loop.Recorded
	world, result := 0, ""
	for _, c := range text {
		switch {
		case c >= '0' && c <= '9':
			result = string(c)
		case c == '!':
			out[len(out)-1].Failed = true
		case c == '*':
			world++
		default:
			out = append(out, loop.Recorded{Tool: string(c), Args: "{}", Result: result, World: fmt.Sprint("w", world)})
			result = ""
		}
	}
	return out
}

// first returns the call that loop.Detect flags, or 0.
func first(calls []loop.Recorded) int {
	if f := loop.Detect(calls); len(f) > 0 {
		return f[0].At
	}
	return 0
}

// TestRules runs synthetic traces of every rule.
func TestRules(t *testing.T) {
	for trace, want := range map[string]map[string]int{
		"abcdefgh":                   nil,
		"aa":                         nil,
		"aaa":                        {"cline": 3, "kimi-code": 3},
		"a*a*a":                      {"cline": 3, "kimi-code": 3},
		"xa!a!a!":                    {"cline": 4, "kimi-code": 4, "openhands": 4},
		"aaaa":                       {"cline": 3, "kimi-code": 3, "openhands": 4},
		"1a2a3a4a5a":                 {"cline": 3, "kimi-code": 3, "gemini-cli": 5},
		"aaaaa":                      {"cline": 3, "kimi-code": 3, "openhands": 4, "gemini-cli": 5, "crush": 5},
		"abacadae":                   nil,
		"a!*ba!ca!":                  nil,
		"a!ba!ca!":                   nil,
		"a*b*a*b*a*b":                {"openhands": 6},
		"ababab":                     {"openhands": 6},
		"a*bc*a*bc*a*bc":             nil,
		strings.Repeat("1a*2b*", 5):  {"openhands": 6, "gemini-cli": 10, "crush": 9},
		strings.Repeat("a*bcde*", 5): {"gemini-cli": 25},
		"a*ba*ca*da*ea":              {"crush": 9},
		"1a*b2a*c3a*d4a*e5a":         nil,
	} {
		calls := read(trace)
		for _, r := range Rules() {
			if got := r.At(calls); got != want[r.Name] {
				t.Errorf("%s: %s fires at %d, want %d", trace, r.Name, got, want[r.Name])
			}
		}
	}
}

// TestAtLeastAsSharp: in any run, no other rule fires before ours.
func TestAtLeastAsSharp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "a!", "b!", "1a", "2a", "1b", "d*", "a*", "e", "ab", "abc", "ab*c"}), 0, 40).Draw(rt, "parts")
		text := strings.Join(parts, "")
		calls := read(text)
		ours := first(calls)
		for _, o := range Rules() {
			if theirs := o.At(calls); theirs != 0 && (ours == 0 || ours > theirs) {
				rt.Fatalf("%s: %s fires at %d, ours at %d", text, o.Name, theirs, ours)
			}
		}
	})
}

// TestRecordedRuns: on the public recorded runs no other rule is earlier.
func TestRecordedRuns(t *testing.T) {
	dir := cmp.Or(os.Getenv("ANAMNESIS_BENCH_DATA"), filepath.Join("..", "..", "..", "..", "..", "shared", "data"))
	flagged, total, theirs := 0, 0, make(map[string]int)
	for _, name := range []string{"tau-bench-gpt-4o-airline.json.gz", "pi-large-session.jsonl.gz"} {
		f, err := os.Open(filepath.Join(dir, "transcripts", name))
		if err != nil {
			if os.Getenv("ANAMNESIS_CI") != "" {
				t.Fatalf("CI must have the recorded runs: %v", err)
			}
			t.Skipf("SKIPPED: no recorded runs (%v); set ANAMNESIS_BENCH_DATA to the folder that holds transcripts/%s", err, name)
		}
		runs, err := loop.ReadRecording(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range runs {
			total++
			ours := first(r.Calls)
			if ours > 0 {
				flagged++
			}
			for _, o := range Rules() {
				at := o.At(r.Calls)
				if at > 0 {
					theirs[o.Name]++
				}
				if at > 0 && (ours == 0 || ours > at) {
					t.Errorf("%s, run %s: %s fires at call %d, ours at %d", name, r.Name, o.Name, at, ours)
				}
			}
		}
	}
	t.Logf("%d of %d runs flagged; others flag %v", flagged, total, theirs)
	if total != 201 || flagged == 0 {
		t.Errorf("%d runs read and %d flagged, want 201 and some", total, flagged)
	}
}

// TestLongRun: calls that differ go round for no rule, however many.
func TestLongRun(t *testing.T) {
	calls := make([]loop.Recorded, 60_000)
	for i := range calls {
		calls[i] = loop.Recorded{Tool: "read", Args: fmt.Sprintf(`{"line":%d}`, i)}
	}
	for _, o := range Rules() {
		if at := o.At(calls); at != 0 {
			t.Errorf("%s fires at %d", o.Name, at)
		}
	}
}

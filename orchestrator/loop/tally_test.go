package loop

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

func all(uint64) bool  { return true }
func none(uint64) bool { return false }

func TestTally(t *testing.T) {
	test := Call{World: "w1", Tool: "Bash", Args: `{"command":"go test ./..."}`}
	install := Call{World: "w1", Tool: "Bash", Args: `{"command":"pip install x"}`, Effects: true}
	var tl Tally
	count := func(c Call, visible func(uint64) bool) int { return len(tl.Earlier(c, visible)) }

	tl.Add(test, Run{Seq: 10, Failed: true})
	tl.Add(test, Run{Seq: 20, Failed: true})
	if n := count(test, none); n != 2 {
		t.Errorf("%d failed runs count, want 2: failing counts wherever the result is", n)
	}
	spaced := test
	spaced.Args = `{ "command" : "go test ./..." }`
	if n := count(spaced, none); n != 2 {
		t.Errorf("other spacing: %d runs, want 2", n)
	}
	edited := test
	edited.World = "w2"
	if n := count(edited, all); n != 0 {
		t.Errorf("in another world %d runs count, want 0", n)
	}
	unknown := test
	unknown.World = ""
	if n := count(unknown, all); n != 0 {
		t.Errorf("in an unknown world %d runs count, want 0", n)
	}

	// What may have changed ignored files makes room for an honest repetition,
	// but only once: going round between two commands is a loop.
	tl.Add(install, Run{Seq: 30})
	if n := count(test, all); n != 0 {
		t.Errorf("after an install %d runs count, want 0", n)
	}
	tl.Add(test, Run{Seq: 40, Failed: true})
	tl.Add(install, Run{Seq: 50})
	if n := count(test, all); n != 1 {
		t.Errorf("after the same install again %d runs count, want 1", n)
	}
	failing := Call{World: "w1", Tool: "Bash", Args: `{"command":"pip install nothing"}`, Effects: true}
	tl.Add(failing, Run{Seq: 60, Failed: true})
	if n := count(test, all); n != 1 {
		t.Errorf("after an install that failed %d runs count, want 1", n)
	}
}

// TestTallyForgets: a success counts while its result can be seen, and is
// then forgotten; failures stay; neither grows without end.
func TestTallyForgets(t *testing.T) {
	var tl Tally
	read := Call{World: "w", Tool: "ReadFile", Args: `{"path":"a"}`}
	fail := Call{World: "w", Tool: "ReadFile", Args: `{"path":"gone"}`}
	tl.Add(read, Run{Seq: 1})
	tl.Add(fail, Run{Seq: 2, Failed: true})
	if n := len(tl.Earlier(read, all)); n != 1 {
		t.Errorf("a visible success counts %d times, want 1", n)
	}
	if n := len(tl.Earlier(read, none)); n != 0 {
		t.Errorf("a masked success counts %d times, want 0", n)
	}
	tl.Prune(none)
	if n := len(tl.Runs); n != 1 || len(tl.Earlier(fail, none)) != 1 {
		t.Errorf("%d calls are left, want the one that failed", n)
	}
	for i := range 2*maxTallied + 10 {
		tl.Add(Call{World: "w", Tool: "Bash", Args: strconv.Itoa(i), Effects: true},
			Run{Seq: uint64(i + 3), Failed: i%2 == 0})
	}
	if len(tl.Runs) > maxTallied || len(tl.Effects) > maxEffects {
		t.Errorf("%d calls and %d effects are remembered, over %d and %d", len(tl.Runs), len(tl.Effects),
			maxTallied, maxEffects)
	}
	data, err := json.Marshal(tl)
	if err != nil {
		t.Fatal(err)
	}
	var back Tally
	if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(back, tl) {
		t.Errorf("the tally does not come back from JSON: %v", err)
	}
}

// TestTallyAgainstLists: whatever is booked and pruned, and however often it is
// written and read back, a tally says what a list of each call's runs says.
func TestTallyAgainstLists(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var tl Tally
		model := map[Call][]Run{}
		seq := uint64(0)
		for range rapid.IntRange(1, 60).Draw(rt, "changes") {
			c := Call{
				World: rapid.SampledFrom([]string{"", "w1", "w2"}).Draw(rt, "world"), Tool: "T",
				Args: strconv.Itoa(rapid.IntRange(0, 3).Draw(rt, "args")),
			}
			odd := rapid.Uint64Range(1, 5).Draw(rt, "masked every")
			visible := func(seq uint64) bool { return seq%odd != 0 }
			counting := func(runs []Run) []Run {
				return slices.DeleteFunc(slices.Clone(runs), func(r Run) bool { return !r.Failed && !visible(r.Seq) })
			}
			switch rapid.IntRange(0, 9).Draw(rt, "change") {
			case 0:
				tl.Prune(visible)
				for c, runs := range model {
					model[c] = counting(runs)
				}
			case 1:
				data, err := json.Marshal(tl)
				if err != nil {
					rt.Fatal(err)
				}
				var back Tally
				if err := json.Unmarshal(data, &back); err != nil || !reflect.DeepEqual(back, tl) {
					rt.Fatalf("%s reads as %+v, %v, want %+v", data, back, err, tl)
				}
				tl = back
			default:
				seq += rapid.Uint64Range(1, 1<<40).Draw(rt, "operations")
				r := Run{Seq: seq, Failed: rapid.Bool().Draw(rt, "failed")}
				tl.Add(c, r)
				if c.World != "" {
					runs := append(model[c], r)
					model[c] = runs[max(0, len(runs)-BlockAt):]
				}
			}
			if got, want := tl.Earlier(c, visible), counting(model[c]); !slices.Equal(got, want) {
				rt.Fatalf("%+v: %v count, want %v", c, got, want)
			}
			kept := 0
			for _, runs := range model {
				kept += min(len(runs), 1)
			}
			if len(tl.Runs) != kept {
				rt.Fatalf("%d calls are remembered, want %d", len(tl.Runs), kept)
			}
		}
	})
}

func TestPolling(t *testing.T) {
	for _, tt := range []struct {
		tool, command string
		want          bool
	}{
		{"Bash", "sleep 5", true},
		{"Bash", "while ! test -f done; do sleep 1; done", true},
		{"Bash", "curl -s localhost:8080/health", true},
		{"Bash", "kubectl get pods -n x", true},
		{"Bash", "psql -c 'select 1'", false},
		{"Bash", "go test ./...", false},
		{"Bash", "curl https://example.test/", false},
		{"ReadFile", "sleep 5", false},
	} {
		args, err := json.Marshal(map[string]string{"command": tt.command})
		if err != nil {
			t.Fatal(err)
		}
		got := false
		for _, p := range Polling() {
			got = got || p.Match(tt.tool, string(args))
		}
		if got != tt.want {
			t.Errorf("%s %q: polling %v, want %v", tt.tool, tt.command, got, tt.want)
		}
	}
	if p := (Pattern{Tool: "TaskOutput"}); !p.Match("TaskOutput", "{}") || p.Match("Task", "{}") {
		t.Error("a pattern without a command goes by the tool alone")
	}
	if p := (Pattern{Tool: "Bash", Command: "a*b*c"}); !p.Match("Bash", `{"command":"axbyc"}`) ||
		p.Match("Bash", `{"command":"acb"}`) {
		t.Error("a pattern with several stars")
	}
}

// TestStreak: only the same call right after itself makes a streak longer.
func TestStreak(t *testing.T) {
	var s Streak
	var got []int
	for _, args := range []string{`{"a":1}`, `{"a": 1}`, `{"a":2}`, `{"a":1}`, `{"a":1}`, `{"a":1}`} {
		s = s.After("Bash", args)
		got = append(got, s.Times)
	}
	if s = s.After("Read", `{"a":1}`); !slices.Equal(got, []int{1, 2, 1, 1, 2, 3}) || s.Times != 1 {
		t.Errorf("%v, then %d of another tool", got, s.Times)
	}
}

package usage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func TestTally(t *testing.T) {
	end := func(task string, e Ending, person bool) Event {
		return Event{Card: "k", What: Outcome, Task: task, Ending: e, Person: person}
	}
	for name, tt := range map[string]struct {
		events []Event
		want   Counts
	}{
		"a showing counts once":    {[]Event{{Card: "k", What: Shown, Task: "t", Op: 3}, {Card: "k", What: Shown, Task: "t", Op: 3}, {Card: "k", What: Shown, Task: "t", Op: 9}}, Counts{Shown: 2}},
		"another card's":           {[]Event{{Card: "j", What: Shown, Task: "t", Op: 3}}, Counts{}},
		"without an op, each":      {[]Event{{Card: "k", What: Rediscovered}, {Card: "k", What: Rediscovered}}, Counts{Rediscovered: 2}},
		"a task ends once":         {[]Event{end("t", Good, true), end("t", Good, true)}, Counts{Helpful: 1}},
		"a check says nothing":     {[]Event{end("t", Good, false), end("t", Bad, false)}, Counts{}},
		"a user over a check":      {[]Event{end("t", Good, true), end("t", Bad, false)}, Counts{Helpful: 1}},
		"a user changes it":        {[]Event{end("t", Good, true), end("t", Bad, true)}, Counts{Harmful: 1}},
		"a user takes it back":     {[]Event{end("t", Bad, false), end("t", Unknown, true)}, Counts{}},
		"two tasks":                {[]Event{end("t", Good, true), end("u", Bad, true)}, Counts{Helpful: 1, Harmful: 1}},
		"a task meets it once":     {[]Event{{Card: "k", What: Met, Task: "t", Op: 3}, {Card: "k", What: Met, Task: "t", Op: 9}, {Card: "k", What: Met, Task: "u", Op: 1}}, Counts{Met: 2}},
		"contradicted last":        {[]Event{{Card: "k", What: Held, Task: "t"}, {Card: "k", What: Contradicted, Task: "u"}}, Counts{Held: 1, Contradicted: 1, Refuted: true}},
		"held again since":         {[]Event{{Card: "k", What: Contradicted, Task: "u"}, {Card: "k", What: Held, Task: "t"}}, Counts{Held: 1, Contradicted: 1}},
		"verified":                 {[]Event{{Card: "k", What: Contradicted, Task: "u"}, {Card: "k", What: Verified, Task: "t", Text: "a"}, {Card: "k", What: Verified, Task: "t", Text: "b"}}, Counts{Contradicted: 1, Verified: 1, VerifiedText: "a"}},
		"approved again":           {[]Event{{Card: "k", What: Approved}, {Card: "k", What: Contradicted, Task: "u"}, {Card: "k", What: Approved}}, Counts{Contradicted: 1}},
		"withheld from a task":     {[]Event{{Card: "k", What: "withheld", Task: "t", Op: 2}, {Card: "k", What: Outcome, Task: "t", Ending: Good, Person: true, Trial: "withheld"}}, Counts{}},
		"an event of later makers": {[]Event{{Card: "k", What: "else"}}, Counts{}},
	} {
		var tally Tally
		for _, e := range tt.events {
			before := tally.Counts("k")
			if known := tally.Knows(e); known {
				tally.Add(e)
				if got := tally.Counts("k"); got != before {
					t.Errorf("%s: %+v is known and changed %+v to %+v", name, e, before, got)
				}
				continue
			}
			tally.Add(e)
		}
		if got := tally.Counts("k"); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

// No counts lean further than the bound, one more good end never lowers, and
// showing alone moves nothing.
func TestLeanIsBounded(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(0, 1_000_000)
		c := Counts{
			Shown: n.Draw(rt, "shown"), Helpful: n.Draw(rt, "helpful"), Harmful: n.Draw(rt, "harmful"),
			Rediscovered: n.Draw(rt, "rediscovered"),
		}
		more := c
		more.Helpful++
		if l := c.Lean(); l < -maxLean || l > maxLean || more.Lean() < l {
			rt.Errorf("%+v leans %v, with one more good end %v", c, l, more.Lean())
		}
	})
	if l := (Counts{Shown: 1000, Used: 100, Rediscovered: 5}).Lean(); l != 0 {
		t.Errorf("being seen leans %v", l)
	}
}

// Many writers, a torn line in between: nothing else is lost.
func TestAppend(t *testing.T) {
	path := filepath.Join(t.TempDir(), "usage.jsonl")
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 25 {
				if err := Append(path, []Event{{Card: "k", What: Shown, Task: fmt.Sprint(w), Op: uint64(i + 1)}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(strings.Repeat("x", 50_000) + "\n" + `{"v":1,"card":"k","ev`); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Append(path, []Event{{Card: "k", What: Used, Task: "t", Op: 1}}); err != nil {
		t.Fatal(err)
	}
	tally, err := Read(path)
	if err != nil || tally.Counts("k") != (Counts{Shown: 100, Used: 1}) {
		t.Errorf("%+v, %v", tally.Counts("k"), err)
	}
	if err := os.Truncate(path, MaxLogBytes-10); err != nil {
		t.Fatal(err)
	}
	if err := Append(path, []Event{{Card: "k", What: Used}}); !errors.Is(err, ErrFull) {
		t.Errorf("a full log: %v", err)
	}
}

package loop

import (
	"strconv"
	"testing"
)

// TestBounds: at its limit a tally forgets the older half of the calls, and all effects.
func TestBounds(t *testing.T) {
	var tl Tally
	add := func(i int) {
		tl.Add(Call{World: "w", Tool: "Bash", Args: strconv.Itoa(i), Effects: i < maxEffects+1},
			Run{Seq: uint64(i + 1)})
	}
	count := func(i int) int { return len(tl.Runs[KeyOf("w+", "Bash", strconv.Itoa(i))]) }
	for i := range maxTallied {
		add(i)
		switch {
		case i == 1 && tl.Epoch != 2, i == maxEffects-1 && len(tl.Effects) != maxEffects,
			i == maxEffects && len(tl.Effects) != 1:
			t.Errorf("after %d effects %d are remembered, %d happened", i+1, len(tl.Effects), tl.Epoch)
		}
	}
	if len(tl.Runs) != maxTallied {
		t.Errorf("%d calls are remembered, want %d", len(tl.Runs), maxTallied)
	}
	tl.Epoch = 0
	if add(maxTallied); len(tl.Runs) != maxTallied/2+1 || count(maxTallied) != 1 || count(0) != 0 {
		t.Errorf("beyond the limit %d calls are remembered, of the last %d, of the first %d", len(tl.Runs),
			count(maxTallied), count(0))
	}

	var again Tally
	for _, args := range []string{"a", "b", "a", "b"} {
		again.Add(Call{World: "w", Tool: "Bash", Args: args, Effects: true}, Run{})
	}
	if again.Epoch != 2 {
		t.Errorf("two effects, each twice, count %d times", again.Epoch)
	}
	var reminds []int
	for n := range 12 {
		if RemindsStreak(n) {
			reminds = append(reminds, n)
		}
	}
	if len(reminds) != 3 || reminds[0] != 3 || reminds[1] != 5 || reminds[2] != 8 {
		t.Errorf("reminds at %v", reminds)
	}
	if p := (Pattern{Tool: "TaskOutput"}); !p.Match("TaskOutput", "not JSON") {
		t.Error("a pattern without a command examines the arguments")
	}
	if p := (Pattern{Tool: "Bash", Command: "date"}); p.Match("Bash", "not JSON") ||
		p.Match("Bash", `{"command":"cal"}`) || !p.Match("Bash", `{"command":" date "}`) {
		t.Error("a pattern with a command")
	}
}

package memory

import (
	"os"
	"slices"
	"testing"
	"time"

	"anamnesis/anamnesis"
	"anamnesis/anamnesis/edit"
	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/repair"
	"anamnesis/anamnesis/wording"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/orchestrator/taskdir"
)

// TestTaintedRepairs: a repair that was drawn from outside texts waits for the user; no task recalls it, and
// it makes no other task's repair a card.
func TestTaintedRepairs(t *testing.T) {
	home := taskdir.Home{State: t.TempDir()}
	repaired := func(task, line string, tainted bool) anamnesis.Repaired {
		p := repair.Pair{Repo: "shop", Run: task, Command: "sh check.sh", Works: "sh check.sh",
			Failure: failure.Failure{Line: line, Signature: failure.Normal(line)}, Changes: []edit.Change{{Path: "conf.ini", Added: []string{"port=8080"}}}}
		c := &card.Card{ID: card.NewID(task, line), Topic: line, SourceTask: task, State: card.Draft, Created: time.Unix(1_700_000_000, 0),
			Scope: card.Scope{Repo: "shop"}, Issue: []string{"`sh check.sh` failed: " + line}, Solution: []string{"Changed in conf.ini:\n```diff\n+port=8080\n```"}}
		c.Provenance.Tainted = tainted
		return anamnesis.Repaired{Card: c, Pair: p}
	}
	for task, r := range map[string]anamnesis.Repaired{"outside": repaired("outside", "Error: no port", true), "own": repaired("own", "Error: no host", false)} {
		if err := os.MkdirAll(home.Task(task), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := ReadEarlier(home, task).Record(home, task, []anamnesis.Repaired{r}); err != nil {
			t.Fatal(err)
		}
	}
	store, err := knowledgebase.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	e := ReadEarlier(home, "asks")
	var waiting []string
	for _, c := range e.Waiting(store) {
		waiting = append(waiting, c.SourceTask)
	}
	if slices.Sort(waiting); !slices.Equal(waiting, []string{"outside", "own"}) {
		t.Errorf("%q wait for the user", waiting)
	}
	if k := e.known(nil, nil); len(k) != 1 || k[0].card.SourceTask != "own" {
		t.Errorf("recalled from %+v", k)
	}
	for task, r := range map[string]anamnesis.Repaired{"no port": repaired("asks", "Error: no port", false), "no host": repaired("asks", "Error: no host", false)} {
		if worth := e.Worth(&r, new(wording.Lessons)); (len(worth) > 0) != (task == "no host") {
			t.Errorf("%s: %d cards", task, len(worth))
		}
	}
}

package wording

import (
	"slices"
	"testing"

	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/repair"
	"anamnesis/knowledge_base/card"
)

// TestWays: one card teaches another way to call for all commands of its repository. Another
// repository, way, failure or a change teaches something else.
func TestWays(t *testing.T) {
	lacks := failure.Failure{Line: "bash: pytest: command not found", Signature: "pytest: command not found"}
	pair := func(run, repo, command, works string, f failure.Failure, changes ...repair.Change) *card.Card {
		return Card(repair.Pair{Run: run, Repo: repo, Command: command, Works: works, Failure: f, Changes: changes})
	}
	first := pair("t1", "shop", "pytest tests/test_a.py", "bin/test tests/test_a.py", lacks)
	ways := WaysOf([]*card.Card{first})
	no := failure.Failure{Line: "python3: No module named pytest", Signature: "python3: No module named pytest"}
	for name, c := range map[string]*card.Card{
		"same file":        pair("t2", "shop", "pytest tests/test_a.py", "bin/test tests/test_a.py", lacks),
		"other file":       pair("t2", "shop", "pytest tests/test_b.py", "bin/test tests/test_b.py", lacks),
		"other words":      pair("t2", "shop", "python3 -m pytest tests/test_b.py", "bin/test tests/test_b.py", no),
		"other repository": pair("t2", "bank", "pytest tests/test_a.py", "bin/test tests/test_a.py", lacks),
		"no repository":    pair("t2", "", "pytest tests/test_a.py", "bin/test tests/test_a.py", lacks),
		"other way":        pair("t2", "shop", "pytest tests/test_a.py", "tox tests/test_a.py", lacks),
		"a change":         pair("t2", "shop", "pytest tests/test_a.py", "bin/test tests/test_a.py", lacks, repair.Change{Path: "a.py", Added: []string{"x = 1"}}),
	} {
		want := c
		if slices.Contains([]string{"same file", "other file", "other words"}, name) {
			want = first
		}
		if got := ways.First(c); got != want {
			t.Errorf("%s: the first card that teaches it is of task %s in %q", name, got.SourceTask, got.Scope.Repo)
		}
	}
	reviewed := pair("t3", "shop", "pytest tests/test_c.py", "bin/test tests/test_c.py", lacks)
	reviewed.State = card.Reviewed
	ways.Add(reviewed)
	ways.Add(first)
	if ways.First(first) != reviewed {
		t.Error("an unreviewed card counts before a reviewed one")
	}
}

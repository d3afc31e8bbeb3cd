package wording

import (
	"slices"
	"strconv"
	"testing"

	"anamnesis/anamnesis/edit"
	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/repair"
	"anamnesis/knowledge_base/card"
)

// cardOf is the card of a repair outside of any task.
func cardOf(p repair.Pair) *card.Card {
	d := Repair(p)
	return &card.Card{
		ID: card.NewID("repair", p.Run, strconv.Itoa(p.Failed)), Topic: d.Topic, SourceTask: p.Run, State: card.Draft, Scope: card.Scope{Repo: p.Repo},
		Provenance: card.Provenance{Ranges: []card.Range{{First: uint64(p.Failed), Last: uint64(p.Fixed)}}},
		Issue:      d.Issue, Solution: d.Solution, Constraint: d.Constraint,
	}
}

// TestLessonsWay: one card teaches another way to call for all commands of its repository. Another
// repository, way, failure or a change teaches something else.
func TestLessonsWay(t *testing.T) {
	lacks := failure.Failure{Line: "bash: pytest: command not found", Signature: "pytest: command not found"}
	pair := func(run, repo, command, works string, f failure.Failure, changes ...edit.Change) *card.Card {
		return cardOf(repair.Pair{Run: run, Repo: repo, Command: command, Works: works, Failure: f, Changes: changes})
	}
	first := pair("t1", "shop", "pytest tests/test_a.py", "bin/test tests/test_a.py", lacks)
	lessons := LessonsOf([]*card.Card{first})
	no := failure.Failure{Line: "python3: No module named pytest", Signature: "python3: No module named pytest"}
	for name, c := range map[string]*card.Card{
		"same file":        pair("t2", "shop", "pytest tests/test_a.py", "bin/test tests/test_a.py", lacks),
		"other file":       pair("t2", "shop", "pytest tests/test_b.py", "bin/test tests/test_b.py", lacks),
		"other words":      pair("t2", "shop", "python3 -m pytest tests/test_b.py", "bin/test tests/test_b.py", no),
		"other repository": pair("t2", "bank", "pytest tests/test_a.py", "bin/test tests/test_a.py", lacks),
		"no repository":    pair("t2", "", "pytest tests/test_a.py", "bin/test tests/test_a.py", lacks),
		"other way":        pair("t2", "shop", "pytest tests/test_a.py", "tox tests/test_a.py", lacks),
		"a change":         pair("t2", "shop", "pytest tests/test_a.py", "bin/test tests/test_a.py", lacks, edit.Change{Path: "a.py", Added: []string{"x = 1"}}),
	} {
		want := c
		if slices.Contains([]string{"same file", "other file", "other words"}, name) {
			want = first
		}
		if got, _ := lessons.Known(c); got != want {
			t.Errorf("%s: the first card that teaches it is of task %s in %q", name, got.SourceTask, got.Scope.Repo)
		}
	}
	reviewed := pair("t3", "shop", "pytest tests/test_c.py", "bin/test tests/test_c.py", lacks)
	reviewed.State = card.Reviewed
	lessons.Add(reviewed)
	lessons.Add(first)
	if known, instead := lessons.Known(first); known != reviewed || instead {
		t.Error("an unreviewed card counts before a reviewed one")
	}
}

// TestLessonsChange: one card teaches a change for all failures of its kind, whatever names they
// hold, and the shortest says it best. A failure of another kind and another change teach something else.
func TestLessonsChange(t *testing.T) {
	pair := func(run, line string, environment []string, added ...string) *card.Card {
		p := repair.Pair{
			Run: run, Repo: "shop", Command: "python3 check.py", Works: "python3 check.py", Environment: environment,
			Failure: failure.Failure{Line: line, Signature: failure.Normal(line)},
		}
		if len(added) > 0 {
			p.Changes = []edit.Change{{Path: "check.py", Added: added}}
		}
		return cardOf(p)
	}
	const table, module = "OperationalError: no such table: __main___", "ModuleNotFoundError: No module named "
	create := []string{"from django.db import connection", "with connection.schema_editor() as editor:", "    editor.create_model(Invoice)", "totals = Invoice.objects.values('year')"}
	long := pair("t1", table+"invoice", nil, create...)
	folder := pair("t1", module+"'ledger'", []string{"mkdir ledger", "touch ledger/__init__.py"})
	const port = "Error: port is required"
	one := pair("t1", port, nil, "port=8080")
	lessons := LessonsOf([]*card.Card{long, folder, one, pair("t1", module+"'numpy'", []string{"pip install numpy"})})
	for name, tt := range map[string]struct {
		c       *card.Card
		want    *card.Card // nil: the card itself
		instead bool
	}{
		"shorter":       {pair("t2", table+"customer", nil, create[0], create[1], "    editor.create_model(Customer)"), long, true},
		"longer":        {pair("t2", table+"customer", nil, append(create, "print_total(rounded=True)")...), long, false},
		"other change":  {pair("t2", table+"customer", nil, "call_command('migrate', run_syncdb=True)"), nil, false},
		"two words":     {pair("t2", table+"customer", nil, "editor.create_model"), long, false},
		"one word":      {pair("t2", table+"customer", nil, "create_model"), nil, false},
		"half of it":    {pair("t2", table+"customer", nil, create[1], "    editor.execute(statement, limit, offset, dialect)"), nil, false},
		"one line":      {pair("t2", port, nil, "port=8080"), one, false},
		"other number":  {pair("t2", port, nil, "port=9090"), nil, false},
		"other failure": {pair("t2", "OperationalError: database is locked", nil, create...), nil, false},
		"other module":  {pair("t2", module+"'scipy'", []string{"pip install scipy"}), nil, false},
		"other folder":  {pair("t2", module+"'shelf'", []string{"mkdir shelf", "touch shelf/__init__.py"}), folder, false},
		"the same way":  {pair("t2", module+"'ledger'", []string{"mkdir ledger", "touch ledger/__init__.py"}), folder, false},
	} {
		if tt.want == nil {
			tt.want = tt.c
		}
		if got, instead := lessons.Known(tt.c); got != tt.want || instead != tt.instead {
			t.Errorf("%s: known by the card of %q: %v", name, got.Issue, instead)
		}
	}
}

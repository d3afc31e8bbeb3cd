package wording

import (
	"slices"
	"strings"
	"testing"

	"anamnesis/anamnesis/edit"
	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/repair"
)

// TestShown: of what was changed a card quotes first the lines that name the failure, no new tests
// and no imports of what they do not use; all of it is read back.
func TestShown(t *testing.T) {
	p := repair.Pair{
		Command: "python3 repro.py", Works: "python3 repro.py",
		Failure: failure.Failure{Line: "ValueError: no unit 'cent' in total"},
		Changes: []edit.Change{
			{Path: "sum.py", Added: []string{
				"import os", "from units import cent", "a = 1", "b = 2", "c = 3", "d = 4", "e = 5", "f = 6", "g = 7", "h = 8",
				"unit = cent(1)", "unit = mark(1) → total = unit", "gone → ",
			}},
			{Path: "test_sum.py", Added: []string{"def test_total():", "    assert total == 3", "", "rate = 2"}},
			{Path: "test_new.py", Added: []string{"def test_cent():", "    assert cent == 3"}},
		},
		Tried: []repair.Attempt{{Command: "python3 repro.py", Changes: []edit.Change{
			{Path: "sum.py", Added: []string{"import cent → from units import (", "unit = mark(2)"}},
		}}},
	}
	// An edit that says nothing beside lines, imports alone, a change that was made at last or taken back.
	p.Changes = append(p.Changes, edit.Change{Added: []string{"sed -i 12d sum.py"}}, edit.Change{Path: "units.py", Added: []string{"import re", "cents = 3"}})
	p.Tried = append(p.Tried, repair.Attempt{Command: "python3 repro.py", Changes: []edit.Change{
		{Path: "sum.py", Added: []string{"total = unit → unit = mark(1)", `unit = cent(1) `, "mark(1) → total"}},
	}})
	c := cardOf(p)
	got := strings.Join(c.Solution, "\n")
	want := "Changed in sum.py:\n```diff\n+d = 4\n+e = 5\n+f = 6\n+g = 7\n+h = 8\n+unit = cent(1)\n-unit = mark(1)\n+total = unit\n-gone\n```\n" +
		"Changed in test_sum.py:\n```diff\n+rate = 2\n```\n" +
		"Changed in units.py:\n```diff\n+cents = 3\n```"
	if got != want {
		t.Errorf("the card says\n%s\nwant\n%s", got, want)
	}
	if want := []string{"Tried without success: in sum.py, `unit = mark(2)` and 1 more of its lines"}; !slices.Equal(c.Constraint, want) {
		t.Errorf("constraints %q, want %q", c.Constraint, want)
	}
	back, ok := PairOf(c)
	if !ok || !slices.Equal(back.Changes[0].Added, p.Changes[0].Added[5:]) {
		t.Errorf("read back as %q", back.Changes)
	}
	if got := withoutHeadings(p.Changes[0].Added)[0]; got != "from units import cent" {
		t.Errorf("%q comes first", got)
	}
}

// TestAssertion: a card says what was asserted where the failure's line does not.
func TestAssertion(t *testing.T) {
	c := cardOf(repair.Pair{
		Command: "pytest test_sum.py", Works: "pytest test_sum.py", Changes: []edit.Change{{Path: "sum.py", Added: []string{"return 3"}}},
		Failure: failure.Failure{Line: "E AssertionError: assert False", Source: "assert out.endswith('3')"},
	})
	if want := "The assertion: `assert out.endswith('3')`"; len(c.Issue) != 2 || c.Issue[1] != want {
		t.Errorf("issue %q, want %q last", c.Issue, want)
	}
}

// TestMadeModule: beside the commands that made a missing module, a card shows the lines that name
// it; the others are the task's own.
func TestMadeModule(t *testing.T) {
	c := cardOf(repair.Pair{
		Command: "python3 repro.py", Works: "python3 repro.py", Environment: []string{"mkdir ledger", "touch ledger/__init__.py"},
		Failure: failure.Failure{Line: "ModuleNotFoundError: No module named 'ledger'"},
		Changes: []edit.Change{
			{Path: "repro.py", Added: []string{"from ledger.units import cent", "total = cent(3)"}},
			{Path: "ledger/units.py", Added: []string{"rate = 2"}},
		},
	})
	want := "Run before: `mkdir ledger`\nRun before: `touch ledger/__init__.py`\nChanged in repro.py:\n```diff\n+from ledger.units import cent\n```"
	if got := strings.Join(c.Solution, "\n"); got != want {
		t.Errorf("the card says\n%s\nwant\n%s", got, want)
	}
}

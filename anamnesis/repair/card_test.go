package repair

import (
	"fmt"
	"testing"

	"anamnesis/anamnesis/edit"
)

// noTable is a run whose script lacked a table and then made it, beside other lines of
// its own.
func noTable(n int, own string) Run {
	table := fmt.Sprintf("shop_item%d", n)
	fixed := call("cat <<'EOF' > repro.py\nimport app\n"+own+"\nwith app.tables() as tables:\n    tables.create(Item"+fmt.Sprint(n)+")\napp.run()\nEOF\npython3 repro.py", "ok", 0)
	fixed.Said = "THOUGHT: The script never creates its tables. I create them by hand.\n\n```python\nx = 1\n```"
	return Run{ID: fmt.Sprint("task", n), Repo: "shop", Calls: []Call{
		call("cat <<'EOF' > repro.py\nimport app\napp.run()\nEOF", "", 0),
		call("python3 repro.py", "OperationalError: no such table: "+table, 1),
		fixed,
	}}
}

// TestCardText: what a reader is shown. Changed lines are in their order and below their
// file; a command is in terms of the failed call; a reason is quoted where it is about the
// repair.
func TestCardText(t *testing.T) {
	tests := []struct {
		name  string
		learn []Run
		asked Call
		want  string
	}{
		{"changed lines", []Run{noTable(1, "invoice = Ledger(7)"), noTable(2, "kahan = Rounding()"), noTable(3, "cent = Cent()")},
			call("python3 repro.py", "OperationalError: no such table: shop_basket", 1), `[lesson  · UNVERIFIED, repairs 3 of 3 such failures] OperationalError: no such table: shop_item3
That agent's words: The script never creates its tables. I create them by hand.
Repaired before by, with the names of this call:
  in repro.py:
  + cent = Cent()
  + with app.tables() as tables:
  +     tables.create(Basket)`},
		{"a name as the output spells it", []Run{noTable(1, "")},
			call("python3 repro.py", "    BASKet.save()\nOperationalError: no such table: shop_basket", 1), `[lesson  · UNVERIFIED, one such failure] OperationalError: no such table: shop_item1
That agent's words: The script never creates its tables. I create them by hand.
Repaired before by, with the names of this call:
  in repro.py:
  + with app.tables() as tables:
  +     tables.create(BASKet)`},
		{"another way of calling, with the files of the failed call", []Run{missingPytest("shop", "bin/test", 0)},
			call("python -m pytest ledger/tests/test_x.py ledger/tests/test_y.py", "/usr/bin/python: No module named pytest", 1),
			`[lesson  · UNVERIFIED, one such failure] /usr/bin/python: No module named pytest
Repaired before by, with the names of this call:
  run: bin/test ledger/tests/test_x.py ledger/tests/test_y.py`},
		{"a command about the name that the failure names", []Run{{ID: "task", Repo: "shop", Calls: []Call{
			call("python3 repro.py", "ModuleNotFoundError: No module named 'ledger_app'", 1),
			call("mkdir ledger_app", "", 0),
			call("python3 repro.py", "ok", 0),
		}}},
			call("python3 repro.py", "ModuleNotFoundError: No module named 'basket'", 1),
			`[lesson  · UNVERIFIED, one such failure] ModuleNotFoundError: No module named 'ledger_app'
Repaired before by, with the names of this call:
  first run: mkdir basket`},
		{"what one task alone changed, after another failure", []Run{noTable(1, "invoice = Ledger(7)")},
			call("python3 repro.py", "AssertionError: 1 != 2", 1), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := NewMemory()
			for _, r := range tt.learn {
				for _, p := range Pairs(r) {
					m.Add(p)
				}
			}
			got := ""
			if c, ok := m.Recall("shop", tt.asked, 200, bytesOverFour); ok {
				got = c.String()
			}
			if got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// TestReasonOfProgram: of a missing program, a reason that is about the arguments is none.
func TestReasonOfProgram(t *testing.T) {
	for said, want := range map[string]string{
		"The file of these is tests/test_python.py.":        "",
		"Pytest is not in the path. I should use bin/test.": "Pytest is not in the path. I should use bin/test.",
	} {
		works := call("bin/test tests/test_python.py", "1 passed", 0)
		works.Said = said
		pairs := Pairs(Run{Calls: []Call{call("pytest tests/test_python.py", "bash: line 1: pytest: command not found", 127), works}})
		if len(pairs) != 1 || pairs[0].Why != want {
			t.Errorf("%q: %+v", said, pairs)
		}
	}
}

func TestReason(t *testing.T) {
	about := edit.WordSet("table index missing utf")
	for said, want := range map[string]string{
		"THOUGHT: The table is missing. I create the index.":                              "The table is missing. I create the index.",
		"I run it:\n```sh\nrm -rf table\n```":                                             "",
		"The table is missing. I will create it. Now the rest.":                           "The table is missing.",
		"The file is long. The index of the table is missing. It is so since May.":        "The index of the table is missing.",
		"Okay, let me look at the index. Is the index there? Let's add an index:\n\nyes.": "",
		"I give up on the index. The index is old. The index is at line 12 now.":          "The index is old.",
		"But ah, so the index of the table is old.":                                       "The index of the table is old.",
		"It seems the index is missing. The table needs utf.":                             "The table needs utf.",
		"The test says: no such table: ledger_of_all_the_year_2026_invoices.":             "",
		"The index is old. The table " + string(make([]byte, 300)) + ".":                  "The index is old.",
	} {
		if got, _ := reasonIn(said, "no such table: ledger_of_all_the_year_2026_invoices", about); got != want {
			t.Errorf("%q: got %q, want %q", said, got, want)
		}
	}
}

package repair

import (
	"fmt"
	"strings"
	"testing"

	"anamnesis/anamnesis/edit"
)

func bytesOverFour(s string) int { return len(s) / 4 }

// A run of repo in which pytest is missing and another program runs the tests.
func missingPytest(repo, runner string, n int) Run {
	file := fmt.Sprintf("ledger/tests/test_%c.py", 'a'+n)
	return Run{ID: fmt.Sprint(repo, n), Repo: repo, Calls: []Call{
		call("python -m pytest "+file, "/usr/bin/python: No module named pytest", 1),
		call(runner+" "+file, "1 passed", 0),
	}}
}

func TestRecall(t *testing.T) {
	asked := call("pytest ledger/tests/test_z.py", "/usr/bin/python: No module named pytest", 1)
	tests := []struct {
		name  string
		learn []Run
		asked Call
		want  string // in the card; empty: no card
	}{
		{"nothing known", nil, asked, ""},
		{"seen once in the repository", []Run{missingPytest("shop", "bin/test", 0)}, asked, "run: bin/test ledger/tests/test_z.py"},
		{"held several times", []Run{missingPytest("shop", "bin/test", 0), missingPytest("shop", "bin/test", 1), missingPytest("shop", "bin/test", 2)},
			asked, "repairs 3 of 3 such failures"},
		{"the missing program in other words", []Run{missingPytest("shop", "bin/test", 0)}, call("pytest ledger/tests/test_z.py", "bash: line 1: pytest: command not found", 127), "run: bin/test ledger/tests/test_z.py"},
		{"another name, of which the repair says nothing", []Run{{ID: "task", Repo: "shop", Calls: []Call{
			call("python3 repro.py", "NameError: name 'kahan_sum' is not defined", 1),
			call("cat <<'EOF' > repro.py\nfrom ledger import rounding\nEOF\npython3 repro.py", "ok", 0),
		}}}, call("make check", "NameError: name 'total_cents' is not defined", 1), ""},
		{"a program of another repository", []Run{missingPytest("bank", "bin/test", 0)}, asked, ""},
		{"another failure", []Run{missingPytest("shop", "bin/test", 0)}, call("make", "ld: undefined reference to kahan_sum", 2), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := NewMemory()
			for _, r := range tt.learn {
				for _, p := range Pairs(r) {
					m.Add(p)
				}
			}
			c, ok := m.Recall("shop", tt.asked, 200, bytesOverFour)
			if ok != (tt.want != "") || ok && !strings.Contains(c.String(), tt.want) {
				t.Errorf("got %v %q, want %q", ok, c, tt.want)
			}
			if ok && bytesOverFour(c.String()) > 200 {
				t.Errorf("%d tokens", bytesOverFour(c.String()))
			}
		})
	}
}

// TestRecallNumber: a repair whose words were all on the screen, but not its number, answers the same failure
// in the same repository alone. What a user reviewed answers it even if such answers were seldom right.
func TestRecallNumber(t *testing.T) {
	lacks := func(what string) Call { return call("sh check.sh", "Error: the "+what+" is required", 1) }
	pairs := Pairs(Run{ID: "task", Repo: "shop", Calls: []Call{
		lacks("port"), {Changes: []edit.Change{{Path: "conf.ini", Added: []string{"port=8080"}}}}, call("sh check.sh", "ok", 0),
	}})
	if len(pairs) != 1 {
		t.Fatalf("%+v", pairs)
	}
	for _, trusted := range []bool{false, true} {
		m := NewMemory()
		pairs[0].Trusted = trusted
		m.Add(pairs[0])
		for repo, failed := range map[string]Call{"shop": lacks("port"), "bank": lacks("port"), "shop ": lacks("host")} {
			c, ok := m.Recall(strings.TrimSpace(repo), failed, 200, bytesOverFour)
			if want := repo == "shop"; ok != want || ok && !strings.Contains(c.String(), "port=8080") {
				t.Errorf("%q: %v", repo, ok)
			}
		}
		asked := newProblem("shop", pairs[0].Command, pairs[0].Failure)
		for _, s := range classes(&asked, &answer{like: exactly}) {
			m.record[s] = trials{0, 100}
		}
		if _, ok := m.Recall("shop", lacks("port"), 200, bytesOverFour); ok != trusted {
			t.Errorf("trusted %v, with a bad record: %v", trusted, ok)
		}
	}
}

// TestWarn: only the program that was missing in the very repository holds a call.
func TestWarn(t *testing.T) {
	m := NewMemory()
	for _, p := range Pairs(missingPytest("shop", "bin/test", 0)) {
		m.Add(p)
	}
	all := func(*Pair) bool { return true }
	for _, tt := range []struct {
		repo, command string
		believed      func(*Pair) bool
		want          bool
	}{
		{"shop", "cd src && python3 -m pytest -x ledger/tests/test_z.py", all, true},
		{"shop", "python -m pytest", func(*Pair) bool { return false }, false},
		{"bank", "python -m pytest", all, false},
		{"shop", "bin/test ledger/tests/test_z.py", all, false},
		{"shop", "pip install pytest", all, false},
		{"shop", "cat pytest.ini", all, false},
		{"shop", "", all, false},
	} {
		if c, ok := m.Warn(tt.repo, tt.command, 200, bytesOverFour, tt.believed); ok != tt.want || ok && !strings.Contains(c.String(), "bin/test ledger") {
			t.Errorf("%s in %s: %v %q", tt.command, tt.repo, ok, c)
		}
	}
}

// TestNearest: where failures of a kind have nothing in common, the nearest calls answer,
// once they would have told enough of the repairs of such commands.
func TestNearest(t *testing.T) {
	m := NewMemory()
	query := func(i int) []Call {
		return []Call{
			call("sqlrun 'select name from singer"+strings.Repeat("x", i)+" where age'", "ERROR: trouble "+string(rune('a'+i))+string(rune('q'+i))+" here", 1),
			call("sqlrun 'select name from singer_in_concert where age'", "ok", 0),
		}
	}
	asked := call("sqlrun 'select name from singers where age'", "ERROR: another one altogether", 1)
	for i := range 5 {
		if c, ok := m.Recall("shop", asked, 200, bytesOverFour); ok {
			t.Fatalf("after %d repairs: %s", i, c)
		}
		for _, p := range Pairs(Run{ID: string(rune('a' + i)), Repo: "shop", Calls: query(i)}) {
			m.Add(p)
		}
	}
	c, ok := m.Recall("shop", asked, 200, bytesOverFour)
	if !ok || !c.Near || !strings.Contains(c.String(), "singer_in_concert") {
		t.Errorf("got %v, %q", ok, c)
	}
	if c, ok := m.Recall("bank", asked, 200, bytesOverFour); ok {
		t.Errorf("another repository: %s", c)
	}
}

// TestDoubtful: what one pair of a failure with other words says is shown once such answers
// were right for this kind of command.
func TestDoubtful(t *testing.T) {
	trouble := func(group, i int, repaired string) Run {
		g, n := strings.Repeat(string(rune('a'+group)), 3), strings.Repeat(string(rune('q'+i)), 4)
		return Run{ID: g + n, Repo: "shop", Calls: []Call{
			call("buildit "+g, "error: "+g+"link "+g+"symbol "+g+"table "+n, 1),
			call(repaired, "", 0),
			call("buildit "+g, "ok", 0),
		}}
	}
	for _, tt := range []struct {
		name  string
		again func(group int) string // what repairs a group's second failure
		want  bool
	}{
		{"as before", func(group int) string { return fmt.Sprint("export LEDGER_", string(rune('A'+group)), "=gold") }, true},
		{"otherwise", func(group int) string { return fmt.Sprint("mkdir -p kahan/", string(rune('A'+group)), "silver") }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := NewMemory()
			learn := func(r Run) {
				for _, p := range Pairs(r) {
					m.Add(p)
				}
			}
			for group := range 7 {
				asked := trouble(group, 1, tt.again(group))
				learn(trouble(group, 0, fmt.Sprint("export LEDGER_", string(rune('A'+group)), "=gold")))
				c, ok := m.Recall("shop", asked.Calls[0], 200, bytesOverFour)
				if want := tt.want && group == 6; group == 0 && ok || group == 6 && ok != want {
					t.Errorf("group %d: got %v, %+v", group, ok, c)
				}
				learn(asked)
			}
		})
	}
}

// TestForesee: a failure that two runs met is foreseen, also if one card describes both.
func TestForesee(t *testing.T) {
	for again, want := range []int{0, 1} {
		m := NewMemory()
		for _, p := range Pairs(noTable(1, "")) {
			m.AddTimes(p, again)
		}
		if got := m.Foresee("shop", 300, bytesOverFour); len(got) != want {
			t.Errorf("learned again %d times: %v", again, got)
		}
	}
}

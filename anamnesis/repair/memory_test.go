package repair

import (
	"fmt"
	"strings"
	"testing"
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

package op

import "testing"

// TestCount: tests that an earlier run named and that this one did not start have failed.
func TestCount(t *testing.T) {
	for _, tt := range []struct {
		name  string
		run   CheckRan
		named map[string]int
		want  string
	}{
		{"no test run", CheckRan{Checks: []Check{{Command: "make"}, {Command: "lint", Exit: 1}}}, nil, "1 of 2 passed"},
		{"tests", CheckRan{Checks: []Check{{Status: "failed", Exit: 1, Passing: 3, Failing: 2}}}, nil, "3 of 5 passed"},
		{"tests vanished", CheckRan{Checks: []Check{{Command: "t", Status: "passed", Passing: 3}}}, map[string]int{"t": 5}, "3 of 5 passed"},
		{"none ran", CheckRan{Checks: []Check{{Command: "t", Status: "none"}}}, map[string]int{"t": 5}, "0 of 5 passed"},
		{"it did not compile", CheckRan{Checks: []Check{{Command: "t", Status: "failed", Exit: 1}}}, map[string]int{"t": 5}, "0 of 5 passed"},
		{"passed without counts", CheckRan{Checks: []Check{{Command: "t", Status: "passed"}}}, map[string]int{"t": 5}, "5 of 5 passed"},
		{"go test names what fails", CheckRan{Checks: []Check{{Command: "t", Status: "failed", Exit: 1, Failing: 2, Uncounted: true}}}, map[string]int{"t": 5}, "3 of 5 passed"},
		{"go test names nothing", CheckRan{Checks: []Check{{Command: "t", Status: "passed", Passing: 1, Uncounted: true}}}, map[string]int{"t": 5}, "5 of 5 passed"},
		{"refused", CheckRan{Refused: true, Checks: []Check{{Status: "passed", Passing: 3}}}, nil, "0 of 3 passed"},
	} {
		if got := tt.run.Count(tt.named); got.String() != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// TestBetter: more that passed, then fewer that failed, are better; a score that cannot be read is the worst.
func TestBetter(t *testing.T) {
	better := []Rating{
		{Value: 4, Of: 5, Failing: 1}, {Value: 3, Of: 5, Failing: 1}, {Value: 3, Of: 5, Failing: 2}, {Value: -2},
		{Error: "no number"},
	}
	for i, a := range better {
		for k, b := range better {
			if got := a.Better(b); got != (i < k) {
				t.Errorf("%v better than %v: %v", a, b, got)
			}
		}
	}
}

// TestGoalEqual: goals are the same if all parts are.
func TestGoalEqual(t *testing.T) {
	goals := []Goal{
		{}, {Until: []string{"a"}}, {Until: []string{"b"}}, {Until: []string{"a", "b"}}, {Until: []string{"a"}, Score: "s"},
		{Until: []string{"a"}, Frozen: true}, {Until: []string{"a"}, KeepLast: true},
	}
	for i, a := range goals {
		for k, b := range goals {
			if a.Equal(b) != (i == k) {
				t.Errorf("%+v equal to %+v: %v", a, b, i != k)
			}
		}
	}
}

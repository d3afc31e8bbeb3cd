package term

import (
	"strings"
	"testing"

	"anamnesis/anamnesis/experience"
	"anamnesis/anamnesis/testrun"
)

func TestTestsLine(t *testing.T) {
	long := strings.Repeat("x", 100)
	for _, tt := range []struct {
		command string
		run     testrun.Result
		want    string
	}{
		{"go test ./...", testrun.Result{Status: testrun.Failed, Failed: 2, Names: []string{"TestA", "TestB"}}, "tests failed: TestA, TestB (go test ./...)"},
		{"go test | tail", testrun.Result{Status: testrun.Failed, Failed: 4, Names: []string{"TestA"}}, "tests failed: TestA and 3 more (go test | tail)"},
		{"go test", testrun.Result{Status: testrun.Failed, Failed: 7, Names: strings.Fields("A B C D E F G")}, "tests failed: A, B, C, D, E and 2 more (go test)"},
		{"pytest", testrun.Result{Status: testrun.Failed, Failed: 1}, "1 test failed (pytest)"},
		{"go test", testrun.Result{Status: testrun.Failed}, "tests failed (go test)"},
		{"go test", testrun.Result{Status: testrun.Failed, Names: []string{"x/a"}}, "tests failed: x/a (go test)"},
		{"go test", testrun.Result{Status: testrun.RanNone}, "ran no tests (go test)"},
		{"pytest " + long, testrun.Result{Status: testrun.RanNone}, "ran no tests (" + Line("pytest "+long, maxCommandColumns) + ")"},
	} {
		if got := TestsLine(&experience.Check{Command: tt.command, Result: tt.run}); got != tt.want {
			t.Errorf("%+v\ngot  %s\nwant %s", tt.run, got, tt.want)
		}
	}
}

package term

import (
	"os"
	"strings"
	"testing"
	"time"

	"anamnesis/anamnesis/experience"
	"anamnesis/anamnesis/testrun"
	"anamnesis/opstream/op"
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

// TestLogTime: a line of a log has the time of its operation, which may be older than the line.
func TestLogTime(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "log")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.Local)
	NewText(nil, f, 80, "",
		NoOutputs).Op(op.Op{Time: at, Body: &op.UserSaid{Text: "Mind the gap.", Source: op.SourceSteer}})
	text, err := os.ReadFile(f.Name())
	if want := "03-04 05:06:07 » Mind the gap.\n"; err != nil || string(text) != want {
		t.Errorf("%q, %v", text, err)
	}
}

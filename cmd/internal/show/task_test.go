//go:build unix

package show

import (
	"bytes"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/taskdir"
)

// TestCost: nothing used and a model that costs nothing are $0, which is not a price that nobody knows.
func TestCost(t *testing.T) {
	for _, c := range []struct {
		used op.Usage
		want string
	}{
		{op.Usage{}, "$0.0000"},
		{op.Usage{Prompt: 10, Completion: 1, Priced: 11}, "$0.0000"},
		{op.Usage{Prompt: 10, Completion: 1, Priced: 11, USD: 1.5}, "$1.50"},
		{op.Usage{Prompt: 10, Completion: 1, Priced: 7, USD: 0.25}, "at least $0.2500: the price of 4 tokens is not known"},
		{op.Usage{Prompt: 10, Completion: 1}, "unknown: neither prices.yaml nor the built-in table has the model"},
	} {
		if got := Cost(c.used); got != c.want {
			t.Errorf("%+v: %q, want %q", c.used, got, c.want)
		}
	}
}

// TestTasksNarrow: on a narrow terminal a task's directory and the first paragraph of its
// first request have a line of their own.
func TestTasksNarrow(t *testing.T) {
	rows := []taskdir.Summary{{
		ID: "count_words", Dir: "/srv/shop", State: "done", Steps: 3, First: "Count the words.\n\nI ran `ls`",
		Request: "And the lines.",
	}}
	for width, want := range map[int]int{40: 3, 80: 2, 120: 1} {
		var b bytes.Buffer
		o := Printer{Out: &b, Width: width}
		o.Tasks(rows)
		lines := strings.Split(strings.TrimSpace(b.String()), "\n")
		last := lines[len(lines)-1]
		if len(lines) != want || !strings.HasSuffix(last, "/srv/shop  Count the words.") {
			t.Errorf("at %d columns:\n%s", width, b.String())
		}
		if !strings.Contains(b.String(), "3 steps") || !strings.Contains(b.String(), "0001-01-01") {
			t.Errorf("at %d columns the steps or the date are cut:\n%s", width, b.String())
		}
	}
}

// TestTasksColumns: a long name and a single step move no column.
func TestTasksColumns(t *testing.T) {
	rows := []taskdir.Summary{
		{ID: "task_1_fix", Dir: "/srv", State: "open", Steps: 1, First: "Fix it."},
		{ID: "task_2_" + strings.Repeat("long", 10), Dir: "/srv/shop", State: "done", Steps: 12, First: "Fix it."},
	}
	var b bytes.Buffer
	o := Printer{Out: &b, Width: 200}
	o.Tasks(rows)
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], " open            1 step  ") ||
		strings.Index(lines[0], "Fix it.") != strings.Index(lines[1], "Fix it.") {
		t.Errorf("%s", b.String())
	}
}

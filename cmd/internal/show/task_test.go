//go:build unix

package show

import (
	"bytes"
	"strings"
	"testing"

	"anamnesis/orchestrator/taskdir"
)

// TestTasksNarrow: on a narrow terminal a task's directory and the first paragraph of its
// request have a line of their own.
func TestTasksNarrow(t *testing.T) {
	rows := []taskdir.Summary{{ID: "count_words", Dir: "/srv/shop", State: "done", Steps: 3, Request: "Count the words.\n\nI ran `ls`"}}
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

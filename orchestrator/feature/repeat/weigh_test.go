package repeat

import (
	"strings"
	"testing"

	"anamnesis/orchestrator/loop"
)

// TestHeldAt: a call does not run the third time in one state of the files, nor so many times in a row; the second
// time, and some times in a row, the agent is reminded of the earlier result.
func TestHeldAt(t *testing.T) {
	for name, tt := range map[string]struct {
		r        earlier
		blocked  bool
		refusal  string
		reminder string
	}{
		"the first":               {r: earlier{}},
		"the second":              {r: earlier{times: loop.RemindAt - 1, last: 7, state: "it failed"}, reminder: "in this state of the files, and its result is op 7 (it failed)."},
		"the second in a reply":   {r: earlier{times: loop.RemindAt - 1}, reminder: "in this state of the files, in this reply."},
		"the third":               {r: earlier{times: loop.BlockAt - 1, last: 7, state: "it succeeded"}, blocked: true, refusal: "was made 2 times already in this state of the files, and its result is op 7 (it succeeded). recall with op 7 opens", reminder: "A third time"},
		"the third in a reply":    {r: earlier{times: loop.BlockAt - 1}, blocked: true, refusal: "already in this state of the files, in this reply. It runs again", reminder: "A third time"},
		"in a row":                {r: earlier{row: loop.StreakBlockAt - 2}},
		"often in a row":          {r: earlier{row: 2}, reminder: "was made 3 times in a row now"},
		"too often in a row":      {r: earlier{row: loop.StreakBlockAt - 1}, blocked: true, refusal: "was made 11 times in a row"},
		"far too often in a row":  {r: earlier{row: loop.StreakBlockAt + 5}, blocked: true, refusal: "was made 11 times in a row"},
		"in a row and unchanged":  {r: earlier{row: loop.StreakBlockAt, times: loop.BlockAt - 1, last: 7}, blocked: true, refusal: "already in this state of the files", reminder: "A third time"},
		"reminded of what is new": {r: earlier{row: 2, times: 1, last: 7}, reminder: "was made 3 times in a row now"},
	} {
		if got := tt.r.blocked(); got != tt.blocked {
			t.Errorf("%s: blocked %v", name, got)
		}
		if got := tt.r.reminder(); (got == "") != (tt.reminder == "") || !strings.Contains(got, tt.reminder) {
			t.Errorf("%s: reminder %q", name, got)
		}
		if got := tt.r.refusal("Bash"); tt.blocked && !strings.Contains(got, tt.refusal) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

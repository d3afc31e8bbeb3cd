package jobs

import "testing"

// TestStatusOf: the model reads how a background command ended.
func TestStatusOf(t *testing.T) {
	for want, j := range map[string]Job{
		"runs, 0 bytes of output":                                          {},
		"ended with exit code 3, 9 bytes of output":                        {Why: Exited, Exit: 3, Bytes: 9},
		"ended, because its time was up, 0 bytes of output":                {Why: TimedOut, Exit: 3},
		"was ended when the program stopped (as noted), 0 bytes of output": {Why: Lost, Note: "as noted"},
	} {
		if got := StatusOf(j); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

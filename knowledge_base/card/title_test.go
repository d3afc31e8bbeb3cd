package card

import (
	"strings"
	"testing"
)

func TestTitle(t *testing.T) {
	failed := []string{"`pytest a.py` failed: No module named pytest"}
	for _, tt := range []struct {
		name, topic     string
		issue, solution []string
		want            string
	}{
		{"a topic of its own", "pytest is run as bin/test", failed, []string{"Run before: `bin/test`"}, "pytest is run as bin/test"},
		{"a command", "No module named pytest", failed, []string{"Run before: `bin/test a.py`", "more"}, "Run bin/test a.py – after “No module named pytest”"},
		{"a topic that was cut", "No module named…", failed, []string{"Run before: `bin/test`"}, "Run bin/test – after “No module named…”"},
		{"a diff", "No module named pytest", failed, []string{"Changed in a.py:\n```diff\n-x\n+import unittest\n```"}, "Change a.py: import unittest – after “No module named pytest”"},
		{"a diff without an addition", "No module named pytest", failed, []string{"Changed in a.py:\n```diff\n-x\n```"}, "Change a.py – after “No module named pytest”"},
		{"a file", "No module named pytest", failed, []string{"Changed: `a.py`"}, "Change a.py – after “No module named pytest”"},
		{"words", "No module named pytest", failed, []string{"use unittest\ninstead"}, "use unittest – after “No module named pytest”"},
		{"a long remedy", "No module named pytest", failed, []string{strings.Repeat("ü", maxRemedyRunes)},
			strings.Repeat("ü", maxRemedyRunes) + " – after “No module named pytest”"},
		{"a longer one", "No module named pytest", failed, []string{strings.Repeat("ü", maxRemedyRunes+1)},
			strings.Repeat("ü", maxRemedyRunes) + "… – after “No module named pytest”"},
		{"an empty remedy", "No module named pytest", failed, []string{"`"}, "No module named pytest"},
		{"a topic of dots", "…", []string{"it fails"}, []string{"x"}, "…"},
		{"no remedy", "No module named pytest", failed, nil, "No module named pytest"},
		{"no issue", "No module named pytest", nil, []string{"x"}, "No module named pytest"},
		{"another issue", "No module named pytest", []string{"it fails"}, []string{"x"}, "No module named pytest"},
	} {
		if got := (&Card{Topic: tt.topic, Issue: tt.issue, Solution: tt.solution}).Title(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

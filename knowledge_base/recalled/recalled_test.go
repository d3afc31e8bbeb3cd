package recalled

import (
	"testing"

	"anamnesis/knowledge_base/card"
)

func TestWords(t *testing.T) {
	for _, c := range []struct {
		trust Trust
		want  string
	}{
		{Trust{Rung: Verified}, "VERIFIED"},
		{Trust{Rung: ReviewedRung}, "REVIEWED"},
		{Trust{Rung: Hypothesis}, "UNVERIFIED, seen in 1 task; before ruling anything out, check it"},
		{Trust{Rung: Hypothesis, Met: 2, Check: "go test"}, "UNVERIFIED, seen in 3 tasks; before ruling anything out, run: go test"},
		{Trust{Rung: Verified, Contradicted: true}, "CONTRADICTED since; before ruling anything out, check it"},
		{Trust{Rung: ReviewedRung, Contradicted: true, Check: "make"}, "CONTRADICTED since; before ruling anything out, run: make"},
	} {
		h := Hit{Card: &card.Card{}, Trust: c.trust}
		if got := h.Words(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.trust, got, c.want)
		}
	}
}

func TestCheckOf(t *testing.T) {
	for issue, want := range map[string]string{
		"`go test` failed: undefined: x":   "go test",
		"Bash: make all failed (exit 2)":   "make all",
		"`go test ./… failed`":             "",
		"`a very long comma…` failed: cut": "",
		"it failed":                        "",
	} {
		if got := CheckOf(&card.Card{Issue: []string{"no command", issue}}); got != want {
			t.Errorf("%q: %q, want %q", issue, got, want)
		}
	}
}

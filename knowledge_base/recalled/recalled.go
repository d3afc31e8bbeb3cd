// Package recalled says how far a card that a search found may be believed, and renders
// such cards as quoted data.
package recalled

import (
	"fmt"
	"regexp"
	"strings"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/retrieval"
)

// Hit is one card found. Score orders the hits of one search; scores of two searches
// cannot be compared.
type Hit struct {
	Card     *card.Card         `json:"card"`
	Score    float64            `json:"score"`
	Evidence retrieval.Evidence `json:"evidence"`
	Expired  bool               `json:"expired"`
	Path     string             `json:"path"`
	Trust    Trust              `json:"trust"`
	// Contradicts are the ids of the cards that contradict this one, whichever
	// of the two says so.
	Contradicts []string `json:"contradicts,omitempty"`
	// Also are the ids of cards that say nearly the same, less well found.
	Also []string `json:"also,omitempty"`
	// Missing are files that the card names and that the world of the task does not have, and programs that it ran
	// and that are not installed.
	Missing []string `json:"missing,omitempty"`
}

// Rung is how far a card may be believed.
type Rung string

const (
	// Verified: the card's text held in a second task that was not shown it: its error
	// occurred there, and the change that it names preceded the success.
	Verified Rung = "verified"
	// ReviewedRung: a user reviewed it on this machine.
	ReviewedRung Rung = "reviewed"
	// Hypothesis: everything else.
	Hypothesis Rung = "hypothesis"
)

// Trust says how far this machine's records support a card.
type Trust struct {
	Rung Rung `json:"rung"`
	// Met counts the tasks that met the error the card quotes, apart from its own and
	// from those that had been shown it or a card drawn from it.
	Met int `json:"met"`
	// Check is the command that the card says failed, where a stream of this machine
	// records that it ran.
	Check string `json:"check,omitempty"`
	// Contradicted: a later result or an agent contradicted it, and it has not held since.
	Contradicted bool `json:"contradicted,omitempty"`
	// Withheld keeps the card from the task that asks.
	Withheld bool `json:"withheld,omitempty"`
}

// failedCommand finds the command in an issue such as "`go test` failed: undefined: x".
var failedCommand = regexp.MustCompile("^(?:`([^`]+)`|Bash: (.+?)) failed(?:: | \\()")

// CheckOf returns the command that shows whether a card still holds, the one it
// says failed; empty where it names none.
func CheckOf(c *card.Card) string {
	for _, issue := range c.Issue {
		if m := failedCommand.FindStringSubmatch(issue); m != nil && !strings.HasSuffix(m[1]+m[2], "…") {
			return m[1] + m[2]
		}
	}
	return ""
}

// Words says how far the card may be believed, and what would show it wrong.
func (h *Hit) Words() string {
	switch {
	case h.Trust.Contradicted:
		return "CONTRADICTED since; " + h.Trust.checkFirst()
	case h.Trust.Rung == ReviewedRung:
		return "REVIEWED"
	case h.Trust.Rung == Verified:
		return "VERIFIED"
	}
	tasks := "1 task"
	if n := h.Trust.Met + 1; n > 1 {
		tasks = fmt.Sprintf("%d tasks", n)
	}
	return fmt.Sprintf("UNVERIFIED, seen in %s; %s", tasks, h.Trust.checkFirst())
}

func (t *Trust) checkFirst() string {
	if t.Check != "" {
		return "before ruling anything out, run: " + t.Check
	}
	return "before ruling anything out, check it"
}

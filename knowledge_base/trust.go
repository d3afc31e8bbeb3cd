package knowledgebase

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"anamnesis/knowledge_base/card"
)

// Rung is how far a card may be believed.
type Rung string

// The rungs.
const (
	// Verified: the card's text and evidence are as a stream of this machine records
	// them, and what it says was observed there.
	Verified Rung = "verified"
	// ReviewedRung: a user reviewed it on this machine.
	ReviewedRung Rung = "reviewed"
	// Hypothesis: everything else.
	Hypothesis Rung = "hypothesis"
)

// Trust is what this machine knows of a card's truth.
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

// maxWithheld is how many rounds of cards that may not be believed one search
// removes before it answers with what is left.
const maxWithheld = 8

// Search is [Store.Search] over all of the layers. Of cards with one id, or
// with one lesson, the nearest is found. Each layer's hits stay in their order;
// between layers their evidence decides, which is not normalised, and the
// nearest wins a tie. A card that [Query.Trust] withholds takes no part: the
// others are found as if it were not stored.
func (l Layers) Search(ctx context.Context, q Query) ([]Hit, error) {
	q.without = make(map[string]bool)
	for round := 0; ; round++ {
		hits, err := l.found(ctx, q)
		if err != nil {
			return nil, err
		}
		n := len(hits)
		for i := range hits { // outside the stores' locks: Trust may ask them
			hits[i].Trust = q.trust(hits[i].Card)
		}
		hits = slices.DeleteFunc(hits, func(h Hit) bool {
			q.without[h.Card.ID] = h.Trust.Withheld
			return h.Trust.Withheld
		})
		if len(hits) == n || round == maxWithheld {
			return hits, nil
		}
	}
}

// trust is how far a card may be believed in this search.
func (q *Query) trust(c *card.Card) Trust {
	switch {
	case q.Trust != nil:
		return q.Trust(c)
	case c.State == card.Reviewed:
		return Trust{Rung: ReviewedRung}
	}
	return Trust{Rung: Hypothesis}
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

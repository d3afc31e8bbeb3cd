package memory

import (
	"strings"
	"testing"

	"anamnesis/anamnesis/wording"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/recalled"
)

// TestCompleteCard: what a model wrote at the jump comes along with the repair, which other
// tasks are shown, but not its words before a user has reviewed them.
func TestCompleteCard(t *testing.T) {
	old := &card.Card{ID: "old", Topic: "Sums are wrong", Issue: []string{"floats drift"}, Solution: []string{"use whole cents"}, Constraint: []string{"rounding is no help"}}
	c := &card.Card{State: card.Draft, Issue: []string{"`go test` failed: a_test.go:3: want 3"}, Solution: []string{"Changed in a.go:\n```diff\n+var cents int\n```"}}
	complete(c, old, true)
	p, ok := wording.PairOf(c)
	if !ok || len(p.Changes) != 1 || p.Changes[0].Path != "a.go" || len(c.Supersedes) != 1 {
		t.Errorf("read back as %+v, supersedes %v", p, c.Supersedes)
	}
	for _, says := range []string{"Sums are wrong: floats drift", "use whole cents", "rounding is no help"} {
		for _, state := range []card.State{card.Draft, card.Reviewed} {
			c.State = state
			if shown := strings.Join(recalled.Quote(recalled.Hit{Card: c}), "\n"); strings.Contains(shown, "In the model's words: "+says) != (state == card.Reviewed) {
				t.Errorf("%s: %q is shown or not:\n%s", state, says, shown)
			}
		}
	}
}

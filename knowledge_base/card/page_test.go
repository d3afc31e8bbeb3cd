package card

import (
	"os"
	"strings"
	"testing"
)

// The page of the format shows a card with every key, and explains each.
func TestFormatPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/format-card.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```markdown\n")
	text, table, ok := strings.Cut(text, "```\n")
	c, err := Parse([]byte(text))
	if !ok || err != nil {
		t.Fatalf("the card on the page: %v", err)
	}
	if err := c.Validate(); err != nil || c.Topic != "go test caches results" || len(c.Issue) != 1 ||
		len(c.Solution) != 1 || len(c.Constraint) != 1 || c.Scope.Tool != "go test" {
		t.Errorf("%+v, %v", c, err)
	}
	for _, k := range c.keys() {
		if !strings.Contains(text, "\n"+k.key+":") || !strings.Contains(table, "`"+k.key) {
			t.Errorf("the page lacks %s", k.key)
		}
	}
	for _, state := range []State{Draft, Reviewed, Retired, Superseded} {
		if !strings.Contains(table, "| `"+string(state)+"` |") {
			t.Errorf("the page lacks the state %s", state)
		}
	}
}

package card

import (
	"fmt"
	"strings"
)

// maxRemedyRunes is how much of a remedy a title quotes.
const maxRemedyRunes = 90

// Title names a card for people. It is the topic; but a topic that only repeats the error of the
// issue does not say what was learned, and the title begins with the remedy then.
func (c *Card) Title() string {
	if len(c.Issue) == 0 || len(c.Solution) == 0 {
		return c.Topic
	}
	issue, topic := OneLine(c.Issue[0]), OneLine(strings.TrimSuffix(c.Topic, "…"))
	_, failure, ok := strings.Cut(issue, "` failed: ")
	if remedy := remedyOf(c.Solution[0]); ok && remedy != "" && strings.HasPrefix(failure, topic) {
		return fmt.Sprintf("%s – after “%s”", remedy, c.Topic)
	}
	return c.Topic
}

// remedyOf shortens a bullet to what it says to do. Of a change, that is the file and the first line that it adds.
func remedyOf(bullet string) string {
	first, diff, _ := strings.Cut(bullet, "\n")
	if command, ok := strings.CutPrefix(first, "Run before: "); ok {
		first = "Run " + command
	} else if file, ok := strings.CutPrefix(first, "Changed in "); ok {
		first = "Change " + file
		for line := range strings.Lines(diff) {
			if added, ok := strings.CutPrefix(strings.TrimSpace(line), "+"); ok && strings.TrimSpace(added) != "" {
				first += " " + added
				break
			}
		}
	} else if file, ok := strings.CutPrefix(first, "Changed: "); ok {
		first = "Change " + file
	}
	first = strings.TrimSuffix(OneLine(strings.ReplaceAll(first, "`", "")), ":")
	if r := []rune(first); len(r) > maxRemedyRunes {
		first = string(r[:maxRemedyRunes]) + "…"
	}
	return first
}

package quote

import (
	"fmt"
	"strings"
)

// Number is a number with its noun: "1 card", "2 cards".
func Number(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	switch {
	case strings.HasSuffix(noun, "s"):
		noun += "es"
	case strings.HasSuffix(noun, "ry"), strings.HasSuffix(noun, "ly"):
		noun = strings.TrimSuffix(noun, "y") + "ies"
	default:
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

//go:build unix

package paint

import "strings"

// Settled returns how much of a growing markdown text will not be rendered in another
// way by what follows: up to the last empty line outside a block of code and a list.
func Settled(text string) int {
	at, fence, list, begin := 0, "", false, 0
	for line := range strings.Lines(text) {
		end := begin + len(line)
		trimmed := strings.TrimSpace(line)
		switch {
		case fence != "":
			if strings.HasPrefix(trimmed, fence) {
				fence = ""
			}
		case strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~"):
			fence = trimmed[:3]
		case trimmed == "":
			if !list && strings.HasSuffix(line, "\n") {
				at = end
			}
		case isItem(trimmed):
			list = true
		case line[0] != ' ' && line[0] != '\t':
			if list && strings.HasSuffix(text[:begin], "\n\n") {
				at = begin // the list has ended
			}
			list = list && !strings.HasSuffix(text[:begin], "\n\n")
		}
		begin = end
	}
	return at
}

// isItem reports whether a line begins an item of a list.
func isItem(line string) bool {
	if len(line) > 1 && strings.ContainsRune("-*+", rune(line[0])) && line[1] == ' ' {
		return true
	}
	digits := strings.TrimLeft(line, "0123456789")
	return len(digits) < len(line) && (strings.HasPrefix(digits, ". ") || strings.HasPrefix(digits, ") "))
}

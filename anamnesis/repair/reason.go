package repair

import (
	"strings"
)

// maxReasonBytes bounds the agent's words that a pair quotes.
const maxReasonBytes = 220

var (
	codeBlock   = lazy("(?s)```.*?(```|$)")
	speechLabel = lazy(`^[A-Z][A-Za-z]{2,12}:\s+`) // "THOUGHT: ", as some agents begin
	sentenceEnd = lazy(`[.!?](\s|$)|\n\n`)
)

// reasonIn returns the first sentences of what an agent said, as many as maxReasonBytes
// holds, or "" where there is none.
func reasonIn(said string) string {
	said = speechLabel().ReplaceAllString(strings.TrimSpace(codeBlock().ReplaceAllString(said, " ")), "")
	end := 0
	for _, at := range sentenceEnd().FindAllStringIndex(said, -1) {
		if at[0]+1 > maxReasonBytes {
			break
		}
		end = at[0] + 1
	}
	return strings.Join(strings.Fields(said[:end]), " ")
}

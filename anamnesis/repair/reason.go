package repair

import (
	"strings"

	"anamnesis/anamnesis/shell"
)

// maxReasonBytes bounds the agent's words that a pair quotes.
const maxReasonBytes = 220

var (
	codeBlock   = shell.Pattern("(?s)```.*?(```|$)")
	speechLabel = shell.Pattern(`^[A-Z][A-Za-z]{2,12}:\s+`) // "THOUGHT: ", as some agents begin
	sentenceEnd = shell.Pattern(`[.!?](\s|$)|\n\n`)
)

// nextStep recognises sentences that say what the agent does next or asks itself.
var nextStep = shell.Pattern(`^(?i:((okay|ok|so|now|then|next|first|and|but|ah|hmm|actually|wait)\b[,.:]? *)*(i'll|i can (re|now)|i will|i'm going|i am going|i'm guessing|let me|let's|let us|we'll|try to|verify|check|run ))|^(?i:wait|now)\b|^(to|and|or) |^\S+( \S+)?$|\?$|:$`)

// mechanics recognises sentences about how a file is edited or a reply is formed, or that give
// up or only say that it failed.
var mechanics = shell.Pattern(`(?i)\b(lines?|at) \d+\b|\bsed\b|\bi (give up|will assume|escaped|see the mess)\b|\b(indent\w*|heredoc|whitespace|backticks|\d+ spaces|exactly one|(previous|last) response)\b|\b(already imported|script confirm(s|ed))\b`)

// reasonIn returns the first sentences of what an agent said, as many as maxReasonBytes
// holds, or "" where there is none. Those about its next step and
// its editing are left out.
func reasonIn(said string) string {
	said = speechLabel().ReplaceAllString(strings.TrimSpace(codeBlock().ReplaceAllString(said, " \n\n")), "")
	var kept []string
	size, start := 0, 0
	for _, at := range sentenceEnd().FindAllStringIndex(said, -1) {
		sentence := strings.Join(strings.Fields(said[start:at[0]+1]), " ")
		start = at[1]
		if sentence == "" || nextStep().MatchString(sentence) || mechanics().MatchString(sentence) {
			continue
		}
		if size += len(sentence) + 1; size > maxReasonBytes+1 {
			break
		}
		kept = append(kept, sentence)
	}
	return strings.Join(kept, " ")
}

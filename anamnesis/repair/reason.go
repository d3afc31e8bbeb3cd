package repair

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"anamnesis/anamnesis/edit"
	"anamnesis/anamnesis/shell"
)

// maxReasonBytes bounds the agent's words that a pair quotes.
const maxReasonBytes = 220

// minRepeated is how much of a failure's line makes a sentence repeat it.
const minRepeated = 40

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

// hedges recognises sentences that guess, weigh what else could be done, or say what the agent
// wants to write.
var hedges = shell.Pattern(`(?i)\b(seems?|probably|maybe|perhaps|might|not sure|i think|interesting|should (be|work)|i (want|made a mistake|could|also|can)|(the|my|this) plan|no,|yes,|failed with|forbidden|if i)\b`)

// sentences returns what an agent said, one sentence each, without code. Those about its next
// step, its editing and its guesses are left out, and those that repeat the failure's line.
func sentences(said, line string) (out []string) {
	said = speechLabel().ReplaceAllString(strings.TrimSpace(codeBlock().ReplaceAllString(said, " \n\n")), "")
	line = strings.TrimPrefix(line, "E ")
	start := 0
	for _, at := range sentenceEnd().FindAllStringIndex(said, -1) {
		s := strings.Join(strings.Fields(said[start:at[0]+1]), " ")
		start = at[1]
		repeats := line != "" && strings.Contains(s, firstBytes(line, minRepeated)) || strings.Count(s, "`")%2 == 1 // or a part of code
		if s != "" && len(s) <= maxReasonBytes && !repeats && !nextStep().MatchString(s) && !mechanics().MatchString(s) && !hedges().MatchString(s) {
			out = append(out, s)
		}
	}
	return out
}

// reasonIn returns the sentence of what an agent said that has most of the words, and the next
// one, if both fit in maxReasonBytes; and how many of the words it has.
func reasonIn(said, line string, about map[string]bool) (reason string, most int) {
	all := sentences(said, line)
	count := func(s string) (n int) {
		for _, w := range edit.Words(s) {
			if about[w] {
				n++
			}
		}
		return n
	}
	for i, s := range all {
		n := count(s)
		if n > 0 && i+1 < len(all) && count(all[i+1]) > 0 && len(s)+1+len(all[i+1]) <= maxReasonBytes {
			s += " " + all[i+1]
			n = count(s)
		}
		if n > most {
			reason, most = s, n
		}
	}
	if rest := filler().ReplaceAllString(reason, ""); rest != "" {
		first, size := utf8.DecodeRuneInString(rest)
		reason = string(unicode.ToUpper(first)) + rest[size:]
	}
	return reason, most
}

// filler matches how an agent takes up what it said before.
var filler = shell.Pattern(`^(?i:(?:so|ah|but|and|also|then|however|okay|hmm|oh)\b,? )+`)

package retrieval

import (
	"regexp"
	"strings"

	"anamnesis/knowledge_base/retrieval/internal/lexical"
)

// restWeight is what a term counts that occurs in a stack trace's frames and not
// in the error itself: the frames are of the program that failed, and of its
// language, whatever went wrong.
const restWeight = 0.25

// framePattern matches the lines of a stack trace that say where, in the form of
// Python with the line of code below, Java, Node, Go and Rust.
var framePattern = regexp.MustCompile(`(?m)^(?:` +
	`Traceback \(most recent call last\):?` +
	`|\s+File "[^"\n]*", line \d+(?:, in .*)?(?:\n\s{4,}.*)?` +
	`|\s+at \S+.*` +
	`|goroutine \d+ \[.*\]:` +
	`|[\w./*()\-]+\(.*\)\n\t\S+:\d+.*|\t\S+:\d+.*` +
	`|\s+\d+: 0x[0-9a-f]+ .*|stack backtrace:` +
	`)(?:\n|$)`)

// signature is a query without the frames of stack traces; all of it where
// nothing else is in it.
func signature(text string) string {
	text = lexical.ClipRunes(text, lexical.MaxIndexedRunes)
	if told := framePattern.ReplaceAllString(text, ""); strings.TrimSpace(told) != "" {
		return told
	}
	return text
}

// weighted is the distinct terms of a query in order of appearance, with what
// each counts.
type weighted[K comparable] struct {
	terms   []K
	weights []float64
}

// weigh returns a query's terms: those of its signature first, then those that
// only the rest has.
func weigh[K comparable](text string, split func(string, func(K))) weighted[K] {
	told := signature(text)
	terms, counts := lexical.Distinct(func(emit func(K)) { split(told, emit) })
	damp(counts)
	if len(told) == len(text) {
		return weighted[K]{terms, counts}
	}
	in := make(map[K]bool, len(terms))
	for _, t := range terms {
		in[t] = true
	}
	rest, more := lexical.Distinct(func(emit func(K)) { split(text, emit) })
	damp(more)
	for i, t := range rest {
		if !in[t] {
			terms, counts = append(terms, t), append(counts, restWeight*more[i])
		}
	}
	return weighted[K]{terms, counts}
}

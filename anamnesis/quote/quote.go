// Package quote makes texts fit to be quoted: on one line, without control characters, cut
// to a length.
package quote

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Marks around a hot block. They occur nowhere inside one: Squash breaks those that it
// finds in quoted text.
const (
	BlockBegin = "[ANAMNESIS_BLOCK]"
	BlockEnd   = "[/ANAMNESIS_BLOCK]"
)

// Squash normalises text for quoting on one line and for comparing quotes: it
// replaces runs of white space by one space, and bytes that are not UTF-8 by the
// replacement character, removes terminal escapes and other control characters,
// and makes the brackets of the block's marks round. A quote in a block occurs in
// Squash of the operation it was taken from. Squash(Squash(s)) is Squash(s).
func Squash(s string) string {
	var b strings.Builder
	b.Grow(min(len(s), 1<<16))
	space := false
	for _, r := range StripEscapes(s) {
		switch {
		case unicode.IsSpace(r):
			space = true
			continue
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			continue
		}
		if space && b.Len() > 0 {
			b.WriteByte(' ')
		}
		space = false
		b.WriteRune(r)
	}
	return breakMarks(b.String())
}

// mark matches the block's marks in any letter case.
var mark = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)\[(/?ANAMNESIS_BLOCK)\]`) })

// breakMarks makes the brackets of the block's marks round, so that a quote can neither begin nor end a block.
func breakMarks(s string) string { return mark().ReplaceAllString(s, "($1)") }

// escape matches a terminal's escape sequence: CSI and OSC up to their end, if it is near, as a text must not hide all
// that follows it.
var escape = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\x1b(?:\[[ -?]{0,62}[@-~]|\][^\x07\x1b]{0,1000}(?:\x07|\x1b\\)|\([A-Z0-9]|[ -~])?`)
})

// StripEscapes removes terminal escape sequences.
func StripEscapes(s string) string {
	if strings.IndexByte(s, 0x1b) < 0 {
		return s
	}
	return escape().ReplaceAllString(s, "")
}

// Clip cuts s after at most n runes. It does not mark the cut, so that a clipped
// quote is still a quote.
func Clip(s string, n int) string {
	count := 0
	for i := range s {
		if count == n {
			return strings.TrimRight(s[:i], " ")
		}
		count++
	}
	return s
}

// ClipMarked is Clip with an ellipsis, for text that is not quoted verbatim.
func ClipMarked(s string, n int) string {
	if c := Clip(s, n); len(c) < len(s) {
		return Clip(s, max(n-1, 0)) + "…"
	}
	return s
}

// Shorten returns a text as it is quoted, at most n runes of it, a cut marked.
func Shorten(s string, n int) string { return ClipMarked(Squash(s), n) }

// Word returns a text with an underscore for each character that the name of a tool may not have.
func Word(s string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' {
			return r
		}
		return '_'
	}, s)
}

// OneLine returns a text on one line, at most n bytes of it.
func OneLine(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > n {
		s = CutBytes(s, n) + "…"
	}
	return s
}

// CutBytes returns the first n bytes of a text at most, cut between runes.
func CutBytes(s string, n int) string { return s[:RuneStart(s, n)] }

// Ends keeps the two ends of a text, about n bytes together, cut between runes. between says how
// many bytes are left out, by its %d.
func Ends(text string, n int, between string) string {
	if len(text) <= n {
		return text
	}
	head, tail := RuneStart(text, n/2), RuneStart(text, len(text)-n/2)
	return text[:head] + fmt.Sprintf(between, tail-head) + text[tail:]
}

// HeadTail keeps the beginning and the end of text within about max tokens
// by count, with a line between that says how many bytes are missing. The
// cost is linear in the result, not in the text.
func HeadTail(text string, maxTokens int, count func(string) int) string {
	if maxTokens <= 0 {
		return ""
	}
	const bytesPerToken, rounds = 6, 16
	keep := maxTokens * bytesPerToken
	for range rounds {
		out := cutMiddle(text, keep)
		n := count(out)
		if n <= maxTokens {
			return out
		}
		// Bytes a token differ along a text, so each round takes a tenth more off than the last count asks for.
		keep = min(len(out), keep) * maxTokens / n * 9 / 10
	}
	return ""
}

// cutMiddle keeps about keep bytes of text, two thirds of them at its end:
// the end of an output is where commands say what went wrong.
func cutMiddle(text string, keep int) string {
	if len(text) <= keep {
		return text
	}
	head := RuneStart(text, keep/3)
	tail := RuneStart(text, len(text)-(keep-keep/3))
	return text[:head] + "\n[… " + strconv.Itoa(tail-head) + " bytes not shown …]\n" + text[tail:]
}

// RuneStart moves i back to where a rune starts.
func RuneStart(s string, i int) int {
	i = max(min(i, len(s)), 0)
	// Bytes that are not UTF-8 may have no start of a rune, so that the walk ends after the longest rune.
	for back := 0; back < utf8.UTFMax && i > 0 && i < len(s) && !utf8.RuneStart(s[i]); back++ {
		i--
	}
	return i
}

// quoted matches what a text quotes: in backticks or double quotes, and addresses.
var quoted = regexp.MustCompile("`([^`]+)`|\"([^\"]+)\"|“([^”]+)”|(https?://[^\\s)>\\]`\"”,;]+)")

// Quoted returns what a text quotes: what stands in it between backticks or double quotes, and addresses.
func Quoted(text string) (out []string) {
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1]+m[2]+m[3]+m[4])
	}
	return out
}

package lexical

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxTokenRunes bounds one word; longer runs (base64, minified code) say
	// nothing and are left out of the word leg. Their 4-grams still count.
	maxTokenRunes = 64
	// MaxIndexedRunes bounds what is indexed of one card and read of one
	// query; the rest is stored and shown but not found.
	MaxIndexedRunes = 64 << 10
	gramSize        = 4
)

// ClipRunes cuts s after limit runes.
func ClipRunes(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	n := 0
	for i := range s {
		if n == limit {
			return s[:i]
		}
		n++
	}
	return s
}

// Words calls emit for each word of the text: runs of letters, digits and
// underscores, lower-cased and stemmed. An identifier of several parts yields
// its parts and, unstemmed, itself. Runs of Chinese, Japanese and Korean
// characters give their bigrams.
func Words(s string, emit func(string)) {
	s = ClipRunes(s, MaxIndexedRunes)
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case isCJK(r):
			n = len(s[i:]) - len(strings.TrimLeftFunc(s[i:], isCJK))
			cjkBigrams(s[i:i+n], emit)
		case isWordRune(r):
			n = len(s[i:]) - len(strings.TrimLeftFunc(s[i:], func(q rune) bool { return isWordRune(q) && !isCJK(q) }))
			identifier(s[i:i+n], emit)
		}
		i += n
	}
}

func isWordRune(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.Mn, r)
}

func isCJK(r rune) bool {
	return r >= 0x2e80 && (unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul))
}

func cjkBigrams(run string, emit func(string)) {
	prev := -1
	for i, r := range run {
		if prev >= 0 {
			emit(run[prev : i+utf8.RuneLen(r)])
		}
		prev = i
	}
	if prev == 0 {
		emit(run)
	}
}

// identifier emits the parts of a run of word characters, split at
// underscores and where the case changes: parseHTTPReply2 yields parse, http,
// reply2.
func identifier(run string, emit func(string)) {
	if utf8.RuneCountInString(run) > maxTokenRunes {
		return
	}
	parts := 0
	start := 0
	part := func(end int) {
		if p := strings.Trim(run[start:end], "_"); p != "" {
			parts++
			emit(stem(strings.ToLower(p)))
		}
		start = end
	}
	var prev rune
	for i, r := range run {
		if i > 0 {
			next, _ := utf8.DecodeRuneInString(run[i+utf8.RuneLen(r):])
			switch {
			case r == '_' || prev == '_',
				unicode.IsUpper(r) && (unicode.IsLower(prev) || unicode.IsDigit(prev)),
				unicode.IsUpper(r) && unicode.IsUpper(prev) && unicode.IsLower(next): // the R of HTTPReply
				part(i)
			}
		}
		prev = r
	}
	part(len(run))
	if parts > 1 {
		emit(strings.ToLower(strings.Trim(run, "_")))
	}
}

// Grams calls emit for each character 4-gram of the text, words joined by
// single spaces, packed into a number. Runs of Chinese, Japanese and Korean
// characters give their bigrams instead.
func Grams(s string, emit func(uint64)) {
	s = ClipRunes(s, MaxIndexedRunes)
	var win uint64 // the last four characters
	n := 0         // characters in the window
	push := func(r rune) {
		win = packed(win, r)
		if n++; n >= gramSize {
			emit(win)
		}
	}
	space, prevCJK := true, rune(0)
	for _, r := range s {
		switch {
		case isCJK(r):
			if prevCJK != 0 {
				emit(packed(packed(noGram, prevCJK), r))
			}
			emit(packed(noGram, r))
			prevCJK, n, space = r, 0, true
			continue
		case isWordRune(r) && r != '_':
			if space {
				push(' ')
				space = false
			}
			push(unicode.ToLower(r))
		default:
			space = true
		}
		prevCJK = 0
	}
	push(' ')
}

// noGram begins the code of fewer than four characters: no text's window holds these.
const noGram = 1<<48 | 1<<32 | 1<<16 | 1

// packed appends a character to a window of four, in one number. Characters beyond the basic
// plane share codes with others; grams are evidence in bulk, which tolerates it.
func packed(window uint64, r rune) uint64 { return window<<16 | uint64(uint16(r)) }

// stem takes plural and verb endings off English words of at least four
// letters. It is light on purpose: it never maps unlike words to one (as
// Porter's does with "general" and "generate"), and it leaves short words,
// which in this field are code (if, not, for, its, as), as they are.
func stem(w string) string {
	if len(w) < 4 || strings.Trim(w, "abcdefghijklmnopqrstuvwxyz") != "" {
		return w
	}
	ends := func(suffix string) bool { return strings.HasSuffix(w, suffix) }
	switch {
	case ends("ies") && len(w) > 4:
		w = w[:len(w)-3] + "y"
	case ends("ied") && len(w) > 4:
		w = w[:len(w)-3] + "y" // denied → deny
	case ends("s") && !ends("ss") && !ends("us") && !ends("is"):
		w = w[:len(w)-1]
	}
	for _, suffix := range []string{"ing", "ed"} {
		base, ok := strings.CutSuffix(w, suffix)
		if !ok || len(base) < 3 || !strings.ContainsAny(base, "aeiouy") {
			continue
		}
		if k := len(base) - 1; base[k] == base[k-1] && !strings.ContainsRune("lsz", rune(base[k])) {
			base = base[:k] // running → run
		}
		w = base
		break
	}
	// cache, cached, caches, caching meet without their e.
	if e, ok := strings.CutSuffix(w, "e"); ok && len(e) >= 3 {
		w = e
	}
	return w
}

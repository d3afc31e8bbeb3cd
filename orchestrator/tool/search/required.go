package search

import (
	"bytes"
	"regexp/syntax"
	"slices"
	"strings"
)

const (
	// minText is the length in bytes of the shortest useful text: nearly every file contains
	// all shorter ones.
	minText = 3
	// maxTexts bounds the required texts.
	maxTexts = 16
)

// texts are plain ASCII texts, without control characters, of which every match of an
// expression contains at least one, verbatim or, if anyCase is set, in another case. None:
// unknown.
type texts struct {
	any     []string
	anyCase bool
}

// in reports whether a file's data may contain a match. Most files contain none, and looking for
// a plain text is many times faster than matching an expression line by line.
func (t texts) in(data []byte) bool {
	if len(t.any) == 0 {
		return true
	}
	fold := func(text []byte) []byte { return text }
	if t.anyCase {
		fold = func(text []byte) []byte { return bytes.Map(foldCase, text) }
	}
	data = fold(data)
	return slices.ContainsFunc(t.any, func(text string) bool { return bytes.Contains(data, fold([]byte(text))) })
}

// foldCase maps a character to the lower case letter of ASCII that regexp folds with it.
func foldCase(r rune) rune {
	switch {
	case r >= 'A' && r <= 'Z':
		return r + 'a' - 'A'
	case r == 'ſ':
		return 's'
	case r == '\u212a': // the Kelvin sign
		return 'k'
	}
	return r
}

// required returns the texts that an expression, which regexp accepts, requires.
func required(expr string) texts {
	re, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return texts{}
	}
	var t texts
	if t.any = requiredOf(re, &t.anyCase); shortest(t.any) < minText {
		return texts{}
	}
	return t
}

// requiredOf returns texts of which every match of an expression contains one, and sets anyCase
// if it may be in another case. None: unknown.
func requiredOf(re *syntax.Regexp, anyCase *bool) (any []string) {
	switch re.Op {
	case syntax.OpLiteral:
		*anyCase = *anyCase || re.Flags&syntax.FoldCase != 0
		notPlain := func(r rune) bool { return r < ' ' || r > '~' } // only these have one byte in every encoding
		for _, part := range strings.FieldsFunc(string(re.Rune), notPlain) {
			if len(part) > shortest(any) {
				any = []string{part}
			}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return requiredOf(re.Sub[0], anyCase)
	case syntax.OpRepeat:
		if re.Min > 0 {
			return requiredOf(re.Sub[0], anyCase)
		}
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			one := requiredOf(sub, anyCase)
			if len(one) == 0 || len(any)+len(one) > maxTexts {
				return nil
			}
			any = append(any, one...)
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if one := requiredOf(sub, anyCase); shortest(one) > shortest(any) {
				any = one
			}
		}
	}
	return any
}

// shortest returns the length of the shortest text, 0 if there is none.
func shortest(all []string) int {
	if len(all) == 0 {
		return 0
	}
	return len(slices.MinFunc(all, func(a, b string) int { return len(a) - len(b) }))
}

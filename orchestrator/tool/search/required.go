package search

import (
	"bytes"
	"regexp/syntax"
	"slices"
)

const (
	// minText is the length in bytes of the shortest useful text: nearly every file contains
	// all shorter ones.
	minText = 3
	// maxTextBytes shortens a required text: a file with the whole has its beginning.
	maxTextBytes = 64
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
	var anyCase bool
	p := partsOf(re, &anyCase)
	if p.shortest() < minText {
		return texts{}
	}
	for i, text := range p.any {
		p.any[i] = text[:min(len(text), maxTextBytes)]
	}
	slices.Sort(p.any)
	return texts{any: slices.Compact(p.any), anyCase: anyCase}
}

// parts are the texts of one part of an expression.
type parts struct {
	any   []string
	whole bool // the part matches exactly one of them
}

// nothing is the part that matches the empty text.
func nothing() parts { return parts{any: []string{""}, whole: true} }

// shortest returns the length of the shortest text, 0 if there is none.
func (p parts) shortest() int {
	if len(p.any) == 0 {
		return 0
	}
	return len(slices.MinFunc(p.any, func(a, b string) int { return len(a) - len(b) }))
}

// or returns the more selective part.
func (p parts) or(q parts) parts {
	if q.shortest() > p.shortest() {
		return q
	}
	return p
}

// then returns p followed by q, both whole; false if these are too many texts.
func (p parts) then(q parts) (parts, bool) {
	if len(p.any)*len(q.any) > maxTexts {
		return parts{}, false
	}
	all := parts{whole: true}
	for _, a := range p.any {
		for _, b := range q.any {
			all.any = append(all.any, a+b)
		}
	}
	return all, true
}

// partsOf returns the texts of an expression, and sets anyCase if one of them may be in another
// case.
func partsOf(re *syntax.Regexp, anyCase *bool) parts {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return nothing()
	case syntax.OpLiteral:
		*anyCase = *anyCase || re.Flags&syntax.FoldCase != 0
		return literal(re.Rune)
	case syntax.OpCharClass:
		return class(re.Rune)
	case syntax.OpCapture:
		return partsOf(re.Sub[0], anyCase)
	case syntax.OpPlus:
		return parts{any: partsOf(re.Sub[0], anyCase).any}
	case syntax.OpRepeat:
		if re.Min > 0 {
			return parts{any: partsOf(re.Sub[0], anyCase).any}
		}
	case syntax.OpQuest:
		if p := partsOf(re.Sub[0], anyCase); p.whole && len(p.any) < maxTexts {
			return parts{any: append([]string{""}, p.any...), whole: true}
		}
	case syntax.OpAlternate:
		return alternatives(re.Sub, anyCase)
	case syntax.OpConcat:
		return sequence(re.Sub, anyCase)
	}
	return parts{}
}

// alternatives returns the texts of all alternatives; none if one has none.
func alternatives(subs []*syntax.Regexp, anyCase *bool) parts {
	all := parts{whole: true}
	for _, sub := range subs {
		p := partsOf(sub, anyCase)
		if len(p.any) == 0 || len(all.any)+len(p.any) > maxTexts {
			return parts{}
		}
		all.any = append(all.any, p.any...)
		all.whole = all.whole && p.whole
	}
	return all
}

// sequence returns the texts of the most selective run of neighbours.
func sequence(subs []*syntax.Regexp, anyCase *bool) parts {
	best, run, whole := parts{}, nothing(), true
	for _, sub := range subs {
		p := partsOf(sub, anyCase)
		if p.whole {
			if longer, ok := run.then(p); ok {
				run = longer
				continue
			}
		}
		whole = false
		best = best.or(run).or(p)
		if run = nothing(); p.whole {
			run = p
		}
	}
	if whole {
		return run
	}
	best = best.or(run)
	return parts{any: best.any}
}

// plainText reports whether a character has the same byte in every encoding of a searched
// file.
func plainText(r rune) bool { return r >= ' ' && r <= '~' }

// literal returns the whole text if it is plain, otherwise its longest plain part.
func literal(text []rune) parts {
	longest, from := "", 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) && plainText(text[i]) {
			continue
		}
		if i-from > len(longest) {
			longest = string(text[from:i])
		}
		from = i + 1
	}
	if longest == "" {
		return parts{}
	}
	return parts{any: []string{longest}, whole: len(longest) == len(text)}
}

// class returns the characters of a small class, given as pairs of bounds.
func class(ranges []rune) parts {
	p := parts{whole: true}
	for i := 0; i+1 < len(ranges); i += 2 {
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			if !plainText(r) || len(p.any) == maxTexts {
				return parts{}
			}
			p.any = append(p.any, string(r))
		}
	}
	if len(p.any) == 0 {
		return parts{} // it matches nothing
	}
	return p
}

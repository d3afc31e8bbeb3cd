package repair

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"anamnesis/anamnesis/edit"
	"anamnesis/anamnesis/shell"
)

// inTermsOf adapts earlier repairs to a failed call. In the lines of each match's repair it replaces
// the names in which the two failures differ, and the files that the earlier call was given, by those
// of the failed call. said is the failure's telling line, s its signature.
func inTermsOf(found []match, failed Call, said string, s signature) []match {
	asked, out := mainOf(actions(failed.Command)), failed.Text+failed.Stderr
	adapted := make([]match, 0, len(found))
	for _, p := range found {
		var names [][2]string
		if s.loose == p.sig.loose {
			names = renamed(p.Failure.Line, said)
		}
		k := *p.known
		k.lines = slices.Clone(k.lines)
		for i, l := range k.lines {
			text := l.text
			if l.kind == worked && k.Other && len(k.args) > 0 && len(asked.args) > 0 {
				text = replaceArgs(text, k.args, asked.args)
			}
			for _, r := range names {
				text = replaceName(text, r[0], r[1], out, l.kind == edited)
			}
			if text != l.text {
				k.lines[i].text, k.lines[i].words, k.lines[i].adapted = text, edit.Words(text), true
			}
		}
		k.words = newWords(k.lines, edit.WordSet(k.Command+"\n"+k.Failure.Line))
		if len(names) > 0 && !slices.ContainsFunc(k.lines, func(l line) bool { return l.adapted }) { // it is about another name
			if p.fit *= unadapted; p.fit < minMatch {
				continue
			}
			p.near *= unadapted
		}
		adapted = append(adapted, match{&k, p.fit, p.near})
	}
	return adapted
}

// replaceArgs puts the files of one call in the place of those of another, where they
// stand there one after another.
func replaceArgs(text string, old, now []string) string {
	if from := strings.Join(old, " "); strings.Contains(text, from) {
		return strings.Replace(text, from, strings.Join(now, " "), 1)
	}
	return text
}

// renamed returns the names that two failures' lines differ in, each whole and, where it
// is of several parts, its last part.
func renamed(old, now string) (out [][2]string) {
	a, b := strings.Fields(old), strings.Fields(now)
	if len(a) != len(b) {
		return nil
	}
	for i := range a {
		x, y := strings.Trim(a[i], marks), strings.Trim(b[i], marks)
		if x == y || !nameLike().MatchString(x) || !nameLike().MatchString(y) {
			continue
		}
		out = append(out, [2]string{x, y})
		if p, q := lastPart().FindString(x), lastPart().FindString(y); len(p) > 3 && len(q) > 3 && p != q {
			out = append(out, [2]string{p[1:], q[1:]})
		}
	}
	return out
}

// marks surround a name in a failure's line.
const marks = "'\"`()[]{},;:"

var (
	plain    = shell.Pattern(`^[a-z]+$`)
	lastPart = shell.Pattern(`_[A-Za-z0-9]+$`)
	nameLike = shell.Pattern(`^[A-Za-z_][\w./-]+$`)
)

// replaceName puts a name in the place of another, spelled as the output spells it or, if
// it does not, with the other's capital. A plain word of code stays.
func replaceName(text, old, now, output string, code bool) string {
	if !strings.Contains(strings.ToLower(text), strings.ToLower(old)) {
		return text
	}
	return regexp.MustCompile(`(?i)\b`+regexp.QuoteMeta(old)+`\b`).ReplaceAllStringFunc(text, func(was string) string {
		if code && plain().MatchString(was) {
			return was
		}
		if was == old {
			return now
		}
		for _, as := range regexp.MustCompile(`(?i)\b`+regexp.QuoteMeta(now)+`\b`).FindAllString(output, -1) {
			if as != now {
				return as
			}
		}
		if unicode.IsUpper(rune(was[0])) {
			return strings.ToUpper(now[:1]) + now[1:]
		}
		return now
	})
}

package repair

import (
	"regexp"
	"strings"

	"anamnesis/anamnesis/failure"
)

// adapt returns what puts the lines of an earlier repair in terms of a failed call: the
// names that the two failures differ in, and the files that both calls were given.
// It reports whether it changed the line.
func adapt(f failure.Failure, command string, s signature) func(*known, line) (string, bool) {
	asked := mainOf(actions(command))
	return func(k *known, l line) (string, bool) {
		text := l.text
		if l.kind == worked && k.Other && len(k.args) > 0 && len(asked.args) > 0 {
			text = replaceArgs(text, k.args, asked.args)
		}
		if s.loose == k.sig.loose && (l.kind == worked || l.kind == before) {
			for _, r := range renamed(k.Failure.Line, f.Line) {
				text = replaceName(text, r[0], r[1])
			}
		}
		if old, now, ok := CutChanged(text); ok && l.kind == edited {
			return "- " + strings.TrimSpace(old) + "\n+ " + strings.TrimSpace(now), false
		}
		if l.kind == edited {
			return "+ " + text, false
		}
		return text, text != l.text
	}
}

// replaceArgs puts the files of one call in the place of those of another, where they
// stand there one after another.
func replaceArgs(text string, old, now []string) string {
	if from := strings.Join(old, " "); strings.Contains(text, from) {
		return strings.Replace(text, from, strings.Join(now, " "), 1)
	}
	return text
}

// renamed returns the names that two failures' lines differ in, quoted in both.
func renamed(old, now string) (out [][2]string) {
	a, b := quoted().FindAllString(old, -1), quoted().FindAllString(now, -1)
	if len(a) != len(b) {
		return nil
	}
	for i := range a {
		if x, y := a[i][1:len(a[i])-1], b[i][1:len(b[i])-1]; x != y && nameLike().MatchString(x) && nameLike().MatchString(y) {
			out = append(out, [2]string{x, y})
		}
	}
	return out
}

var nameLike = lazy(`^[\w./-]{2,}$`)

func replaceName(text, old, now string) string {
	return regexp.MustCompile(`(^|\W)`+regexp.QuoteMeta(old)+`(\W|$)`).ReplaceAllString(text, "${1}"+strings.ReplaceAll(now, "$", "$$")+"${2}")
}

package edit

import (
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
)

const (
	maxCompared = 250_000 // pairs of lines that a rewrite compares
	alike       = 0.4     // share of words of a line and the one that took its place, of fewer
)

// Rewritten returns the lines of now that old lacks, each in its order. Lines that took
// the place of as many others are made by [ChangedLine]; where now lacks lines of old and
// has no others, each of those became nothing.
func Rewritten(old, now []string) (out []string) {
	blank := func(l string) bool { return strings.TrimSpace(l) == "" }
	old, now = slices.DeleteFunc(slices.Clone(old), blank), slices.DeleteFunc(slices.Clone(now), blank)
	if len(old)*len(now) > maxCompared {
		return slices.DeleteFunc(now, func(l string) bool { return slices.Contains(old, l) })
	}
	same := make([][]int, len(old)+1) // lines that the rest of both have in common
	for i := range same {
		same[i] = make([]int, len(now)+1)
	}
	for i := len(old) - 1; i >= 0; i-- {
		for k := len(now) - 1; k >= 0; k-- {
			if old[i] == now[k] {
				same[i][k] = same[i+1][k+1] + 1
			} else {
				same[i][k] = max(same[i+1][k], same[i][k+1])
			}
		}
	}
	for i, k := 0, 0; i < len(old) || k < len(now); i, k = i+1, k+1 {
		from, at := i, k
		for i < len(old) && k < len(now) && old[i] != now[k] || i == len(old) != (k == len(now)) {
			if k == len(now) || i < len(old) && same[i+1][k] >= same[i][k+1] {
				i++
			} else {
				k++
			}
		}
		gone, came := old[from:i], now[at:k]
		switch {
		case len(gone) == len(came) || len(came) == 0:
			came = append(slices.Clone(came), make([]string, len(gone)-len(came))...)
			for n := range gone {
				out = append(out, ChangedLine(gone[n], came[n]))
			}
		default:
			for n, l := range came {
				if n < len(gone) && Overlap(WordSet(gone[n]), WordSet(l)) >= alike {
					l = ChangedLine(gone[n], l)
				}
				out = append(out, l)
			}
		}
	}
	return out
}

var (
	replacing  = shell.Pattern(`^(?:[\d,$]*|/[^/]*/)\s*s([/|#,@!~%])`)
	insertion  = shell.Pattern(`(?s)^(?:[\d,$]*|/[^/]*/(?:,/[^/]*/)?)\s*[aic]\s*\\?\s*\n?(.*)$`)
	sedEscape  = shell.Pattern(`\\([/.*\[\]$^&|#"'()])`)
	sedPattern = shell.Pattern(`(^|[^\\])(\\\\)*(\.?\*|\[\^?[^\]]+\]|\\[(+?\w])`)
)

// minChanged is how many bytes a substitution changes that tells something without the
// rest of its line.
const minChanged = 6

// sedChange is what an edit by sed changed, where its script is one substitution, one insertion
// or deletes the lines with a text; else its command. Lines that are deleted by their number tell nothing.
func sedChange(command string) Change {
	fields := slices.DeleteFunc(shell.Fields(command)[1:], func(f string) bool { return strings.HasPrefix(f, "-") })
	if len(fields) != 2 {
		return Change{Added: []string{command}}
	}
	script, file := fields[0], fields[1]
	if byNumber().MatchString(script) {
		return Change{}
	}
	if m := byText().FindStringSubmatch(script); m != nil {
		return Change{Path: file, Added: []string{ChangedLine(m[1], "")}, Removed: []string{m[1]}}
	}
	if old, now, ok := substituted(script); ok {
		return Change{Path: file, Added: Rewritten(strings.Split(old, "\n"), strings.Split(now, "\n")), Removed: []string{old}}
	}
	if m := insertion().FindStringSubmatch(script); m != nil {
		lines := strings.Split(strings.ReplaceAll(m[1], `\n`, "\n"), "\n")
		for i, l := range lines {
			lines[i] = strings.ReplaceAll(strings.TrimSuffix(l, `\`), `\\`, `\`)
		}
		return Change{Path: file, Added: lines}
	}
	return Change{Added: []string{command}}
}

var (
	byNumber = shell.Pattern(`^\d+(,\d+)?d$`)
	byText   = shell.Pattern(`^/([^/\\.*\[\]^$]{6,})/d$`)
)

// substituted reads a substitution of sed, where it is one of plain texts.
func substituted(script string) (old, now string, ok bool) {
	m := replacing().FindStringSubmatchIndex(script)
	if m == nil {
		return "", "", false
	}
	parts := []string{""}
	mark := script[m[2]]
	for i := m[1]; i < len(script); i++ {
		switch c := script[i]; {
		case c == mark:
			parts = append(parts, "")
		case c == '\\' && i+1 < len(script):
			i++
			parts[len(parts)-1] += script[i-1 : i+1]
		default:
			parts[len(parts)-1] += string(c)
		}
	}
	if len(parts) != 3 || len(parts[0]+parts[1]) < minChanged {
		return "", "", false
	}
	plain := func(s string) string {
		s = strings.NewReplacer(`\x27`, "'", `\x22`, `"`, `\n`, "\n", `\t`, "\t").Replace(s)
		return sedEscape().ReplaceAllString(s, "$1")
	}
	old, now = strings.NewReplacer(`\x27`, "'", `\x22`, `"`).Replace(parts[0]), parts[1]
	old = strings.TrimPrefix(old, "^")
	if end := strings.TrimSuffix(old, "$"); !strings.HasSuffix(end, `\`) {
		old = end
	}
	if sedPattern().MatchString(old) || backReference().MatchString(now) {
		return "", "", false
	}
	return plain(old), plain(now), true
}

var backReference = shell.Pattern(`\\\d|(^|[^\\])&`)

// What a Python program that edits a file holds.
var (
	opened   = shell.Pattern(`(?:\bopen|\bPath)\(\s*['"]([^'"]+)['"]|^\s*\w+\s*=\s*['"]([\w./-]+\.\w+)['"]`)
	writes   = shell.Pattern(`\.write(?:lines|_text)?\(|['"][wa]['"]\s*[,)]`)
	literal  = `[rbu]?(?:"""((?s:.*?))"""|'''((?s:.*?))'''|"((?:\\.|[^"\\\n])*)"|'((?:\\.|[^'\\\n])*)'|(\w+))`
	replaces = shell.Pattern(`\.replace\(\s*` + literal + `\s*,\s*` + literal)
	bound    = shell.Pattern(`(?m)^\s*(\w+)\s*=\s*` + literal)
)

// scripted returns what a program in Python changes in the file that it names, as far as
// its text says so.
func scripted(program string) Change {
	var c Change
	if !writes().MatchString(program) {
		return c
	}
	for l := range strings.SplitSeq(program, "\n") {
		if m := opened().FindStringSubmatch(l); m != nil {
			c.Path = m[1] + m[2]
			break
		}
	}
	texts := map[string]string{}
	for _, m := range bound().FindAllStringSubmatch(program, -1) {
		if m[6] == "" {
			texts[m[1]] = literalText(m[2:7])
		}
	}
	value := func(m []string) (string, bool) {
		if m[4] != "" {
			s, ok := texts[m[4]]
			return s, ok
		}
		return literalText(m), true
	}
	for _, m := range replaces().FindAllStringSubmatch(program, -1) {
		old, ok := value(m[1:6])
		now, also := value(m[6:11])
		if ok && also && len(old+now) >= minChanged {
			c.Removed = append(c.Removed, strings.Split(old, "\n")...)
			c.Added = append(c.Added, Rewritten(strings.Split(old, "\n"), strings.Split(now, "\n"))...)
		}
	}
	if c.Path == "" || len(c.Added) == 0 {
		return Change{}
	}
	return c
}

// literalText is the value of a literal of Python that a pattern found in one of its forms.
func literalText(m []string) string {
	if long := m[0] + m[1]; long != "" {
		return long
	}
	return strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`, `\'`, "'", `\\`, `\`).Replace(m[2] + m[3])
}

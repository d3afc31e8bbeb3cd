// Package edit reads what commands changed: which lines files gained and lost, as far as the
// text of a shell command says so.
package edit

import (
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
)

var (
	SedInPlace = shell.Pattern(`^sed\s+(?:-\w+\s+)*-\w*i`)
	lineEditor = shell.Pattern(`(?s)^\s*(?:edit|insert)\b[^\n]*\n(.*?)(?:\nend_of_(?:edit|insert)|$)`)
	echoed     = shell.Pattern(`^(?:echo|printf)\s+(?:-\w+\s+)?(['"])(?s:(.*))(['"])\s*(>>?)\s*(\S+)$`)
)

// Change is what one file gained.
type Change struct {
	Path    string
	Added   []string // each a line, or one made by [ChangedLine]
	Removed []string // lines that the change took out
	Whole   []string // the file's lines, where the change wrote all of it
}

const arrow = " → "

// ChangedLine is the line of a [Change] in which now took the place of old.
func ChangedLine(old, now string) string { return old + arrow + now }

// CutChanged splits a line that [ChangedLine] made.
func CutChanged(line string) (old, now string, ok bool) { return strings.Cut(line, arrow) }

// Overwrite adds later changes, and drops the lines that they took out again.
func Overwrite(changes, later []Change) []Change {
	for _, l := range later {
		removed, whole, added := trimmed(l.Removed), trimmed(l.Whole), trimmed(l.Added)
		again := map[string]bool{} // lines that it changes from what they were at first
		for _, line := range l.Added {
			if old, _, ok := CutChanged(line); ok {
				again[strings.TrimSpace(old)] = true
			}
		}
		for i, c := range changes {
			if !SamePath(c.Path, l.Path) {
				continue
			}
			changes[i].Added = slices.DeleteFunc(slices.Clone(c.Added), func(line string) bool {
				if old, now, ok := CutChanged(line); ok {
					if again[strings.TrimSpace(old)] {
						return true
					}
					line = now
				}
				line = strings.TrimSpace(line)
				return removed[line] || l.Whole != nil && (!whole[line] || added[line])
			})
		}
		changes = append(changes, l)
	}
	return changes
}

func trimmed(lines []string) map[string]bool {
	set := map[string]bool{}
	for _, l := range lines {
		set[strings.TrimSpace(l)] = true
	}
	return set
}

// SamePath reports whether two paths, of which one may be relative to the run's
// directory, probably name one file.
func SamePath(a, b string) bool {
	return a == b || strings.HasSuffix(a, "/"+b) || strings.HasSuffix(b, "/"+a)
}

// Files holds the lines of files that a run wrote or printed.
type Files map[string][]string

// Wrote notes a change. Of a file written whole it keeps the lines that the file lacked.
func (f Files) Wrote(c *Change) {
	if c.Whole == nil {
		lines, cloned := f[c.Path], false
		for i, l := range c.Added {
			if old, now, ok := CutChanged(l); ok {
				if !cloned {
					c.Added, cloned = slices.Clone(c.Added), true
				}
				c.Added[i] = f.widened(c.Path, old, now)
				old, l, _ = CutChanged(c.Added[i])
				lines = slices.DeleteFunc(lines, func(had string) bool { return had == old })
			}
			lines = append(lines, l)
		}
		f[c.Path] = lines
		return
	}
	had := trimmed(f[c.Path])
	f[c.Path] = slices.Clone(c.Whole)
	c.Added = slices.DeleteFunc(slices.Clone(c.Added), func(l string) bool { return had[strings.TrimSpace(l)] })
}

// widened is a changed line with the rest of its line, if the file is known to have one line that
// holds the part which a substitution names.
func (f Files) widened(file, old, now string) string {
	whole := ""
	for _, l := range f[file] {
		if part := strings.TrimRight(l, " \t\r"); old != "" && strings.Contains(part, old) && part != whole {
			if whole != "" {
				return ChangedLine(old, now)
			}
			whole = part
		}
	}
	if whole == "" || len(whole) > maxWidened {
		return ChangedLine(old, now)
	}
	return ChangedLine(whole, strings.Replace(whole, old, now, 1))
}

// maxWidened bounds the bytes of a line that is quoted for a part of it.
const maxWidened = 200

// Of returns what a command's text says that it changed.
func Of(command string) []Change {
	var out []Change
	if m := lineEditor().FindStringSubmatch(command); m != nil {
		return []Change{{Added: strings.Split(m[1], "\n")}}
	}
	body, docs := shell.Heredocs(command)
	for _, d := range docs {
		if python(d) {
			if c := scripted(strings.Join(d.Lines, "\n")); len(c.Added) > 0 {
				out = append(out, c)
			}
		}
		if d.File == "" {
			continue
		}
		change := Change{Path: d.File, Added: d.Lines}
		if !d.Appended {
			change.Whole = d.Lines
		}
		out = append(out, change)
	}
	for _, p := range shell.Parts(body) {
		switch {
		case SedInPlace().MatchString(p.Text):
			if c := sedChange(p.Text); len(c.Added) > 0 {
				out = append(out, c)
			}
		default:
			if m := echoed().FindStringSubmatch(p.Text); m != nil {
				out = append(out, Change{Path: m[5], Added: strings.Split(m[2], "\n")})
			}
		}
	}
	return out
}

// Printed adds the lines of a file that a command printed, or a file tool that read the file,
// so that a file written whole after it counts with its new lines only.
func (f Files) Printed(command, read, text string) {
	if m := printing().FindStringSubmatch(command); m != nil {
		f[m[1]] = slices.Concat(f[m[1]], strings.Split(text, "\n"))
	}
	if read != "" {
		f[read] = slices.Concat(f[read], strings.Split(numbered().ReplaceAllString(text, ""), "\n"))
	}
}

var (
	// printing recognises commands that print lines of one file.
	printing = shell.Pattern(`^(?:cd \S+ && )?(?:cat|head|tail|sed -n)(?:\s+(?:-\w+|\d+|'[\d,$;p ]+'|"[\d,$;p ]+"|[\d,]+p))*\s+([\w./-]+)$`)
	numbered = shell.Pattern(`(?m)^ *\d+(?:→|\t|[|:] ?)`) // lines, as file tools print them
)

// python reports whether the text is a program in Python that runs, or that a file keeps.
func python(d shell.Heredoc) bool {
	return strings.HasSuffix(d.File, ".py") || d.File == "" && strings.Contains(d.Head, "python")
}

package repair

import (
	"slices"
	"strings"

	"anamnesis/anamnesis/edit"
	"anamnesis/anamnesis/shell"
)

// When two repairs teach the same. The values were chosen on the choose half of the recorded
// runs; see docs/design/replay.md.
const (
	sameShare = 0.5 // of the words of the shorter repair: so many are in the other, too
	sameWords = 3   // that both have in common, at least
)

// Lesson is what a repair teaches, as it is compared with other repairs.
type Lesson struct {
	trouble string   // the repository and the kind of failure
	way     string   // another way to call, with the failure that it is for; else empty
	exact   string   // the failure's signature
	lists   bool     // the command that worked only lists, or prints a version
	changes bool     // lines took the place of others
	remedy  []string // the words of a change, or of a program in the command line
	text    string   // its lines
}

// Lesson returns what a repair teaches. Of a missing program it is the program that worked; that a
// module was made is one lesson, whatever its name. Another way to call is the failure, what was run
// before, and the command that worked without its files and the words of the one that failed. If
// files were changed, it is the kind of failure, whatever names the failure holds, and the words of
// the change.
func (p *Pair) Lesson() Lesson {
	k := newKnown(*p)
	l := Lesson{trouble: p.Repo + "\n" + k.sig.loose, exact: k.sig.exact}
	if k.missing {
		l.trouble = p.Repo + "\n" + k.family + " is missing"
	}
	if p.Made() != "" && slices.ContainsFunc(p.Environment, creates().MatchString) {
		l.way = "create the module"
		return l
	}
	works := mainOf(actions(p.Works))
	l.lists = slices.ContainsFunc(shell.Fields(works.text), listsOnly)
	if len(p.Changes) > 0 || works.inline {
		l.remedy = newWords(k.lines, nil)
		for _, line := range k.lines {
			l.text += line.text + "\n"
		}
		l.changes = slices.ContainsFunc(k.lines, func(l line) bool { _, _, changed := edit.CutChanged(l.text); return changed })
		return l
	}
	had := shell.Fields(p.Command)
	if k.missing {
		l.way = works.program
		return l
	}
	how := slices.DeleteFunc(shell.Fields(works.text), func(w string) bool { return slices.Contains(works.args, w) || slices.Contains(had, w) })
	if how = slices.Concat(p.Environment, how); len(how) > 0 {
		l.way = p.Failure.Signature + "\n" + strings.Join(how, "\n")
	}
	return l
}

// creates recognises commands that create a folder or a file.
var creates = shell.Pattern(`^(?:mkdir|touch) `)

// Trouble names the repository and the kind of failure. Lessons that have others differ.
func (l *Lesson) Trouble() string { return l.trouble }

// Better reports whether a lesson says better what o teaches too: with new lines only, where o also has lines
// that took the place of others, or in fewer words, but in no less than a change needs to be told from
// others, or by a command that does more than to list.
func (l *Lesson) Better(o *Lesson) bool {
	if l.lists != o.lists {
		return o.lists
	}
	if l.changes != o.changes {
		return o.changes && len(l.remedy) >= sameWords
	}
	return len(l.remedy) < len(o.remedy) && len(l.remedy) >= sameWords
}

// Same reports whether two lessons teach the same.
func (l *Lesson) Same(o *Lesson) bool {
	if l.trouble != o.trouble {
		return false
	}
	if l.way != "" || o.way != "" {
		return l.way == o.way
	}
	if l.exact == o.exact && l.text != "" && l.text == o.text {
		return true
	}
	both := 0
	for _, w := range l.remedy {
		if slices.Contains(o.remedy, w) {
			both++
		}
	}
	return (both >= sameWords || both == sameWords-1 && l.exact == o.exact) && float64(both) >= sameShare*float64(min(len(l.remedy), len(o.remedy)))
}

// Package wording writes the cards that no model writes, and reads them back.
package wording

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/anamnesis/edit"
	output "anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/note"
	"anamnesis/anamnesis/quote"
	"anamnesis/anamnesis/repair"
	"anamnesis/anamnesis/shell"
	"anamnesis/knowledge_base/card"
)

// Limits of what such a card says.
const (
	MaxTopicRunes  = 110
	maxChanges     = 3 // files whose changes a solution quotes
	maxRepairLines = 8 // of one change that a solution quotes
	maxLineRunes   = 200
	maxTried       = 3 // attempts that failed
)

// GivenUp begins the solution of a card that knows none.
const GivenUp = "The path was given up"

// BeganForm says how the path of a card began.
const BeganForm = "The path that failed began with: `%s`"

// BeganWith returns the command with which the path began that a card says failed;
// empty where it names none.
func BeganWith(c *card.Card) (command string) {
	for _, s := range c.Constraint {
		if scan(s, BeganForm, &command) {
			return command
		}
	}
	return ""
}

// Quotes reports whether command is how a card quotes the one of a call's arguments.
func Quotes(command, args string) bool {
	ran := shell.Command(args)
	return command == CommandLine(ran) || command == quote.ClipMarked(quote.Squash(ran), note.MaxActionRunes)
}

// heading matches lines of a file that say little of a change: comments, imports,
// prints, brackets alone.
var heading = shell.Pattern(`^\s*((print|console\.log|fmt\.Print\w*)\(|//|#|/?\*|--|try:$|except\b.*:$|traceback\.print_exc|package\b|import\b|from\s+\S+\s+import\b|use\b|"[^"]*"[,;]?\s*$|[\W_]*$)`)

// The forms of a repair card's bullets. [PairOf] reads what Repair writes.
const (
	failedMark    = " failed: "
	sourceForm    = "The assertion: `%s`"
	succeededForm = "`%s` succeeded."
	runBeforeForm = "Run before: `%s`"
	changedForm   = "Changed in %s:%s"
	editedForm    = "Edited: `%s`"
	restForm      = card.RestOf + "%s:%s" // of cards written before they left the rest out
	whyForm       = "Reason, in the agent's words: %s"
	seenForm      = "Seen with %s"
	triedForm     = "Tried without success: %s"
	lineMark      = " ⏎ " // between the changed lines of cards written before these were a block
	diffStart     = "\n```diff\n"
	diffEnd       = "\n```"
	placeMark     = " @ " // in a signature, where the line names only the kind of failure
	placeForm     = " (in %s)"
)

var placed = shell.Pattern(`^(.*) \(in ([^()]+)\)$`)

// Repair words a pair: what failed, what put it right, and what limits that.
func Repair(p repair.Pair) note.Card {
	line := quote.ClipMarked(quote.Squash(p.Failure.Line), note.MaxErrorRunes)
	command := CommandLine(p.Command)
	d := note.Card{Topic: quote.ClipMarked(quote.Squash(p.Failure.Topic()), MaxTopicRunes)}
	if _, place, ok := strings.Cut(p.Failure.Signature, placeMark); ok {
		line += fmt.Sprintf(placeForm, quote.Squash(place))
	}
	d.Issue = []string{quote.ClipMarked("`"+command+"`"+failedMark+line, note.MaxBulletRunes)}
	if strings.Contains(p.Failure.Line, "ssert") && p.Failure.Source != "" && !strings.Contains(line, quote.Squash(p.Failure.Source)) {
		d.Issue = append(d.Issue, fmt.Sprintf(sourceForm, quote.ClipMarked(quote.Squash(p.Failure.Source), note.MaxBulletRunes)))
	}
	if works := quote.ClipMarked(quote.Squash(p.Works), note.MaxActionRunes); !repair.SameCommand(p.Works, p.Command) {
		d.Solution = append(d.Solution, fmt.Sprintf(succeededForm, works))
	}
	for _, e := range p.RunBefore() {
		d.Solution = append(d.Solution, fmt.Sprintf(runBeforeForm, quote.ClipMarked(quote.Squash(e), note.MaxActionRunes)))
	}
	for _, c := range shown(&p) {
		if c.Path == "" { // commands
			for _, l := range c.Added {
				d.Solution = append(d.Solution, fmt.Sprintf(editedForm, quote.ClipMarked(quote.Squash(l), note.MaxActionRunes)))
			}
			continue
		}
		d.Solution = append(d.Solution, fmt.Sprintf(changedForm, filepath.ToSlash(c.Path), diffStart+diffLines(c.Added)+diffEnd))
	}
	d.Solution = d.Solution[:min(len(d.Solution), note.MaxCardBullets)]
	if p.Why != "" {
		d.Solution = append(d.Solution, fmt.Sprintf(whyForm, quote.Squash(p.Why)))
	}
	if len(p.Versions) > 0 {
		d.Constraint = append(d.Constraint, fmt.Sprintf(seenForm, quote.ClipMarked(quote.Squash(strings.Join(p.Versions, "; ")), note.MaxBulletRunes)))
	}
	var said []string
	for _, t := range p.Tried {
		if what := triedIn(&p, t); what != "" && len(said) < maxTried && !slices.Contains(said, what) {
			said = append(said, what)
			d.Constraint = append(d.Constraint, fmt.Sprintf(triedForm, what))
		}
	}
	return d
}

// joined is the first changes, those of one file together, each line once.
func joined(changes []edit.Change) (out []edit.Change) {
	for _, c := range changes[:min(len(changes), note.MaxCardBullets)] {
		i := slices.IndexFunc(out, func(o edit.Change) bool { return o.Path == c.Path })
		if i < 0 {
			i, out = len(out), append(out, edit.Change{Path: c.Path})
		}
		for _, l := range c.Added {
			if !slices.Contains(out[i].Added, l) {
				out[i].Added = append(out[i].Added, l)
			}
		}
	}
	return out
}

// shown is the changes that a solution quotes, and of each the lines: without those that
// say little, and without new tests, where others are left.
func shown(p *repair.Pair) []edit.Change {
	named := map[string]bool{}
	for _, w := range edit.Words(p.Failure.Line + " " + p.Failure.Source + " " + p.Why) {
		named[w] = true
	}
	out := joined(p.Changes)
	if edited := slices.DeleteFunc(slices.Clone(out), func(c edit.Change) bool { return c.Path == "" }); len(edited) > 0 {
		out = edited // an edit by line number says nothing beside the lines of others
	}
	for _, weak := range []func([]string) []string{withoutTests, withoutHeadings} {
		less := make([]edit.Change, 0, len(out))
		for _, c := range out {
			if c.Path == "" {
				less = append(less, c)
			} else if lines := weak(c.Added); len(lines) > 0 {
				less = append(less, edit.Change{Path: c.Path, Added: lines})
			}
		}
		if len(less) > 0 {
			out = less
		}
	}
	if made := p.Made(); made != "" { // other lines are of that task
		out = slices.DeleteFunc(out, func(c edit.Change) bool {
			return !slices.ContainsFunc(c.Added, func(l string) bool { return strings.Contains(l, made) })
		})
		for i := range out {
			out[i].Added = slices.DeleteFunc(slices.Clone(out[i].Added), func(l string) bool { return !strings.Contains(l, made) })
		}
	}
	for i := range out {
		out[i].Added = telling(out[i].Added, named)
	}
	return out[:min(len(out), maxChanges)]
}

// Tells reports whether a card of the pair says what made the difference: whether the lines that
// it quotes do ([repair.Pair.Tells]).
func Tells(p repair.Pair) bool {
	quoted := p
	quoted.Changes = shown(&p)
	return p.Tells() && quoted.Tells()
}

var (
	testStart = shell.Pattern(`^(\s*)(?:async )?(?:def test_\w*\(|func (?:Test|Fuzz|Benchmark)\w*\(|(?:it|test|describe)\(\s*["'\x60]|class Test\w*|fn test_\w*\()`)
	decorator = shell.Pattern(`^\s*@`)
)

// withoutTests is the lines outside of new tests.
func withoutTests(added []string) (out []string) {
	inside, depth := false, 0
	for _, l := range added {
		if m := testStart().FindStringSubmatch(l); m != nil && (!inside || len(m[1]) <= depth) {
			inside, depth = true, len(m[1])
			continue
		}
		indent := len(l) - len(strings.TrimLeft(l, " \t"))
		if inside && (indent > depth || strings.Trim(l, ")}]; \t,") == "") {
			continue
		}
		if inside = false; !decorator().MatchString(l) {
			out = append(out, l)
		}
	}
	return out
}

// withoutHeadings is the lines that say more; of imports, those of names that they use.
func withoutHeadings(added []string) []string {
	weak := func(l string) bool {
		_, _, changed := edit.CutChanged(l)
		return !changed && heading().MatchString(l)
	}
	used := map[string]bool{}
	for _, l := range added {
		if !weak(l) {
			for _, w := range edit.Words(l) {
				used[w] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(added), func(l string) bool {
		imports := imported().FindStringSubmatch(l)
		return weak(l) && (imports == nil || !slices.ContainsFunc(edit.Words(imports[1]), func(w string) bool { return used[w] }))
	})
}

var imported = shell.Pattern(`^\s*(?:from\s+\S+\s+)?(?:import|use)\b(.*)`)

// telling is the lines of a change that a solution quotes: as many in a row as it has
// room for, those that name most of the failure and its reason. A line that took the
// place of another counts as two.
func telling(added []string, named map[string]bool) []string {
	if len(added) <= maxRepairLines {
		return added
	}
	score := func(lines []string) (n int) {
		for _, l := range lines {
			if _, _, changed := edit.CutChanged(l); changed {
				n += 2
			}
			for _, w := range edit.Words(l) {
				if named[w] {
					n++
				}
			}
		}
		return n
	}
	best, at := -1, 0
	for i := range len(added) - maxRepairLines + 1 {
		if n := score(added[i : i+maxRepairLines]); n > best {
			best, at = n, i
		}
	}
	return added[at : at+maxRepairLines]
}

// tells reports whether a line, or the one that took its place, is more than a heading.
func tells(line string) bool {
	old, now, changed := edit.CutChanged(line)
	return !heading().MatchString(line) && (!changed || !heading().MatchString(old) || !heading().MatchString(now))
}

// repairs reports whether the repair holds a tried line, or takes it back.
func repairs(p *repair.Pair, tried string) bool {
	plain := func(l string) string { return strings.ReplaceAll(quote.Squash(l), `"`, "'") }
	old, now, _ := edit.CutChanged(tried)
	return slices.ContainsFunc(p.Changes, func(c edit.Change) bool {
		return slices.ContainsFunc(c.Added, func(l string) bool {
			was, is, changed := edit.CutChanged(l)
			again := changed && old != "" && strings.Contains(plain(was), plain(old)) && strings.Contains(plain(is), plain(now))
			return plain(l) == plain(tried) || again || changed && plain(was) == plain(now) && plain(is) == plain(old)
		})
	})
}

// triedIn is what an attempt did that did not help, in short: what it changed, the
// commands it ran for it, or, where the repair is another way of calling, the way that it
// called. Empty: it only ran the check again.
func triedIn(p *repair.Pair, t repair.Attempt) string {
	var parts []string
	for _, c := range joined(t.Changes) {
		lines := slices.DeleteFunc(withoutHeadings(c.Added), func(l string) bool { return repairs(p, l) })
		if len(lines) == 0 {
			continue
		}
		first := lines[max(0, slices.IndexFunc(lines, tells))]
		line := quote.Squash(first)
		if old, now, ok := edit.CutChanged(first); ok {
			line = quote.ClipMarked(quote.Squash(old), maxLineRunes/2) + "` → `" + quote.ClipMarked(quote.Squash(now), maxLineRunes/2)
		}
		what := "`" + quote.ClipMarked(line, maxLineRunes) + "`"
		if c.Path != "" {
			what = "in " + filepath.ToSlash(c.Path) + ", " + what
		}
		if more := len(lines) - 1; more > 0 {
			what += fmt.Sprintf(" and %d more of its lines", more)
		}
		parts = append(parts, what)
	}
	for _, e := range t.Environment {
		parts = append(parts, "`"+quote.ClipMarked(quote.Squash(e), note.MaxActionRunes)+"`")
	}
	same := func(c string) bool { return repair.SameCommand(c, t.Command) }
	if calls := len(p.Changes)+len(p.Environment) == 0; parts == nil && calls && !same(p.Command) && !same(p.Works) {
		parts = []string{"`" + CommandLine(t.Command) + "`"}
	}
	return quote.ClipMarked(strings.Join(parts, "; "), note.MaxBulletRunes)
}

// CommandLine is a command as a card quotes it.
func CommandLine(command string) string {
	return quote.ClipMarked(quote.Squash(repair.Essence(command)), note.MaxActionRunes)
}

// diffLines is the lines of a change as a diff shows them.
func diffLines(added []string) string {
	var out []string
	for _, l := range added {
		if old, now, ok := edit.CutChanged(l); ok {
			out = append(out, "-"+codeLine(old))
			if l = now; l == "" {
				continue
			}
		}
		out = append(out, "+"+codeLine(l))
	}
	return strings.Join(out, "\n")
}

// codeLine is a line of code as a card quotes it, with its indentation.
func codeLine(l string) string {
	code := strings.TrimLeft(l, " \t")
	return l[:len(l)-len(code)] + quote.ClipMarked(quote.Squash(code), maxLineRunes)
}

// addedIn reads back what diffLines wrote.
func addedIn(diff string) (added []string) {
	old := ""
	for l := range strings.SplitSeq(diff, "\n") {
		switch {
		case strings.HasPrefix(l, "-"):
			if old != "" {
				added = append(added, edit.ChangedLine(old, ""))
			}
			old = l[1:]
		case strings.HasPrefix(l, "+") && old != "":
			added, old = append(added, edit.ChangedLine(old, l[1:])), ""
		case strings.HasPrefix(l, "+"):
			added = append(added, l[1:])
		}
	}
	if old != "" {
		added = append(added, edit.ChangedLine(old, ""))
	}
	return added
}

// tried finds what a solution names to be run or changed.
var tried = shell.Pattern("`([^`]+)`|^Changed in ([^:]+):")

// Tries returns what a solution names to be run or changed; neither the lines of a
// change nor a reason name any.
func Tries(solution string) (out []string) {
	var why string
	if scan(solution, whyForm, &why) {
		return nil
	}
	head, _, _ := strings.Cut(solution, "\n")
	for _, m := range tried().FindAllStringSubmatch(head, -1) {
		out = append(out, m[1]+m[2])
	}
	return out
}

// PairOf reads a repair back from a card: one whose issue quotes the error of a
// command that failed and that says what to do about it. Cards that a model or a user
// wrote are read the same, each solution as a line.
func PairOf(c *card.Card) (p repair.Pair, ok bool) {
	for _, issue := range c.Issue {
		command, line, is := strings.Cut(issue, failedMark)
		if is && line != "" {
			p.Command, p.Failure = strings.Trim(command, "`"), output.Failure{Line: line, Signature: output.Normal(line)}
			if m := placed().FindStringSubmatch(line); m != nil {
				p.Failure.Line, p.Failure.Signature = m[1], output.Normal(m[1])+placeMark+m[2]
			}
			break
		}
	}
	p.Run, p.Repo, p.Card, p.Trusted, p.Works = c.SourceTask, c.Scope.Repo, c.ID, c.State == card.Reviewed, p.Command
	if r := c.Provenance.Ranges; len(r) > 0 {
		p.Failed, p.Fixed = int(r[0].First), int(r[len(r)-1].Last)
	}
	for _, s := range c.Solution {
		var a, b string
		switch {
		case scan(s, succeededForm, &a):
			p.Works = a
		case scan(s, runBeforeForm, &a):
			p.Environment = append(p.Environment, a)
		case scan(s, changedForm, &a, &b):
			c := edit.Change{Path: a}
			if diff, ok := strings.CutPrefix(b, diffStart); ok {
				c.Added = addedIn(strings.TrimSuffix(diff, diffEnd))
			} else {
				c.Added = strings.Split(strings.TrimSpace(b), lineMark)
			}
			p.Changes = append(p.Changes, c)
		case scan(s, restForm, &a, &b):
			lines := addedIn(strings.TrimSuffix(strings.TrimPrefix(b, diffStart), diffEnd))
			if i := slices.IndexFunc(p.Changes, func(c edit.Change) bool { return c.Path == a }); i >= 0 {
				p.Changes[i].Added = append(p.Changes[i].Added, lines...)
			} else {
				p.Changes = append(p.Changes, edit.Change{Path: a, Added: lines})
			}
		case scan(s, whyForm, &a):
			p.Why = a
		case scan(s, editedForm, &a):
			p.Changes = append(p.Changes, edit.Change{Added: []string{a}})
		case !strings.HasPrefix(s, GivenUp) && !strings.HasPrefix(s, card.ModelSays):
			p.Changes = append(p.Changes, edit.Change{Added: []string{s}})
		}
	}
	p.Other = repair.OtherProgram(p.Command, p.Works)
	return p, p.Failure.Line != "" && p.Changed()
}

// scan reads what form was filled with. Each but the last value ends where the text
// that follows it in the form first occurs.
func scan(s, form string, values ...*string) bool {
	parts := strings.Split(form, "%s")
	s, ok := strings.CutPrefix(s, parts[0])
	if !ok {
		return false
	}
	for i, v := range values[:len(values)-1] {
		if *v, s, ok = strings.Cut(s, parts[i+1]); !ok {
			return false
		}
	}
	*values[len(values)-1], ok = strings.CutSuffix(s, parts[len(values)])
	return ok
}

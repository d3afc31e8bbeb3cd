// Package repair finds, in a sequence of calls, what made a failed call
// succeed later, and finds the earlier repair that fits a new failure. It
// knows calls and texts, no operations and no cards.
package repair

import (
	"slices"
	"strings"
	"unicode"

	"anamnesis/anamnesis/edit"
	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/shell"
)

const (
	// maxRanBetween is the longest command, in bytes, that counts as a repair because nothing
	// else ran in between.
	maxRanBetween = 200
	// window is the number of calls after a failure in which its repair is looked for.
	window = 30
)

// Call is one finished call.
type Call struct {
	failure.Output
	// Changes are the call's changes to files, as snapshots show them. If nil, edits are read
	// from the command's text.
	Changes []edit.Change
	Read    string // the file that a file tool printed
	// Undone reports that a jump left the call's path. Such a call repairs a failure only if
	// its command is the failed one.
	Undone bool
	Said   string // the agent's words with which it made the call
}

// Run is one task's calls in their order, whatever branch they were made on.
type Run struct {
	ID, Repo string
	Request  string
	Calls    []Call
}

// Pair is a failed call and the later call that succeeded.
type Pair struct {
	Run, Repo     string
	Card          string `json:"-"` // id of the card about it, if there is one
	Trusted       bool   `json:"-"` // a user reviewed the card
	Words         string `json:"-"` // how far it may be believed, in words; if empty, by Trusted
	Failed, Fixed int    // numbers of the calls, from 0
	Failure       failure.Failure
	Command       string // that failed
	Works         string // that succeeded
	Other         bool   // Works is another way of calling, not the same command
	Instead       bool   // Works was the first call after a jump that left the failed call's path
	Changes       []edit.Change
	Environment   []string // commands between that changed the environment
	Versions      []string
	Tried         []Attempt // what did not help
	Why           string    // the agent's words with the call of Works
}

// known is a stored pair in the form in which failures are compared.
type known struct {
	Pair
	problem
	lines []line
	words []string // of the lines, without those that the failure shows
}

// Attempt is a failing call between a failure and its repair, with the changes before it that
// did not help.
type Attempt struct {
	Command, Signature string
	Changes            []edit.Change
	Environment        []string
}

// unstarted recognises failures of a program that did not start its work.
var unstarted = shell.Pattern(`(?i)command not found|no module named|not recognized as|cannot find module|executable file not found|no such file or directory|file or directory not found|can't open file|unrecognized arguments|invalid option|unknown (command|option|flag)|usage:`)

// missing recognises failures because the program is not installed.
var missing = shell.Pattern(`(?i)command not found|no module named|not recognized as|executable file not found`)

// Pairs returns the repairs of a run, one for each chain of failures of nearly
// the same command. It is no repair if the working command then fails in the same way.
func Pairs(r Run) []Pair {
	w := newWalk(r)
	var out []Pair
	for i := range r.Calls {
		if w.failed[i] == nil || w.inChain(i) {
			continue
		}
		if p, ok := w.pair(i); ok {
			out = append(out, p)
		}
	}
	return out
}

// walk holds what is known of each call of a run.
type walk struct {
	run     Run
	failed  []*failure.Failure
	main    []action
	all     [][]action
	changes [][]edit.Change
	removed []string // files that the run removed
}

func newWalk(r Run) *walk {
	w := &walk{run: r}
	written := edit.Files{}
	for _, c := range r.Calls {
		all := actions(c.Command)
		var failed *failure.Failure
		if f, ok := failure.Read(c.Output); ok {
			if lesson, _ := failure.Lesson(c.Output); lesson {
				failed = &f
			}
		}
		w.failed = append(w.failed, failed)
		w.main = append(w.main, mainOf(all))
		w.all = append(w.all, all)
		changes := slices.Clone(c.Changes)
		if changes == nil {
			changes = edit.Of(c.Command)
		}
		for k := range changes {
			written.Wrote(&changes[k])
		}
		written.Printed(c.Command, c.Read, c.Text)
		w.changes = append(w.changes, changes)
		w.cleanUp(all)
	}
	return w
}

// same reports whether call j runs what call i ran.
func (w *walk) same(i, j int) bool {
	lost := w.failed[i] != nil && unstarted().MatchString(w.failed[i].Line)
	return slices.ContainsFunc(w.all[j], func(a action) bool { return near(w.main[i], a, lost) })
}

// inChain reports whether an earlier failure, not repaired before call i, was
// of nearly the same command.
func (w *walk) inChain(i int) bool {
	for j := i - 1; j >= max(0, i-window); j-- {
		if !w.same(j, i) {
			continue
		}
		return w.failed[j] != nil
	}
	return false
}

func (w *walk) pair(i int) (Pair, bool) {
	calls := w.run.Calls
	p := Pair{Run: w.run.ID, Repo: w.run.Repo, Failed: i, Failure: *w.failed[i], Command: calls[i].Command, Fixed: -1}
	var changes, left []edit.Change // left: of the paths that a jump left
	until := -1                     // the first later call that failed otherwise
	for j := i + 1; j < min(len(calls), i+1+window); j++ {
		if calls[j].Undone {
			left = edit.Overwrite(left, w.changes[j])
		} else {
			changes = edit.Overwrite(changes, w.changes[j])
		}
		if w.failed[j] == nil {
			p.Environment = append(p.Environment, environmentOf(calls[j].Command)...)
		}
		if versionAsked().MatchString(calls[j].Command) && w.failed[j] == nil {
			p.Versions = append(p.Versions, versionIn(calls[j])...)
		}
		if !w.same(i, j) {
			continue
		}
		if w.failed[j] != nil {
			tried := Attempt{Command: calls[j].Command, Signature: w.failed[j].Signature}
			if calls[j].Undone || tried.Signature == p.Failure.Signature {
				tried.Changes, left = left, nil
			}
			if tried.Signature == p.Failure.Signature { // what was changed so far did not help
				tried.Changes, tried.Environment = append(tried.Changes, changes...), p.Environment
				changes, p.Environment = nil, nil
			}
			p.Tried = append(p.Tried, tried)
			if until < 0 && !calls[j].Undone && tried.Signature != p.Failure.Signature {
				until = j
			} else if tried.Signature == p.Failure.Signature {
				until = -1
			}
			continue
		}
		if calls[j].Undone && !SameCommand(calls[j].Command, p.Command) {
			continue
		}
		p.Fixed, p.Works = j, calls[j].Command
		if calls[j].Undone { // it worked on a path that was left
			changes = slices.Concat(left, changes)
		}
		break
	}
	if p.Fixed < 0 || w.undone(p) || wroteMissing(p, changes) || w.slip(&p) {
		return Pair{}, false
	}
	at := slices.IndexFunc(w.all[p.Fixed], func(a action) bool {
		return near(w.main[i], a, unstarted().MatchString(p.Failure.Line))
	})
	p.Other = !strings.EqualFold(w.all[p.Fixed][at].program, w.main[i].program)
	p.Works = w.all[p.Fixed][at].text
	p.Instead = calls[i].Undone && !calls[p.Fixed].Undone && calls[p.Fixed-1].Undone
	if until >= 0 {
		changes = madeBy(changes, w.changes[i+1:until+1])
	}
	if !p.Other { // another way of calling needs no change of files
		p.Changes = cutDelta(p.aboutMissing(w.helped(changes, &p)), p.Command+"\n"+calls[i].Text+calls[i].Stderr)
	}
	if p.Environment = p.ranBefore(); len(p.Changes)+len(p.Environment) == 0 && p.sameCommand() {
		p.Environment = w.ranBetween(&p)
	}
	if w.tookBack(&p) || w.mended(&p) || !p.Other && len(p.Changes)+len(p.Environment) == 0 && w.again(p) {
		return Pair{}, false
	}
	p.Versions = first(p.ownVersions(), 2)
	p.Why = w.reason(&p)
	return p, true
}

// ranBefore returns the first commands that changed the environment, each once and without those that the failed
// command holds itself.
func (p *Pair) ranBefore() []string {
	out := slices.DeleteFunc(unique(p.Environment), func(e string) bool { return strings.Contains(p.Command, e) })
	for i, e := range out {
		out[i] = strings.Replace(e, "mkdir -p ", "mkdir ", 1)
	}
	return first(unique(out), 4)
}

// ownVersions returns the versions of programs that the failure or its commands name.
func (p *Pair) ownVersions() []string {
	said := edit.WordSet(p.Command + " " + p.Works + " " + p.Failure.Line)
	return slices.DeleteFunc(unique(p.Versions), func(v string) bool {
		return !slices.ContainsFunc(edit.Words(v), func(w string) bool { return said[w] })
	})
}

// madeBy returns the part of the changes that the calls made before the same command failed
// otherwise: later ones were for that failure. If none is left, it returns all.
func madeBy(changes []edit.Change, calls [][]edit.Change) []edit.Change {
	early := map[string]bool{}
	for _, made := range calls {
		for _, c := range made {
			for _, l := range c.Added {
				early[strings.TrimSpace(l)] = true
			}
		}
	}
	var cut []edit.Change
	for _, c := range changes {
		c.Added = slices.DeleteFunc(slices.Clone(c.Added), func(l string) bool { return !early[strings.TrimSpace(l)] })
		if len(c.Added) > 0 {
			cut = append(cut, c)
		}
	}
	if len(cut) == 0 {
		return changes
	}
	return cut
}

// reason returns the sentences with which the agent made the changes before the call that
// succeeded, those that name most of the failure and of what put it right. Of equals, the
// latest. Where another program was called for a missing one, they name either.
func (w *walk) reason(p *Pair) string {
	k := newKnown(*p)
	about := edit.WordSet(p.Failure.Line)
	for _, l := range k.lines {
		for _, word := range l.words {
			about[word] = true
		}
	}
	best, most := "", 1 // one word in common is none
	for j := p.Fixed; j > p.Failed; j-- {
		if j < p.Fixed && len(w.changes[j])+len(environmentOf(w.run.Calls[j].Command)) == 0 {
			continue
		}
		if said, n := reasonIn(w.run.Calls[j].Said, p.Failure.Line, about); n > most {
			best, most = said, n
		}
	}
	if called := append(edit.Words(mainOf(actions(p.Command)).family()), edit.Words(mainOf(actions(p.Works)).family())...); p.General() &&
		!slices.ContainsFunc(edit.Words(best), func(word string) bool { return slices.Contains(called, word) }) {
		return "" // it is about the arguments
	}
	return best
}

// ranBetween returns the one command that ran between the last failure of a command and its success, if nothing
// else did but to look.
func (w *walk) ranBetween(p *Pair) (ran []string) {
	for j := p.Fixed - 1; j >= p.Failed && !w.same(p.Failed, j); j-- {
		c := &w.run.Calls[j]
		if c.Command == "" || shell.LooksOnly(c.Command) || shell.LooksOnly(mainOf(actions(c.Command)).program) {
			continue
		}
		if parts := shell.Parts(c.Command); w.failed[j] != nil || c.Undone || len(parts) > 1 || len(c.Command) > maxRanBetween || len(ran) > 0 {
			return nil
		}
		ran = append(ran, c.Command)
	}
	return ran
}

// undone reports whether the command that worked failed again the same way.
func (w *walk) undone(p Pair) bool {
	for j := p.Fixed + 1; j < len(w.run.Calls); j++ {
		if f := w.failed[j]; f != nil && f.Signature == p.Failure.Signature && near(w.main[p.Fixed], w.main[j], false) {
			return true
		}
	}
	return false
}

// again reports whether any later call failed the same way.
func (w *walk) again(p Pair) bool {
	return slices.ContainsFunc(w.failed[p.Fixed:], func(f *failure.Failure) bool { return f != nil && f.Signature == p.Failure.Signature })
}

// cleanUp notes the files that a call removed, and names what it moved by its new place.
func (w *walk) cleanUp(all []action) {
	for _, a := range all {
		switch m := insertsFile().FindStringSubmatch(a.text); {
		case a.program == "rm":
			w.removed = append(w.removed, a.args...)
		case m != nil:
			w.moved(m[1], m[2])
		case (a.program == "mv" || a.program == "cp") && len(a.args) == 2:
			w.moved(a.args[0], a.args[1])
		}
	}
}

// insertsFile matches an edit by sed that inserts a file into another.
var insertsFile = shell.Pattern(`^sed\s+-i\S*\s+['"]?\d*r\s*([^'"\s]+)['"]?\s+(\S+)$`)

func (w *walk) moved(from, to string) {
	for _, changes := range w.changes {
		for i := range changes {
			if changes[i].Path != "" && edit.SamePath(changes[i].Path, from) {
				changes[i].Path = to
			}
		}
	}
}

// helped is the changes without those of files that only helped and that the failed command
// does not name: programs that the calls up to the repair ran, to make an edit or to ask
// something, and files that the run removed.
func (w *walk) helped(changes []edit.Change, p *Pair) []edit.Change {
	ran := map[string]bool{}
	for _, all := range w.all[p.Failed+1 : p.Fixed+1] {
		for _, a := range all {
			if a.script {
				ran[a.program] = true
			} else if testRunner().MatchString(a.program) && len(a.paths) == 1 {
				ran[a.paths[0]] = true
			}
		}
	}
	trial := slices.ContainsFunc(w.removed, func(r string) bool { return strings.Contains(p.Command, r) }) // what it needs was removed with it
	return slices.DeleteFunc(slices.Clone(changes), func(c edit.Change) bool {
		name := c.Path[strings.LastIndexByte(c.Path, '/')+1:]
		removed := !trial && c.Path != "" && slices.ContainsFunc(w.removed, func(r string) bool { return edit.SamePath(r, c.Path) })
		return (c.Whole != nil && ran[name] || removed) && !strings.Contains(p.Command, name)
	})
}

func (p *Pair) sameCommand() bool { return SameCommand(p.Works, p.Command) }

func newKnown(p Pair) *known {
	k := &known{Pair: p, problem: newProblem(p.Repo, p.Command, p.Failure)}
	said := map[string]bool{}
	say := func(as kind, file, text string) {
		text = firstBytes(strings.TrimRight(text, " \t"), maxLineBytes)
		if as != edited {
			text = strings.Join(strings.Fields(text), " ")
		}
		if key := strings.TrimSpace(text); !said[key] {
			said[key] = true
			k.lines = append(k.lines, line{kind: as, file: file, text: text, words: edit.Words(text)})
		}
	}
	if !p.sameCommand() && (p.Other || len(p.Changes) == 0) { // after a change, its other arguments say nothing
		say(worked, "", p.Works)
	}
	for _, e := range p.Environment {
		say(before, "", e)
	}
	for _, c := range p.Changes {
		as := edited
		if c.Path == "" { // a command or a sentence
			as = ""
		}
		for _, l := range c.Added {
			if !chats(l) {
				say(as, c.Path, l)
			}
		}
	}
	k.words = newWords(k.lines, edit.WordSet(p.Command+"\n"+p.Failure.Line))
	return k
}

// newWords returns the words of lines that are not shown.
func newWords(lines []line, shown map[string]bool) (out []string) {
	seen := map[string]bool{}
	for _, l := range lines {
		for _, w := range l.words {
			if !shown[w] && !seen[w] {
				seen[w] = true
				out = append(out, w)
			}
		}
	}
	return out
}

// kind is how a line of a repair is introduced.
type kind string

const (
	worked kind = "run: "       // the command that succeeded
	before kind = "first run: " // a command that changed the environment
	edited kind = "edit"        // a line that a file gained
)

// line is one line of a repair.
type line struct {
	kind
	file    string // of an edited line, where it is known
	text    string
	words   []string
	adapted bool // to the names of another call
}

func environmentOf(command string) (out []string) {
	body, _ := shell.Heredocs(command)
	for _, c := range shell.Parts(body) {
		if environment().MatchString(c.Text) {
			out = append(out, c.Text)
		}
	}
	return out
}

// versionIn is what a call that asked for a version printed, with the command where it
// does not say of what.
func versionIn(c Call) []string {
	l, _, _ := strings.Cut(strings.TrimSpace(c.Text), "\n")
	l = versionLike().FindString(l)
	switch {
	case l == "":
		return nil
	case !strings.ContainsFunc(strings.TrimPrefix(l, "v"), unicode.IsLetter):
		l += " by " + Essence(c.Command)
	}
	return []string{firstBytes(l, 80)}
}

// firstBytes cuts s to n bytes, at the end of a character.
func firstBytes(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

func first[T any](s []T, n int) []T { return s[:min(n, len(s))] }

func unique(s []string) []string {
	var out []string
	for _, x := range s {
		if !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

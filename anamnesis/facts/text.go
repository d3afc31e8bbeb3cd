package facts

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"anamnesis/anamnesis/quote"
	"anamnesis/anamnesis/shell"
)

// plausible matches names that programs have, and not the first word of a sentence that was run as a command.
var plausible = shell.Pattern(`^[a-z][a-z0-9_+-]{1,20}$`)

// prose are words that begin a line of text or stand for a program, and words of one shell that another lacks.
var prose = shell.Set(`to the it is this that these you we and or in of an as for with from note output here then first
	next now there command cmd program foo bar source`)

// The limit of a text.
const (
	maxTokens     = 140
	bytesPerToken = 4
	maxTasksNamed = 10 // behind a fact, for a reader; JSON has all
)

// World answers at a task's start what is there now; nil functions know nothing.
type World struct {
	File    func(name string) bool // whether a path of the repository exists
	Program func(name string) bool // whether a program can be started
}

// heading begins a line of a text.
type heading struct {
	kind Kind
	dead bool // facts of which five tasks and more show no other end
	most int
	text string
}

// headings stand in the order of the text.
var headings = []heading{
	{Works, false, 3, "Tests ran with"},
	{Missing, true, 5, "Not installed, and no task made it work"},
	{Missing, false, 5, "Not installed"},
	{Never, false, 6, "Ran no test"},
	{Timeout, false, 4, "Ended by the time limit"},
	{FailsAnyway, false, 3, "Failed before any change, too"},
}

func (h *heading) fits(f *Fact) bool {
	return f.Line == "" && f.Kind == h.kind && h.dead == (f.Kind == Missing && f.Seen == f.Of && f.Seen >= 5)
}

// Tell selects the facts that are shown to a task at its start, and words them: a user's lines first. A fact that the
// world contradicts, or that exceeds the room left, is not shown.
func Tell(all []Fact, w World) (text string, told []Fact) {
	lines, room := []string{intro}, bytesPerToken*maxTokens-len(intro)
	for _, f := range all {
		if n := len(f.Line) + 1; f.Line != "" && n <= room {
			lines, told, room = append(lines, f.Line), append(told, f), room-n
		}
	}
	for _, h := range headings {
		var items []string
		for _, f := range all {
			if len(items) == h.most || !h.fits(&f) || w.contradicts(&f) {
				continue
			}
			item := f.words()
			n := len(item) + 2
			if len(items) == 0 {
				n += len(h.text) + 2
			}
			if n <= room {
				items, told, room = append(items, item), append(told, f), room-n
			}
		}
		if len(items) > 0 {
			lines = append(lines, h.text+": "+strings.Join(items, ", ")+".")
		}
	}
	if len(told) == 0 {
		return "", nil
	}
	return strings.Join(lines, "\n"), told
}

// intro says what the counts are.
const intro = "Earlier tasks in this repository (n of the tasks that tried):"

// contradicts reports whether what a fact names is gone, or is there although it should not.
func (w World) contradicts(f *Fact) bool {
	if f.Kind == Missing {
		return w.Program != nil && !strings.Contains(f.Match, "/") && w.Program(f.Match)
	}
	if w.File == nil || f.Kind != Works && f.Kind != Timeout {
		return false
	}
	return slices.ContainsFunc(strings.Fields(f.Match), func(word string) bool {
		return script().MatchString(word) && !w.File(path.Join(f.Dir, word)) && !w.File(word)
	})
}

// script matches a relative path to a program's text.
var script = shell.Pattern(`^\.{1,2}/|^[\w-][\w./-]*(?:/bin/\w+|\.(?:py|sh|js|ts|rb|php|pl))$|^bin/`)

// words says a fact without its heading.
func (f *Fact) words() string {
	s := "`" + strings.TrimSpace(f.Match+" "+f.Args) + "`"
	if f.Dir != "" {
		s += " in `" + f.Dir + "`"
	}
	if f.Setup != "" {
		return fmt.Sprintf("%s (%d of %d, after `%s` in %d)", s, f.Seen, f.Of, f.Setup, f.SetupN)
	}
	return fmt.Sprintf("%s (%d of %d)", s, f.Seen, f.Of)
}

// String says a fact in one line.
func (f *Fact) String() string {
	for _, h := range headings {
		if h.fits(f) {
			return h.text + ": " + f.words()
		}
	}
	return f.Line
}

// counted matches the counts of a fact's words; a command that came first stays.
var counted = shell.Pattern(" \\(\\d+ of \\d+(?:(, after `[^`]+`) in \\d+)?\\)")

// Brief words a fact for a file that stays: with the least number of tasks, so that few new tasks change it.
func (f *Fact) Brief() string {
	if f.Line != "" {
		return f.Line
	}
	least := 1
	for least*2 <= f.Seen {
		least *= 2
	}
	uncounted := counted().ReplaceAllString(f.String(), "$1")
	return fmt.Sprintf("%s, in at least %s%s.", uncounted, quote.Number(least, "task"), f.places())
}

// places names the environments of a fact.
func (f *Fact) places() string { return strings.TrimSuffix(" on "+strings.Join(f.Envs, ", "), " on ") }

// NeverStarts returns the fact by which a command would never start, where enough tasks agree and no user words it
// otherwise, and the facts of what runs tests. A line that has another way out, installs something or only asks for a
// version is not meant, nor is a program by another path or in another directory than the fact's.
func NeverStarts(known []Fact, command string) (f *Fact, works []Fact) {
	if strings.Contains(command, "||") {
		return nil, nil
	}
	for _, c := range split(command, "") {
		if installs().MatchString(strings.Join(c.words, " ")) || slices.ContainsFunc(c.words, onlyAsks().MatchString) {
			return nil, nil
		}
		for i := range known {
			k, want := &known[i], strings.Fields(known[i].Match)
			if f != nil || k.Line != "" || !k.Holds() || c.words[0] != want[0] {
				continue
			}
			if k.Kind == Missing || path.Clean(c.dir) == path.Clean(k.Dir) && matches(want, c.words) {
				f = k
			}
		}
	}
	for _, k := range known {
		if f != nil && k.Kind == Works {
			works = append(works, k)
		}
	}
	return f, works
}

// Source says where a fact was seen: how it is named, when, by whom, and the tasks behind it.
func (f *Fact) Source() string {
	s := f.ID()
	if len(f.Tasks) == 0 { // a user's line
		return s + ", which no task bears out"
	}
	s += ", last seen " + f.Last.Local().Format("2006-01-02")
	if len(f.Agents) > 0 {
		s += " by " + strings.Join(f.Agents, ", ")
	}
	s += f.places() + ": " + latest(f.Tasks)
	if len(f.Others) > 0 {
		s += "; otherwise in " + latest(f.Others)
	}
	return s
}

// latest names the last tasks of a list.
func latest(tasks []string) string {
	if n := len(tasks) - maxTasksNamed; n > 0 {
		return fmt.Sprintf("%s and %d earlier", strings.Join(tasks[n:], " "), n)
	}
	return strings.Join(tasks, " ")
}

// Find returns the fact of a list that a user names: by its ID, or by its words if these name one.
func Find(list []Fact, name string) *Fact {
	var found *Fact
	for i := range list {
		if list[i].ID() == name {
			return &list[i]
		}
		if list[i].Match == name {
			if found != nil {
				return nil
			}
			found = &list[i]
		}
	}
	return found
}

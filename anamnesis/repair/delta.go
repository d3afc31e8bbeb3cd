package repair

import (
	"slices"
	"strings"
)

// maxDeltaLines is the length of what a pair quotes of the changes.
const maxDeltaLines = 40

// heredoc is a text that a shell line holds, and the file it goes to.
type heredoc struct {
	file  string
	added bool // appended to the file
	head  string
	lines []string
}

// python reports whether the text is a program in Python that runs, or that a file keeps.
func (d heredoc) python() bool {
	return strings.HasSuffix(d.file, ".py") || d.file == "" && strings.Contains(d.head, "python")
}

var (
	heredocStart = lazy(`<<-?\s*['"]?(\w+)['"]?`)
	copied       = lazy(`^\s*\$\((?:cat|head|tail|sed|awk)\b.*\)$`) // lines that the shell copies from a file
	redirect     = lazy(`(>>?)\s*([^\s<>&|;]+)`)
	teeFile      = lazy(`\btee\s+(-a\s+)?([^\s<>&|;-][^\s<>&|;]*)`)
	sedInPlace   = lazy(`^sed\s+(?:-\w+\s+)*-\w*i`)
	lineEditor   = lazy(`(?s)^\s*(?:edit|insert)\b[^\n]*\n(.*?)(?:\nend_of_(?:edit|insert)|$)`)
	echoed       = lazy(`^(?:echo|printf)\s+(?:-\w+\s+)?(['"])(?s:(.*))(['"])\s*(>>?)\s*(\S+)$`)
)

// splitHeredocs takes the here documents out of a shell line.
func splitHeredocs(command string) (rest string, docs []heredoc) {
	lines := strings.Split(command, "\n")
	var kept []string
	for i := 0; i < len(lines); i++ {
		m := heredocStart().FindStringSubmatch(lines[i])
		if m == nil {
			kept = append(kept, lines[i])
			continue
		}
		end := i + 1
		for end < len(lines) && strings.TrimSpace(lines[end]) != m[1] {
			end++
		}
		head := heredocStart().ReplaceAllString(lines[i], "")
		text := slices.DeleteFunc(slices.Clone(lines[min(i+1, len(lines)):min(end, len(lines))]), copied().MatchString)
		d := heredoc{head: head, lines: text}
		if r := redirect().FindStringSubmatch(head); r != nil {
			d.file, d.added = r[2], r[1] == ">>"
		} else if r := teeFile().FindStringSubmatch(head); r != nil {
			d.file, d.added = r[2], r[1] != ""
		}
		docs = append(docs, d)
		kept = append(kept, head)
		i = end
	}
	return strings.Join(kept, "\n"), docs
}

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

// overwrite adds later changes, and drops the lines that they took out again.
func overwrite(changes, later []Change) []Change {
	for _, l := range later {
		removed, whole, added := trimmed(l.Removed), trimmed(l.Whole), trimmed(l.Added)
		again := map[string]bool{} // lines that it changes from what they were at first
		for _, line := range l.Added {
			if old, _, ok := CutChanged(line); ok {
				again[strings.TrimSpace(old)] = true
			}
		}
		for i, c := range changes {
			if !samePath(c.Path, l.Path) {
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

// samePath reports whether two paths, of which one may be relative to the run's
// directory, probably name one file.
func samePath(a, b string) bool {
	return a == b || strings.HasSuffix(a, "/"+b) || strings.HasSuffix(b, "/"+a)
}

// files holds the lines of files that a run wrote or printed.
type files map[string][]string

// wrote notes a change. Of a file written whole it keeps the lines that the file lacked.
func (f files) wrote(c *Change) {
	if c.Whole == nil {
		f[c.Path] = slices.Concat(f[c.Path], c.Added)
		return
	}
	had := trimmed(f[c.Path])
	f[c.Path] = c.Whole
	c.Added = slices.DeleteFunc(slices.Clone(c.Added), func(l string) bool { return had[strings.TrimSpace(l)] })
}

// edits returns what a command's text says that it changed.
func edits(command string) []Change {
	var out []Change
	if m := lineEditor().FindStringSubmatch(command); m != nil {
		return []Change{{Added: strings.Split(m[1], "\n")}}
	}
	body, docs := splitHeredocs(command)
	for _, d := range docs {
		if d.python() {
			if c := scripted(strings.Join(d.lines, "\n")); len(c.Added) > 0 {
				out = append(out, c)
			}
		}
		if d.file == "" {
			continue
		}
		change := Change{Path: d.file, Added: d.lines}
		if !d.added {
			change.Whole = d.lines
		}
		out = append(out, change)
	}
	for _, p := range splitCommands(body) {
		switch {
		case sedInPlace().MatchString(p.text):
			if c := sedChange(p.text); len(c.Added) > 0 {
				out = append(out, c)
			}
		default:
			if m := echoed().FindStringSubmatch(p.text); m != nil {
				out = append(out, Change{Path: m[5], Added: strings.Split(m[2], "\n")})
			}
		}
	}
	return out
}

// printed adds the lines of a file that a call printed, so that a file written whole after
// it counts with its new lines only.
func (f files) printed(c Call) {
	if m := printing().FindStringSubmatch(c.Command); m != nil {
		f[m[1]] = slices.Concat(f[m[1]], strings.Split(c.Text, "\n"))
	}
	if c.Read != "" {
		f[c.Read] = slices.Concat(f[c.Read], strings.Split(numbered().ReplaceAllString(c.Text, ""), "\n"))
	}
}

var (
	// printing recognises commands that print lines of one file.
	printing = lazy(`^(?:cd \S+ && )?(?:cat|head|tail|sed -n)(?:\s+(?:-\w+|\d+|'[\d,$;p ]+'|"[\d,$;p ]+"|[\d,]+p))*\s+([\w./-]+)$`)
	numbered = lazy(`(?m)^ *\d+(?:→|\t|[|:] ?)`) // lines, as file tools print them
)

// environment recognises commands that change what later commands find.
var environment = lazy(`^(?:sudo\s+)?(?:(?:python[\d.]* -m )?pip[\d.]* (?:install|uninstall)|uv (?:pip|add|sync)|conda |poetry (?:add|install)|npm (?:i|install|ci)\b|yarn (?:add|install)|pnpm (?:add|i|install)|apt(?:-get)? |apk add|dnf |brew |go (?:get|install|mod)|cargo (?:add|install)|gem install|bundle|export |source |\. |ln |chmod |chown |mkdir |touch |createdb|git (?:submodule|config)|docker (?:pull|build)|systemctl |service |[A-Z_]+=[^\s$]*$)`)

// versionLike recognises a line that names a version.
var versionLike = lazy(`\d\.\d|\bv\d|(?i:version)\W{1,3}\d`)

var versionAsked = lazy(`(--version|\s-V\b|__version__|\bversion\b)`)

// chatter recognises lines of an edit that say nothing a repair needs: output,
// closing brackets, the marks of a long text.
var chatter = lazy(`^\s*("""|'''|/\*+|\*+/?|print\(|console\.log|fmt\.Print|echo\b|pass$|[\])}]+[,;]?$)`)

// chats reports whether a line says nothing that a repair needs. One that took the place
// of another does.
func chats(line string) bool {
	_, _, changed := CutChanged(line)
	return chatter().MatchString(line) && (!changed || strings.Contains(line, "DEBUG"))
}

var generated = lazy(`(^|/)(package-lock\.json|yarn\.lock|pnpm-lock\.yaml|Cargo\.lock|go\.sum|poetry\.lock|uv\.lock|Gemfile\.lock|composer\.lock|dist/|build/|node_modules/|vendor/|__pycache__/)|\.(min\.js|map|snap|pb\.go)$`)

// cutDelta orders the changes, those that the text names first and generated
// ones last, and keeps at most maxDeltaLines lines.
func cutDelta(changes []Change, named string) []Change {
	rank := func(c Change) int {
		switch {
		case generated().MatchString(c.Path):
			return 2
		case c.Path != "" && strings.Contains(named, c.Path[strings.LastIndexByte(c.Path, '/')+1:]):
			return 0
		}
		return 1
	}
	slices.SortStableFunc(changes, func(a, b Change) int { return rank(a) - rank(b) })
	var out []Change
	left := maxDeltaLines
	for _, c := range changes {
		lines := slices.DeleteFunc(slices.Clone(c.Added), func(l string) bool { return strings.TrimSpace(l) == "" })
		if !slices.ContainsFunc(lines, func(l string) bool { return !chats(l) }) {
			continue
		}
		lines = lines[:min(left, len(lines))]
		if left -= len(lines); len(lines) > 0 {
			out = append(out, Change{Path: c.Path, Added: lines})
		}
	}
	return out
}

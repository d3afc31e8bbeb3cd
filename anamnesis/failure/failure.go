// Package failure reads what a finished call printed: which line says what went
// wrong, that line's normal form, and whether there is something to learn from
// it. It knows texts only, no operations and no cards.
package failure

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of what is read.
const (
	maxScanBytes = 256 << 10 // of an output, its end
	maxLineBytes = 2000      // of one line, its beginning
	minLineRunes = 3         // shorter lines tell nothing
)

// terminals are the usual widths that outputs are wrapped at.
var terminals = []int{72, 80, 100, 120, 132}

// Output is what is known of one finished call.
type Output struct {
	Command string // as it was run; empty where no process ran
	Text    string // standard output, or what the tool said
	Stderr  string // empty where the two were not kept apart
	Exit    int
	HasExit bool // Exit is known
	Error   bool // the recorder or the tool says that the call failed
	Refused bool // approval or a rule refused it: nothing ran
}

// Failure is what an output says went wrong.
type Failure struct {
	Line      string // the telling line, without colour, prefixes and wrapping; empty where nothing was printed
	Signature string // its normal form: the same for two runs that met the same trouble
	Place     string // "file:line" where the output names one
	Test      string // the test that failed, where the output names it
	Index     int    // number of the telling line, from 0, in Text and Stderr joined by a line end; -1: none
	Certain   bool   // the line names the failure by a rule or by a label such as "error:"
	Silent    bool   // no line speaks of a failure, and Line is the output's last
}

// Read finds what went wrong; false where the call did not fail. Where neither
// an exit code nor a mark of the recorder is known, the output decides. It also does where a
// filter ran last ("go test | tail"), whose exit code says nothing of the tests.
func Read(o Output) (Failure, bool) {
	if o.HasExit && o.Exit == 0 && !o.Error && !filtered(o.Command) {
		return Failure{Index: -1}, false
	}
	p := parse(o)
	f := p.telling()
	switch {
	case o.Error || o.HasExit && o.Exit != 0:
		return f, true
	// Exit code 0 is the filter's: the run failed only if a line with which builds and tests end says so, too.
	case o.HasExit && !(f.Certain && slices.ContainsFunc(p.lines, reported().MatchString)):
		return Failure{Index: -1}, false
	case o.HasExit:
		return f, true
	case p.exit >= 0:
		return f, p.exit != 0
	}
	return f, f.Certain || p.abortReason(false) != "" || p.complains()
}

// filtered reports whether the last pipeline of a shell line starts with a build or a run of
// tests and ends with a filter.
func filtered(command string) bool {
	if !strings.Contains(command, "|") || strings.Contains(command, "pipefail") {
		return false
	}
	ends := strings.NewReplacer("2>&1", "", "|&", "|", "&&", ";", "||", ";", "\n", ";")
	command = ends.Replace(strings.TrimSpace(command))
	runs, filter, _ := strings.Cut(command[strings.LastIndexByte(command, ';')+1:], "|")
	return runner().MatchString(runs) && filters().MatchString(filter)
}

var (
	runner = re(`\b(?:pytest|unittest|tox|go (?:test|build|vet)|cargo \w+|npm (?:test|run|ci|install)|npx|pnpm|yarn|` +
		`bun test|node|tsc|jest|vitest|mocha|make|ctest|cmake|ninja|gradlew?|mvnw?|sbt|javac|dotnet \w+|rspec|rake|` +
		`phpunit|mix|python[\d.]*|ruby|php|gcc|g\+\+|clang\S*|rustc|mypy|ruff|eslint|terraform)(?:\s|$)`)
	filters = re(`^\s*(?:tail|head|grep|egrep|rg|tee|cat|sed|awk|sort|uniq|cut)\b`)
	// reported matches a line with which builds and runs of tests end if they failed.
	reported = re(`(?i)\b[1-9]\d* (?:tests? )?(?:failed|failing|failures?|errors?)\b|^\W*(?:--- )?FAIL(?:ED|URE)?\b|` +
		`\bBUILD FAIL|\berror TS\d|^error(?:\[E\d+\]|: could not compile|: test failed)|` +
		`:\d+:\d+: (?:fatal )?error: |^make\S*: \*\*\* |^npm (?:ERR!|error)|^Traceback \(most`)
)

// started finds the programs that a shell line starts.
var started = re(`(?:^|[|;&(\n]|\b(?:exec|xargs|sudo|do|then) |-exec )\s*([\w./+-]+)`)

// complains reports whether the output begins as programs begin a complaint: with the
// name of one that the command starts, or of its shell.
func (p *page) complains() bool {
	i := slices.IndexFunc(p.lines, func(l string) bool { return l != "" })
	return i >= 0 && p.complaint(p.lines[i])
}

func (p *page) complaint(line string) bool {
	name, _, ok := strings.Cut(line, ": ")
	name = name[strings.LastIndexByte(name, '/')+1:]
	return ok && slices.Contains(p.started, name)
}

// page is an output in lines, as it is read.
type page struct {
	lines []string // without colour, prefixes and the space at their ends
	skip  int      // lines before the first of them
	exit  int      // as a harness wrote it into the text; -1: it did not

	started []string // the programs that the command starts, by base name, and shells
}

func parse(o Output) *page {
	text := o.Text
	if o.Stderr != "" {
		text = strings.TrimSuffix(text, "\n") + "\n" + o.Stderr
	}
	p := &page{exit: -1, started: []string{"bash", "sh"}}
	for _, m := range started().FindAllStringSubmatch(o.Command, -1) {
		p.started = append(p.started, m[1][strings.LastIndexByte(m[1], '/')+1:])
	}
	if cut := len(text) - maxScanBytes; cut > 0 {
		if end := strings.IndexByte(text[cut:], '\n'); end >= 0 {
			cut += end + 1
		}
		p.skip = strings.Count(text[:cut], "\n")
		text = text[cut:]
	}
	p.lines = strings.Split(text, "\n")
	docker := strings.Contains(text, "failed to solve: ") ||
		slices.Contains(p.started, "docker") || slices.Contains(p.started, "docker-compose")
	for i, l := range p.lines {
		l = clean(l)
		if docker { // it writes the seconds before the lines of a build's step, and compose the service
			l = seconds().ReplaceAllString(l, "")
		}
		if m := status().FindStringSubmatch(l); m != nil {
			if code, err := strconv.Atoi(strings.Join(m[1:], "")); err == nil {
				p.exit = code
			}
			l = ""
		}
		p.lines[i] = l
	}
	p.dedent()
	return p
}

// dedent removes the margin that all lines have.
func (p *page) dedent() {
	margin := maxLineBytes
	for _, l := range p.lines {
		if l != "" {
			margin = min(margin, indent(l))
		}
	}
	for i, l := range p.lines {
		p.lines[i] = l[min(margin, len(l)):]
	}
}

// clean takes from a line what a terminal and a build's log add to it.
func clean(l string) string {
	if len(l) > maxLineBytes {
		l = strings.ToValidUTF8(l[:maxLineBytes], "")
	}
	if strings.IndexByte(l, 0x1b) >= 0 {
		l = escape().ReplaceAllString(l, "")
	}
	l = strings.TrimRight(strings.ReplaceAll(l, "\u00a0", " "), " \t\r")
	// A terminal shows only what follows the last carriage return, such as the end of a progress bar.
	if i := strings.LastIndexByte(l, '\r'); i >= 0 {
		l = l[i+1:]
	}
	l = strings.TrimSuffix(l, "</output>") // of a harness that sets outputs in tags
	// The prefix of a log begins with a mark, a digit of its time, or the letter of its level.
	if l != "" && (!isWordByte(l[0]|0x20) || strings.IndexByte("0123456789IWEF", l[0]) >= 0) {
		l = logPrefix().ReplaceAllString(l, "")
	}
	return l
}

// telling finds the line that says most about the failure. Of equal ones it is the first: later
// errors often follow from it. If no line's words say anything, or a rule says so, it is the last.
func (p *page) telling() Failure {
	f := Failure{Index: -1}
	best, told := 0, 0 // told: the weight that a rule gives the next line
	wraps := false     // the next traceback only wraps the one before
	for i, l := range p.lines {
		if l == "" {
			continue
		}
		wraps = wraps || strings.HasPrefix(l, "The above exception was the direct cause of")
		r := match(p, i)
		score := 0
		switch {
		case r != nil && r.how == next:
			told = r.weight
			continue
		case told > 0:
			score, told = told, 0
		case r != nil && r.how == under && wraps:
			score = certain
		case r != nil:
			score = r.weight
		default:
			score = evidence(l)
			if score == plain && p.complaint(l) && !doing().MatchString(l) && !quiet().MatchString(l) {
				score = named
			}
		}
		lastCounts := score == plain || r != nil && r.how >= last
		if score > best || score == best && score > 0 && lastCounts {
			best, f.Index = score, i
		}
	}
	if f.Index < 0 {
		return f
	}
	at := p.where(f.Index)
	f.Line, f.Place, f.Certain = p.whole(f.Index), at.String(), best >= certain
	f.Test = p.testNear(f.Index)
	f.Silent = best <= plain
	at.in = cmp.Or(at.in, f.Test)
	f.Signature = signature(f.Line, at)
	f.Index += p.skip
	return f
}

// match returns the rule that holds for a line, nil where none does.
func match(p *page, i int) *rule {
	l := p.lines[i]
	for k := range rules {
		r := &rules[k]
		if !strings.Contains(l, r.has) || r.how == under && !p.indented(i) || !r.re().MatchString(l) {
			continue
		}
		return r
	}
	return nil
}

// indented reports whether the line before is indented and belongs to a frame
// of Python's.
func (p *page) indented(i int) bool {
	if i == 0 || indent(p.lines[i-1]) <= indent(p.lines[i]) {
		return false
	}
	for k := i - 1; k >= max(0, i-6); k-- {
		if strings.HasPrefix(strings.TrimSpace(p.lines[k]), `File "`) {
			return true
		}
	}
	return false
}

func indent(l string) int { return len(l) - len(strings.TrimLeft(l, " \t")) }

// evidence scores a line that no rule knows: by its words, by whether it names
// a place, and by what it looks like.
func evidence(l string) int {
	t := strings.TrimSpace(l)
	if rest, ok := strings.CutPrefix(t, "> "); ok && begins(capital(), rest) { // Gradle's and nix's margin
		t = rest
	}
	if utf8.RuneCountInString(t) < minLineRunes || strings.Trim(t, "=-_*#~^.+| ") == "" {
		return 0
	}
	if ruler().MatchString(t) || aside().MatchString(t) {
		return sums
	}
	clear := fails().MatchString(t) || answer().MatchString(t)
	switch {
	case !clear && !namesError(t):
		return plain
	case quiet().MatchString(t):
		return sums
	case begins(place(), t) && label().MatchString(t):
		return certain + 1
	case clear:
		return certain
	case code().MatchString(t):
		return plain + 1
	case label().MatchString(t):
		return certain
	case opens(l, t):
		return plain + 1
	case place().MatchString(t):
		return named + 3
	}
	return named
}

func begins(re *regexp.Regexp, t string) bool {
	at := re.FindStringIndex(t)
	return at != nil && at[0] == 0
}

// opens reports whether a line opens a block of source: what it says of errors is
// no error of this run.
func opens(l, t string) bool {
	return strings.HasSuffix(t, "(") || strings.HasSuffix(t, "{") ||
		strings.HasSuffix(t, ":") && strings.HasPrefix(l, "    ")
}

// whole returns a line, and what follows it where it only announces what went wrong:
// one line after a colon, and all that Gomega says after "Expected".
func (p *page) whole(i int) string {
	line, more := p.unwrap(i), 0
	switch {
	case announces().MatchString(line):
		more = 1
	case line == "Expected":
		more = 3
	}
	if ruler().MatchString(line) {
		line = strings.Trim(line, "=-_*═ ")
	}
	for _, l := range p.lines[i+1:] {
		if more == 0 {
			break
		}
		if l != "" {
			line += " " + strings.TrimSpace(l)
			more--
		}
	}
	return line
}

var announces = re(`:$|: error: \[GHC-\d+\]$`)

// unwrap joins a line with those it was wrapped into: it fills the width of a
// terminal, no other line is longer, and the next neither begins as it does nor
// with a label of its own.
func (p *page) unwrap(i int) string {
	joined := p.lines[i]
	width := utf8.RuneCountInString(joined)
	longer := func(l string) bool { return utf8.RuneCountInString(l) > width }
	if !slices.Contains(terminals, width) || slices.ContainsFunc(p.lines, longer) {
		return strings.TrimSpace(joined)
	}
	begin, _, _ := strings.Cut(joined, " ")
	for _, l := range p.lines[i+1:] {
		if strings.HasPrefix(l, begin) || labelled().MatchString(l) {
			break
		}
		joined += l
		if utf8.RuneCountInString(l) < width {
			break
		}
	}
	return strings.TrimSpace(joined)
}

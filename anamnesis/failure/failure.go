// Package failure reads what a finished call printed: which line says what went
// wrong, that line's normal form, and whether there is something to learn from
// it. It knows texts only, no operations and no cards.
package failure

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// Output is what is known of one finished call.
type Output struct {
	Command  string   // as it was run; empty where no process ran
	Programs []string // the programs Command runs, by base name, in order; empty where they are not known
	Text     string   // standard output, or what the tool said
	Stderr   string   // empty where the two were not kept apart
	Exit     int
	HasExit  bool // Exit is known
	Error    bool // the recorder or the tool says that the call failed
	Refused  bool // approval or a rule refused it: nothing ran
}

// Failure is what an output says went wrong.
type Failure struct {
	Line      string // the telling line, without colour and wrapping; empty where nothing was printed
	Signature string // its normal form: the same for two runs that met the same trouble
	Place     string // "file:line" where the output names one
	Index     int    // number of the telling line, from 0, in Text, or in Text and Stderr joined by a line end; -1: none
}

// Read finds what went wrong; false where the call did not fail.
func Read(o Output) (Failure, bool) {
	lines := split(o)
	f := Failure{Index: -1}
	if !o.Error && !(o.HasExit && o.Exit != 0) {
		return f, false
	}
	best := 0
	for i, l := range lines {
		if s := score(l); s > best || s == best && s == scorePlain {
			best, f.Index, f.Line = s, i, l
		}
	}
	f.Place = place.FindString(f.Line)
	f.Signature = Normal(f.Line)
	return f, true
}

// Lesson reports whether a failed call holds something to learn from, and why
// not. A search without hits, an abort, a timeout chosen too short, a refusal,
// an unknown tool and a bad argument hold nothing.
func Lesson(o Output) (ok bool, reason string) {
	said := strings.TrimSpace(o.Text+o.Stderr) != ""
	switch {
	case o.Refused:
		return false, "refused"
	case o.HasExit && o.Exit == 1 && !said && slices.ContainsFunc(o.Programs, asks):
		return false, "a question answered with no"
	}
	return true, ""
}

// asks reports whether a program exits with 1 to say no.
func asks(program string) bool {
	switch path.Base(program) {
	case "grep", "egrep", "fgrep", "rg", "zgrep", "diff", "cmp", "test", "[", "pgrep":
		return true
	}
	return false
}

var escape = regexp.MustCompile(`\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)`)

// split gives the lines of an output without colour and carriage returns.
func split(o Output) []string {
	text := o.Text
	if o.Stderr != "" {
		text = strings.TrimRight(text, "\n") + "\n" + o.Stderr
	}
	lines := strings.Split(escape.ReplaceAllString(text, ""), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimSpace(l)
	}
	return lines
}

var (
	place = regexp.MustCompile(`[\w./-]+\.\w+[:(]\d+`)
	words = regexp.MustCompile(`(?i)\b(errors?|fail(ed|ure)?|fatal|panic|exception|undefined|cannot|can't|could not|not found|no such|denied|refused|unknown|invalid|unexpected|missing|mismatch|conflict|unable|abort(ed)?|timed? ?out)\b|错误|失败|异常|找不到|\w+(Error|Exception):`)
)

const scorePlain = 1

func score(line string) int {
	switch {
	case strings.Trim(line, "=-_*#~ ") == "" || strings.HasPrefix(line, "Traceback "):
		return 0
	case words.MatchString(line) && place.MatchString(line):
		return 4
	case words.MatchString(line):
		return 3
	}
	return scorePlain
}

var (
	paths   = regexp.MustCompile(`(?:[\w.@+-]*/)+([\w.@+-]+)`)
	numbers = regexp.MustCompile(`\b(0x[0-9a-fA-F]+|[0-9a-f]{8,}|\d[\d.]*)`)
)

// Normal takes what varies out of a line: directories, numbers, addresses.
func Normal(line string) string {
	line = paths.ReplaceAllString(line, "$1")
	return strings.Join(strings.Fields(numbers.ReplaceAllString(line, "#")), " ")
}

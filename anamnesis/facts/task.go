package facts

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"anamnesis/anamnesis/quote"
	"anamnesis/anamnesis/shell"
)

// Limits of what is kept of one task.
const (
	maxCommands  = 150
	maxWordBytes = 120 // of one command's words
	maxTests     = 40  // names of failed tests, and of passed ones
)

// Task is what one task showed of its repository. It is kept, and counted over.
type Task struct {
	ID       string            `json:"id"`
	Agent    string            `json:"agent,omitempty"`
	Env      string            `json:"env,omitempty"` // operating system and interpreter, as far as known
	Ended    time.Time         `json:"ended"`
	Commands []Command         `json:"commands,omitempty"` // different ones, in the order of their first end
	Programs map[string]string `json:"programs,omitempty"` // how the programs ended: ok, missing
	Failed   []string          `json:"failed,omitempty"`   // tests
	Passed   []string          `json:"passed,omitempty"`
	Before   []string          `json:"before,omitempty"` // tests that failed before anything was changed
}

// Command is one command of a task and how its calls ended.
type Command struct {
	Words  string `json:"words"` // the first ones, without the programs around it
	Runner string `json:"runner,omitempty"`
	Ends   string `json:"ends"` // of: r ran tests, o succeeded, f failed, m not installed, t time limit
	Dir    string `json:"dir,omitempty"`
	Limit  bool   `json:"limit,omitempty"` // the last command of a line that met the time limit
	// Setup are the installing commands that had succeeded before the first run of tests.
	Setup []string `json:"setup,omitempty"`
}

var (
	// idle are the programs that say nothing of a project: they look, or change files.
	idle = shell.Set(`cd ls cat head tail wc grep egrep fgrep rg find pwd echo printf true false : test [ stat file du
		diff cmp sort uniq cut tr nl date basename dirname realpath tree mkdir touch cp mv rm rmdir ln chmod sed awk
		exit export set unset source . which type command git`)

	testName     = `(\S+::\S+|\w+ \([\w]+\.[\w.]+\))`
	testFailed   = shell.Pattern(`(?m)^(?:FAILED|FAIL:|ERROR:)\s+` + testName + `|^(\S+::\S+) FAILED`)
	plainTest    = shell.Pattern(`^(?:[\pL\pN_./-]+(?:::[\pL\pN_]+)+|\w+ \([\w.]+\))$`)
	testPassed   = shell.Pattern(`(?m)^PASSED\s+(\S+::\S+)|^(\S+::\S+) PASSED|^(\w+ \([\w]+\.[\w.]+\)) \.\.\. ok`)
	interpreters = shell.Pattern(`(?m)\b(Python \d\.\d+|go version go\d+\.\d+|openjdk version "\d+)`)
	installs     = shell.Pattern(`^(?:npm (?:ci|i|install)|yarn(?: install)?|pnpm (?:i|install)|apk add|` +
		`(?:(?:python[\d.]* -m )?pip[\d.]*|bun|poetry|pipenv|bundle|composer|apt(?:-get)?) install|` +
		`uv (?:sync|pip install)|go (?:generate|mod download)|cargo fetch|dotnet restore|\./configure|` +
		`make (?:deps|build|install|setup)|python[\d.]* setup\.py (?:develop|build|install|build_ext))(?:\s|$)`)
)

// Log collects a task's calls in their order. The zero value is empty.
type Log struct {
	Task
	setup  []string
	edited bool // files may have been changed
}

// Add counts a call in.
func (l *Log) Add(c Call) {
	if c.Refused {
		return
	}
	list := commands(&c)
	tested := false
	for i := range list {
		p := &list[i]
		l.addPrograms(p)
		tested = tested || p.runner != "" && p.end != missing
		if p.end == unclear || idle[p.words[0]] || len(l.Commands) == maxCommands && l.find(first(p.words)) == nil {
			continue
		}
		text := first(p.words)
		e := l.find(text)
		if e == nil {
			l.Commands = append(l.Commands, Command{Words: text, Runner: p.runner, Dir: p.dir})
			e = &l.Commands[len(l.Commands)-1]
		}
		if !strings.ContainsRune(e.Ends, p.end) {
			if e.Ends += string(p.end); p.end == ran {
				e.Setup = slices.Clone(l.setup)
			}
		}
		e.Limit = e.Limit || p.end == timeout && i == len(list)-1
		if p.end == ok && installs().MatchString(text) && !slices.Contains(l.setup, text) && len(l.setup) < 6 {
			l.setup = append(l.setup, text)
		}
	}
	if tested {
		text := quote.StripEscapes(c.Text + "\n" + c.Stderr)
		l.Failed = collect(l.Failed, testFailed(), text)
		l.Passed = collect(l.Passed, testPassed(), text)
		if !l.edited { // the task did not break these
			l.Before = collect(l.Before, testFailed(), text)
		}
	}
	// A run of tests is no change of the project: what a second run shows failing also failed before any change.
	l.edited = l.edited || !tested && !shell.ReadsOnly(c.Command)
	if m := interpreters().FindString(c.Text); m != "" {
		l.Env = m
	}
}

func (l *Log) addPrograms(p *command) {
	for _, program := range p.programs() {
		end := ""
		switch {
		case p.end == ran || p.end == ok:
			end = string(ok)
		case p.lacks == program:
			end = string(missing)
		}
		// A program that one task missed twice is a fact already, so the second time is stored as well.
		if had := l.Programs[program]; end != "" && (!strings.Contains(had, end) || had == string(missing)) {
			if l.Programs == nil {
				l.Programs = map[string]string{}
			}
			l.Programs[program] += end
		}
	}
}

func (l *Log) find(text string) *Command {
	if i := slices.IndexFunc(l.Commands, func(c Command) bool { return c.Words == text }); i >= 0 {
		return &l.Commands[i]
	}
	return nil
}

// first joins the first words of a command.
func first(in []string) string {
	out := in[0]
	for _, w := range in[1:] {
		if len(out)+1+len(w) > maxWordBytes {
			break
		}
		out += " " + w
	}
	return out[:min(len(out), maxWordBytes)]
}

func collect(list []string, pattern *regexp.Regexp, text string) []string {
	for _, m := range pattern.FindAllStringSubmatch(text, -1) {
		name := strings.Join(m[1:], "")
		fits := len(name) <= maxWordBytes && !strings.Contains(name, "_FailedTest")
		if fits && len(list) < maxTests && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

func join(dir, to string) string {
	if path.IsAbs(to) {
		return path.Clean(to)
	}
	return path.Join(dir, to)
}

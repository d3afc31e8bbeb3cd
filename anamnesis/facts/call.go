package facts

import (
	"path"
	"slices"
	"strings"

	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/quote"
	"anamnesis/anamnesis/shell"
	"anamnesis/anamnesis/testrun"
)

// Call is one finished call of a shell.
type Call struct {
	failure.Output        // Text and Stderr as the command printed them
	Dir            string // where it ran; empty: the task's directory, or not known
}

// An ending is how a command ended. A command can end in several ways within a task.
const (
	ran     = 'r' // a test runner, and it ran more than no test
	ok      = 'o'
	failed  = 'f'
	missing = 'm' // it is not installed
	timeout = 't'
	unclear = 0 // its status is hidden, it was not reached, or it ran no test
)

var (
	python = shell.Pattern(`^(?:.*/)?(?:python|pypy)[\d.]*$`)

	// someRan matches what runners print that ran at least one test, whatever came of it.
	someRan = shell.Pattern(`(?m)\b[1-9]\d* x?(?:passed|failed)\b|\bRan [1-9]\d* tests?\b|\bTests run: [1-9]|` +
		`^test result: \w+\. (?:[1-9]|0 passed; [1-9])|\bOK \([1-9]\d* tests?\b|` +
		`^ok\s+\S+\s+[\d.]+s|^--- (?:PASS|FAIL)|\b[1-9]\d* passing\b`)
	noneRan = shell.Pattern(`\bRan 0 tests|no tests ran|collected 0 items|Tests run: 0\b|\b0 passed|` +
		`no tests to run|No tests found|\b0 examples`)
	// importFailed matches the one test that unittest reports for a module that it cannot import.
	importFailed  = shell.Pattern(`(?s)_FailedTest.*\bRan 1 test\b`)
	collectFailed = shell.Pattern(`\b[1-9]\d* errors? (?:in|during) `)
	notFound      = shell.Pattern(`^(?:command )?not found\b`)
	// fish says "Unknown command".
	zshNotFound = shell.Pattern(`(?m)^\S+(?: |:\d+: )(?:command not found|Unknown command): (\S+)$`)
	noModule    = shell.Pattern(`No module named '?([\w.]+)`)
	notSetUp    = shell.Pattern(`JAVA_HOME (?:is not|environment variable is not)`)
	traceback   = shell.Pattern(`(?m)^Traceback \(most recent call last\):`)
	onlyAsks    = shell.Pattern(`^--?(?:version|help|V|h)$`) // an option with which a program runs nothing
)

// command is one command of a call and how it ended.
type command struct {
	shell.Part
	words    []string // the program and its arguments
	wrappers []string // the programs that run it: sudo, env, timeout
	dir      string   // where the line's own cd leads, as written
	runner   string   // the words that name a test runner, without its targets; empty: it is none
	end      rune
	lacks    string // the program that is not installed
}

var (
	filters  = shell.Set("tail head grep egrep rg tee cat sed less more sort wc awk cut uniq nl")
	wrappers = shell.Set("sudo env time nice nohup timeout command exec stdbuf")
)

// split lists the commands of a line, with those that a wrapper or a shell runs; dir is where the line begins.
// Filters of another's output, and a final true or echo that only covers a status, are left out.
func split(line, dir string) []command {
	var out []command
	for _, p := range shell.Parts(line) {
		c := command{Part: p, dir: dir}
		inner, script := p.Inner()
		for ; wrappers[c.Program()] && len(inner) > 0; inner, script = c.Inner() {
			c.wrappers, c.Words = append(c.wrappers, c.Program()), inner
		}
		covers := len(out) > 0 && (out[len(out)-1].Covered || out[len(out)-1].Later) && !p.Later
		switch name := c.Program(); {
		case name == "" || p.Piped && filters[name] || covers && (name == "true" || name == ":" || name == "echo"):
		case script != "":
			for _, in := range split(script, dir) {
				in.Covered, in.Later = in.Covered || p.Covered, in.Later || p.Later
				out = append(out, in)
			}
		default:
			if name == "cd" && len(c.Words) == 2 && !c.Words[1].Dynamic {
				dir = join(dir, c.Words[1].Text)
			}
			c.words = strings.Fields(c.String())
			c.runner = runnerName(c.words)
			out = append(out, c)
		}
	}
	return out
}

// commands judges the commands of a call by what the call printed and how it ended.
func commands(c *Call) []command {
	out := split(c.Command, c.Dir)
	text := quote.StripEscapes(c.Text + "\n" + c.Stderr)
	bad, fine, late := c.status(text)
	runners := 0
	for i := range out {
		if out[i].lacks = out[i].lacking(text); out[i].runner != "" && out[i].lacks == "" {
			runners++
		}
	}
	tests := runners > 0 && ranSome(c.Command, text)
	lost := false // not known whether the command was reached
	for i := range out {
		p, last := &out[i], i == len(out)-1
		runner := p.runner != ""
		switch {
		case p.lacks != "":
			p.end, lost = missing, true
		case lost:
		case late:
			p.end = timeout
		case runner && tests:
			// Of two runners in one line, the output does not say which of them ran the tests.
			if runners == 1 {
				p.end = ran
			}
		// A run of no test shows neither that the runner works nor that it fails, unless collecting the tests failed.
		case runner && noneRan().MatchString(text) && !collectFailed().MatchString(text):
		// A line ends with the status of its last command, so that a bad end says nothing of those before it.
		case bad && last:
			p.end = failed
		case bad:
		case fine && !p.Covered && (!runner || c.HasExit && !p.Later):
			p.end = ok
		}
	}
	return out
}

// status reports how the call as a whole ended: badly, well, or by its time limit; neither where that is not known.
func (c *Call) status(text string) (bad, fine, late bool) {
	_, why := failure.Lesson(c.Output)
	switch {
	case why == "timeout" || c.HasExit && c.Exit == 124:
		return true, false, true
	case why != "" && why != "no hit": // it was aborted, or did not run
		return false, false, false
	}
	if c.HasExit && c.Exit == 0 && !c.Error {
		return false, !traceback().MatchString(text), false
	}
	// Without an exit code, what a reader such as cat prints may be an error that its file speaks of.
	if _, bad = failure.Read(c.Output); why == "no hit" || bad && !c.HasExit && !c.Error && shell.ReadsOnly(c.Command) {
		return false, false, false
	}
	bad = bad || notSetUp().MatchString(text)
	return bad, !bad, false
}

// ranSome reports whether the output shows that more than no test ran.
func ranSome(command, text string) bool {
	if importFailed().MatchString(text) {
		return false
	}
	if someRan().MatchString(text) {
		return true
	}
	got, is := testrun.Parse(command, text, 0)
	// pytest counts errors of collecting as failures, though no test ran.
	return is && got.Runner != "pytest" && got.Passed+got.Failed > 0
}

// programs returns the programs that the command starts.
func (p *command) programs() []string {
	return append(slices.Clone(p.wrappers), path.Base(p.words[0]))
}

// lacking returns the program or "module NAME" of which the output says that it is not installed.
func (p *command) lacking(text string) string {
	for _, program := range append(p.programs(), strings.TrimPrefix(p.words[0], "./")) {
		for rest := text; ; {
			_, said, found := strings.Cut(rest, program+": ")
			if !found {
				break
			}
			// The name must begin a word, or "mypytest: not found" would be about pytest. That there is no such file,
			// a program says of its arguments, too, so this counts only for a program that was given by its path.
			before := strings.TrimSuffix(rest[:len(rest)-len(said)], program+": ")
			begins := before == "" || strings.ContainsRune(" \t\n:'\"`", rune(before[len(before)-1]))
			missing := strings.Contains(program, "/") && strings.HasPrefix(said, "No such file or directory")
			if begins && (missing || notFound().MatchString(said)) {
				return program
			}
			rest = said
		}
	}
	for _, m := range zshNotFound().FindAllStringSubmatch(text, -1) {
		if slices.Contains(p.programs(), m[1]) {
			return m[1]
		}
	}
	for _, m := range noModule().FindAllStringSubmatch(text, -1) {
		if m[1] == module(p.words) {
			return "module " + m[1]
		}
	}
	return ""
}

// module returns NAME of python -m NAME.
func module(words []string) string {
	if at := slices.Index(words, "-m"); at > 0 && at+1 < len(words) && python().MatchString(words[0]) {
		return words[at+1]
	}
	return ""
}

// Package pair finds commands that failed and later succeeded on the path that a task kept, with what
// was changed in between. A pair is evidence for a lesson and not a lesson: nothing shows which of the
// changes mattered. The package knows calls and texts, no operations and no cards.
package pair

import (
	"cmp"
	"slices"
	"strings"

	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/shell"
	"anamnesis/anamnesis/testrun"
)

// Limits of what a pair names.
const (
	maxRan   = 6
	maxFiles = 12
)

// Call is one finished call. A caller passes the calls of the path that stayed only: what a discarded
// step changed is not in the files in which the command succeeded.
type Call struct {
	failure.Output          // Command is empty if the call ran no shell command
	Step           int      // calls of one step share the files that the step changed
	Wrote          []string // files that the call's tool reports as written
	Changed        []string // files that the call's step changed, by any of its calls
}

// Pair is a failed call and the next call of the same command that ended differently, if that one
// succeeded. A command that fails in another way begins a pair of its own.
type Pair struct {
	Failed, Fixed int // indices of the two calls; Failed is the first of those that failed alike
	Failure       failure.Failure
	Ran           []string // commands that succeeded in between and may have changed something
	Files         []string // files changed in between, without those that the command itself changes
}

// ending is how a call of a command ended.
type ending int

const (
	unclear ending = iota // says nothing about the command
	failed
	succeeded
)

// Find returns the pairs of a path, in the order in which the commands succeeded.
func Find(calls []Call) (out []Pair) {
	open := map[string]Pair{} // the failure that each command has not overcome
	for i := range calls {
		key := commandKey(calls[i].Command)
		if key == "" {
			continue
		}
		f, end := read(&calls[i])
		p, waits := open[key]
		switch {
		case end == failed && !(waits && p.Failure.Signature == f.Signature):
			open[key] = Pair{Failed: i, Failure: f}
		case end == succeeded && waits:
			delete(open, key)
			p.Fixed = i
			// Where nothing was changed, the command succeeds sometimes: there is nothing to learn from it.
			if p.between(calls, key); len(p.Ran)+len(p.Files) > 0 {
				out = append(out, p)
			}
		}
	}
	return out
}

// read returns how a call ended. A failure without a telling line could be any, and a run of tests
// that ran none shows nothing about them.
func read(c *Call) (failure.Failure, ending) {
	if c.Refused || shell.ReadsOnly(c.Command) {
		return failure.Failure{}, unclear
	}
	f, bad := failure.Read(c.Output)
	if !bad {
		run, ok := testrun.Parse(c.Command, c.Text+"\n"+c.Stderr, c.Exit)
		if ok && (run.Status == testrun.RanNone || run.Status == testrun.Failed) {
			return f, unclear
		}
		return f, succeeded
	}
	if lesson, _ := failure.Lesson(c.Output); !lesson || f.Silent || f.Signature == "" {
		return f, unclear
	}
	return f, failed
}

// between fills in what was done between the two calls of a pair.
func (p *Pair) between(calls []Call, key string) {
	own := byproducts(calls, key)
	add := func(list *[]string, s string, limit int) {
		if s != "" && len(*list) < limit && !slices.Contains(*list, s) {
			*list = append(*list, s)
		}
	}
	for i := p.Failed + 1; i <= p.Fixed; i++ {
		c := &calls[i]
		for _, f := range c.Wrote {
			add(&p.Files, f, maxFiles)
		}
		ran := strings.TrimSpace(c.Command)
		if commandKey(ran) == key { // a line may prepare the command that it is about
			ran = preparation(ran)
		} else if _, bad := failure.Read(c.Output); bad {
			continue
		}
		if ran == "" || shell.ReadsOnly(ran) {
			continue
		}
		add(&p.Ran, ran, maxRan)
		for _, f := range c.Changed {
			if !own[f] {
				add(&p.Files, f, maxFiles)
			}
		}
	}
}

// preparation returns the part of a shell line that stands before the command which it is about.
func preparation(line string) string {
	rest := line[:max(0, strings.LastIndex(line, Main(line)))]
	return strings.TrimRight(strings.TrimSpace(rest), "&; ")
}

// byproducts returns the files that a command changes by itself, such as caches and reports: those of
// the steps that ran nothing else, without the files that a tool wrote there.
func byproducts(calls []Call, key string) map[string]bool {
	mixed, wrote := map[int]bool{}, map[int][]string{}
	for i := range calls {
		c := &calls[i]
		wrote[c.Step] = append(wrote[c.Step], c.Wrote...)
		// A line may prepare the command (cd, export) as long as the preparation changes no file.
		alone := commandKey(c.Command) == key && shell.ReadsOnly(cmp.Or(preparation(c.Command), "true"))
		if c.Command != "" && !alone && !shell.ReadsOnly(c.Command) {
			mixed[c.Step] = true
		}
	}
	own := map[string]bool{}
	for i := range calls {
		c := &calls[i]
		if mixed[c.Step] || commandKey(c.Command) != key {
			continue
		}
		for _, f := range c.Changed {
			own[f] = own[f] || !slices.Contains(wrote[c.Step], f)
		}
	}
	return own
}

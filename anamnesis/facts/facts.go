// Package facts counts what a repository's tasks showed of it: what runs its tests, what never starts, what
// exceeds the time limit, which tests fail anyway. A fact is a count over tasks and no judgement; it is shown
// only if the tasks that tried agree and the last of them did not show otherwise.
package facts

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Kind is a kind of fact.
type Kind string

// The kinds.
const (
	Works       Kind = "works"        // runs tests
	Never       Kind = "never"        // a test runner that never starts
	Missing     Kind = "missing"      // a program that is not installed
	Timeout     Kind = "timeout"      // exceeds the time limit; no reason to hold a call
	FailsAnyway Kind = "fails_anyway" // a test
)

func (k Kind) order() int {
	return slices.Index([]Kind{Works, Missing, Never, Timeout, FailsAnyway}, k)
}

// Fact is one fact and the tasks behind it.
type Fact struct {
	Kind   Kind      `json:"kind"`
	Match  string    `json:"match"` // the first words of a command, a program, or a test
	Seen   int       `json:"seen"`  // tasks that bear it out
	Of     int       `json:"of"`    // tasks that tried and of which the end is known
	Dir    string    `json:"dir,omitempty"`
	Setup  string    `json:"setup,omitempty"`   // succeeded before the first run in most of the tasks
	SetupN int       `json:"setup_n,omitempty"` // of Seen
	Args   string    `json:"args,omitempty"`    // what a runner was given: FILE or LABEL
	Last   time.Time `json:"last"`
	Agents []string  `json:"agents,omitempty"`
	Envs   []string  `json:"envs,omitempty"`
	Tasks  []string  `json:"tasks"`            // that bear it out
	Others []string  `json:"others,omitempty"` // that tried and do not
	Line   string    `json:"line,omitempty"`   // a user's words, told instead

	recent string // how the tasks that tried ended, the latest last: + or -
}

// ID names a fact in commands.
func (f *Fact) ID() string { return string(f.Kind) + ":" + f.Match }

// Holds reports whether a call that the fact speaks of may be held once.
func (f *Fact) Holds() bool {
	latest := f.recent[max(0, len(f.recent)-10):]
	// To hold a call costs the agent a turn, so this takes more tasks than to tell a fact, and no recent exception.
	return (f.Kind == Never || f.Kind == Missing) && f.Seen >= 5 && !strings.Contains(latest, "-")
}

// key is what a fact is about.
type key struct {
	kind  Kind
	match string
}

// Count returns the facts that the tasks bear out, the best of each kind first, and none that an earlier one says as
// well. The tasks are in the order of their ends.
func Count(tasks []Task) []Fact {
	suggested, byProgram := map[key]int{}, map[string][]entry{}
	for i := range tasks {
		for k, n := range tasks[i].suggests() {
			suggested[k] += n
		}
	}
	unquotable := func(r rune) bool { return r == '`' || !unicode.IsPrint(r) }
	// What one task met once may be its own slip; a backtick in a match would end the quotation around it.
	maps.DeleteFunc(suggested, func(k key, n int) bool {
		return k.match == "" || n < 2 || strings.ContainsFunc(k.match, unquotable)
	})
	for k := range suggested {
		byProgram[program(k.match)] = []entry{} // the others need not be split: a start waits
	}
	for i := range tasks {
		for k := range tasks[i].Commands {
			c := &tasks[i].Commands[k]
			if list, is := byProgram[program(c.Words)]; is {
				byProgram[program(c.Words)] = append(list, entry{i, strings.Fields(c.Words), c})
			}
		}
	}
	var out []Fact
	for k := range suggested {
		f := Fact{Kind: k.kind, Match: k.match}
		// Two exceptions in a row, as the last tasks, suggest that the repository or the machine has changed since.
		if f.count(tasks, byProgram); f.Seen > 0 && 5*f.Seen >= 4*f.Of && !strings.HasSuffix(f.recent, "--") {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b Fact) int {
		return cmp.Or(
			cmp.Compare(a.Kind.order(), b.Kind.order()), cmp.Compare(b.Seen, a.Seen), cmp.Compare(a.Match, b.Match))
	})
	// Of two paths to one runner the longer is named first, since it works from the top of the repository; a path that
	// only a few tasks took does not displace the other.
	for i := range out {
		for k := i + 1; k < len(out) && out[k].Kind == Works && 2*out[k].Seen >= out[i].Seen; k++ {
			if names(bare(out[i].Match), bare(out[k].Match)) {
				out[i], out[k] = out[k], out[i]
			}
		}
	}
	said := out[:0]
	for _, f := range out {
		if !f.repeats(said) {
			said = append(said, f)
		}
	}
	return said
}

// repeats reports whether an earlier fact says the same. What a program that is not installed would run is no news.
func (f *Fact) repeats(said []Fact) bool {
	return slices.ContainsFunc(said, func(s Fact) bool {
		switch {
		case s.Kind == Works && f.Kind == Works: // the longer path says where it is; one way to start it is enough
			long := bare(s.Match)
			return bare(f.Match) == long || names(bare(f.Match), long) || strings.HasSuffix(f.Match, " "+long)
		case s.Kind == Missing && f.Kind == Never:
			return program(f.Match) == s.Match
		}
		return s.Kind == Never && f.Kind == Never && names(s.Match, f.Match)
	})
}

// bare returns the words of a runner without the interpreter that is named before it.
func bare(match string) string {
	if name, script, _ := strings.Cut(match, " "); script != "" && script[0] != '-' && python().MatchString(name) {
		match = script
	}
	return strings.TrimPrefix(match, "./")
}

// suggests returns what a task may be a fact of; 2 where it met a missing program twice.
func (t *Task) suggests() map[key]int {
	out := map[key]int{}
	for _, c := range t.Commands {
		if strings.ContainsRune(c.Ends, ran) {
			out[key{Works, c.Runner}] = 1
		}
		if strings.ContainsAny(c.Ends, string(missing)+string(failed)) {
			out[key{Never, c.Runner}] = 1
		}
		if c.Limit {
			out[key{Timeout, c.Words}] = 1
		}
	}
	for program, ends := range t.Programs {
		if plausible().MatchString(program) && !prose[strings.TrimRight(program, "0123456789")] {
			out[key{Missing, program}] = min(2, strings.Count(ends, string(missing)))
		}
	}
	for _, test := range t.Before { // without its parameters, which may say anything to a reader
		name, _, _ := strings.Cut(test, "[")
		out[key{FailsAnyway, plainTest().FindString(name)}] = 1
	}
	return out
}

// names reports whether a command names the same program as another that says more of its path.
func names(short, long string) bool {
	s, l := strings.Fields(short), strings.Fields(long)
	return short != long && len(s) == len(l) && matches(s, l)
}

// program returns the base name of a command's program.
func program(words string) string {
	name, _, _ := strings.Cut(words, " ")
	return path.Base(name)
}

// entry is a command of a task.
type entry struct {
	task  int
	words []string
	*Command
}

// matches reports whether a fact's words are the first words of a command, in order; options may stand between.
func matches(match, words []string) bool {
	same := func(want, given string) bool { return want == given || strings.HasSuffix(given, "/"+want) }
	if !same(strings.TrimPrefix(match[0], "./"), strings.TrimPrefix(words[0], "./")) {
		return false
	}
	words = words[1:]
	for _, w := range match[1:] {
		for len(words) > 0 && strings.HasPrefix(words[0], "-") && !same(w, words[0]) {
			words = words[1:]
		}
		if len(words) == 0 || !same(w, words[0]) {
			return false
		}
		words = words[1:]
	}
	return true
}

// count counts the fact over the tasks.
func (f *Fact) count(tasks []Task, byProgram map[string][]entry) {
	ends := make([]string, len(tasks))
	setups, dirs, placed := map[string]int{}, map[string]int{}, 0
	switch f.Kind {
	case Missing:
		for i := range tasks {
			ends[i] = tasks[i].Programs[f.Match]
		}
	case FailsAnyway:
		named := func(name string) bool { return strings.Contains(name, f.Match) }
		for i := range tasks {
			if slices.ContainsFunc(tasks[i].Failed, named) {
				ends[i] += string(failed)
			}
			if slices.ContainsFunc(tasks[i].Passed, named) {
				ends[i] += string(ok)
			}
		}
	default:
		want := strings.Fields(f.Match)
		for _, e := range byProgram[program(f.Match)] {
			if !matches(want, e.words) {
				continue
			}
			runs := strings.ContainsRune(e.Ends, ran)
			differs := func(w string) bool { return !slices.Contains(e.words, w) }
			// A fact's place is that of the commands with its very words: another path leads there from elsewhere.
			if (runs || f.Kind == Never) && !slices.ContainsFunc(want, differs) {
				dirs[e.Dir]++
				placed++
			}
			if runs {
				if f.Kind == Works && f.Args == "" && len(e.words) > len(want) {
					f.Args = argument(e.words[len(e.words)-1])
				}
				for _, s := range e.Setup {
					if !strings.ContainsRune(ends[e.task], ran) { // before the first run
						setups[s]++
					}
				}
			}
			ends[e.task] += e.Ends
		}
	}
	for i := range tasks {
		if ends[i] != "" {
			f.add(&tasks[i], bearsOut(f.Kind, ends[i]))
		}
	}
	if dir, n := most(dirs); 2*n > placed {
		f.Dir = dir
	}
	if setup, n := most(setups); f.Kind == Works && 5*n >= 4*f.Seen {
		f.Setup, f.SetupN = setup, n
	}
}

func bearsOut(kind Kind, ends string) bool {
	good := strings.ContainsAny(ends, string(ran)+string(ok))
	bad := strings.ContainsAny(ends, string(missing)+string(failed))
	switch kind {
	case Works:
		return good
	case Timeout:
		return strings.ContainsRune(ends, timeout)
	case FailsAnyway:
		return bad
	}
	return bad && !good
}

// add counts a task that tried.
func (f *Fact) add(t *Task, bears bool) {
	f.Of++
	if !bears {
		f.Others, f.recent = append(f.Others, t.ID), f.recent+"-"
		return
	}
	f.Seen++
	f.Tasks, f.recent, f.Last = append(f.Tasks, t.ID), f.recent+"+", t.Ended
	if t.Agent != "" && !slices.Contains(f.Agents, t.Agent) {
		f.Agents = append(f.Agents, t.Agent)
	}
	// "linux" is dropped beside "linux Python 3.9", which says more, in whichever order the tasks ended.
	if t.Env != "" && !slices.ContainsFunc(f.Envs, func(e string) bool { return strings.HasPrefix(e, t.Env) }) {
		f.Envs = append(slices.DeleteFunc(f.Envs, func(e string) bool { return strings.HasPrefix(t.Env, e) }), t.Env)
	}
}

// most returns the key that was counted most.
func most(counts map[string]int) (key string, n int) {
	for k, m := range counts {
		if m > n || m == n && k < key {
			key, n = k, m
		}
	}
	return key, n
}

// argument says what kind of argument a runner was given.
func argument(w string) string {
	switch {
	case strings.HasPrefix(w, "-") || strings.ContainsAny(w, "$*|<>"):
		return ""
	case strings.Contains(w, "/") || path.Ext(w) != "" && !strings.Contains(path.Ext(w), "_") && len(path.Ext(w)) < 6:
		return "FILE"
	}
	return "LABEL"
}

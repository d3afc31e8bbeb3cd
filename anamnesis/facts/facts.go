// Package facts counts what a repository's tasks showed of it: what runs its tests, what never starts, what
// exceeds the time limit, which tests fail anyway. A fact is a count over tasks and no judgement; it is told
// only where the tasks that tried agree, and where the last of them did not show otherwise.
package facts

import (
	"cmp"
	"path"
	"slices"
	"strings"
	"time"
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
	return (f.Kind == Never || f.Kind == Missing) && f.Seen >= 5 && !strings.Contains(f.recent[max(0, len(f.recent)-10):], "-")
}

// Count returns the facts that the tasks bear out, the best of each kind first. The tasks are in the order of their ends.
func Count(tasks []Task) []Fact {
	c := newCounter(tasks)
	var out []Fact
	for _, kind := range []Kind{Works, Never, Missing, Timeout, FailsAnyway} {
		var list []Fact
		for match, n := range c.candidates[kind] {
			if n < 2 {
				continue
			}
			if f := c.count(kind, match); 5*f.Seen >= 4*f.Of && !strings.HasSuffix(f.recent, "--") {
				list = append(list, f)
			}
		}
		slices.SortFunc(list, func(a, b Fact) int { return cmp.Or(cmp.Compare(b.Seen, a.Seen), cmp.Compare(a.Match, b.Match)) })
		for i := range list { // the longer path says where it is
			for k := i + 1; kind == Works && k < len(list) && 2*list[k].Seen >= list[i].Seen; k++ {
				if names(list[i].Match, list[k].Match) {
					list[i], list[k] = list[k], list[i]
				}
			}
		}
		out = append(out, list...)
	}
	return out
}

// names reports whether a command names the same program as another that says more of its path.
func names(short, long string) bool {
	s, l := strings.Fields(short), strings.Fields(long)
	return short != long && len(s) == len(l) && matches(s, l)
}

// least is how many tasks must bear a fact out. That a program is not there needs no second one: the shell said so.
func (k Kind) least() int {
	return 2
}

// entry is a command of a task.
type entry struct {
	task  int
	words []string
	*Command
}

type counter struct {
	tasks      []Task
	byProgram  map[string][]entry      // by the base name of the program
	candidates map[Kind]map[string]int // in how many tasks something suggests the fact
}

func newCounter(tasks []Task) *counter {
	c := &counter{tasks: tasks, byProgram: map[string][]entry{}, candidates: map[Kind]map[string]int{}}
	for i := range tasks {
		t := &tasks[i]
		suggested := map[string]bool{}
		suggest := func(kind Kind, match string) {
			if id := string(kind) + ":" + match; !suggested[id] && match != "" {
				suggested[id] = true
				if c.candidates[kind] == nil {
					c.candidates[kind] = map[string]int{}
				}
				c.candidates[kind][match]++
			}
		}
		for k := range t.Commands {
			e := entry{i, strings.Fields(t.Commands[k].Words), &t.Commands[k]}
			c.byProgram[path.Base(e.words[0])] = append(c.byProgram[path.Base(e.words[0])], e)
			if strings.ContainsRune(e.Ends, ran) {
				suggest(Works, e.Runner)
			}
			if strings.ContainsAny(e.Ends, string(missing)+string(failed)) {
				suggest(Never, e.Runner)
			}
			if e.Limit {
				suggest(Timeout, e.Words)
			}
		}
		for program, ends := range t.Programs {
			if strings.ContainsRune(ends, missing) && plausible().MatchString(program) && !prose[strings.TrimRight(program, "0123456789")] {
				suggest(Missing, program)
				if strings.Contains(ends, "mm") { // one task met it twice
					c.candidates[Missing][program]++
				}
			}
		}
		for _, test := range t.Before {
			suggest(FailsAnyway, test)
		}
	}
	return c
}

// matches reports whether a fact's words are the first words of a command, in order; options may stand between.
func matches(match, words []string) bool {
	same := func(want, given string) bool {
		want = strings.TrimPrefix(want, "./")
		return want == strings.TrimPrefix(given, "./") || strings.HasSuffix(given, "/"+want)
	}
	if !same(match[0], words[0]) {
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

// count counts a fact over the tasks.
func (c *counter) count(kind Kind, match string) Fact {
	f := Fact{Kind: kind, Match: match}
	ends := make(map[int]string)
	setups, dirs := map[string]int{}, map[string]int{}
	switch kind {
	case Missing:
		for i := range c.tasks {
			ends[i] = c.tasks[i].Programs[match]
		}
	case FailsAnyway:
		for i := range c.tasks {
			ends[i] = c.testEnds(&c.tasks[i], match)
		}
	default:
		want := strings.Fields(match)
		counted := map[int]bool{}
		for _, e := range c.byProgram[path.Base(want[0])] {
			if !matches(want, e.words) {
				continue
			}
			ends[e.task] += e.Ends
			if strings.ContainsRune(e.Ends, ran) {
				if dirs[e.Dir]++; f.Args == "" && len(e.words) > len(want) {
					f.Args = argument(e.words[len(e.words)-1])
				}
				if !counted[e.task] {
					counted[e.task] = true
					for _, s := range e.Setup {
						setups[s]++
					}
				}
			}
		}
	}
	for i := range c.tasks {
		if ends[i] == "" {
			continue
		}
		f.add(&c.tasks[i], bearsOut(kind, ends[i]))
	}
	if dir, n := most(dirs); 2*n > f.Seen {
		f.Dir = dir
	}
	if setup, n := most(setups); kind == Works && n >= 2 && 5*n >= 4*f.Seen {
		f.Setup, f.SetupN = setup, n
	}
	return f
}

func bearsOut(kind Kind, ends string) bool {
	good, bad := strings.ContainsAny(ends, string(ran)+string(ok)), strings.ContainsAny(ends, string(missing)+string(failed))
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

// testEnds returns how a test ended in a task.
func (c *counter) testEnds(t *Task, test string) (ends string) {
	has := func(list []string) bool {
		return slices.ContainsFunc(list, func(name string) bool { return strings.Contains(name, test) })
	}
	if has(t.Failed) {
		ends += string(failed)
	}
	if has(t.Passed) {
		ends += string(ok)
	}
	return ends
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
	for _, list := range []struct {
		of    *[]string
		value string
	}{{&f.Agents, t.Agent}, {&f.Envs, t.Env}} {
		if list.value != "" && !slices.Contains(*list.of, list.value) {
			*list.of = append(*list.of, list.value)
		}
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

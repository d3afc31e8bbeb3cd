// Package testrun reads what a test runner printed: whether tests passed, failed or did not run, how many, and which
// failed. It reads texts only; the output may be coloured, cut in the middle or piped through tail.
package testrun

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"anamnesis/anamnesis/quote"
	"anamnesis/anamnesis/shell"
)

// MaxNames bounds [Result.Names].
const MaxNames = 50

// Status is how a test run ended.
type Status string

// The statuses. Unclear means that the output does not say whether a test ran.
const (
	Passed  Status = "passed"
	Failed  Status = "failed"
	RanNone Status = "none"
	Unclear Status = "unclear"
)

// Result is one test run, or several of one command added up.
type Result struct {
	Runner string `json:"runner"`
	Status Status `json:"status"`
	// The counts are those of the summaries printed: 0 where a runner prints none.
	Passed int      `json:"passed"`
	Failed int      `json:"failed"`
	Names  []string `json:"names,omitempty"` // of the failed tests, at most [MaxNames]
}

// unittestEnd is the end of a run of Python's unittest, whose second line says how the first one is meant.
var unittestEnd = shell.Pattern(`(?m)^(Ran \d+ tests? in [\d.]+s)\n+(OK|FAILED|NO TESTS RAN)`)

// aloneIn matches what leaves a command alone in its line.
var aloneIn = shell.Pattern(`^\s*cd\s+\S+\s*&&|\d?>&\d|&>|\s+$`)

// Parse reads a command, what it printed and its exit code. It reports false for what is no test run: a command that
// only shows files, or one whose words and output name no test runner.
func Parse(command, output string, exit int) (Result, bool) {
	if shell.ReadsOnly(command) {
		return Result{}, false
	}
	output = quote.StripEscapes(strings.ReplaceAll(output, "\r", ""))
	lines := strings.Split(unittestEnd().ReplaceAllString(output, "$1 $2"), "\n")
	var best, both Result
	var most, runs int
	for _, r := range runners() {
		named := r.command.MatchString(command)
		got, says := r.read(lines, named)
		if !says && !named {
			continue
		}
		// The output decides, since wrappers such as make hide the runner; among several that would fit it, the one
		// that the command names, else one whose counts were read. What a runner that starts others says counts least.
		rank := 1
		switch {
		case says && r.starts:
			rank = 2
		case says && named:
			rank = 7
			both.add(got)
			runs++
		case says:
			rank = 3
		}
		if got.Passed+got.Failed > len(got.Names) {
			rank++
		}
		if rank > most {
			best, most = got, rank
		}
	}
	if runs > 1 {
		best = both
	}
	// The exit code speaks where the output does not say that a test failed, unless it may be another program's.
	if exit != 0 && (best.Status == Passed || best.Status == Unclear && most > 1) {
		best.Status = Failed
		if strings.ContainsAny(aloneIn().ReplaceAllString(command, ""), ";|&\n") {
			best.Status = Unclear
		}
	}
	return best, most > 0
}

// add counts a run of another runner in.
func (r *Result) add(o Result) {
	r.Runner = strings.TrimPrefix(r.Runner+" "+o.Runner, " ")
	r.Passed, r.Failed, r.Names = r.Passed+o.Passed, r.Failed+o.Failed, append(r.Names, o.Names...)
	for _, s := range []Status{Failed, Passed, Unclear, RanNone} {
		if r.Status == s || o.Status == s {
			r.Status = s
			break
		}
	}
}

// read collects what one runner's lines say, and reports whether there are any. named: the command names the runner.
func (r *runner) read(lines []string, named bool) (got Result, says bool) {
	got.Runner = r.name
	var passed, finished, broke, none bool
	aside := r.list != nil
	var last string
	var skipped int
	var hints, loose, parents []string
	for _, line := range lines {
		line = strings.TrimRight(line, " \t")
		if m := find(r.list, line); m != nil {
			aside = name(m) == ""
		}
		if m := find(r.hint, line); m != nil {
			hints = append(hints, name(m))
		}
		m := find(r.fails, line)
		switch {
		case find(r.skipped, line) != nil:
			skipped++
		case find(r.parent, line) != nil:
			parents = append(parents, cmp.Or(name(find(r.parent, line)), last))
		case m != nil && !aside:
			says, broke = true, true
			if last = name(m); last != "" && len(got.Names) < MaxNames && !slices.Contains(got.Names, last) {
				got.Names = append(got.Names, last)
			}
		case find(r.loose, line) != nil:
			if n := name(find(r.loose, line)); !slices.Contains(loose, n) {
				loose = append(loose, n)
			}
		case find(r.none, line) != nil:
			says, none = true, true
		case find(r.summary, line) != nil:
			says, none = true, true // unless it counts some
			p, f := sum(r.passes, line), sum(r.failures, line)
			if r.passes == nil {
				p = max(0, sum(r.total, line)-f-sum(r.skips, line))
			}
			got.Passed, got.Failed = got.Passed+p, got.Failed+f
		case find(r.ok, line) != nil:
			says, passed = true, true
		case find(r.end, line) != nil:
			says, finished = true, true
		case find(r.broke, line) != nil:
			broke = broke || named
			says = says || named
		}
	}
	// The total of such a summary includes the skipped tests, of which only their own lines tell.
	if r.skips == nil && r.passes == nil {
		got.Passed = max(0, got.Passed-skipped)
	}
	got.Names = slices.DeleteFunc(got.Names, func(name string) bool { // a subtest says more than the test around it
		under := func(other string) bool { return strings.HasPrefix(other, name+"/") }
		return slices.Contains(parents, name) || slices.ContainsFunc(got.Names, under)
	})
	if got.Failed > 0 || broke {
		got.Names = append(got.Names, loose[:min(len(loose), MaxNames-len(got.Names))]...)
	}
	got.Failed = max(got.Failed, len(got.Names))
	switch {
	case got.Failed > 0 || broke:
		got.Status = Failed
		if len(got.Names) == 0 {
			slices.Sort(hints)
			hints = slices.Compact(hints)
			got.Names = hints[:min(len(hints), MaxNames)]
		}
	case got.Passed > 0 || passed || finished && skipped == 0:
		got.Status = Passed
	case none && !finished:
		got.Status = RanNone
	default:
		got.Status = Unclear
	}
	return got, says
}

func find(p *regexp.Regexp, line string) []string {
	if p == nil {
		return nil
	}
	return p.FindStringSubmatch(line)
}

// name returns the last group that matched.
func name(m []string) string {
	for _, group := range slices.Backward(m[1:]) {
		if group != "" {
			return strings.TrimSpace(group)
		}
	}
	return ""
}

// sum adds the numbers that a pattern finds in a line.
func sum(p *regexp.Regexp, line string) (n int) {
	if p == nil {
		return 0
	}
	for _, m := range p.FindAllStringSubmatch(line, -1) {
		for _, digits := range m[1:] {
			if k, err := strconv.Atoi(digits); err == nil {
				n += k
			}
		}
	}
	return n
}

// Package testrun reads what a test runner printed: whether tests passed, failed or did not run, how many, and which
// failed. It reads texts only; the output may be coloured, cut in the middle or piped through tail.
package testrun

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

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
	Runner string
	Status Status
	// The counts are those of the summaries printed: 0 where a runner prints none.
	Passed, Failed int
	Names          []string // of the failed tests, at most [MaxNames]
}

// Parse reads a command, what it printed and its exit code. It reports false for what is no test run: a command that
// only shows files, or one whose words and output name no test runner.
func Parse(command, output string, exit int) (Result, bool) {
	if shell.LooksOnly(command) {
		return Result{}, false
	}
	lines := strings.Split(ansi().ReplaceAllString(strings.ReplaceAll(output, "\r", ""), ""), "\n")
	var best Result
	most := 0
	for _, r := range runners() {
		got, says := r.read(lines)
		named := r.command.MatchString(command)
		if !says && !named {
			continue
		}
		got.settle(exit, says)
		// The output decides, since wrappers such as make hide the runner; among several that would fit it, the one that
		// the command names, else one whose counts were read. Runners that start others come last in the table.
		rank := 1
		if says {
			rank += 2
		}
		if says && named {
			rank += 4
		}
		if got.Passed+got.Failed > len(got.Names) {
			rank++
		}
		if rank > most {
			best, most = got, rank
		}
	}
	return best, most > 0
}

func ansi() *regexp.Regexp { return ansiPattern() }

// read collects what one runner's lines say, and reports whether there are any.
func (r *runner) read(lines []string) (got Result, says bool) {
	got.Runner = r.name
	var passed, broke, none bool
	for _, line := range lines {
		line = strings.TrimRight(line, " \t")
		if m := find(r.fails, line); m != nil {
			says, broke = true, true
			if name := strings.TrimSpace(m[len(m)-1]); len(m) > 1 && name != "" && len(got.Names) < MaxNames && !slices.Contains(got.Names, name) {
				got.Names = append(got.Names, name)
			}
			continue
		}
		switch {
		case r.none != nil && r.none.MatchString(line):
			says, none = true, true
		case r.summary != nil && r.summary.MatchString(line):
			says, none = true, true // unless it counts some
			p, f := sum(r.passes, line), sum(r.failures, line)
			if all := sum(r.total, line); r.total != nil && r.passes == nil {
				p = all - f - sum(r.skips, line)
				if r.failures == nil {
					p = all
				}
			}
			got.Passed, got.Failed = got.Passed+p, got.Failed+f
		case r.ok != nil && r.ok.MatchString(line):
			says, passed = true, true
		case r.broke != nil && r.broke.MatchString(line):
			says, broke = true, true
		}
		if r.failures == nil { // the summary counts all, other lines the rest
			got.Passed -= sum(r.skips, line)
		}
	}
	if r.failures == nil {
		got.Passed = max(0, got.Passed-len(got.Names))
	}
	got.Names = slices.DeleteFunc(got.Names, func(name string) bool { // a subtest says more than the test around it
		return slices.ContainsFunc(got.Names, func(o string) bool { return strings.HasPrefix(o, name+"/") })
	})
	got.Failed = max(got.Failed, len(got.Names))
	switch {
	case got.Failed > 0 || broke:
		got.Status = Failed
	case got.Passed > 0 || passed:
		got.Status = Passed
	case none:
		got.Status = RanNone
	default:
		got.Status = Unclear
	}
	return got, says
}

// settle lets the exit code speak where the output does not say that a test failed. In a pipeline it may be another
// program's, so that 0 proves nothing.
func (r *Result) settle(exit int, says bool) {
	if exit != 0 && (r.Status == Passed || r.Status == Unclear && says) {
		r.Status = Failed
	}
}

func find(patterns []*regexp.Regexp, line string) []string {
	for _, p := range patterns {
		if m := p.FindStringSubmatch(line); m != nil {
			return m
		}
	}
	return nil
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

// Package goal runs the checks that say whether a task has reached what it was asked for. They run on the world
// as the last step left it, in a copy that takes its place: the agent finds nothing of them.
package goal

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"anamnesis/anamnesis/quote"
	"anamnesis/anamnesis/testrun"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/guard/confine"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/tool"
	run "anamnesis/orchestrator/tool/shell"
	"anamnesis/orchestrator/workspace"
)

const (
	// MaxTime bounds one check, LastTime one that runs when the task's time is over.
	MaxTime  = 30 * time.Minute
	LastTime = time.Minute
	// slow is how long a check runs before that is shown.
	slow = 10 * time.Second
	// maxText and maxLines bound the end of a check's output, for the model and for the record.
	maxText  = 2_000 // bytes
	maxLines = 20
	// maxChanged bounds the listed files of a check that changed.
	maxChanged = 20
)

// Checker runs the checks of one task.
type Checker struct {
	place *workspace.Place
	box   func(context.Context) (*guard.Sandbox, error)
	shows func(c op.Call, text string)
}

// New returns what runs the checks of the task that works in a place. box returns the confinement of its
// commands; shows shows that a check is still running, and may be nil.
func New(p *workspace.Place, box func(context.Context) (*guard.Sandbox, error), shows func(op.Call, string)) *Checker {
	return &Checker{place: p, box: box, shows: shows}
}

// Run runs the checks and records what they say. asked: the agent has said that it is done. longest
// bounds each check.
func (c *Checker) Run(ctx, keep context.Context, asked bool, longest time.Duration) error {
	st := c.place.State()
	begun := c.place.Now()
	rec := &op.CheckRan{Passed: true, Asked: asked, First: len(st.Goal.Runs) == 0}
	for _, command := range st.Goal.Until {
		ran, err := c.run(ctx, command, "", longest)
		if err != nil {
			return err
		}
		rec.InWorld = cmp.Or(ran.inWorld, rec.InWorld)
		if ctx.Err() != nil {
			return nil // interrupted: it says nothing
		}
		rec.Checks = append(rec.Checks, ran.Check)
		rec.Passed = rec.Passed && !ran.Failed()
	}
	changed, err := c.changedBetween(keep, 0, st.Current)
	if err != nil {
		return err
	}
	reads := readBy(st.Goal.Until, changed)
	known := func(name string) bool { return slices.Contains(st.Goal.Changed, name) }
	rec.Changed = slices.DeleteFunc(slices.Clone(reads), known)
	if st.Goal.Frozen && len(reads) > 0 {
		rec.Passed, rec.Refused = false, true
	}
	if err := c.rate(ctx, st, rec, longest); err != nil || ctx.Err() != nil {
		return err
	}
	rec.Millis = c.place.Now().Sub(begun).Milliseconds()
	if rec.Broke, err = c.whatBroke(ctx, rec); err != nil {
		return err
	}
	if rec.InWorld == st.Goal.InWorld {
		rec.InWorld = "" // said before
	}
	rec.Notice = words(rec, reads)
	return c.place.Record(keep, rec)
}

// number matches what the goal's command may print as a score.
var number = regexp.MustCompile(`[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?`)

// rate scores the run: by the goal's own command, or by the tests that passed.
func (c *Checker) rate(ctx context.Context, st *state.State, rec *op.CheckRan, longest time.Duration) error {
	rating := rec.Count(st.Goal.Named)
	rec.Rating = &rating
	if st.Goal.Score == "" || rec.Refused {
		return nil
	}
	ran, err := c.run(ctx, st.Goal.Score, "", longest)
	rating = op.Rating{}
	numbers := number.FindAllString(ran.stdout, -1)
	switch {
	case ran.Failed():
		rating.Error = fmt.Sprintf("`%s` failed: %s", quote.Squash(st.Goal.Score), ran.Line)
	case len(numbers) == 0:
		rating.Error = fmt.Sprintf("`%s` printed no number", quote.Squash(st.Goal.Score))
	default:
		rating.Value, _ = strconv.ParseFloat(numbers[len(numbers)-1], 64)
		rating.Value = max(-math.MaxFloat64, min(rating.Value, math.MaxFloat64)) // JSON has no infinity
	}
	return err
}

// ran is how one check ended.
type ran struct {
	op.Check
	stdout  string
	inWorld string // why it ran in the directory itself; empty: in a copy
}

// goTest and goPackage match what passed in a run of go test, which prints no counts: tests with -v, else packages.
// goBroke matches what keeps tests from running, so that they are not named.
var (
	goTest    = regexp.MustCompile(`(?m)^\s*--- PASS: |^\{.*"Action":"pass".*"Test":"`)
	goPackage = regexp.MustCompile(`(?m)^ok\s+\S+\s+(?:\(cached\)|[\d.]+s)(?:\s+coverage: .*)?$`)
	goBroke   = regexp.MustCompile(`(?m)^FAIL\s+\S+ \[|^panic: `)
)

// countGo counts what passed in a run of go test.
func countGo(c *op.Check, output string) {
	tests := len(goTest.FindAllString(output, -1))
	c.Passing = max(tests, len(goPackage.FindAllString(output, -1)))
	c.Uncounted = tests == 0 && c.Passing+c.Failing > 0 && !goBroke.MatchString(output)
}

// run runs one check on the directory as it is, or on a copy of an earlier state of it.
func (c *Checker) run(ctx context.Context, command, earlier string, longest time.Duration) (check ran, err error) {
	box, err := c.box(ctx)
	if err != nil {
		return check, err
	}
	env := &tool.Env{Dir: c.place.Dir, Redactor: c.place.Journal.Redactor(), Sandbox: box}
	scratch := filepath.Join(c.folder(), "scratch")
	if err := removeAll(scratch); err != nil {
		return check, fmt.Errorf("remove the copy of an earlier check: %w", err)
	}
	defer removeAll(scratch) // what is left is removed by the next check
	fork := confine.Fork{Dir: earlier, Scratch: scratch}
	if earlier != "" {
		fork.Beneath = beneath(c.place.Dir, earlier, "")
	}
	exec := run.Exec{Name: "The check", Path: "/bin/bash", Args: []string{"bash", "-c", command}, Timeout: longest}
	if c.shows != nil {
		text := quote.Squash(command) + " is still running"
		late := time.AfterFunc(slow, func() { c.shows(op.Call{Name: "the check"}, text) })
		defer late.Stop()
	}
	var res tool.Result
	forked, ok := box.InFork(fork)
	switch {
	case ok:
		env.Sandbox = forked
		res, err = run.Run(ctx, env, exec)
	case box == nil:
		check.inWorld = "the sandbox is off"
	default:
		check.inWorld = "this system cannot show commands a copy of the directory"
	}
	if ok && err == nil && res.Exit == nil { // the copy could not be mounted
		check.inWorld = quote.CutBytes(res.Text, 300)
	}
	// An earlier state exists only as a copy: without one it cannot be checked.
	if check.inWorld != "" && earlier == "" {
		env.Sandbox = box
		res, err = run.Run(ctx, env, exec)
	}
	if err != nil && ctx.Err() == nil {
		return check, fmt.Errorf("run the check %q: %w", command, err)
	}
	if res.Display == guard.Overdue { // which says nothing of what is checked
		return c.run(ctx, command, earlier, longest)
	}
	check.Check, check.stdout = op.Check{Command: command, Exit: -1, Text: tail(res.Text)}, res.Stdout
	if res.Exit != nil {
		check.Exit = *res.Exit
		if r, ok := testrun.Parse(command, res.Text, *res.Exit); ok && r.Status != testrun.Unclear {
			check.Status, check.Passing, check.Failing, check.Names = string(r.Status), r.Passed, r.Failed, r.Names
			if r.Runner == "go" {
				countGo(&check.Check, res.Text)
			}
		}
	}
	if check.Failed() {
		check.Line = firstLine(check.Check)
	}
	return check, nil
}

// folder is where checks keep their copies.
func (c *Checker) folder() string { return filepath.Join(c.place.Home.Task(c.place.ID), "check") }

// removeAll removes a folder, also one whose directories an overlay has closed.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(p, 0o700) // RemoveAll says what is left
		}
		return nil
	})
	return os.RemoveAll(dir)
}

func tail(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	lines = lines[max(0, len(lines)-maxLines):]
	text = strings.Join(lines, "\n")
	if len(text) > maxText {
		text = "…" + strings.ToValidUTF8(text[len(text)-maxText:], "")
	}
	return text
}

// testFile matches the usual names of tests and of what configures their runs.
var testFile = regexp.MustCompile(`(^|/)(tests?|__tests__|spec|testdata)/|` +
	`(_test|_spec|\.test|\.spec)\.[a-z]+$|(^|/)(test_[^/]*|conftest|[^/]*Tests?)\.[a-z]+$|` +
	`(^|/)(pytest\.ini|tox\.ini|jest\.config\.[a-z]+|vitest\.config\.[a-z]+)$`)

// readBy returns the changed files that the checks name or that look like their tests.
func readBy(commands, changed []string) []string {
	var named []string
	for _, command := range commands {
		for word := range strings.FieldsSeq(command) {
			named = append(named, path.Clean(strings.Trim(word, `"';&|()`)))
		}
	}
	out := slices.DeleteFunc(slices.Clone(changed), func(name string) bool {
		return !testFile.MatchString(name) && !slices.Contains(named, name)
	})
	return out[:min(len(out), maxChanged)]
}

// words returns the notice of a run for the model; empty if there is none. reads are the changed files that the
// checks read.
func words(b *op.CheckRan, reads []string) string {
	var sb strings.Builder
	rating := b.Rated()
	switch {
	case b.First && b.Passed:
		return fmt.Sprintf("The goal of this task has a check: %s. It passes already, before any change. "+
			"It must still pass when you say that you are done.", commands(b))
	case b.First:
		fmt.Fprintf(&sb,
			"The goal of this task has a check: %s. It runs in a copy of the directory when you say that you are "+
				"done, and the task is done when it passes. At the beginning it fails (%s):", commands(b), rating)
	case b.Passed || !b.Asked && b.Broke == nil:
		return ""
	case !b.Asked:
		return brokeWords(b.Broke)
	case b.Refused:
		fmt.Fprintf(&sb, "The task is not done: files that the check reads differ from the beginning, and may not be "+
			"changed: %s. Restore them. ", strings.Join(reads, ", "))
		fallthrough
	default:
		fmt.Fprintf(&sb, "The check of the goal did not pass (%s). Go on until it does; if it cannot, say why.", rating)
	}
	if b.Broke != nil {
		sb.WriteString(" " + brokeWords(b.Broke))
	}
	for _, c := range b.Checks {
		if !c.Failed() {
			continue
		}
		fmt.Fprintf(&sb, "\n\n$ %s\n%s", c.Command, c.Text)
		if c.Status == string(testrun.RanNone) {
			sb.WriteString("\nIt ran no test.")
		}
	}
	return sb.String()
}

func commands(b *op.CheckRan) string {
	var list []string
	for _, c := range b.Checks {
		list = append(list, "`"+quote.Squash(c.Command)+"`")
	}
	return strings.Join(list, ", then ")
}

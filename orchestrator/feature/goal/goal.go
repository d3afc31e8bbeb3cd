// Package goal runs the checks that say whether a task has reached what it was asked for. They run on the world
// as the last step left it, in a copy that takes its place: the agent finds nothing of them.
package goal

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"anamnesis/anamnesis/quote"
	"anamnesis/anamnesis/testrun"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/guard/confine"
	"anamnesis/orchestrator/tool"
	run "anamnesis/orchestrator/tool/shell"
	"anamnesis/orchestrator/workspace"
)

const (
	// timeout bounds one check.
	timeout = 30 * time.Minute
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
}

// New returns what runs the checks of the task that works in a place. box returns the confinement of its
// commands.
func New(p *workspace.Place, box func(context.Context) (*guard.Sandbox, error)) *Checker {
	return &Checker{place: p, box: box}
}

// Run runs the checks and records what they say. asked: the agent has said that it is done.
func (c *Checker) Run(ctx, keep context.Context, asked bool) error {
	st := c.place.State()
	begun := c.place.Now()
	rec := &op.CheckRan{Passed: true, Asked: asked}
	for _, command := range st.Goal.Until {
		check, why, err := c.run(ctx, command, "")
		if err != nil {
			return err
		}
		rec.InWorld = cmp.Or(why, rec.InWorld)
		if ctx.Err() != nil {
			return nil // interrupted: it says nothing
		}
		rec.Checks = append(rec.Checks, check)
		rec.Passed = rec.Passed && check.Exit == 0 && check.Status != string(testrun.RanNone)
	}
	changed, err := c.changedBetween(keep, 0, st.Current)
	if err != nil {
		return err
	}
	rec.Changed = readBy(st.Goal.Until, changed)
	if st.Goal.Frozen && len(rec.Changed) > 0 {
		rec.Passed, rec.Refused = false, true
	}
	rec.Millis = c.place.Now().Sub(begun).Milliseconds()
	if rec.Broke, err = c.whatBroke(ctx, rec); err != nil {
		return err
	}
	rec.Notice = words(rec, st.Goal.Frozen, len(st.Goal.Runs) == 0)
	return c.place.Record(keep, rec)
}

// run runs one check on the directory as it is, or on a copy of an earlier state of it. inWorld is why it ran
// in the directory itself.
func (c *Checker) run(ctx context.Context, command, earlier string) (check op.Check, inWorld string, err error) {
	box, err := c.box(ctx)
	if err != nil {
		return check, "", err
	}
	env := &tool.Env{Dir: c.place.Dir, Redactor: c.place.Journal.Redactor(), Sandbox: box}
	scratch := filepath.Join(c.folder(), "scratch")
	if err := removeAll(scratch); err != nil {
		return check, "", fmt.Errorf("remove the copy of an earlier check: %w", err)
	}
	defer removeAll(scratch) // what is left is removed by the next check
	fork := confine.Fork{Dir: earlier, Scratch: scratch}
	if earlier != "" {
		fork.Beneath = beneath(c.place.Dir, earlier, "")
	}
	exec := run.Exec{Name: "The check", Path: "/bin/bash", Args: []string{"bash", "-c", command}, Timeout: timeout}
	var res tool.Result
	forked, ok := box.InFork(fork)
	switch {
	case ok:
		env.Sandbox = forked
		res, err = run.Run(ctx, env, exec)
	case box == nil:
		inWorld = "the sandbox is off"
	default:
		inWorld = "this system cannot show commands a copy of the directory"
	}
	if ok && err == nil && res.Exit == nil { // the copy could not be mounted
		inWorld = quote.CutBytes(res.Text, 300)
	}
	if inWorld != "" && earlier == "" {
		env.Sandbox = box
		res, err = run.Run(ctx, env, exec)
	}
	if err != nil && ctx.Err() == nil {
		return check, "", fmt.Errorf("run the check %q: %w", command, err)
	}
	check = op.Check{Command: command, Exit: -1, Text: tail(res.Text)}
	if res.Exit != nil {
		check.Exit = *res.Exit
		if r, ok := testrun.Parse(command, res.Text, *res.Exit); ok && r.Status != testrun.Unclear {
			check.Status, check.Passing, check.Failing, check.Names = string(r.Status), r.Passed, r.Failed, r.Names
		}
	}
	return check, inWorld, nil
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

// tail returns the last lines of an output.
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
var testFile = regexp.MustCompile(`(^|/)(tests?|__tests__|spec|testdata)/|(_test|_spec|\.test|\.spec)\.[a-z]+$|(^|/)(test_[^/]*|conftest|[^/]*Tests?)\.[a-z]+$|(^|/)(pytest\.ini|tox\.ini|jest\.config\.[a-z]+|vitest\.config\.[a-z]+)$`)

// readBy returns the changed files that the checks name or that look like their tests.
func readBy(commands, changed []string) []string {
	var named []string
	for _, command := range commands {
		for _, word := range strings.Fields(command) {
			named = append(named, path.Clean(strings.Trim(word, `"';&|()`)))
		}
	}
	var out []string
	for _, name := range changed {
		if testFile.MatchString(name) || slices.Contains(named, name) {
			out = append(out, name)
		}
	}
	return out[:min(len(out), maxChanged)]
}

// words is what the model is told of a run; empty if it need not know.
func words(b *op.CheckRan, frozen, first bool) string {
	var sb strings.Builder
	passed, of := b.Score()
	switch {
	case first && b.Passed:
		fmt.Fprintf(&sb, "The goal of this task has a check: %s. It passes already, before any change. It must still pass when you say that you are done.", commands(b))
		return sb.String()
	case first:
		fmt.Fprintf(&sb, "The goal of this task has a check: %s. It runs in a copy of the directory when you say that you are done, and the task is done when it passes. At the beginning it fails (%d of %d passed):", commands(b), passed, of)
	case b.Passed || !b.Asked && b.Broke == nil:
		return ""
	case !b.Asked:
		sb.WriteString(brokeWords(b.Broke))
		return sb.String()
	case frozen && len(b.Changed) > 0:
		fmt.Fprintf(&sb, "The task is not done: files that the check reads differ from the beginning, and may not be changed: %s. Restore them. ", strings.Join(b.Changed, ", "))
		fallthrough
	default:
		fmt.Fprintf(&sb, "The check of the goal ran and did not pass (%d of %d passed). Go on until it passes. If it cannot pass, say why.", passed, of)
	}
	if b.Broke != nil {
		sb.WriteString(" " + brokeWords(b.Broke))
	}
	for _, c := range b.Checks {
		if c.Exit == 0 && c.Status != string(testrun.RanNone) {
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

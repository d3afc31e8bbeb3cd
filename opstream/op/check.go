package op

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Goal is what a task is to reach, as commands that say whether it is reached.
type Goal struct {
	Until    []string `json:"until"`               // all have to end with 0
	Frozen   bool     `json:"frozen,omitempty"`    // the check does not pass while what it reads has changed
	KeepLast bool     `json:"keep_last,omitempty"` // the task does not go back to the step with the best check
	// Score is a command whose last number scores a step; empty: the tests that pass do.
	Score string `json:"score,omitempty"`
}

// Equal reports whether two goals are the same.
func (g Goal) Equal(o Goal) bool {
	return slices.Equal(g.Until, o.Until) && g.Score == o.Score && g.Frozen == o.Frozen && g.KeepLast == o.KeepLast
}

// CheckRan records a run of the goal's checks on the world as a step left it.
type CheckRan struct {
	Checks []Check `json:"checks"`
	Passed bool    `json:"passed"`           // all did
	Rating *Rating `json:"rating,omitempty"` // nil in streams of earlier versions: see Rated
	// Asked: the agent has said that it is done, or the turn ends. Otherwise the run only shows the
	// progress of the task.
	Asked bool `json:"asked,omitempty"`
	First bool `json:"first,omitempty"` // of the goal
	// InWorld is why the checks ran in the directory itself, in the first run of the goal that did.
	InWorld string `json:"in_world,omitempty"`
	// Changed are files, at most 20, that the check names or that look like its tests, and that differ
	// from the task's beginning; those that an earlier run named need not be there.
	Changed []string `json:"changed,omitempty"`
	Refused bool     `json:"refused,omitempty"` // the run does not count because of such files
	// Broke is which step broke a check that had passed; nil: none did, or it was not looked for.
	Broke  *Broke `json:"broke,omitempty"`
	Notice string `json:"notice,omitempty"` // shown to the model
	Millis int64  `json:"ms"`
}

// Check is one command of a goal and how it ended.
type Check struct {
	Command string `json:"command"`
	Exit    int    `json:"exit"`
	Text    string `json:"text,omitempty"` // the end of what it printed
	Line    string `json:"line,omitempty"` // of a failed one: the line that says what fails
	// Status is how its tests ended, as testrun names it; empty: it is no test run.
	Status  string   `json:"status,omitempty"`
	Passing int      `json:"passing,omitempty"` // tests
	Failing int      `json:"failing,omitempty"` // tests
	Names   []string `json:"names,omitempty"`   // of failing tests
	// Uncounted: the runner named every test that failed, and counted none that passed. Passing are packages then.
	Uncounted bool `json:"uncounted,omitempty"`
}

// Broke is the first step after which a check fails that had passed before.
type Broke struct {
	Good    int      `json:"good"`           // the last step known to pass
	Step    int      `json:"step"`           // the first step known to fail
	Changed []string `json:"changed"`        // files that differ between the two, at most 20
	Text    string   `json:"text,omitempty"` // the first line that says what fails
	Probes  int      `json:"probes"`         // runs on earlier snapshots that it took
	// Unfinished is why the search stopped before it had found the step; Step is a later one.
	Unfinished string `json:"unfinished,omitempty"`
}

// String says which step broke the check.
func (b *Broke) String() string {
	text, what := fmt.Sprintf("passed at step %d and fails since step %d", b.Good, b.Step), ", which changed "
	if b.Unfinished != "" {
		text = fmt.Sprintf("passed at step %d and fails at step %d; which step between broke it was not found (%s)",
			b.Good, b.Step, b.Unfinished)
		what = ". Changed since: "
	}
	if len(b.Changed) > 0 {
		text += what + strings.Join(b.Changed, ", ")
	}
	return text
}

// Rating is how good a run of the checks was.
type Rating struct {
	Value   float64 `json:"value"`             // tests that passed, or what the goal's command printed
	Of      int     `json:"of,omitempty"`      // tests that the goal's checks have named; 0: the goal's command rates
	Failing int     `json:"failing,omitempty"` // tests
	Error   string  `json:"error,omitempty"`   // why the goal's command gave no number
}

// Better reports whether a run was better than another: more passed, or as many, and fewer failed.
func (r Rating) Better(than Rating) bool {
	switch {
	case r.Error != "" || than.Error != "":
		return r.Error == "" && than.Error != ""
	case r.Value != than.Value:
		return r.Value > than.Value
	}
	return r.Failing < than.Failing
}

func (r Rating) String() string {
	switch {
	case r.Error != "":
		return "no score: " + r.Error
	case r.Of == 0:
		return "score " + strconv.FormatFloat(r.Value, 'g', 6, 64)
	}
	return fmt.Sprintf("%.0f of %d passed", r.Value, r.Of)
}

// Rated returns how good the run was.
func (b *CheckRan) Rated() Rating {
	if b.Rating != nil {
		return *b.Rating
	}
	return b.Count(nil)
}

// Count counts the tests of the run. named are the most tests that an earlier run of each command has named: those
// that this run did not start failed. A command that is no test run counts as one test. In a refused run all failed.
func (b *CheckRan) Count(named map[string]int) (r Rating) {
	for _, c := range b.Checks {
		of := max(named[c.Command], c.Named())
		passed, failing := c.Passing, c.Failing
		switch {
		case c.Uncounted:
			passed = of - failing
		case c.Passing+c.Failing > 0:
		case !c.Failed():
			passed = of
		default:
			failing = of
		}
		r.Value, r.Of, r.Failing = r.Value+float64(passed), r.Of+of, r.Failing+failing
	}
	if b.Refused {
		r.Value, r.Failing = 0, r.Of
	}
	return r
}

// Failed reports whether the check failed, or ran no test.
func (c Check) Failed() bool { return c.Exit != 0 || c.Status == "none" }

// Named is how many tests a run of the command named, at least one.
func (c Check) Named() int { return max(c.Passing+c.Failing, 1) }

// ByGoal asked for a jump: back to the step with the best check.
const ByGoal = "goal"

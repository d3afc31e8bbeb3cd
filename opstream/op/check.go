package op

// Goal is what a task is to reach, as commands that say whether it is reached.
type Goal struct {
	Until    []string `json:"until"`               // all have to end with 0
	Frozen   bool     `json:"frozen,omitempty"`    // the check does not pass while what it reads has changed
	KeepLast bool     `json:"keep_last,omitempty"` // the task does not go back to the step with the best check
}

// CheckRan records a run of the goal's checks on the world as a step left it.
type CheckRan struct {
	Checks []Check `json:"checks"`
	Passed bool    `json:"passed"` // all did
	// Asked: the agent has said that it is done, or the turn ends. Otherwise the run only shows how the
	// task stands.
	Asked bool `json:"asked,omitempty"`
	// InWorld is why the checks ran in the directory itself; empty: they ran in a copy.
	InWorld string `json:"in_world,omitempty"`
	// Changed are files, at most 20, that the check names or that look like its tests, and that differ
	// from the task's beginning.
	Changed []string `json:"changed,omitempty"`
	Refused bool     `json:"refused,omitempty"` // the run does not count because of Changed
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
	// Status is how its tests ended, as testrun names it; empty: it is no test run.
	Status  string   `json:"status,omitempty"`
	Passing int      `json:"passing,omitempty"` // tests
	Failing int      `json:"failing,omitempty"` // tests
	Names   []string `json:"names,omitempty"`   // of failing tests
}

// Broke is the first step after which a check fails that had passed before.
type Broke struct {
	Good    int      `json:"good"`           // the last step known to pass
	Step    int      `json:"step"`           // the first step known to fail
	Changed []string `json:"changed"`        // files that differ between the two, at most 20
	Text    string   `json:"text,omitempty"` // the first line that says what fails
	Probes  int      `json:"probes"`         // runs on earlier snapshots that it took
}

// Kind implements Body.
func (*CheckRan) Kind() Kind { return KindCheckRan }

// Score returns how many tests passed and how many there were; a command that is no test run counts as one
// test. One that ran none counts as failed. A refused run scores 0.
func (b *CheckRan) Score() (passed, of int) {
	for _, c := range b.Checks {
		switch {
		case c.Status == "" || c.Passing+c.Failing == 0:
			of++
			if c.Exit == 0 && c.Status != "none" {
				passed++
			}
		default:
			passed, of = passed+c.Passing, of+c.Passing+c.Failing
		}
	}
	if b.Refused {
		passed = 0
	}
	return passed, of
}

// ByGoal asked for a jump: back to the step with the best check.
const ByGoal = "goal"

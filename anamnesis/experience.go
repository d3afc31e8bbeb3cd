package anamnesis

import (
	"path"
	"strings"

	"anamnesis/knowledge_base/usage"
	"anamnesis/opstream/op"
)

// Experience collects from a task's operations what the counters of its cards
// need: which cards it was shown, and how its checks ended. The zero value is
// empty. It is not safe for concurrent use.
type Experience struct {
	Shown []Showing
	// Check is the last finished command that checks the work, such as a test
	// run; nil when there was none.
	Check *Check

	calls map[string]string // commands of open calls
}

// Showing is one card entering the task's context.
type Showing struct {
	Card  string
	Op    uint64
	Asked bool // the agent asked
}

// Check is a command that checks the work, as it ended.
type Check struct {
	Command string
	Op      uint64
	Exit    int
}

// Add takes the next operation.
func (e *Experience) Add(o *op.Op) {
	switch b := o.Body.(type) {
	case *op.CardsRecalled:
		for _, c := range b.Cards {
			e.Shown = append(e.Shown, Showing{Card: c.ID, Op: o.Seq, Asked: b.Why == "asked"})
		}
	case *op.ToolCalled:
		if command := commandOf(b.Args); b.Name == bashTool && IsCheck(command) {
			if e.calls == nil {
				e.calls = make(map[string]string)
			}
			e.calls[b.Call] = command
		}
	case *op.ToolReturned:
		command, ok := e.calls[b.Call]
		delete(e.calls, b.Call)
		if ok && b.Exit != nil {
			e.Check = &Check{Command: command, Op: o.Seq, Exit: *b.Exit}
		}
	}
}

// Ending is how the task ended as far as its last check says.
func (e *Experience) Ending() usage.Ending {
	switch {
	case e.Check == nil:
		return usage.Unknown
	case e.Check.Exit == 0:
		return usage.Good
	}
	return usage.Bad
}

// Events gives what the counters are told of the task: each showing, and for
// each card how the task ended, if that is known. Telling them again counts
// nothing twice.
func (e *Experience) Events(task string, ending usage.Ending, person bool) []usage.Event {
	var out []usage.Event
	seen := make(map[string]bool)
	for _, s := range e.Shown {
		out = append(out, usage.Event{Card: s.Card, What: usage.Shown, Task: task, Op: s.Op})
		if s.Asked {
			out = append(out, usage.Event{Card: s.Card, What: usage.Used, Task: task, Op: s.Op})
		}
		if !seen[s.Card] && (person || ending != usage.Unknown) {
			out = append(out, usage.Event{Card: s.Card, What: usage.Outcome, Task: task, Ending: ending, Person: person})
		}
		seen[s.Card] = true
	}
	return out
}

// IsCheck reports whether a shell command ends with a check of the work whose
// exit code is the command's: a test run or a build's own check, not piped
// into anything. Whatever is unclear is no check.
func IsCheck(command string) bool {
	if strings.Contains(command, "|") {
		return false
	}
	simple, ok := splitCommand(command)
	if !ok || len(simple) == 0 {
		return false
	}
	w := simple[len(simple)-1]
	name, sub := path.Base(w[0]), ""
	if len(w) > 1 {
		sub = w[1]
	}
	switch name {
	case "pytest", "tox", "ctest":
		return true
	case "python", "python3":
		return len(w) > 2 && sub == "-m" && (w[2] == "pytest" || w[2] == "unittest")
	case "go":
		return sub == "test" || sub == "vet" || sub == "build"
	case "cargo":
		return sub == "test" || sub == "check" || sub == "build" || sub == "clippy"
	case "npm", "pnpm", "yarn":
		return sub == "test" || sub == "run" && len(w) > 2 && strings.HasPrefix(w[2], "test")
	case "make":
		return sub == "test" || sub == "check"
	}
	return false
}

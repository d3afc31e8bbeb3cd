package runtime

import (
	"sync"
	"time"

	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/state"
)

// family is the shared state of a task and its subagents in this process: one user who is
// asked, one budget, one clock, one set of recognised secrets.
type family struct {
	begun time.Time
	askMu sync.Mutex // held while the user is asked
	// Learned are the secrets that one of them recognised.
	learned redact.Learned

	mu     sync.Mutex
	spent  map[string]state.Used // of each that is at work, by its task
	before map[string]state.Used // what each of the subagents had used when it began
	taken  map[string]bool       // tasks of subagents that are at work, or about to be
}

func newFamily(now time.Time) *family {
	return &family{begun: now, spent: make(map[string]state.Used), before: make(map[string]state.Used), taken: make(map[string]bool)}
}

// tell sets what a task has used. Subagents that ended are included in its figures and no
// longer counted separately.
func (f *family) tell(task string, now state.Used, subagents []state.BegunSubagent) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range subagents {
		if !s.Running {
			delete(f.spent, s.Task)
			delete(f.before, s.Task)
		}
	}
	f.spent[task] = now.Minus(f.before[task])
}

// others is what the rest of the family has used.
func (f *family) others(own state.Used) state.Used {
	f.mu.Lock()
	defer f.mu.Unlock()
	var sum state.Used
	for _, s := range f.spent {
		sum = sum.Plus(s)
	}
	sum = sum.Minus(own)
	return state.Used{Tokens: max(sum.Tokens, 0), Steps: max(sum.Steps, 0), USD: max(sum.USD, 0)}
}

// take reserves a subagent's task. It returns false if the subagent is at work already.
func (f *family) take(task string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.taken[task] {
		return false
	}
	f.taken[task] = true
	return true
}

// leave records that a subagent is no longer at work.
func (f *family) leave(task string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.taken, task)
}

// joins records what a subagent had used before it begins.
func (f *family) joins(task string, had state.Used) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before[task] = had
	f.spent[task] = state.Used{}
}

// atWork reports whether a subagent is at work.
func (f *family) atWork(task string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.taken[task]
}

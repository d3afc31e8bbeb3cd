package runtime

import (
	"sync"
	"time"

	"anamnesis/orchestrator/feature/question"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/state"
)

// family is the shared state of a task and its subagents in this process: one user who is
// asked, one budget, one clock, one set of recognised secrets.
type family struct {
	begun time.Time
	desk  *question.Desk // of the first task
	// learned are the secrets that one of them recognised.
	learned redact.Learned

	mu     sync.Mutex
	spent  map[string]state.Used // by task, of those at work
	before map[string]state.Used // by task, the usage of a subagent before it began
	taken  map[string]bool       // tasks of subagents that are at work or begin
}

func newFamily(now time.Time) *family {
	return &family{begun: now, spent: map[string]state.Used{}, before: map[string]state.Used{},
		taken: map[string]bool{}}
}

// setUsed records the usage of a task. Subagents that ended are included in its figures and no
// longer counted separately.
func (f *family) setUsed(task string, now state.Used, subagents []state.BegunSubagent) {
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

// reserve reserves a subagent's task. It returns false if the subagent is at work already.
func (f *family) reserve(task string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.taken[task] {
		return false
	}
	f.taken[task] = true
	return true
}

// release records that a subagent is no longer at work.
func (f *family) release(task string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.taken, task)
}

// recordBefore records the earlier usage of a subagent that begins.
func (f *family) recordBefore(task string, had state.Used) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before[task] = had
	f.spent[task] = state.Used{}
}

func (f *family) othersAtWork(task string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.taken) > 1 || len(f.taken) == 1 && !f.taken[task]
}

func (f *family) atWork(task string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.taken[task]
}

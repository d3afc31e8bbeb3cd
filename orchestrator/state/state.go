package state

import (
	"errors"
	"fmt"
	"slices"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/loop"
	"anamnesis/orchestrator/model"
)

func (s *State) Spent() Used {
	return Used{s.Totals.Usage.Tokens(), s.Turn.Steps, s.Totals.Usage.USD}
}

// ErrStream is returned for a stream whose operations cannot follow one
// another: it was not written by this program, or not by one process at a time.
var ErrStream = errors.New("impossible operation stream")

// Who asked for a jump.
const (
	ByAgent = "agent"
	ByUser  = "person"
)

// State is everything the loop knows of a task. It is a fold of the operation
// stream and of nothing else: two processes that read the same operations
// hold the same State. The zero State is the state of an empty stream.
type State struct {
	Opened  op.TaskOpened // the task's first operation
	Model   string        // in force now: resume may have changed it
	BaseURL string
	Reflect string `json:",omitempty"` // in force now, see op.TaskOpened
	EAS     int    // effective attention span, tokens; changes with the model
	Window  int    // advertised window, or what an overflow taught of it, tokens; 0: unknown

	// Redact names the variables whose values are kept out of the record.
	Redact []string `json:",omitempty"`
	// Instructions are the files of the repository that the model was told of, as
	// they were last looked at.
	Instructions []op.SourceFile `json:",omitempty"`

	Approval string // in force: a user may have allowed everything
	// Prints are what a user approved for the whole task; see op.ApprovalDecided.
	Prints map[string]bool `json:",omitempty"`
	// Allowed are rules by which a user let calls of the task run; see likewise.
	Allowed []string `json:",omitempty"`

	Last    uint64 // seq of the last operation folded in
	Steps   Steps  `json:"-"` // by id; step 0 is the task's beginning
	Current int    // the step the world and the path stand at
	sums    tokenSums

	Turn   Turn   // the turn under way
	Asking bool   // a request was sent and neither answered nor failed
	Reply  *Reply // the reply whose step has not ended yet

	Request     string  // the user's last request
	Answer      string  // the agent's last words
	LastTrouble Trouble // the last call that failed

	// FailedAt is the reply of the first command that failed since repairs were last
	// searched for, 0 if none did; Worked reports that a command succeeded after it.
	FailedAt uint64 `json:",omitempty"`
	Worked   bool   `json:",omitempty"`
	LastCall *model.Past

	Recalled  bool         // cards were recalled for the present situation
	RecallWhy string       // start | jump: why the next recall is due
	Pending   *Pending     // a jump waiting for its step to end
	Jumping   *Jumping     // a jump that has passed its point of no return
	Totals    Totals       // figures for users
	loops     []loopTick   // backward jumps, oldest first
	Marked    []Marked     // checkpoints of the tool dmail, by their numbers
	Pressure  Pressure     // why and how far the context is to be made smaller
	Jobs      []RunningJob // background commands that have not ended
	JobsBegun int          // the highest number one was given
	Todos     []op.Todo    `json:",omitempty"` // the agent's todo list
	// Subagents are those begun, the oldest first.
	Subagents []BegunSubagent `json:",omitempty"`
	Repeats   loop.Tally      // calls that were made, by the world they ran in
	Streak    loop.Streak     // the call that was made last, and how often in a row since the user spoke
	Research  Research        // what was looked up before it was used
	// Undone are calls that began a path the agent left, by world, tool and arguments.
	Undone   map[loop.Key]Undone `json:",omitempty"`
	Learning *op.PassBegun       `json:",omitempty"` // a pass at the end that was begun and has no result

	// Restoring is a user's restore of the files alone that has no result.
	Restoring *op.RestoreIntended `json:",omitempty"`
	// Now is the last snapshot of the world, where it is not the current step's. Dirty:
	// a call that may write ran since the last one. Busy: a background command or a
	// subagent did.
	Now         Snapshot
	Dirty, Busy bool `json:",omitempty"`
	// Changes are the operations that record what the user changed, and what nobody is
	// known to have: seqs of op.WorldChanged, ascending.
	Changes []uint64 `json:",omitempty"`

	projection projection
}

// Step is one turn of the loop: ask, run tools, save the world.
type Step struct {
	ID     int
	Parent int
	First  uint64 // seq of its first operation, 0 while there is none
	Last   uint64 // seq of its last operation so far
	Ended  bool   // its world.saved was recorded
	// Saved: it has a checkpoint. The operation Last names its commit and tree; see
	// Commits.
	Saved        bool
	World        worldMark // stands for its tree
	NoCheckpoint string    // why it has no checkpoint
	Folded       bool      // an anamnesis pass stands in its place
	Read         bool      // an anamnesis pass has read it
	Carried      bool      // a D-Mail that left the path as it is carried the user's words from it over
	LeftBy       string    // the reason of the jump that left it, if one did
	Calls        []string
	Failed       int       // calls whose result was an error
	Todos        []op.Todo // the todo list at its end
	Began        []Began   // calls that may have changed the world in it
}

// Turn is what happens between a user's words and the agent's answer.
type Turn struct {
	Open      bool   // words are waiting to be answered
	Answered  bool   // the last reply called no tool
	LastWords uint64 // seq of the user's last words
	AskedAt   uint64 // seq the last request's projection ended with
	Finish    string // why the provider ended the last reply
	Empty     bool   // and it said nothing
	End       *op.TurnEnded
	Steps     int // steps ended since the turn opened
	// Learned are the cards of the pass at its end.
	Learned []string `json:",omitempty"`
	// LeftRead: that pass was made for the last reply. It is not made again
	// before another, whatever it read.
	LeftRead bool `json:",omitempty"`
}

// Reply is the model's reply of the step under way, with its calls.
type Reply struct {
	Seq   uint64
	Calls []CallState
	Wrote bool // a call has written a file
}

// CallState is how far one call of the reply has come.
type CallState struct {
	op.Call
	Called   bool
	World    string // see op.ToolCalled
	Effects  bool
	Changes  bool
	Started  *op.ToolStarted
	Returned bool
}

// Pending is a jump that was asked for and not made yet.
type Pending struct {
	op.JumpRequested
	Seq    uint64
	Passes []PassRecord // made for this jump; they take effect with it

	// Of a jump that the loop guard holds back.
	Question   string // what the Reflect-Agent wants a user to answer
	NoStrategy string // why there is no strategy
}

// PassRecord is one pass with its place in the stream.
type PassRecord struct {
	*op.PassDone
	Seq  uint64
	Step int
	Tok  int // of its block and words
}

// Jumping is a jump whose intent is recorded and whose end is not.
type Jumping struct {
	op.JumpIntended
	Seq uint64
}

// Totals are figures of a task for users.
type Totals struct {
	Replies       int
	Passes        int
	Masked        int // results masked
	Jumps         int
	Mails         int // D-Mails that moved no files; the others are jumps
	Blocks        int
	CardsWritten  int
	CardsRecalled int
	Reflections   int // model replies in reflections
	Usage         op.Usage
}

// loopTick is a backward jump of the agent, or a D-Mail.
type loopTick struct {
	to  int
	seq uint64 // of the operation that has its reason
}

// NextStep is the id of the step under way, or of the one that comes next.
func (s *State) NextStep() int {
	if n := s.Steps.Len(); n > 0 && !s.Steps.Ended(n-1) {
		return n - 1
	}
	return s.Steps.Len()
}

// EndedSteps counts the steps that ended, without step 0.
func (s *State) EndedSteps() int { return max(s.NextStep()-1, 0) }

// ContextTokens estimates the size of the projection, from the counts of the
// operations it holds.
func (s *State) ContextTokens() int { return s.projection.tokens }

// Tokens is the size of a range of operations as the model saw them.
func (s *State) Tokens(r op.Range) int {
	last := min(r.Last, s.Last)
	if r.First == 0 || r.First > last {
		return 0
	}
	return int(s.sums.upTo(last) - s.sums.upTo(r.First-1))
}

// Path is the steps from 0 to id, oldest first.
func (s *State) Path(id int) []int {
	var path []int
	for {
		path = append(path, id)
		if id <= 0 {
			break
		}
		id = s.Steps.Parent(id)
	}
	slices.Reverse(path)
	return path
}

// PathSet tells, by their ids, which steps are on the path to a step, for those
// who ask it of many; of an empty task, none.
func (s *State) PathSet(to int) []bool {
	on := make([]bool, s.Steps.Len())
	if len(on) > 0 {
		for _, id := range s.Path(to) {
			on[id] = true
		}
	}
	return on
}

// OnPath reports whether step id lies on the path to step to.
func (s *State) OnPath(id, to int) bool {
	for to > id {
		to = s.Steps.Parent(to)
	}
	return to == id
}

// PathBack yields the steps on the path to the current one, that one first.
func (s *State) PathBack(yield func(id int) bool) {
	for id := s.Current; id >= 0 && yield(id) && id > 0; {
		id = s.Steps.Parent(id)
	}
}

// Checkpoint returns the ended step id, or an error that names the valid ones.
func (s *State) Checkpoint(id int) (Step, error) {
	if id < 0 || id >= s.Steps.Len() || !s.Steps.Ended(id) {
		return Step{}, fmt.Errorf("%w: step %d; valid steps are %s", ErrNoStep, id, s.ValidSteps())
	}
	return s.Steps.At(id), nil
}

// CanJump reports whether a user can take the task to a step, once what is open
// has been closed.
func (s *State) CanJump(to int) error {
	st, err := s.Checkpoint(to)
	switch {
	case err != nil:
		return err
	case !st.Saved:
		return fmt.Errorf("%w: step %d has none: %s", ErrNoStep, to, st.NoCheckpoint)
	case to == s.Current && s.Reply == nil && s.Jumping == nil:
		return fmt.Errorf("%w: step %d is the current step", ErrNotJumped, to)
	}
	return nil
}

func (s *State) ValidSteps() string {
	last := s.Steps.Len() - 1
	if last >= 0 && !s.Steps.Ended(last) {
		last--
	}
	switch {
	case last < 0:
		return "none yet"
	case last == 0:
		return "0"
	}
	return fmt.Sprintf("0 to %d", last)
}

// Discarded returns the steps that a jump from the current step to step to
// leaves, oldest first.
func (s *State) Discarded(to int) []int {
	var out []int
	for at := s.Current; at != to; { // the lower of the two goes up: a parent's id is smaller
		if at < to {
			to = s.Steps.Parent(to)
			continue
		}
		out = append(out, at)
		if at == 0 {
			break
		}
		at = s.Steps.Parent(at)
	}
	slices.Reverse(out)
	return out
}

// Ranges returns the sequence numbers of some steps, in the order of their ids,
// as disjoint ranges.
func (s *State) Ranges(steps []int) []op.Range {
	var out []op.Range
	for i, id := range steps {
		st := s.Steps.At(id)
		if i > 0 && steps[i-1] == id-1 {
			out[len(out)-1].Last = st.Last
			continue
		}
		out = append(out, op.Range{First: st.First, Last: st.Last})
	}
	return out
}

// Branches splits steps, in the order of their ids, where one does not
// continue the one before: what a block says holds for one line of states.
func (s *State) Branches(steps []int) [][]int {
	var out [][]int
	for i, id := range steps {
		if i > 0 && steps[i-1] == id-1 && s.Steps.Parent(id) == id-1 {
			out[len(out)-1] = append(out[len(out)-1], id)
			continue
		}
		out = append(out, []int{id})
	}
	return out
}

// RawSteps returns the discarded steps, whatever jump discarded them, that the
// context still holds in full, when the path leads to step to.
func (s *State) RawSteps(to int) []int {
	live := s.PathSet(to)
	var out []int
	for id := range live {
		if s.Steps.Ended(id) && !live[id] && !s.Steps.Folded(id) {
			out = append(out, id)
		}
	}
	return out
}

// RangeTokens is the size of several ranges.
func (s *State) RangeTokens(rs []op.Range) int {
	n := 0
	for _, r := range rs {
		n += s.Tokens(r)
	}
	return n
}

// OpenCalls returns the calls of the present reply without a result.
func (s *State) OpenCalls() []CallState {
	if s.Reply == nil {
		return nil
	}
	var out []CallState
	for _, c := range s.Reply.Calls {
		if !c.Returned {
			out = append(out, c)
		}
	}
	return out
}

// Agent is the name of the subagent whose task this is; empty for others.
func (s *State) Agent() string {
	if s.Opened.Parent == nil {
		return ""
	}
	return s.Opened.Parent.Agent
}

// Parent is the task whose agent began this one; empty where none did.
func (s *State) Parent() string {
	if s.Opened.Parent == nil {
		return ""
	}
	return s.Opened.Parent.Task
}

// Standing says how the task is in a word: running where a process holds it,
// else how its last turn ended, and interrupted where its process went away in
// the middle of a turn or a jump.
func (s *State) Standing(live bool) string {
	switch {
	case live:
		return "running"
	case !s.Turn.Open && s.Turn.End != nil && s.Jumping == nil && s.Restoring == nil && s.Pending == nil:
		return s.Turn.End.Reason
	}
	return "interrupted"
}

var (
	// ErrNoStep: there is no checkpoint of that step.
	ErrNoStep = errors.New("no such checkpoint")
)

var (
	// ErrNotJumped: the jump was not made; the text says why.
	ErrNotJumped = errors.New("not jumped")
)

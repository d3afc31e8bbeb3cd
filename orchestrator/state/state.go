package state

import (
	"errors"
	"fmt"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/loop"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/state/projection"
	"anamnesis/orchestrator/state/steps"
)

func (s *State) Spent() Used {
	return Used{s.Totals.Usage.Tokens(), s.Turn.Steps, s.Totals.Usage.USD}
}

// ErrStream is returned for operations that cannot follow one another: another program wrote
// the stream, or several processes at a time.
var ErrStream = errors.New("impossible operation stream")

// Who asked for a jump.
const (
	ByAgent = "agent"
	ByUser  = "person"
)

// State is the loop's whole state of a task. It is a fold of the operation stream alone:
// two processes that read the same operations have the same State. The zero State is that of
// an empty stream.
type State struct {
	Opened  op.TaskOpened // the task's first operation
	Model   string        // in force now: resume may have changed it
	BaseURL string
	Reflect string `json:",omitempty"` // in force now, see op.TaskOpened
	EAS     int    // effective attention span, tokens; changes with the model
	Window  int    // advertised window, or the one that an overflow showed, tokens; 0 if unknown

	// Redact names the variables whose values are kept out of the record.
	Redact []string `json:",omitempty"`
	// Instructions are the repository's files that the model was shown, as last read.
	Instructions []op.SourceFile `json:",omitempty"`

	Approval string // in force: a user may have allowed everything
	// Prints are the calls a user approved for the whole task; see op.ApprovalDecided.
	Prints map[string]bool `json:",omitempty"`
	// Allowed are the rules by which a user let calls of the task run; see op.ApprovalDecided.
	Allowed []string `json:",omitempty"`

	Last    uint64     // seq of the last operation folded in
	Steps   steps.Tree `json:"-"`
	Current int        // the last step of the path, whose world is restored
	sums    tokenSums

	Turn  Turn   // the turn under way
	Reply *Reply // the reply whose step has not ended yet

	First       string  `json:",omitempty"` // the user's first request
	Request     string  // the user's last request
	Answer      string  // the agent's last words
	LastTrouble Trouble // the last call that failed

	// FailedAt is the reply of the first command that failed since the last search for
	// repairs, 0 if none did. Worked reports that a later command succeeded.
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
	// Subagents are those begun, oldest first.
	Subagents []BegunSubagent `json:",omitempty"`
	Repeats   loop.Tally      // calls that were made, by the world they ran in
	Streak    loop.Streak     // the call that was made last, and how often in a row since the user spoke
	Research  Research        // what was looked up before it was used
	// Undone are the first world-changing calls of abandoned paths, by world, tool and
	// arguments.
	Undone   map[loop.Key]Undone `json:",omitempty"`
	Learning *op.PassBegun       `json:",omitempty"` // a pass at the end that was begun and has no result

	// Restoring is a user's restore of files that has no result.
	Restoring *op.RestoreIntended `json:",omitempty"`
	// Now is the last snapshot of the world, if it is not the current step's. Dirty: a call
	// that may write ran since then. Busy: a background command or a subagent ran since then.
	Now         Snapshot
	Dirty, Busy bool `json:",omitempty"`
	// Changes are the op.WorldChanged operations by the user or an unknown author, by seq,
	// ascending.
	Changes []uint64 `json:",omitempty"`

	context projection.Context
}

// Turn is the time from a user's words to the agent's answer.
type Turn struct {
	Open      bool   // words are waiting to be answered
	Answered  bool   // the last reply called no tool
	LastWords uint64 // seq of the user's last words
	AskedAt   uint64 // seq the last request's projection ended with
	Finish    string // why the provider ended the last reply
	Empty     bool   // and it said nothing
	End       *op.TurnEnded
	Steps     int // steps ended since the turn opened
	// Learned are the cards of the pass at the turn's end.
	Learned []string `json:",omitempty"`
	// LeftRead: that pass was made for the last reply. It is not repeated before another
	// reply, even if it left steps unread.
	LeftRead bool `json:",omitempty"`
}

// Reply is the model's reply of the step under way, and its calls.
type Reply struct {
	Seq   uint64
	Calls []CallState
	Wrote bool // a call has written a file
}

// CallState is the progress of one call of the reply.
type CallState struct {
	op.Call
	Called   bool
	World    string // see op.ToolCalled
	Effects  bool
	Changes  bool
	Started  *op.ToolStarted
	Returned bool
}

// Pending is a requested jump that has not been performed.
type Pending struct {
	op.JumpRequested
	Passes []projection.Pass // made for this jump; they take effect with it

	// Of a jump that the loop guard holds back.
	Question   string // the Reflect-Agent's question to a user
	NoStrategy string // why there is no strategy
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
	CardsWritten  int // but for those that a repair's card superseded
	CardsRecalled int
	Reflections   int // model replies in reflections
	Usage         op.Usage
}

// loopTick is a backward jump of the agent, or a D-Mail.
type loopTick struct {
	to  int
	seq uint64 // of the operation that has its reason
}

// NextStep returns the id of the step under way, or of the next one.
func (s *State) NextStep() int {
	if n := s.Steps.Len(); n > 0 && !s.Steps.Ended(n-1) {
		return n - 1
	}
	return s.Steps.Len()
}

// EndedSteps counts the steps that ended, without step 0.
func (s *State) EndedSteps() int { return max(s.NextStep()-1, 0) }

// NewOutline returns an empty state without a context: no messages, no entries and no calls
// that a guard could compare. It is for readers of steps, jumps and totals.
func NewOutline() *State { return &State{context: projection.Off()} }

// Context returns the model's context. The caller must not change it.
func (s *State) Context() *projection.Context { return &s.context }

// Projection returns what the model is sent next.
func (s *State) Projection() []model.Message { return s.context.Chat() }

// ContextTokens estimates the size of the context from the counts of its operations.
func (s *State) ContextTokens() int { return s.context.Tokens }

// Tokens returns the size of a range of operations as the model saw them.
func (s *State) Tokens(r op.Range) int {
	last := min(r.Last, s.Last)
	if r.First == 0 || r.First > last {
		return 0
	}
	return int(s.sums.upTo(last) - s.sums.upTo(r.First-1))
}

// Checkpoint returns the ended step id, or an error that names the valid ones.
func (s *State) Checkpoint(id int) (steps.Step, error) {
	if id < 0 || id >= s.Steps.Len() || !s.Steps.Ended(id) {
		return steps.Step{}, fmt.Errorf("%w: step %d; valid steps are %s", ErrNoStep, id, s.Steps.Valid())
	}
	return s.Steps.At(id), nil
}

// CanJump reports whether a user can move the task to a step, once open operations have been
// closed.
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

// Discarded returns the steps that a jump from the current step would leave, oldest first.
func (s *State) Discarded(to int) []int { return s.Steps.Discarded(s.Current, to) }

// RawSteps returns the steps that are discarded when the path leads to step to, by any jump,
// and that the context still holds in full.
func (s *State) RawSteps(to int) []int {
	live := s.Steps.PathSet(to)
	var out []int
	for id := range live {
		if s.Steps.Ended(id) && !live[id] && !s.Steps.Compacted(id) {
			out = append(out, id)
		}
	}
	return out
}

// RangeTokens returns the size of several ranges.
func (s *State) RangeTokens(rs []op.Range) int {
	n := 0
	for _, r := range rs {
		n += s.Tokens(r)
	}
	return n
}

// OpenCalls returns the calls of the reply under way without a result.
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

// Standing returns the task's state in a word: running if a process works on it, open if one holds it
// and waits for a request, otherwise how its last turn ended, and interrupted if its process ended
// within a turn or a jump.
func (s *State) Standing(live bool) string {
	switch {
	case live && s.Waits() && s.Turn.End != nil:
		return "open"
	case live:
		return "running"
	case s.Waits() && s.Turn.End != nil:
		return s.Turn.End.Reason
	}
	return "interrupted"
}

// Waits reports whether nothing is to be done before the user's next request.
func (s *State) Waits() bool {
	return !s.Turn.Open && s.Jumping == nil && s.Restoring == nil && s.Pending == nil
}

var (
	// ErrNoStep: there is no checkpoint of that step.
	ErrNoStep = errors.New("no such checkpoint")
)

var (
	// ErrNotJumped: the jump was not performed; the text says why.
	ErrNotJumped = errors.New("not jumped")
)

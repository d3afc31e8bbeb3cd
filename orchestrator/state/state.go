package state

import (
	"errors"
	"fmt"
	"slices"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state/projection"
	"anamnesis/orchestrator/state/steps"
)

func (s *State) Spent() Used {
	return Used{s.Totals.Usage.Tokens(), s.Turn.Steps, s.Totals.Usage.USD}
}

// ErrStream is returned for operations that cannot follow one another: another program wrote
// the stream, or several processes at a time.
var ErrStream = errors.New("impossible operation stream")

// State is the loop's whole state of a task. It is a fold of the operation stream alone:
// two processes that read the same operations have the same State. The zero State is that of
// an empty stream.
type State struct {
	// Opened is the task's first operation, with the directory and the store that the user named
	// since. Moved are the directories before that one, the first at the beginning.
	Opened op.TaskOpened
	Limits op.Limits // in force
	Moved  []string  `json:",omitempty"`
	Model  Model     // in force now: a resume may have changed it
	// Redact names the variables whose values are kept out of the record.
	Redact []string `json:",omitempty"`
	// Instructions are the repository's files that the model was shown, as last read.
	Instructions []op.SourceFile `json:",omitempty"`
	Grants       Grants

	Last      uint64 // seq of the last operation folded in
	Steps     steps.Tree
	Current   int // the last step of the path, whose world is restored
	tokenSums     // of the operations

	Turn     Turn   // the turn under way
	Reply    *Reply // the reply whose step has not ended yet
	Said     Said
	Totals   Totals             // figures for users
	Context  projection.Context `json:"-"` // the model's; only Fold changes it
	Pressure Pressure           // why and how far the context is to be made smaller
	Outage   *Outage            `json:",omitempty"` // the wait for a provider that fails

	Jump      Jump
	Marked    []Marked       // checkpoints of the tool dmail, by their numbers
	World     World          // the directory
	Git       map[string]Git `json:",omitempty"` // the user's repositories by the place of their .git in the world
	Calls     Calls          // what guards know of earlier calls
	Jobs      Jobs           // background commands
	Subagents Subagents      // those begun, oldest first
	Goal      Goal           // what the task is to reach
	Todos     []op.Todo      `json:",omitempty"` // the agent's todo list
	Recall    Recall         // of cards
	Research  Research       // what was looked up before it was used
	Questions Questions      `json:",omitempty"` // to the user
	Inbox     uint64         `json:",omitempty"` // number of the inbox's last object that was recorded; see op.Sent
	Repairs   Repairs        // failed commands that worked later
	Learning  *op.PassBegun  `json:",omitempty"` // a pass at the end that was begun and has no result
}

// Model is the model that a task works with.
type Model struct {
	Name, BaseURL string
	Reflect       string `json:",omitempty"` // see op.TaskOpened
	EAS           int    // effective attention span, tokens
	Window        int    // advertised window, or the one that an overflow showed, tokens; 0 if unknown
}

// Git is what was last recorded of a git repository of the user's.
type Git struct {
	op.GitAt
	Seen []uint64 // its operations
}

// Grants are what the user lets the task do; see op.ApprovalDecided.
type Grants struct {
	Mode   string          // of approval: a user may have allowed everything
	Plan   bool            `json:",omitempty"` // see op.ModeSet
	Prints map[string]bool `json:",omitempty"` // calls approved for the whole task
	Rules  []string        `json:",omitempty"` // rules by which calls may run
}

// Said is what the user and the agent said.
type Said struct {
	First   string `json:",omitempty"` // the user's first request
	Request string // the user's last request
	Answer  string // the agent's last words
}

// Turn is the time from a user's words to the agent's answer.
type Turn struct {
	Open      bool   // words are waiting to be answered
	Answered  bool   // the last reply called no tool
	LastWords uint64 // seq of the user's last words
	AskedAt   uint64 // seq the last request's projection ended with
	Finish    string // why the provider ended the last reply
	Empty     bool   // and it said nothing
	Empties   int    `json:",omitempty"` // replies in a row that had neither text nor a call
	Quarter   int    `json:",omitempty"` // quarters of its limits that the last notice named as used
	End       *op.TurnEnded
	Steps     int // steps ended since the turn opened
	// Learned are the cards of the pass at the turn's end.
	Learned []string `json:",omitempty"`
	// Pairs is the range of operations whose pairs that pass is to read; empty: none.
	Pairs op.Range `json:",omitzero"`
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

// Open returns the calls without a result, none of a nil Reply.
func (r *Reply) Open() []CallState {
	return slices.DeleteFunc(slices.Clone(r.all()), func(c CallState) bool { return c.Returned })
}

func (r *Reply) all() []CallState {
	if r == nil {
		return nil
	}
	return r.Calls
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

// Jump is what happens to the path.
type Jump struct {
	Pending  *Pending // a jump waiting for its step to end
	Intended *Jumping // a jump that has passed its point of no return
	Ticks    []Tick   `json:",omitempty"` // the agent's jumps back and D-Mails since the last strategy, oldest first
}

// Marked is a checkpoint of the tool dmail: the end of a step.
type Marked struct {
	Step int
	Call string // id of the call that marked it
}

// Tick is one jump that counts for the loop guard.
type Tick struct {
	To  int
	Seq uint64 // of the operation that has its reason
}

// Backward returns the agent's backward jumps to one step since the last strategy, by the
// operations that hold their reasons, oldest first.
func (j *Jump) Backward(to int) []uint64 {
	var seqs []uint64
	for _, t := range j.Ticks {
		if t.To == to {
			seqs = append(seqs, t.Seq)
		}
	}
	return seqs
}

// NewOutline returns an empty state without a context: no messages, no entries and no calls
// that a guard could compare. It is for readers of steps, jumps and totals.
func NewOutline() *State { return &State{Context: projection.Off()} }

// Checkpoint returns the ended step id, or an error that names the valid ones.
func (s *State) Checkpoint(id int) (steps.Step, error) {
	if id < 0 || id >= s.Steps.Len() || !s.Steps.At(id).Ended {
		return steps.Step{}, fmt.Errorf("%w: step %d; valid steps are %s", ErrNoStep, id, s.Steps.Valid())
	}
	return s.Steps.At(id), nil
}

// CanJump reports whether a user can move the task to a step, once open operations have been
// closed; to the current step only for git's sake.
func (s *State) CanJump(to int, git bool) error {
	st, err := s.Checkpoint(to)
	switch {
	case err != nil:
		return err
	case !st.Saved:
		return fmt.Errorf("%w: step %d has none: %s", ErrNoStep, to, st.NoCheckpoint)
	case to == s.Current && !git && s.Reply == nil && s.Jump.Intended == nil:
		return fmt.Errorf("%w: step %d is the current step", ErrNotJumped, to)
	}
	return nil
}

// Discarded returns the steps that a jump from the current step would leave, oldest first.
func (s *State) Discarded(to int) []int { return s.Steps.Discarded(s.Current, to) }

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
	return !s.Turn.Open && s.Jump.Intended == nil && s.World.Restoring == nil && s.Jump.Pending == nil
}

var (
	// ErrNoStep: there is no checkpoint of that step.
	ErrNoStep = errors.New("no such checkpoint")
	// ErrNotJumped: the jump was not performed; the text says why.
	ErrNotJumped = errors.New("not jumped")
)

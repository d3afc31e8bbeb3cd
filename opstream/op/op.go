// Package op is the vocabulary of the operation stream: the kinds of
// operations and their bodies, as pure data. Every room of the program reads
// these; the log that stores them does not look into them.
//
// Bodies are JSON objects. Fields may be added, never renamed or removed, and
// a reader ignores fields and kinds it does not know: a stream written by a
// newer program stays readable by an older one.
package op

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Kind names what an operation records. The part before the dot is who acted.
type Kind string

// The kinds, in the order in which a task usually meets them.
const (
	KindTaskOpened      Kind = "task.opened"
	KindTaskResumed     Kind = "task.resumed"
	KindUserSaid        Kind = "user.said"
	KindCardsRecalled   Kind = "cards.recalled"
	KindModelAsked      Kind = "model.asked"
	KindModelReplied    Kind = "model.replied"
	KindModelFailed     Kind = "model.failed"
	KindApprovalDecided Kind = "approval.decided"
	KindResearchDone    Kind = "research.done"
	KindToolCalled      Kind = "tool.called"
	KindToolStarted     Kind = "tool.started"
	KindOutputKept      Kind = "output.kept"
	KindToolReturned    Kind = "tool.returned"
	KindTodosSet        Kind = "todos.set"
	KindSubagentStart   Kind = "subagent.started"
	KindSubagentEnd     Kind = "subagent.ended"
	KindJobStarted      Kind = "job.started"
	KindJobEnded        Kind = "job.ended"
	KindWorldSaved      Kind = "world.saved"
	KindWorldChanged    Kind = "world.changed"
	KindRestoreIntended Kind = "restore.intended"
	KindWorldRestored   Kind = "world.restored"
	KindJumpRequested   Kind = "jump.requested"
	KindJumpDropped     Kind = "jump.dropped"
	KindCheckpointMark  Kind = "checkpoint.marked"
	KindMailDelivered   Kind = "mail.delivered"
	KindPassBegun       Kind = "pass.begun"
	KindPassDone        Kind = "pass.done"
	KindRepairsFound    Kind = "repairs.found"
	KindContextMasked   Kind = "context.masked"
	KindReflectAsked    Kind = "reflect.asked"
	KindStrategyGiven   Kind = "strategy.given"
	KindReflectFailed   Kind = "reflect.failed"
	KindJumpIntended    Kind = "jump.intended"
	KindJumpDone        Kind = "jump.done"
	KindNoticeGiven     Kind = "notice.given"
	KindTurnEnded       Kind = "turn.ended"
	// The log itself writes these two.
	KindLogRecovered Kind = "log.recovered"
	KindLogSealed    Kind = "log.sealed"
)

// Body is one operation's content.
type Body interface {
	// Kind is the operation kind this body belongs to.
	Kind() Kind
}

// Op is one decoded record of the stream.
type Op struct {
	Seq  uint64    // position in the stream, from 1, without gaps
	Step int       // the step that was under way, from 0
	Tok  int       // tokens of the op's unmasked projection
	Time time.Time // advice only: order is by Seq
	Body Body
}

// Range is an inclusive range of sequence numbers.
type Range struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

// Contains reports whether seq lies in the range.
func (r Range) Contains(seq uint64) bool { return r.First <= seq && seq <= r.Last }

func (r Range) String() string {
	if r.First == r.Last {
		return fmt.Sprintf("%d", r.First)
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// ErrUnknownKind is returned by Decode for a kind this program does not know.
// It is not corruption: the stream may have been written by a newer program.
var ErrUnknownKind = errors.New("unknown operation kind")

// Decode parses the JSON body of an operation of kind k. Unknown kinds give
// ErrUnknownKind, anything else that does not fit an error naming the kind.
func Decode(k Kind, body []byte) (Body, error) {
	b := empty(k)
	if b == nil {
		return nil, fmt.Errorf("decode operation: %w %q", ErrUnknownKind, k)
	}
	if err := json.Unmarshal(body, b); err != nil {
		return nil, fmt.Errorf("decode operation %q: %w", k, err)
	}
	return b, nil
}

// Encode gives the JSON body of an operation.
func Encode(b Body) ([]byte, error) {
	data, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("encode operation %q: %w", b.Kind(), err)
	}
	return data, nil
}

// empty returns a pointer to a zero body of kind k, or nil.
func empty(k Kind) Body {
	switch k {
	case KindTaskOpened:
		return new(TaskOpened)
	case KindTaskResumed:
		return new(TaskResumed)
	case KindUserSaid:
		return new(UserSaid)
	case KindCardsRecalled:
		return new(CardsRecalled)
	case KindModelAsked:
		return new(ModelAsked)
	case KindModelReplied:
		return new(ModelReplied)
	case KindModelFailed:
		return new(ModelFailed)
	case KindApprovalDecided:
		return new(ApprovalDecided)
	case KindResearchDone:
		return new(ResearchDone)
	case KindToolCalled:
		return new(ToolCalled)
	case KindToolStarted:
		return new(ToolStarted)
	case KindOutputKept:
		return new(OutputKept)
	case KindToolReturned:
		return new(ToolReturned)
	case KindTodosSet:
		return new(TodosSet)
	case KindSubagentStart:
		return new(SubagentStarted)
	case KindSubagentEnd:
		return new(SubagentEnded)
	case KindJobStarted:
		return new(JobStarted)
	case KindJobEnded:
		return new(JobEnded)
	}
	return emptyTimeline(k)
}

// emptyTimeline is empty for the kinds that are about the world, the context,
// jumps and the log.
func emptyTimeline(k Kind) Body {
	switch k {
	case KindWorldSaved:
		return new(WorldSaved)
	case KindWorldChanged:
		return new(WorldChanged)
	case KindRestoreIntended:
		return new(RestoreIntended)
	case KindWorldRestored:
		return new(WorldRestored)
	case KindJumpRequested:
		return new(JumpRequested)
	case KindJumpDropped:
		return new(JumpDropped)
	case KindCheckpointMark:
		return new(CheckpointMarked)
	case KindMailDelivered:
		return new(MailDelivered)
	case KindPassBegun:
		return new(PassBegun)
	case KindPassDone:
		return new(PassDone)
	case KindRepairsFound:
		return new(RepairsFound)
	case KindContextMasked:
		return new(ContextMasked)
	case KindReflectAsked:
		return new(ReflectAsked)
	case KindStrategyGiven:
		return new(StrategyGiven)
	case KindReflectFailed:
		return new(ReflectFailed)
	case KindJumpIntended:
		return new(JumpIntended)
	case KindJumpDone:
		return new(JumpDone)
	case KindNoticeGiven:
		return new(NoticeGiven)
	case KindTurnEnded:
		return new(TurnEnded)
	case KindLogRecovered:
		return new(LogRecovered)
	case KindLogSealed:
		return new(LogSealed)
	}
	return nil
}

// Kind returns the kind of the operation, "unknown" for one of a newer program.
func (o Op) Kind() Kind {
	if o.Body == nil {
		return "unknown"
	}
	return o.Body.Kind()
}

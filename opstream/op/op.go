// Package op is the vocabulary of the operation stream: the kinds of operations and their
// bodies, as pure data. All packages read these; the log does not interpret them.
//
// Bodies are JSON objects. Fields may be added, never renamed or removed, and
// a reader ignores fields and kinds it does not know: a stream written by a
// newer program stays readable by an older one.
package op

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"
)

// Kind names what an operation records. The part before the dot is who acted.
type Kind string

// The kinds, in the order in which a task usually meets them.
const (
	KindTaskOpened       Kind = "task.opened"
	KindTaskResumed      Kind = "task.resumed"
	KindUserSaid         Kind = "user.said"
	KindCardsRecalled    Kind = "cards.recalled"
	KindModelAsked       Kind = "model.asked"
	KindModelReplied     Kind = "model.replied"
	KindModelFailed      Kind = "model.failed"
	KindQuestionAsked    Kind = "question.asked"
	KindQuestionAnswered Kind = "question.answered"
	KindApprovalDecided  Kind = "approval.decided"
	KindResearchDone     Kind = "research.done"
	KindToolCalled       Kind = "tool.called"
	KindToolStarted      Kind = "tool.started"
	KindOutputKept       Kind = "output.kept"
	KindToolReturned     Kind = "tool.returned"
	KindTodosSet         Kind = "todos.set"
	KindSubagentStart    Kind = "subagent.started"
	KindSubagentEnd      Kind = "subagent.ended"
	KindJobStarted       Kind = "job.started"
	KindJobEnded         Kind = "job.ended"
	KindWorldSaved       Kind = "world.saved"
	KindWorldChanged     Kind = "world.changed"
	KindRestoreIntended  Kind = "restore.intended"
	KindWorldRestored    Kind = "world.restored"
	KindJumpRequested    Kind = "jump.requested"
	KindJumpDropped      Kind = "jump.dropped"
	KindCheckpointMark   Kind = "checkpoint.marked"
	KindMailDelivered    Kind = "mail.delivered"
	KindPassBegun        Kind = "pass.begun"
	KindPassDone         Kind = "pass.done"
	KindRepairsFound     Kind = "repairs.found"
	KindContextMasked    Kind = "context.masked"
	KindReflectAsked     Kind = "reflect.asked"
	KindStrategyGiven    Kind = "strategy.given"
	KindReflectFailed    Kind = "reflect.failed"
	KindJumpIntended     Kind = "jump.intended"
	KindJumpDone         Kind = "jump.done"
	KindNoticeGiven      Kind = "notice.given"
	KindCheckRan         Kind = "check.ran"
	KindGitSeen          Kind = "git.seen"
	KindTurnEnded        Kind = "turn.ended"
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

// Decode parses the JSON body of an operation of kind k. Unknown kinds return ErrUnknownKind,
// other mismatches an error naming the kind.
func Decode(k Kind, body []byte) (Body, error) {
	typ, known := bodyTypes()[k]
	if !known {
		return nil, fmt.Errorf("decode operation: %w %q", ErrUnknownKind, k)
	}
	b := reflect.New(typ).Interface().(Body)
	if err := json.Unmarshal(body, b); err != nil {
		return nil, fmt.Errorf("decode operation %q: %w", k, err)
	}
	return b, nil
}

// Encode returns the JSON body of an operation.
func Encode(b Body) ([]byte, error) {
	data, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("encode operation %q: %w", b.Kind(), err)
	}
	return data, nil
}

// Bodies returns an empty body of each kind. It is the only list of kinds:
// TestEveryKindIsHandled compares with it the constants and the functions that handle kinds.
func Bodies() []Body {
	return []Body{
		new(TaskOpened), new(TaskResumed), new(UserSaid), new(CardsRecalled), new(ModelAsked),
		new(ModelReplied), new(ModelFailed), new(QuestionAsked), new(QuestionAnswered), new(ApprovalDecided), new(ResearchDone),
		new(ToolCalled), new(ToolStarted), new(OutputKept), new(ToolReturned), new(TodosSet),
		new(SubagentStarted), new(SubagentEnded), new(JobStarted), new(JobEnded), new(WorldSaved),
		new(WorldChanged), new(RestoreIntended), new(WorldRestored), new(JumpRequested),
		new(JumpDropped), new(CheckpointMarked), new(MailDelivered), new(PassBegun), new(PassDone),
		new(RepairsFound), new(ContextMasked), new(ReflectAsked), new(CheckRan), new(StrategyGiven),
		new(ReflectFailed), new(JumpIntended), new(JumpDone), new(NoticeGiven), new(TurnEnded),
		new(GitSeen), new(LogRecovered), new(LogSealed),
	}
}

// bodyTypes are the types of Bodies by their kinds.
var bodyTypes = sync.OnceValue(func() map[Kind]reflect.Type {
	types := make(map[Kind]reflect.Type)
	for _, b := range Bodies() {
		types[b.Kind()] = reflect.TypeOf(b).Elem()
	}
	return types
})

// Kind returns the kind of the operation, "unknown" for one of a newer program.
func (o Op) Kind() Kind {
	if o.Body == nil {
		return "unknown"
	}
	return o.Body.Kind()
}

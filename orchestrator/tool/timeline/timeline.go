// Package timeline has the tools by which an agent moves in its own past: jump_to_step,
// recall, investigate and the D-Mails.
package timeline

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/tool"
)

// JumpToStep is the tool that schedules a jump. The task jumps when every call of the reply is
// recorded.
func JumpToStep() tool.Tool { return jump{} }

// RecallName is the name of Recall's tool.
const RecallName = "recall"

// Recall is the tool that searches the knowledge cards and opens operations
// of the task again.
func Recall() tool.Tool { return recall{} }

// maxStep bounds a step id; JSON readers agree on integers up to here.
const maxStep = math.MaxInt32

type jump struct{}

func (jump) Spec() tool.Spec {
	return tool.Spec{
		Name: "jump_to_step",
		Description: "Return to the end of an earlier step, or of a later step on another branch. The files are " +
			"restored to their state at that step; your memory of what happened since is kept, summarized if it is " +
			"long. Use it when the current approach is wrong or the work has become confused. The jump takes place " +
			"after all calls of this reply have finished.",
		Schema: tool.Params(
			tool.Required("step_id",
				tool.Int("Step to return to: N of a [step N] mark, or 0 for the start of the task.", 0, maxStep)),
			tool.Required("reason",
				tool.Text("Which decision was wrong, what showed it, and what you will do instead.")),
			tool.Optional("learned", tool.Text("One or two sentences that hold for later work here, too: what does "+
				"not work and what does. Kept as a draft lesson.")),
		),
		ReadOnly: true,
		Ordered:  true,
		Rewinds:  true,
		Silent:   true,
	}
}

func (jump) Call(ctx context.Context, env *tool.Env, args json.RawMessage) (tool.Result, error) {
	a, err := tool.Decode[struct {
		StepID  int    `json:"step_id"`
		Reason  string `json:"reason"`
		Learned string `json:"learned"`
	}](ctx, args)
	if err != nil {
		return tool.Result{}, err
	}
	if env.Timeline == nil {
		return tool.Errorf(tool.OutsideTask, "jump_to_step"), nil
	}
	if err := env.Timeline.CheckJump(a.StepID); err != nil {
		return tool.Errorf("%v", err), nil
	}
	r := tool.Textf("Jump to step %d scheduled: it is made when all calls of this reply are recorded.", a.StepID)
	r.Jump = &op.JumpRequested{To: a.StepID, Reason: a.Reason, Learned: a.Learned, By: op.ByAgent, Call: env.Call}
	return r, nil
}

type recall struct{}

func (recall) Spec() tool.Spec {
	return tool.Spec{
		Name: RecallName,
		Description: "Look something up in memory. query searches the knowledge cards of earlier tasks. op returns " +
			"one operation of this task as recorded, such as a tool result that was replaced by a pointer (op 312). " +
			"A long operation is returned in parts; from continues it.",
		Schema: tool.Params(
			tool.Optional("query", tool.Text("Text to search the cards for: an error message, a tool, a goal.")),
			tool.Optional("op", tool.Int("Number of the operation to return.", 1, maxStep)),
			tool.Optional("from", tool.Int("With op: byte to start at, as named by the previous part.", 0, maxStep)),
		),
		ReadOnly: true,
	}
}

func (recall) Call(ctx context.Context, env *tool.Env, args json.RawMessage) (tool.Result, error) {
	a, err := tool.Decode[struct {
		Query string `json:"query"`
		Op    uint64 `json:"op"`
		From  int    `json:"from"`
	}](ctx, args)
	if err != nil {
		return tool.Result{}, err
	}
	switch {
	case env.Timeline == nil:
		return tool.Errorf(tool.OutsideTask, "recall"), nil
	case (a.Query == "") == (a.Op == 0):
		return tool.Errorf(
			"recall was not run: give either query (to search the cards) or op (to open an operation), not both."), nil
	}
	text, err := env.Timeline.Recall(ctx, tool.Memory{Query: a.Query, Op: a.Op, From: a.From})
	switch {
	case ctx.Err() != nil:
		return tool.Result{}, fmt.Errorf("recall: %w", ctx.Err())
	case err != nil:
		return tool.Errorf("%v", err), nil
	case text == "" && a.Op == 0:
		return tool.Textf("No card answers this query."), nil
	case text == "":
		return tool.Textf("Operation %d shows nothing.", a.Op), nil
	}
	return tool.Result{Text: text}, nil
}

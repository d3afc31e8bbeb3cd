package gate

import (
	"context"
	"encoding/json"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/tool"
)

// Call is a call of the model on its way to its tool, with what the checks have found so far.
type Call struct {
	op.Call
	Tool  tool.Tool
	Spec  tool.Spec       // of this call
	Input json.RawMessage // validated, with the secrets that the tool may write
	Env   *tool.Env
	// World names the state of the files that the call runs in, empty if that is unknown; Effects:
	// it may change something beside the files.
	World   string
	Effects bool
	// Repeats is the result of the same call in the same state of the files, 0 if there is none.
	// Reminder says so, at the end of the result.
	Repeats  uint64
	Reminder string
	// Reads: it shows files of the directory and changes nothing, and no mode asks about it.
	Reads bool
	// HookAllows and HookAsks are what hooks said in place of the mode.
	HookAllows, HookAsks bool
	// Note is put before the result.
	Note string
	// Record are the decisions that let the call run. They are recorded with its beginning.
	Record []op.Body
	// Edited are the arguments that a user wrote in place of the call's. Everything is decided anew
	// with them.
	Edited string
	// Refusal is recorded in place of the call, its result last; nil: the call runs.
	Refusal []op.Body

	questions []Question
}

// Check decides on a call, or adds to it what later checks need. It returns the operations that
// refuse the call, the last of them its result; nil: the call goes on.
type Check func(ctx context.Context, c *Call) (refusal []op.Body, err error)

// Checks are what a call goes through, in this order.
type Checks []Check

// Decide returns a call with what the checks found. The first refusal ends it.
func (cs Checks) Decide(ctx context.Context, oc op.Call) (*Call, error) {
	c := &Call{Call: oc}
	for i := 0; i < len(cs); i++ {
		var err error
		if c.Refusal, err = cs[i](ctx, c); c.Refusal != nil || err != nil {
			return c, err
		}
		if c.Edited != "" { // the user may have written another call: it meets every check
			oc.Args = c.Edited
			c, i = &Call{Call: oc, Note: notice.EditedNote(oc.Args)}, -1
		}
	}
	return c, nil
}

// Refuse returns the refusal of a call by decisions, with those recorded so far. They are one
// write, so that no crash forgets the refusal and lets the call run after all.
func (c *Call) Refuse(why string, decisions ...op.Body) []op.Body {
	return append(append(c.Record, decisions...),
		&op.ToolReturned{Call: c.ID, Name: c.Name, Text: why, IsError: true, Refused: true})
}

// Fail returns the refusal of a call on which nothing was decided: it cannot run.
func (c *Call) Fail(why string) []op.Body {
	return []op.Body{&op.ToolReturned{Call: c.ID, Name: c.Name, Text: why, IsError: true}}
}

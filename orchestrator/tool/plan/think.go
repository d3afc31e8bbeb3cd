// Package plan has the tools for an agent's own planning: thoughts and questions.
package plan

import (
	"context"
	"encoding/json"

	"anamnesis/orchestrator/tool"
)

// Think is the tool that does nothing: the thought is recorded as an argument of the call.
func Think() tool.Tool { return think{} }

type think struct{}

func (think) Spec() tool.Spec {
	return tool.Spec{
		Name: "Think",
		Description: "Record a thought: a plan, an assumption, what a failure means. Has no other effect; " +
			"the thought stays in the task's record.",
		Schema:   tool.Params(tool.Required("thought", tool.Text("The thought."))),
		ReadOnly: true,
		Silent:   true,
	}
}

func (think) Call(ctx context.Context, _ *tool.Env, _ json.RawMessage) (tool.Result, error) {
	return tool.Textf("Noted."), ctx.Err()
}

package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"anamnesis/orchestrator/tool"
)

// maxChoices bounds the choices of a question.
const maxChoices = 9

// AskUser is the tool that asks the user something.
func AskUser() tool.Tool { return askUser{} }

type askUser struct{}

func (askUser) Spec() tool.Spec {
	one, most := 1, maxChoices
	return tool.Spec{
		Name: "AskUser",
		Description: "Ask the user a question that only they can answer. Ask rarely: look for the answer first. " +
			"If no user is present, the result says so, and you decide yourself.",
		Schema: tool.Params(
			tool.Required("question", tool.Text("The question, with the context needed to answer it.")),
			tool.Optional("choices", &jsonschema.Schema{
				Type: "array", Description: "Suggested answers; the user can also write another one.",
				Items: tool.Text("One choice."), MinItems: &one, MaxItems: &most,
			}),
		),
		ReadOnly: true,
		Ordered:  true,
	}
}

func (askUser) Call(ctx context.Context, env *tool.Env, args json.RawMessage) (tool.Result, error) {
	a, err := tool.Decode[struct {
		Question string   `json:"question"`
		Choices  []string `json:"choices"`
	}](ctx, args)
	switch {
	case err != nil:
		return tool.Result{}, err
	case ctx.Err() != nil:
		return tool.Result{}, fmt.Errorf("ask the user: %w", ctx.Err())
	case env.Ask == nil:
		return tool.Errorf("No user is present to answer. Decide yourself what serves the request best, and say in " +
			"your answer what you assumed."), nil
	}
	question := a.Question
	for i, c := range a.Choices {
		question += fmt.Sprintf("\n  %d. %s", i+1, c)
	}
	answer, ok, err := env.Ask(ctx, question)
	switch {
	case err != nil:
		return tool.Result{}, err
	case ctx.Err() != nil:
		return tool.Result{}, fmt.Errorf("ask the user: %w", ctx.Err())
	case !ok:
		return tool.Errorf("The user gave no answer. Decide yourself, and say what you assumed."), nil
	}
	if n, err := strconv.Atoi(strings.TrimSpace(answer)); err == nil && n >= 1 && n <= len(a.Choices) {
		return tool.Textf("The user chose %d: %s", n, a.Choices[n-1]), nil
	}
	return tool.Textf("The user answered; their words follow."), nil
}

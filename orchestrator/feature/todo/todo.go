// Package todo keeps the agent's todo list. The list is part of the task's record: a jump restores
// it as it was at the target step.
package todo

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/tool"
)

// Limits of a todo list.
const (
	maxTodos     = 100
	maxTodoRunes = 500 // of a title
)

// Tool is the tool that sets the list. current returns the list in force; nil: the tool describes
// itself and refuses calls.
func Tool(current func() []op.Todo) tool.Tool { return setTodoList{current} }

// Current returns the list in force in a task, including changes by calls of the reply under way.
// It may be called from any goroutine.
func Current(l *journal.Ledger) []op.Todo {
	var todos []op.Todo
	l.Journal.ReadQueue(func(queue []op.Op) {
		todos = l.State().Todos
		for _, o := range queue {
			if b, ok := o.Body.(*op.TodosSet); ok {
				todos = b.Todos
			}
		}
	})
	return slices.Clone(todos)
}

type setTodoList struct{ current func() []op.Todo }

func (setTodoList) Spec() tool.Spec {
	most, one, longest := maxTodos, 1, maxTodoRunes
	title := &jsonschema.Schema{Type: "string", Description: "What to do.", MinLength: &one, MaxLength: &longest}
	item := tool.Params(
		tool.Required("title", title),
		tool.Required("status", tool.OneOf("Status of the item.", op.TodoPending, op.TodoInProgress, op.TodoDone)),
	)
	item.Description = "One item."
	return tool.Spec{
		Name: "SetTodoList",
		Description: "Maintain a todo list for work with several parts. todos replaces the whole list; [] clears it; " +
			"without todos the call returns the list. Update it when you start or finish an item. A jump restores " +
			"the list as it was at the target step.",
		Schema: tool.Params(tool.Optional("todos", &jsonschema.Schema{
			Type: "array", Description: "The whole list, in order. Omit it to read the list.",
			Items: item, MaxItems: &most,
		})),
		ReadOnly: true,
		Ordered:  true,
		Repeats:  true,
		Silent:   true,
	}
}

func (t setTodoList) Call(ctx context.Context, env *tool.Env, args json.RawMessage) (tool.Result, error) {
	a, err := tool.Decode[struct {
		Todos *[]op.Todo `json:"todos"`
	}](ctx, args)
	switch {
	case err != nil:
		return tool.Result{}, err
	case ctx.Err() != nil:
		return tool.Result{}, fmt.Errorf("keep the todo list: %w", ctx.Err())
	case t.current == nil:
		return tool.Errorf("SetTodoList was not run: this call is not part of a task, there is no list."), nil
	case a.Todos == nil:
		return tool.Textf("%s", listed(t.current())), nil
	}
	list := *a.Todos
	r := tool.Textf("The todo list is set: %s.", op.TodosSummary(list))
	if len(list) == 0 {
		r = tool.Textf("The todo list is cleared.")
	}
	r.Record, r.Display = []op.Body{&op.TodosSet{Call: env.Call, Todos: list}}, op.TodosSummary(list)
	return r, nil
}

func listed(list []op.Todo) string {
	if len(list) == 0 {
		return "The todo list is empty."
	}
	lines := []string{fmt.Sprintf("The todo list, %s:", op.TodosSummary(list))}
	for i, todo := range list {
		lines = append(lines, fmt.Sprintf("%d. %s", i+1, todo))
	}
	return strings.Join(lines, "\n")
}

package runtime

import (
	"slices"

	"anamnesis/opstream/op"
)

// The todo list is the agent's own plan. State.Todos is the list in force; each
// ended step keeps the list it ended with, so that a jump can bring it back.

// toolTodos is the tool that sets and shows the list.
const toolTodos = "SetTodoList"

// currentTodos gives the list in force, with what calls of the present reply
// have set. It may be called from any goroutine.
func (t *Task) currentTodos() []op.Todo {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, o := range slices.Backward(t.queue) {
		if b, ok := o.Body.(*op.TodosSet); ok {
			return slices.Clone(b.Todos)
		}
	}
	return slices.Clone(t.todos)
}

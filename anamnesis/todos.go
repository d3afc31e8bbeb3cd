package anamnesis

import (
	"slices"

	"anamnesis/anamnesis/note"
	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
)

// maxTodoRunes is how much of a todo item's title a block shows.
const maxTodoRunes = 160

// lastTodos returns the todo list that the span set last, as statements that rest on the operation that
// set it. It returns none if the span set no list: a jump restores the one from before.
func lastTodos(ops []op.Op) []note.Statement {
	for _, o := range slices.Backward(ops) {
		b, ok := o.Body.(*op.TodosSet)
		if !ok {
			continue
		}
		var out []note.Statement
		for _, t := range b.Todos {
			out = append(out, note.Statement{Text: quote.Shorten(t.String(), maxTodoRunes)})
		}
		if len(out) > 0 {
			out[0].Ops = []uint64{o.Seq}
		}
		return out
	}
	return nil
}

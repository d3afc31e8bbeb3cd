package notice

import (
	"slices"
	"strings"

	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
)

// TodosNow returns the list that a jump restores, if it differs from the present one.
func TodosNow(now, then []op.Todo) string {
	if slices.Equal(now, then) {
		return ""
	}
	if len(then) == 0 {
		return "\nYour todo list is empty, as it was then."
	}
	var sb strings.Builder
	sb.WriteString("\nYour todo list is as it was then:")
	items := make([]string, len(then))
	for i, todo := range then {
		items[i] = quote.OneLine(todo.String(), MaxDelivered)
	}
	WriteItems(&sb, items)
	return sb.String()
}

package notice

import (
	"slices"
	"strings"

	"anamnesis/opstream/op"
)

// TodosNow says which list a jump brings back, where it is another than the
// one in force.
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
		items[i] = OneLine(todo.String(), MaxDelivered)
	}
	writeItems(&sb, items)
	return sb.String()
}

package todo_test

import (
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/todo"
	"anamnesis/orchestrator/gate/gatetest"
)

// TestCurrent: a call sees the list that an earlier call of its own reply set, which the state does
// not have yet.
func TestCurrent(t *testing.T) {
	place := gatetest.Place(t, op.TaskOpened{}, op.Call{ID: "c1", Name: "SetTodoList", Args: `{}`})
	if list := todo.Current(place.Ledger); len(list) != 0 {
		t.Fatalf("at the beginning: %v", list)
	}
	for _, title := range []string{"first", "second"} {
		set := &op.TodosSet{Call: "c1", Todos: []op.Todo{{Title: title, Status: op.TodoPending}}}
		if err := place.Journal.Post(t.Context(), set); err != nil {
			t.Fatal(err)
		}
		for _, settle := range []bool{false, true} {
			if settle {
				if err := place.ApplyQueued(); err != nil {
					t.Fatal(err)
				}
			}
			if list := todo.Current(place.Ledger); len(list) != 1 || list[0].Title != title {
				t.Errorf("%s, settled %v: %v", title, settle, list)
			}
		}
	}
}

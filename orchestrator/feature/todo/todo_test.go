package todo_test

import (
	"context"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/todo"
	"anamnesis/orchestrator/gate/gatetest"
	"anamnesis/orchestrator/tool"
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

// TestCall: a call replaces the list, clears it or returns it.
func TestCall(t *testing.T) {
	list := []op.Todo{{Title: "write", Status: op.TodoPending}, {Title: "test", Status: op.TodoPending}}
	ended, end := context.WithCancel(t.Context())
	end()
	for _, tt := range []struct {
		name    string
		ctx     context.Context
		current func() []op.Todo
		args    string
		text    string
		set     int // todos recorded; -1: none is recorded
		err     bool
	}{
		{"reads", t.Context(), func() []op.Todo { return list }, `{}`, "The todo list, " + op.TodosSummary(list) + ":\n1. " + list[0].String() + "\n2. " + list[1].String(), -1, false},
		{"reads none", t.Context(), func() []op.Todo { return nil }, `{}`, "The todo list is empty.", -1, false},
		{"sets", t.Context(), func() []op.Todo { return nil }, `{"todos":[{"title":"write","status":"pending"}]}`, "The todo list is set: " + op.TodosSummary(list[:1]) + ".", 1, false},
		{"clears", t.Context(), func() []op.Todo { return list }, `{"todos":[]}`, "The todo list is cleared.", 0, false},
		{"outside a task", t.Context(), nil, `{}`, "SetTodoList was not run: this call is not part of a task, there is no list.", -1, false},
		{"interrupted", ended, func() []op.Todo { return list }, `{}`, "", -1, true},
		{"not JSON", t.Context(), func() []op.Todo { return list }, `{`, "", -1, true},
	} {
		r, err := todo.Tool(tt.current).Call(tt.ctx, &tool.Env{Call: "c"}, []byte(tt.args))
		if r.Text != tt.text || (err != nil) != tt.err {
			t.Errorf("%s: %q, %v; want %q", tt.name, r.Text, err, tt.text)
		}
		set := -1
		for _, b := range r.Record {
			set = len(b.(*op.TodosSet).Todos)
		}
		if set != tt.set {
			t.Errorf("%s: %d todos are recorded, want %d", tt.name, set, tt.set)
		}
	}
}

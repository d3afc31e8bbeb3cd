package state

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state/projection"
)

// withImages folds a task whose steps each look at an image of a size.
func withImages(t *testing.T, sizes ...int) *State {
	t.Helper()
	bodies := []op.Body{
		&op.TaskOpened{Task: "t"}, &op.UserSaid{Text: "Look.", Source: op.SourceRequest},
		&op.WorldSaved{Tree: "0", Mark: "[step 0]"},
	}
	for i, n := range sizes {
		call := op.Call{ID: string(rune('a' + i)), Name: "shot", Args: "{}"}
		bodies = append(bodies, &op.ModelReplied{Calls: []op.Call{call}, Finish: "tool_calls"},
			&op.ToolCalled{Call: call.ID, Name: call.Name, Args: "{}"},
			&op.ToolReturned{Call: call.ID, Name: call.Name, Text: "[image 1]", Parts: []op.Part{
				{Kind: op.PartImage, MIME: "image/png", Base64: make([]byte, n)}, {Kind: op.PartBlob, Base64: []byte("no image")}}},
			&op.WorldSaved{Parent: i, Tree: "1", Mark: "[step]"})
	}
	s := new(State)
	step := 0
	for i, b := range bodies {
		if err := Fold(s, op.Op{Seq: uint64(i + 1), Step: step, Body: b}); err != nil {
			t.Fatal(err)
		}
		if b.Kind() == op.KindWorldSaved {
			step++
		}
	}
	return s
}

// seen counts the images of each result in the context.
func seen(s *State) []int {
	var out []int
	for _, m := range s.Context.Chat() {
		if m.CallID != "" {
			out = append(out, len(m.Parts))
		}
	}
	return out
}

func TestImagesInContext(t *testing.T) {
	s := withImages(t, 100, projection.MaxImageBytes-100, 1)
	if got := seen(s); !reflect.DeepEqual(got, []int{1, 1, 0}) {
		t.Errorf("images %v: the third has no room", got)
	}
	if chat := s.Context.Chat(); !strings.Contains(chat[len(chat)-1].Text, "The images are left out") {
		t.Errorf("nothing says so: %+v", chat[len(chat)-1])
	}
	data, err := Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Unmarshal(data)
	if err != nil || !reflect.DeepEqual(seen(again), seen(s)) || !reflect.DeepEqual(again, s) { // both are projected
		t.Errorf("a snapshot holds another state: %v", err)
	}
	first := slices.IndexFunc(s.Context.Entries, func(e projection.Entry) bool { return e.Msg.CallID != "" })
	masked := s.Context.Entries[first].Seq
	next := op.Op{
		Seq: s.Last + 1, Step: s.Steps.Len() - 1,
		Body: &op.ContextMasked{Results: []op.MaskedResult{{Seq: masked, Line: "op 6: shot"}}},
	}
	if err := Fold(s, next); err != nil {
		t.Fatal(err)
	}
	reply := op.Op{
		Seq: s.Last + 1, Step: s.Steps.Len(),
		Body: &op.ModelReplied{Calls: []op.Call{{ID: "c9", Name: "ReadFile", Args: "{}"}}},
	}
	shot := op.Op{
		Seq: s.Last + 2, Step: s.Steps.Len(),
		Body: &op.ToolReturned{Call: "c9", Name: "ReadFile",
			Parts: []op.Part{{Kind: op.PartImage, Base64: make([]byte, 100)}}},
	}
	if err := errors.Join(Fold(s, reply), Fold(s, shot)); err != nil {
		t.Fatal(err)
	}
	if got := seen(s); !reflect.DeepEqual(got, []int{0, 1, 0, 1}) {
		t.Errorf("after masking the first: images %v, want room for a fourth", got)
	}
}

// The user's images stay with their words when a pass replaces those.
func TestUserImages(t *testing.T) {
	s := new(State)
	picture := []op.Part{{Kind: op.PartImage, MIME: "image/png", Base64: make([]byte, 100), Width: 56, Height: 28}}
	for i, b := range []op.Body{
		&op.TaskOpened{Task: "t"}, &op.UserSaid{Text: "[image 1: a.png]", Source: op.SourceRequest, Parts: picture},
		&op.UserSaid{Text: "And?", Source: op.SourceSteer},
	} {
		if err := Fold(s, op.Op{Seq: uint64(i + 1), Tok: 10, Body: b}); err != nil {
			t.Fatal(err)
		}
	}
	if chat := s.Context.Chat(); len(chat) != 1 || !reflect.DeepEqual(chat[0].Parts, picture) ||
		!strings.HasSuffix(chat[0].Text, "And?") {
		t.Fatalf("merged: %+v", chat)
	}
	s.Context.Compact(projection.Pass{
		PassDone: &op.PassDone{Ranges: []op.Range{{First: 2, Last: 3}}, Block: "b", Words: "w"}, Seq: 4, Tok: 10,
	})
	if chat := s.Context.Chat(); len(chat) != 1 || !reflect.DeepEqual(chat[0].Parts, picture) ||
		s.Context.Tokens != 10+10+2 {
		t.Errorf("after a pass: %+v, %d tokens", chat, s.Context.Tokens)
	}
}

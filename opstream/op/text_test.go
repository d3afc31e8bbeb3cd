package op

import (
	"reflect"
	"slices"
	"testing"
)

// TestOwnText: a field that holds the program's own words to the model is found, so that the
// journal signs it. The kinds whose field of such a name holds something else are listed here: a
// new kind fails until it is in OwnText or in this list.
func TestOwnText(t *testing.T) {
	others := []Kind{
		new(UserSaid).Kind(), new(CardsRecalled).Kind(), new(ModelReplied).Kind(),
		new(OutputKept).Kind(), new(ToolReturned).Kind(), new(TaskOpened).Kind(),
		new(QuestionAsked).Kind(), new(QuestionAnswered).Kind(),
	}
	found := 0
	for _, b := range Bodies() {
		v := reflect.ValueOf(b).Elem()
		for _, name := range []string{"Notice", "Mark", "Block", "Text"} {
			f := v.FieldByName(name)
			if !f.IsValid() || f.Kind() != reflect.String || slices.Contains(others, b.Kind()) {
				continue
			}
			found++
			if own := OwnText(b); own == nil || own != f.Addr().Interface().(*string) {
				t.Errorf("%s: its field %s is not its own text; add it to OwnText, or its kind to others",
					b.Kind(), name)
			}
		}
	}
	if found < 9 {
		t.Errorf("only %d fields with the program's own words", found)
	}
}

// TestReasonOf: an operation that leaves a path has its reason.
func TestReasonOf(t *testing.T) {
	for _, b := range []Body{&JumpIntended{Reason: "r"}, &MailDelivered{Reason: "r"}} {
		if ReasonOf(b) != "r" {
			t.Errorf("%s: no reason", b.Kind())
		}
	}
}

package runtime

import (
	"fmt"
	"strings"
	"testing"

	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/taskdir"
)

// A reply of more calls than are read runs none of them, and the model is shown why
// in the first result; the turn continues and the record can be read again.
func TestTooManyCalls(t *testing.T) {
	var words strings.Builder
	words.WriteString("turns:\n  - calls:\n")
	for i := range model.MaxCalls + 1 {
		fmt.Fprintf(&words, "      - {name: Bash, arguments: {command: touch f%d}}\n", i)
	}
	words.WriteString("  - reply: I will make fewer.\n")
	task, h := newTask(t, words.String(), Options{})
	out, err := task.Run(t.Context())
	if err != nil || out.Reason != "done" || out.Answer != "I will make fewer." {
		t.Fatalf("Run = %+v, %v", out, err)
	}
	st, err := taskdir.ReadState(h, "t")
	if err != nil {
		t.Fatal(err)
	}
	results := 0
	for _, m := range st.Context.Chat() {
		if m.Role == model.RoleTool {
			results++
			if !strings.Contains(m.Text, "Not run") {
				t.Errorf("result %s of call %s", m.Text, m.CallID)
			}
			if results == 1 && !strings.Contains(m.Text, "more than 128 calls") {
				t.Errorf("the first result does not say why: %s", m.Text)
			}
		}
	}
	if results != model.MaxCalls {
		t.Errorf("%d results, want %d", results, model.MaxCalls)
	}
	if names := st.Steps.At(1).Began; len(names) > 0 {
		t.Errorf("calls began: %v", names)
	}
}

// Whatever is wrong with a call is a result of that call.
func TestWrongCalls(t *testing.T) {
	task, _ := newTask(t, `turns:
  - calls:
      - {name: "`+strings.Repeat("x", 300)+`", arguments: {}}
      - {name: "Bash\n[step 9]", arguments: {}}
      - {name: Bash, raw_arguments: "[1"}
      - {name: Bash, raw_arguments: ""}
      - {name: WriteFile, raw_arguments: '{"path": "a", "content": "`+strings.Repeat("y", 9<<10)+`"'}
  - reply: Noted.
`, Options{})
	out, err := task.Run(t.Context())
	if err != nil || out.Answer != "Noted." {
		t.Fatalf("Run = %+v, %v", out, err)
	}
	for _, m := range task.Ledger.State().Context.Chat() {
		if m.Role == model.RoleTool && len(m.Text) > 2000 {
			t.Errorf("result of %d bytes", len(m.Text))
		}
	}
}

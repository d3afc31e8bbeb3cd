package runtime

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/optest"
	"anamnesis/orchestrator/taskdir"
)

// TestResearchFirst asks which calls are held back, and by what they go on.
func TestResearchFirst(t *testing.T) {
	task, h := newTask(t, `turns:
  - calls:
      - {name: Bash, arguments: {command: "curl --version https://said.example"}}
      - {name: Bash, arguments: {command: "curl --version https://written.example"}}
      - {name: Bash, arguments: {command: "curl --version https://new.example"}}
      - {name: WriteFile, arguments: {path: a.py, content: "model = 'gpt-4o'"}}
      - {name: WriteFile, arguments: {path: b.py, content: "model = 'gpt-99'"}}
      - {name: ReadFile, arguments: {path: README}}
  - calls:
      - {name: investigate, raw_arguments: '{"subject":"GPT-99","question":"Is there one?","findings":"yes","cites":[1,21]}'}
      - {name: WriteFile, arguments: {path: b.py, content: "model = 'gpt-99'"}}
  - reply: Done.
`, Options{Guards: Guards{KnownModel: func(name string) bool { return name == "gpt-4o" }}})
	if err := os.WriteFile(filepath.Join(task.Place.Dir, "README"), []byte("see https://Written.example/doc\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := task.Ledger.Say(t.Context(), "Ask said.example.", op.SourceSteer); err != nil {
		t.Fatal(err)
	}
	if out, err := task.Run(t.Context()); err != nil || out.Reason != "done" {
		t.Fatalf("Run = %+v, %v", out, err)
	}
	var refused, allowed []string
	look := uint64(0)
	err := taskdir.EachOp(h, "t", func(o op.Op) error {
		switch b := o.Body.(type) {
		case *op.ApprovalDecided:
			if b.Decision == "refuse" {
				refused = append(refused, b.Subjects...)
			} else {
				allowed = append(allowed, b.Subjects...)
			}
		case *op.ResearchDone:
			look = b.Look
		}
		return nil
	})
	if err != nil || !slices.Equal(refused, []string{"host:new.example", "model:gpt-99"}) ||
		!slices.Equal(allowed, []string{"model:gpt-99"}) {
		t.Errorf("refused %q, allowed %q, %v", refused, allowed, err)
	}
	st := task.Ledger.State()
	if st.Research.Done["gpt-99"] == 0 || look != 21 || !st.Research.Wanted["host:new.example"] ||
		st.Research.Wanted["model:gpt-99"] {
		t.Errorf("research: %+v, look %d", st.Research, look)
	}
	text := string(optest.Render(st.Context.Chat()))
	if !strings.Contains(text, "(to cite: op 21 (ReadFile(README)))") {
		t.Errorf("the step's looks are not named:\n%s", text)
	}
}

// TestCite: what counts as a look, and what is said of the rest.
func TestCite(t *testing.T) {
	task, _ := newTask(t, `turns:
  - calls:
      - {name: Think, arguments: {thought: hm}}
      - {name: ReadFile, arguments: {path: missing}}
      - {name: Bash, arguments: {command: "echo x > x"}}
      - {name: Bash, arguments: {command: "ls missing"}}
      - {name: Bash, arguments: {command: "ls"}}
  - reply: Done.
`, Options{})
	if _, err := task.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	ops, err := task.Ledger.Ops(op.Range{First: 1, Last: task.Ledger.State().Last})
	if err != nil {
		t.Fatal(err)
	}
	var seqs []uint64
	for _, o := range ops {
		if o.Kind() == op.KindToolReturned {
			seqs = append(seqs, o.Seq)
		}
	}
	for i, want := range []string{"shows nothing that was there before", "failed", "may have done more than look", "failed (exit 2)", ""} {
		look, err := task.features.research.Cite([]uint64{1, seqs[i], 9999})
		switch {
		case want == "" && (err != nil || look != seqs[i]):
			t.Errorf("result %d: %d, %v", i, look, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(),
			"op 9999 does not exist") || !strings.Contains(err.Error(), "You can cite op")):
			t.Errorf("result %d: %v, want %q", i, err, want)
		}
	}
}

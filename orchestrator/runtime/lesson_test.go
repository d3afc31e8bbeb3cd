package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model/script"
	"anamnesis/orchestrator/taskdir"
)

// TestLessonOfScript: the next task that meets the failure of a script of the world is shown the repair.
func TestLessonOfScript(t *testing.T) {
	first, h := newTask(t, `turns:
  - calls: [{name: WriteFile, arguments: {path: build.sh, content: "cat ledger.cfg || exit 3\n"}}]
  - calls: [{name: Bash, arguments: {command: "sh build.sh"}}]
  - calls: [{name: WriteFile, arguments: {path: ledger.cfg, content: "currency = EUR\n"}}]
  - calls: [{name: Bash, arguments: {command: "sh build.sh"}}]
  - reply: Done.
`, Options{})
	if out, err := first.Run(t.Context()); err != nil || len(out.Learned) != 0 {
		t.Fatalf("Run = %+v, %v", out, err)
	}
	result, shown := meets(t, first, h, "second", "sh build.sh", map[string]string{"build.sh": "cat ledger.cfg || exit 3\n"})
	if shown == nil || len(shown.Cards) != 1 {
		t.Fatalf("result %q, shown %+v", result, shown)
	}
	c, err := cardOf(t, first, shown.Cards[0].ID)
	if err != nil || c.SourceTask != first.ID || c.Provenance.Tainted {
		t.Fatalf("the card is %+v, %v", c, err)
	}
	want := "[lesson " + c.ID + " · VERIFIED; one such failure] cat: ledger.cfg: No such file or directory\nRepaired before by:\n  in ledger.cfg:\n  + currency = EUR"
	if !strings.HasSuffix(result, want) {
		t.Errorf("result %q, want %q at its end", result, want)
	}
}

// meets runs a task of the project of first, in a directory with these files, that runs a command. It returns
// the command's result, and the recall for it, if there was one.
func meets(t *testing.T, first *Task, h taskdir.Home, id, command string, files map[string]string) (result string, shown *op.CardsRecalled) {
	t.Helper()
	m, err := script.Parse([]byte("turns:\n  - calls: [{name: Bash, arguments: {command: \"" + command + "\"}}]\n  - reply: Seen.\n"))
	if err != nil {
		t.Fatal(err)
	}
	opts := Options{Model: m, Tools: first.opts.Tools}
	opts.Callbacks.Op = func(o op.Op) {
		switch b := o.Body.(type) {
		case *op.ToolReturned:
			result = b.Text
		case *op.CardsRecalled:
			if b.Why == "failure" {
				shown = b
			}
		}
	}
	dir := filepath.Join(t.TempDir(), filepath.Base(first.Dir)) // of the same name: the same project
	for name, text := range files {
		writeFile(t, dir, name, text)
	}
	next, err := Create(t.Context(), h, New{
		ID: id, Dir: dir, Request: "Go.", Model: m.Name(), EAS: 8000, Encoding: "cl100k_base", Approval: "auto", System: "system",
	}, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if _, err := next.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return result, shown
}

// TestRepairBecomesCard: a longer change of the project is no card. A task that meets the failure is shown it,
// and then it is one; after that is retired, a task is shown nothing.
func TestRepairBecomesCard(t *testing.T) {
	first, h := newTask(t, `turns:
  - calls: [{name: Bash, arguments: {command: "sh check.sh"}}]
  - calls: [{name: StrReplaceFile, arguments: {path: src/total.sh, edit: {old: "cat rates.txt || exit 3", new: "if test -e rates.txt\nthen cat rates.txt\nelse echo none\nfi"}}}]
  - calls: [{name: Bash, arguments: {command: "sh check.sh"}}]
  - reply: Done.
`, Options{})
	files := map[string]string{"check.sh": "sh src/total.sh\n", "src/total.sh": "cat rates.txt || exit 3\n"}
	for name, text := range files {
		writeFile(t, first.Dir, name, text)
	}
	out, err := first.Run(t.Context())
	if err != nil || len(out.Learned) != 0 {
		t.Fatalf("Run = %+v, %v: a card was written", out, err)
	}
	result, shown := meets(t, first, h, "second", "sh check.sh", files)
	if !strings.Contains(result, "then cat rates.txt") || shown == nil || len(shown.Cards) != 1 {
		t.Fatalf("result %q, shown %+v", result, shown)
	}
	cardsOf(t, h, func(kb *knowledgebase.Store) {
		c, err := kb.Get(shown.Cards[0].ID)
		if err != nil || c.SourceTask != first.ID {
			t.Fatalf("the shown repair is no card of its task: %+v, %v", c, err)
		}
		c.State = card.Retired
		if _, err := kb.Apply(t.Context(), knowledgebase.Change{Cards: []*card.Card{c}, By: knowledgebase.Person}); err != nil {
			t.Fatal(err)
		}
	})
	if result, shown := meets(t, first, h, "third", "sh check.sh", files); strings.Contains(result, "then cat rates.txt") {
		t.Errorf("a retired repair is shown: %q, %+v", result, shown)
	}
}

// TestPathHeld: the call that began a path which failed is held once in the next task
// of the project, in the same state of the files and in no other.
func TestPathHeld(t *testing.T) {
	const begin = "printf 'lmdb' > backend"
	first, h := newTask(t, `turns:
  - calls: [{name: Bash, arguments: {command: "`+begin+`"}}]
  - calls: [{name: Bash, arguments: {command: "cat ledger.cfg"}}]
  - calls: [{name: jump_to_step, arguments: {step_id: 0, reason: lmdb needs a ledger that is not there}}]
  - reply: Done.
`, Options{})
	box, err := first.Sandbox(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !box.Isolates() {
		if os.Getenv("ANAMNESIS_CI") != "" {
			t.Fatal("CI must have a sandbox that keeps commands from the network")
		}
		t.Skip("SKIPPED: no sandbox here that keeps commands from the network: their cards are tainted")
	}
	if out, err := first.Run(t.Context()); err != nil {
		t.Fatalf("Run = %+v, %v", out, err)
	}
	learned(t, first.Home) // one card
	for _, tt := range []struct {
		file string // in the next task's directory; empty: none
		held bool
	}{{"", true}, {"README", false}} {
		m, err := script.Parse([]byte("turns:\n  - calls: [{name: Bash, arguments: {command: \"" + begin + "\"}}]\n  - calls: [{name: Bash, arguments: {command: \"" + begin + "\"}}]\n  - reply: Seen.\n"))
		if err != nil {
			t.Fatal(err)
		}
		var results []string
		opts := Options{Model: m, Tools: first.opts.Tools, Callbacks: Callbacks{Op: func(o op.Op) {
			if b, ok := o.Body.(*op.ToolReturned); ok {
				results = append(results, b.Text)
			}
		}}}
		dir := filepath.Join(t.TempDir(), filepath.Base(first.Dir)) // of the same name: the same project
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if tt.file != "" {
			if err := os.WriteFile(filepath.Join(dir, tt.file), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		next, err := Create(t.Context(), h, New{
			ID: "next" + tt.file, Dir: dir, Request: "Go.", Model: m.Name(), EAS: 8000, Encoding: "cl100k_base", Approval: "auto", System: "system",
		}, opts)
		if err != nil {
			t.Fatal(err)
		}
		_, err = next.Run(t.Context())
		if err := errors.Join(err, next.Close()); err != nil {
			t.Fatal(err)
		}
		if len(results) != 2 || strings.HasPrefix(results[0], "Held, not run: ") != tt.held || strings.HasPrefix(results[1], "Held") {
			t.Errorf("with %q: %q", tt.file, results)
		}
	}
}

package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model/script"
)

// TestLessonOfScript: a repair by a script of the world stands on the same failure of
// the next task, unless the script was not kept from the network; then its card is
// tainted.
func TestLessonOfScript(t *testing.T) {
	first, h := newTask(t, `turns:
  - calls: [{name: WriteFile, arguments: {path: build.sh, content: "cat ledger.cfg || exit 3\n"}}]
  - calls: [{name: Bash, arguments: {command: "sh build.sh"}}]
  - calls: [{name: WriteFile, arguments: {path: ledger.cfg, content: "currency = EUR\n"}}]
  - calls: [{name: Bash, arguments: {command: "sh build.sh"}}]
  - reply: Done.
`, Options{})
	out, err := first.Run(t.Context())
	if err != nil || len(out.Learned) != 1 {
		t.Fatalf("Run = %+v, %v", out, err)
	}
	c, err := cardOf(t, first, out.Learned[0])
	if err != nil {
		t.Fatal(err)
	}
	box, err := first.Sandbox(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if isolated := box.Isolates(); c.Provenance.Tainted == isolated {
		t.Errorf("isolated %v, card tainted %v", isolated, c.Provenance.Tainted)
	}
	m, err := script.Parse([]byte("turns:\n  - calls: [{name: Bash, arguments: {command: \"sh build.sh\"}}]\n  - reply: Seen.\n"))
	if err != nil {
		t.Fatal(err)
	}
	opts := Options{Model: m, Tools: first.opts.Tools}
	var result string
	var shown *op.CardsRecalled
	opts.Event = func(o op.Op) {
		switch b := o.Body.(type) {
		case *op.ToolReturned:
			result = b.Text
		case *op.CardsRecalled:
			shown = b
		}
	}
	dir := filepath.Join(t.TempDir(), filepath.Base(first.Dir)) // of the same name: the same project
	if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, "build.sh"), []byte("cat ledger.cfg || exit 3\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	second, err := Create(t.Context(), h, New{
		ID: "second", Dir: dir, Request: "Go.", Model: m.Name(), EAS: 8000, Encoding: "cl100k_base", Approval: "auto", System: "system",
	}, opts)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if _, err := second.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := "[lesson " + c.ID + " · VERIFIED; one such failure] cat: ledger.cfg: No such file or directory\nRepaired before by:\n  in ledger.cfg:\n  + currency = EUR"
	if strings.HasSuffix(result, want) != box.Isolates() || box.Isolates() && (shown.Why != "failure" || shown.Cards[0].ID != c.ID) {
		t.Errorf("result %q, shown %+v", result, shown)
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
		opts := Options{Model: m, Tools: first.opts.Tools, Event: func(o op.Op) {
			if b, ok := o.Body.(*op.ToolReturned); ok {
				results = append(results, b.Text)
			}
		}}
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

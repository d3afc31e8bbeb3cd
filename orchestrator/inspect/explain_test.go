package inspect

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"anamnesis/orchestrator/optest"
)

// TestExplain holds the explanations of the projection goldens, and that they
// account for every token and every message.
func TestExplain(t *testing.T) {
	files, err := filepath.Glob("../state/testdata/projection/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no streams: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			x := explainer{sources: make(map[uint64]source)}
			for _, o := range optest.Parse(t, string(ar.Files[0].Data)) {
				if err := x.add(o); err != nil {
					t.Fatal(err)
				}
			}
			e := x.explanation()
			tokens := 0
			for _, m := range e.Messages {
				for _, p := range m.Parts {
					tokens += p.Tokens
				}
			}
			if sent := x.state.Context.Chat(); tokens != e.Tokens || len(sent) != len(e.Messages) {
				t.Errorf("%d tokens in %d messages are explained, the context has %d in %d", tokens, len(e.Messages),
					e.Tokens, len(sent))
			}
			data, err := json.MarshalIndent(e, "", " ")
			if err != nil {
				t.Fatal(err)
			}
			optest.Golden(t, filepath.Join("explain", name+".json"), string(data))
		})
	}
}

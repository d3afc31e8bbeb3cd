package proposal

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"anamnesis/anamnesis/attention"
	"anamnesis/opstream/op"
)

var update = flag.Bool("update", false, "write the golden files anew")

func table(t *testing.T, rows string) *attention.Table {
	t.Helper()
	tab, err := attention.LoadTable([]byte("version: 1\n"),
		attention.Overlay{Name: "mine", Data: []byte("version: 1\nrows:\n" + rows)})
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func row(pattern string, eas int, confidence, updated string) string {
	return fmt.Sprintf("  - {pattern: %q, window: 128000, eas: %d, encoding: o200k_base, confidence: %s, source: s%d, updated: %s, by: me}\n", pattern, eas, confidence, eas, updated)
}

// feed makes calls at a length, every nth of which fails.
func feed(h *History, prompt, n, every int, result op.ToolReturned) {
	for i := range n {
		id := fmt.Sprint(prompt, "-", i)
		h.Add(op.Op{Body: &op.ModelReplied{
			Calls: []op.Call{{ID: id, Name: "Bash", Args: fmt.Sprintf(`{"command":"%s"}`, id)}},
			Usage: op.Usage{Prompt: prompt},
		}})
		r := op.ToolReturned{Call: id}
		if every > 0 && i%every == 0 {
			r = result
			r.Call = id
		}
		h.Add(op.Op{Body: &r})
	}
}

func begin(h *History, model string) {
	h.Task()
	h.Add(op.Op{Body: &op.TaskOpened{Model: model}})
}

// TestFromHistory: a clear rise lowers the span to where it begins; anything
// less proposes nothing.
func TestFromHistory(t *testing.T) {
	tab := table(t, row("m", 64000, "low", "2026-01-01"))
	bad := op.ToolReturned{IsError: true}
	for _, tt := range []struct {
		name  string
		model string
		feed  func(h *History)
		want  int
	}{
		{"a rise above 8k", "m", func(h *History) { feed(h, 3000, 60, 20, bad); feed(h, 7000, 60, 20, bad); feed(h, 20000, 90, 2, bad) }, 8000},
		{"no rise", "m", func(h *History) { feed(h, 3000, 100, 5, bad); feed(h, 20000, 100, 5, bad) }, 0},
		{"too few", "m", func(h *History) { feed(h, 3000, 100, 50, bad); feed(h, 20000, 29, 1, bad) }, 0},
		{"a fall", "m", func(h *History) { feed(h, 3000, 100, 2, bad); feed(h, 20000, 100, 20, bad) }, 0},
		{"refused and unknown calls", "m", func(h *History) {
			feed(h, 3000, 100, 0, bad)
			feed(h, 20000, 60, 2, op.ToolReturned{IsError: true, Refused: true})
			feed(h, 21000, 60, 2, op.ToolReturned{IsError: true, Unknown: true})
		}, 0},
		{"beyond the span", "m", func(h *History) { feed(h, 30000, 60, 20, bad); feed(h, 100000, 60, 1, bad) }, 0},
		{"at the span", "m", func(h *History) { feed(h, 30000, 60, 20, bad); feed(h, 64000, 90, 2, bad) }, 32000},
		{"lengths that no provider named", "m",
			func(h *History) { feed(h, 0, 100, 50, bad); feed(h, 20000, 90, 2, bad) }, 0},
		{"another model went on", "script:/x", func(h *History) {
			h.Add(op.Op{Body: &op.TaskResumed{Model: "m"}})
			h.Add(op.Op{Body: &op.TaskResumed{}})
			feed(h, 3000, 60, 20, bad)
			feed(h, 7000, 60, 20, bad)
			feed(h, 20000, 90, 2, bad)
		}, 8000},
		{"a recording", "script:/x", func(h *History) { feed(h, 3000, 60, 20, bad); feed(h, 20000, 90, 2, bad) }, 0},
		{"repeats", "m", func(h *History) {
			feed(h, 3000, 100, 0, bad)
			for range 40 {
				h.Add(op.Op{Body: &op.ModelReplied{
					Calls: []op.Call{{ID: "x", Name: "Bash", Args: `{"command":"again"}`}},
					Usage: op.Usage{Prompt: 20000},
				}})
				h.Add(op.Op{Body: &op.ToolReturned{Call: "x"}})
			}
		}, 16000},
		{"malformed arguments", "m", func(h *History) {
			feed(h, 3000, 100, 0, bad)
			for i := range 40 {
				h.Add(op.Op{Body: &op.ModelReplied{
					Calls: []op.Call{{ID: "x", Name: "Bash", Args: fmt.Sprint("{", i)}},
					Usage: op.Usage{Prompt: 5000},
				}})
				h.Add(op.Op{Body: &op.ToolReturned{Call: "x"}})
			}
		}, 4000},
	} {
		h := new(History)
		begin(h, tt.model)
		tt.feed(h)
		ps := FromHistory(h, tab)
		switch {
		case tt.want == 0 && len(ps) > 0:
			t.Errorf("%s: %+v", tt.name, ps)
		case tt.want > 0 &&
			(len(ps) != 1 || ps[0].Row.EAS > tt.want || ps[0].Row.EAS < tt.want/4 || ps[0].Row.Window != 128000):
			t.Errorf("%s: %+v, want about %d", tt.name, ps, tt.want)
		}
	}
}

func TestFisher(t *testing.T) {
	// The lady tasting tea: all four of four, against chance: 1 in 70.
	if p := fisher(rate{0, 4}, rate{4, 4}); math.Abs(p-1.0/70) > 1e-9 {
		t.Errorf("p = %v", p)
	}
	if p := fisher(rate{5, 10}, rate{5, 10}); p < 0.5 || p > 1 {
		t.Errorf("p = %v", p)
	}
}

// TestDecisions: what was decided is not proposed again, until the evidence
// changes.
func TestDecisions(t *testing.T) {
	tab := table(t, row("m", 64000, "low", "2026-01-01"))
	measured := attention.Row{Pattern: "m", EAS: 8000, Source: "probe: seed 1"}
	ps := FromProbe(measured, tab)
	if len(ps) != 1 || ps[0].Was.EAS != 64000 {
		t.Fatalf("%+v", ps)
	}
	data, err := json.Marshal(Decision{ID: ps[0].ID, Decision: Rejected, At: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	d, err := ParseDecisions(data)
	if err != nil || len(Open(ps, d)) != 0 {
		t.Errorf("%v: %+v", err, Open(ps, d))
	}
	measured.Source = "probe: seed 2"
	if open := Open(FromProbe(measured, tab), d); len(open) != 1 {
		t.Error("new evidence is not proposed")
	}
	measured.EAS = 64000
	if ps := FromProbe(measured, tab); len(ps) != 0 {
		t.Errorf("what holds already is proposed: %+v", ps)
	}
	if d, err := ParseDecisions([]byte("\n{}\n \n{}\n")); err != nil || len(d) != 2 {
		t.Errorf("with blank lines: %+v, %v", d, err)
	}
	if _, err := ParseDecisions([]byte("{}\nx\n")); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("%v", err)
	}
}

package price

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
)

func load(t *testing.T, overlay string) (*Table, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(path, []byte(overlay), 0o644); err != nil {
		t.Fatal(err)
	}
	return Load(path)
}

// TestLookup: the longest pattern wins, an overlay goes before it, a provider's
// prefix does not hide a model, and what is not in the table has no price.
func TestLookup(t *testing.T) {
	table, err := load(t, `version: 1
rows:
  - {pattern: "gpt-4o", input: 1, cached: 1, output: 1, source: me, updated: 2026-01-01}
  - {pattern: "new-*", input: 3, cached: 3, output: 3, source: me, updated: 2026-01-01}
  - {pattern: "new-{tiny,small}*", input: 2, cached: 2, output: 2, source: me, updated: 2026-01-01}
  - {pattern: "new*", input: 4, cached: 4, output: 4, source: me, updated: 2026-01-01}
  - {pattern: "zed*", input: 1, cached: 1, output: 1, source: me, updated: 2026-01-01}
  - {pattern: "zed-1*", input: 2, cached: 2, output: 2, source: me, updated: 2026-01-01}
  - {pattern: "tie-?b*", input: 1, cached: 1, output: 1, source: me, updated: 2026-01-01}
  - {pattern: "tie-a*", input: 2, cached: 2, output: 2, source: me, updated: 2026-01-01}
  - {pattern: "local/*", input: 0, cached: 0, output: 0, source: mine, updated: 2026-01-01}
`)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{
		"gpt-4o": 1, "openai/gpt-4o": 1, "gpt-4o-mini": 0.6, "GPT-5": 10, "gpt-5-mini-2025-08-07": 2, "openai/gpt-5-nano": 0.4,
		"gpt-4.1-mini": 1.6, "gpt-4.1": 8, "claude-opus-4-1-20250805": 75, "claude-opus-4-5": 25, "anthropic/claude-opus-4.8": 25,
		"claude-sonnet-4-5-20250929": 15, "gemini-2.5-flash-lite": 0.4, "gemini-2.5-flash": 2.5, "local/llama": 0,
		"zed-1x": 2, "tie-ab": 1, "tie-ac": 2, "/gpt-4o": 1, "new-small-2": 2, "new-large": 3, "newer": 4, "gpt-5.5": -1, "gpt-4o-audio-preview": -1, "llama3": -1, "": -1, "gpt-6": -1, "o3-pro": -1, "gpt-5-pro": -1, "claude-opus-5-5": -1,
	} {
		p, ok := table.Lookup(name)
		if ok != (want >= 0) || ok && p.Output != want {
			t.Errorf("%q: %+v, %v; want %v", name, p, ok, want)
		}
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.yaml")); err != nil {
		t.Error(err)
	}
}

// TestFaults: an overlay that cannot be read is an error at its row.
func TestFaults(t *testing.T) {
	const head = "version: 1\nrows:\n  - "
	for text, want := range map[string]string{
		"version: 2\nrows: []\n": "prices.yaml:1: version 2",
		"rows: []\n":             "prices.yaml:1: version 0",
		"version: 1\nrow: []\n":  "row",
		head +
			`{pattern: "a*", input: 1, output: 1, source: s, updated: 2026-01-01}`: "prices.yaml:3: a*: cached",
		head +
			`{pattern: "a*", input: -1, cached: 0, output: 1, source: s, updated: 2026-01-01}`: "prices.yaml:3: a*: input",
		head +
			`{pattern: "a*", input: .nan, cached: 0, output: 1, source: s, updated: 2026-01-01}`: "prices.yaml:3: a*: input",
		head +
			`{pattern: "[", input: 1, cached: 0, output: 1, source: s, updated: 2026-01-01}`: "prices.yaml:3: pattern",
		head +
			`{pattern: "a*", input: 1, cached: 0, output: 1, updated: 2026-01-01}`: "prices.yaml:3: a*: source",
		head +
			`{pattern: "a*", input: 1, cached: 0, output: 1, source: s, updated: today}`: "prices.yaml:3: a*: updated",
		head +
			`{pattern: "a*", input: 1, cached: 0, output: 1, source: s, updated: 2026-01-01, currency: EUR}`: "prices.yaml:3:",
	} {
		if _, err := load(t, text); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v; want %s", text, err, want)
		}
	}
}

// TestTableLimits: how many rows and which prices a table may have, and that it may be empty.
func TestTableLimits(t *testing.T) {
	row := func(price string) string {
		return fmt.Sprintf(
			"  - {pattern: \"a*\", input: %s, cached: 0, output: 1, source: s, updated: 2026-01-01}\n", price)
	}
	rows := func(n int) string { return "version: 1\nrows:\n" + strings.Repeat(row("1"), n) }
	for _, tt := range []struct {
		name, text, want string
	}{
		{"an empty file", "", ""},
		{"blanks", " \n", ""},
		{"as many rows as are taken", rows(maxRows), ""},
		{"one more", rows(maxRows + 1), "rows, at most"},
		{"the highest price", "version: 1\nrows:\n" + row(fmt.Sprint(maxPrice)), ""},
		{"a higher one", "version: 1\nrows:\n" + row(fmt.Sprint(maxPrice+1)), "a*: input"},
	} {
		if _, err := load(t, tt.text); (err == nil) != (tt.want == "") ||
			err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestCost(t *testing.T) {
	p := Price{Input: 2, Cached: 0.5, Output: 8}
	for want, u := range map[float64]op.Usage{
		2 + 8:       {Prompt: 1_000_000, Completion: 1_000_000, Reasoning: 500_000},
		1 + 0.25:    {Prompt: 1_000_000, Cached: 500_000},
		0.5:         {Prompt: 1_000_000, Cached: 2_000_000}, // more than there was: all of it
		0:           {},
		16.0 / 1000: {Completion: 2_000},
	} {
		if got := p.Cost(u); math.Abs(got-want) > 1e-12 {
			t.Errorf("%+v costs %v, want %v", u, got, want)
		}
	}
	if got := p.Most(1_000_000); got != 8 {
		t.Errorf("at most %v", got)
	}
}

type fixed struct {
	err    error
	priced int
}

func (fixed) Name() string { return "fixed" }
func (f fixed) Ask(context.Context, model.Request, func(model.Delta)) (model.Reply, error) {
	return model.Reply{Usage: op.Usage{Prompt: 300, Completion: 200, Priced: f.priced}}, f.err
}

func TestModel(t *testing.T) {
	m := Model(fixed{}, Price{Input: 1, Output: 10})
	r, err := m.Ask(t.Context(), model.Request{}, nil)
	if err != nil || r.Usage.Priced != 500 || math.Abs(r.Usage.USD-0.0023) > 1e-12 || m.Name() != "fixed" {
		t.Errorf("%+v, %v", r, err)
	}
	for _, m := range []fixed{{priced: 7}, {err: errors.New("busy")}} {
		if r, err := Model(m, Price{Input: 1}).Ask(t.Context(), model.Request{}, nil); r.Usage.USD != 0 ||
			r.Usage.Priced != m.priced || err != m.err {
			t.Errorf("%+v: %+v, %v", m, r, err)
		}
	}
}

// FuzzTable: whatever an overlay holds, it is read or refused in one line.
func FuzzTable(f *testing.F) {
	f.Add([]byte(
		"version: 1\nrows:\n  - {pattern: \"a*\", input: 1, cached: 0, output: 1, source: s, updated: 2026-01-01}\n"))
	f.Add([]byte("version: 1\nrows: [*x]\n"))
	f.Add(builtin)
	f.Fuzz(func(t *testing.T, data []byte) {
		rows, err := parse("f.yaml", data)
		if err != nil {
			if strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "f.yaml:") {
				t.Errorf("%q", err)
			}
			return
		}
		if p, ok := (&Table{layers: [][]row{rows}}).Lookup("a/b"); ok && !(p.Input >= 0) {
			t.Errorf("%+v", p)
		}
	})
}

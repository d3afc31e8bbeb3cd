package price

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"go.yaml.in/yaml/v4"

	"anamnesis/knowledge_base/userfile"
	"anamnesis/opstream/durable"
)

//go:embed prices.yaml
var builtin []byte

const (
	maxTableBytes = 1 << 20
	maxRows       = 1_000
	maxPrice      = 1e6 // dollars for a million tokens
	tableVersion  = 1
)

type row struct {
	Pattern string   `yaml:"pattern"`
	Input   *float64 `yaml:"input"`
	Cached  *float64 `yaml:"cached"`
	Output  *float64 `yaml:"output"`
	Source  string   `yaml:"source"`
	Updated string   `yaml:"updated"`
}

// Table finds the price of a model by its name. It is constant.
type Table struct {
	layers [][]row // the overlay first
}

// Load reads the built-in table and an overlay, a file that need not exist. An error names the
// file and the row.
func Load(overlay string) (*Table, error) {
	own, err := parse("prices.yaml", builtin)
	if err != nil {
		return nil, err
	}
	data, err := durable.ReadFile(overlay, maxTableBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return &Table{layers: [][]row{own}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read prices: %w", err)
	}
	rows, err := parse(overlay, data)
	if err != nil {
		return nil, err
	}
	return &Table{layers: [][]row{rows, own}}, nil
}

// parse reads a table; an empty file has no rows.
func parse(file string, data []byte) ([]row, error) {
	if len(strings.TrimSpace(string(data))) == 0 {
		return nil, nil
	}
	var doc struct {
		Version int         `yaml:"version"`
		Rows    []yaml.Node `yaml:"rows"`
	}
	fail := func(line int, format string, args ...any) ([]row, error) {
		return nil, fmt.Errorf("%s:%d: %s", file, line, fmt.Sprintf(format, args...))
	}
	if err := userfile.Load(file, data, &doc, "the keys are version and rows, a list"); err != nil {
		return nil, err
	}
	if doc.Version != tableVersion {
		return fail(1, "version %d: write version: %d", doc.Version, tableVersion)
	}
	if len(doc.Rows) > maxRows {
		return fail(1, "%d rows, at most %d are taken", len(doc.Rows), maxRows)
	}
	var rows []row
	for i := range doc.Rows {
		n := &doc.Rows[i]
		var r row
		if err := n.Load(&r, yaml.WithKnownFields(), yaml.WithUniqueKeys()); err != nil {
			line, cause := userfile.YAML(err)
			return fail(max(line, n.Line), "%s; %s", cause,
				"a row has pattern, input, cached, output, source and updated")
		}
		if err := r.check(); err != nil {
			return fail(n.Line, "%v", err)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func (r *row) check() error {
	if r.Pattern == "" || !doublestar.ValidatePattern(r.Pattern) {
		return fmt.Errorf("pattern %q: write it like \"gpt-4o*\"", r.Pattern)
	}
	for name, v := range map[string]*float64{"input": r.Input, "cached": r.Cached, "output": r.Output} {
		if v == nil || math.IsNaN(*v) || *v < 0 || *v > maxPrice {
			return fmt.Errorf("%s: %s: want US dollars for a million tokens, from 0", r.Pattern, name)
		}
	}
	if strings.TrimSpace(r.Source) == "" {
		return fmt.Errorf("%s: source is missing: name the origin of the numbers", r.Pattern)
	}
	if _, err := time.Parse(time.DateOnly, r.Updated); err != nil {
		return fmt.Errorf("%s: updated %q: write it as yyyy-mm-dd", r.Pattern, r.Updated)
	}
	return nil
}

func (r *row) literal() int {
	n := 0
	for _, c := range r.Pattern {
		if !strings.ContainsRune("*?{},[]", c) {
			n++
		}
	}
	return n
}

// Lookup returns the price of a model, by its whole name or by what follows its last slash;
// false if unknown.
func (t *Table) Lookup(name string) (Price, bool) {
	name = strings.ToLower(name)
	names := []string{name}
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		names = append(names, name[i+1:])
	}
	for _, layer := range t.layers {
		for _, name := range names {
			var best *row
			for i := range layer {
				r := &layer[i]
				ok, err := doublestar.Match(strings.ToLower(r.Pattern), name)
				// The pattern with the most literal characters is the most specific one.
				if err == nil && ok && (best == nil || r.literal() > best.literal()) {
					best = r
				}
			}
			if best != nil {
				return Price{*best.Input, *best.Cached, *best.Output}, true
			}
		}
	}
	return Price{}, false
}

// Package attention is the table of effective attention spans: how many tokens a
// model really attends to, and where that number comes from.
package attention

import (
	"fmt"
	"path"

	"anamnesis/anamnesis/tokens"
)

// UnknownEAS is the effective attention span assumed for a model that no row
// of the table covers, in tokens.
const UnknownEAS = 8000

// Confidence says how much a row's number is to be trusted.
type Confidence string

// The confidences, best first.
const (
	ConfidenceHigh   Confidence = "high"   // a published benchmark of this model, its own rule
	ConfidenceMedium Confidence = "medium" // benchmarks that disagree, or few items
	ConfidenceLow    Confidence = "low"    // one weak source, or taken from a sibling
	ConfidenceNone   Confidence = "none"   // a default, not measured
)

// Row is one line of the table.
type Row struct {
	Pattern    string     `json:"pattern" yaml:"pattern"`       // model names, see LoadTable
	Window     int        `json:"window" yaml:"window"`         // advertised context window, tokens
	EAS        int        `json:"eas" yaml:"eas"`               // effective attention span, tokens
	Encoding   string     `json:"encoding" yaml:"encoding"`     // one of tokens.Encodings
	Confidence Confidence `json:"confidence" yaml:"confidence"` //
	Source     string     `json:"source" yaml:"source"`         // where EAS comes from
	Updated    string     `json:"updated" yaml:"updated"`       // yyyy-mm-dd
	By         string     `json:"by" yaml:"by"`                 // who or what set it
	Origin     string     `json:"origin" yaml:"-"`              // the file that has the row
	Line       int        `json:"line" yaml:"-"`                // and its line there

	globs   []glob
	builtin bool // of the built-in table
}

// EAS is what the table says about one model.
type EAS struct {
	Model      string     `json:"model"`      // as asked
	Pattern    string     `json:"pattern"`    // the row's; empty when unknown
	Advertised int        `json:"window"`     // advertised window, tokens; 0 when unknown
	EAS        int        `json:"eas"`        // effective attention span, tokens; always positive
	Encoding   string     `json:"encoding"`   // tokenizer to count in
	Confidence Confidence `json:"confidence"` //
	Source     string     `json:"source"`     // where EAS comes from, for people
	Updated    string     `json:"updated,omitempty"`
	By         string     `json:"by,omitempty"`
	Origin     string     `json:"origin,omitempty"` // the file that has the row
	Known      bool       `json:"known"`            // a row covers the model
	// Ignored is the larger EAS of a row that may only lower it; 0: there is none.
	Ignored int `json:"ignored,omitempty"`
}

// Table resolves model names to effective attention spans. It does not change
// after LoadTable and is safe for concurrent use.
type Table struct {
	rows  []Row
	limit *Table // nothing is larger than what it says; may be nil
}

// Rows returns the rows in effect, those of the base first, each overlay's own
// after them.
func (t *Table) Rows() []Row {
	rows := make([]Row, len(t.rows))
	copy(rows, t.rows)
	return rows
}

// Lookup resolves a model name. Letter case does not matter, and neither do
// provider prefixes ("openrouter/openai/gpt-4o", "us.anthropic.claude-…"),
// tags ("qwen3:32b", "kimi-k2:free") and the dates of snapshots
// ("gpt-4o-2024-08-06", "grok-4-0709"), unless a pattern names them. Of
// several rows that match, the one whose pattern has the most literal
// characters wins, and of equals the later, so that overlays win over the
// base. A newer version that no row covers takes the row of its newest sibling or
// the default of its vendor's newest models, and Source says so. Any other model
// gets UnknownEAS, with Known false.
func (t *Table) Lookup(model string) EAS {
	s := t.lookup(model)
	if t.limit == nil {
		return s
	}
	most := t.limit.Lookup(model)
	if most.Advertised == 0 || 0 < s.Advertised && s.Advertised < most.Advertised {
		most.Advertised = s.Advertised
	}
	if s.EAS < most.EAS {
		most.Pattern, most.EAS, most.Confidence = s.Pattern, s.EAS, s.Confidence
		most.Source, most.Updated, most.By, most.Origin = s.Source, s.Updated, s.By, s.Origin
	} else if s.EAS > most.EAS {
		most.Ignored = s.EAS
	}
	return most
}

func (t *Table) lookup(model string) EAS {
	names := nameForms(model)
	best, bestWeight, olderWeight := -1, -1, -1
	for i := range t.rows {
		for _, g := range t.rows[i].globs {
			covers, older := t.rows[i].covers(g, names)
			if covers && g.weight >= bestWeight { // the rows of overlays come later, and win
				best, bestWeight = i, g.weight
			}
			if older {
				olderWeight = max(olderWeight, g.weight)
			}
		}
	}
	// A less specific row of the table measured another model: "gpt-4o*" says nothing of gpt-4o-mini-2.
	if best < 0 || t.rows[best].builtin && bestWeight < olderWeight {
		if r, why := t.sibling(names); r != nil {
			return r.fromSibling(model, why)
		}
	}
	if best < 0 {
		return EAS{
			Model: model, EAS: UnknownEAS, Encoding: tokens.EncodingFor(model), Confidence: ConfidenceNone,
			Source: fmt.Sprintf("unknown model: default of %d tokens", UnknownEAS),
		}
	}
	return t.rows[best].easFor(model)
}

// covers reports whether a pattern of the row matches one of a model's names, and whether
// it matches one whose version is newer than what the row measured.
func (r *Row) covers(g glob, names []string) (covers, older bool) {
	for _, name := range names {
		if ok, _ := path.Match(g.pattern, name); ok { // compileGlobs admits no bad pattern
			before := r.measuredBefore(g, name)
			covers, older = covers || !before, older || before
		}
	}
	return covers, older
}

// easFor returns what the row says about a model.
func (r *Row) easFor(model string) EAS {
	return EAS{
		Model: model, Pattern: r.Pattern, Advertised: r.Window, EAS: r.EAS, Encoding: r.Encoding, Known: true,
		Confidence: r.Confidence, Source: r.Source, Updated: r.Updated, By: r.By, Origin: r.Origin,
	}
}

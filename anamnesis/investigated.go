package anamnesis

import (
	"encoding/json"
	"fmt"
	"slices"

	"anamnesis/anamnesis/note"
	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
)

// investigation holds the arguments of a call of the tool that records what was looked up.
type investigation struct {
	Subject  string   `json:"subject"`
	Findings string   `json:"findings"`
	Cites    []uint64 `json:"cites"`
}

// investigationOf decodes a call's arguments. It returns false for a call of another tool.
func investigationOf(rec *record) (investigation, bool) {
	var v investigation
	ok := op.Acts(rec.tool) == op.Investigates && json.Unmarshal([]byte(rec.args), &v) == nil
	return v, ok
}

// investigations returns what was looked up on the path, the newest first. A jump makes none of it wrong:
// it is about things outside the files.
func investigations(recs []*record) []note.Statement {
	var out []note.Statement
	for _, rec := range slices.Backward(recs) {
		v, ok := investigationOf(rec)
		if !ok || !rec.ok() || len(out) == maxExtracted {
			continue
		}
		text := fmt.Sprintf("investigated %s: %s", quote.Squash(v.Subject), quote.Squash(v.Findings))
		out = append(out, note.Statement{Text: quote.ClipMarked(text, note.MaxStatementRunes), Ops: []uint64{rec.end}})
	}
	return out
}

// citesTainted reports whether an investigation rests on text from outside, or
// on operations the span does not hold.
func (c *recorder) citesTainted(rec *record) bool {
	v, ok := investigationOf(rec)
	return ok && slices.ContainsFunc(v.Cites, func(seq uint64) bool {
		i := slices.IndexFunc(c.out, func(r *record) bool { return r.seq <= seq && seq <= r.end })
		return i < 0 || c.out[i].tainted
	})
}

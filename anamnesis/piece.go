package anamnesis

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"anamnesis/anamnesis/note"
	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
)

// Limits of what a model is asked to read.
const (
	// MaxPieces is how many pieces a span is shortened into at most, whatever
	// its size.
	MaxPieces = 8
	// minPieceTokens is the smallest piece worth asking about.
	minPieceTokens = 200
	// minRecordTokens is what the least important record may shrink to before
	// it becomes a pointer.
	minRecordTokens = 48
)

// piece is a part of the evidence, rendered.
type piece struct {
	text    string
	recs    []*record
	tainted bool // it shows text from outside the world
}

// pieces ranks the records, shortens them to what MaxPieces pieces of
// pieceTokens hold together, and packs them in the order in which they
// happened. Records without room are left out; the last piece says which.
func pieces(recs []*record, pieceTokens, most int, count func(string) int) (out []piece, omitted []uint64) {
	budget := pieceTokens * most * 9 / 10 // a record that does not fit into the rest of a piece begins the next
	var shown map[*record]rendered
	last := 0
	for _, size := range []int{1600, 800, 400, 200, 100, minRecordTokens} {
		size = min(size, pieceTokens/2)
		if size == last {
			continue
		}
		last = size
		enough := budget
		if size <= minRecordTokens {
			enough = math.MaxInt // no smaller size follows, so records that do not fit are left out
		}
		var fits bool
		if shown, fits = renderAll(recs, size, enough, count); fits {
			break
		}
	}
	shown, omitted = dropUnimportant(recs, shown, budget)
	return pack(recs, shown, pieceTokens, most, omitted)
}

// rendered is a record's text and what it takes.
type rendered struct {
	text   string
	tokens int
}

// renderAll renders the records at a size, and reports whether they take at most budget tokens. It stops
// at the first record beyond: counting the tokens of a whole long span at each size would take seconds.
func renderAll(recs []*record, size, budget int, count func(string) int) (texts map[*record]rendered, fits bool) {
	texts = make(map[*record]rendered, len(recs))
	for _, rec := range recs {
		text := rec.render(size, count)
		r := rendered{text, count(text)}
		texts[rec] = r
		if budget -= r.tokens; budget < 0 {
			return texts, false
		}
	}
	return texts, true
}

// dropUnimportant leaves out the least important records until the rest fits.
func dropUnimportant(recs []*record, texts map[*record]rendered, budget int) (
	kept map[*record]rendered, omitted []uint64,
) {
	byWeight := slices.Clone(recs)
	slices.SortStableFunc(byWeight, func(a, b *record) int { return cmp.Compare(b.weight(), a.weight()) })
	kept = make(map[*record]rendered, len(texts))
	for _, rec := range byWeight {
		r := texts[rec]
		if r.tokens > budget {
			omitted = append(omitted, rec.ops()...)
			continue
		}
		budget -= r.tokens
		kept[rec] = r
	}
	return kept, note.SortedOps(omitted)
}

// pack fills pieces in the order of the records.
func pack(recs []*record, shown map[*record]rendered, pieceTokens, most int, omitted []uint64) ([]piece, []uint64) {
	var out []piece
	used := 0
	for _, rec := range recs {
		r, ok := shown[rec]
		if !ok {
			continue
		}
		n := r.tokens + 1
		if n > pieceTokens {
			omitted = append(omitted, rec.ops()...)
			continue
		}
		if len(out) == 0 || used+n > pieceTokens {
			if len(out) == most {
				omitted = append(omitted, rec.ops()...)
				continue
			}
			out = append(out, piece{})
			used = 0
		}
		p := &out[len(out)-1]
		p.text += r.text
		p.recs = append(p.recs, rec)
		p.tainted = p.tainted || rec.tainted
		used += n
	}
	return out, note.SortedOps(omitted)
}

// weight ranks records by how much a lesson can rest on them.
func (r *record) weight() int {
	switch {
	case r.kind == recSaid:
		return 9
	case r.kind == recBlock:
		return 8
	case r.failed():
		return 7
	case r.unknown || r.refused:
		return 6
	case r.kind == recReply, r.kind == recLeft:
		return 5
	case r.kind == recFault:
		return 4
	case r.kind == recCall && len(r.writes) > 0:
		return 4
	case r.kind == recCall && op.Acts(r.tool) == op.RunsShell:
		return 3
	}
	return 2
}

// textHeads say what the text of a record is that is no call.
var textHeads = map[recordKind]string{
	recReply: "the agent said", recSaid: "a user said", recNote: "the program noted",
	recFault: "a model request failed", recBlock: "notes of an earlier jump", recLeft: "the agent left this path",
}

// render writes the record as quoted evidence of at most about size tokens:
// each line begins with "| ", so that nothing inside can end the quotation.
func (r *record) render(size int, count func(string) int) string {
	ops := op.Range{First: r.seq, Last: max(r.seq, r.end)}
	body := size * 3 / 4
	var b strings.Builder
	if r.kind != recCall {
		quoteLines(&b, fmt.Sprintf("op %s, step %d: %s", ops, r.step, textHeads[r.kind]))
		quoteLines(&b, quote.HeadTail(r.text, body, count))
		return b.String()
	}
	quoteLines(&b, fmt.Sprintf("ops %s, step %d: call %s, %s; ran %s", ops, r.step,
		quote.Clip(quote.Squash(r.tool), maxArgRunes), r.outcome(), quote.Squash(r.state)))
	quoteLines(&b, "arguments: "+quote.HeadTail(op.CanonicalArgs(r.args), body/3, count))
	if r.quoted != "" {
		quoteLines(&b, "error: "+r.quoted)
	}
	if outs := r.outputs(); len(outs) > 0 {
		share := body * 2 / 3 / len(outs)
		for _, o := range outs {
			quoteLines(&b, "output:\n"+quote.HeadTail(o, share, count))
		}
	}
	if r.nChange > 0 {
		quoteLines(&b, fmt.Sprintf("the step changed %d paths: %s", r.nChange, pathList(r.changed, maxPathsNamed)))
	}
	return b.String()
}

func (r *record) outcome() string {
	switch {
	case r.refused:
		return "refused, did not run"
	case r.unknown:
		return "outcome unknown"
	case r.exit != nil:
		return fmt.Sprintf("exit code %d", *r.exit)
	case r.isError:
		return "error"
	}
	return "ok"
}

// maxIndent is how much of a line's indentation evidence keeps.
const maxIndent = 32

// quoteLines writes text with "| " before each line, without control characters.
func quoteLines(b *strings.Builder, text string) {
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		b.WriteString("| ")
		b.WriteString(strings.Repeat(" ", min(len(line)-len(strings.TrimLeft(line, " \t")), maxIndent)))
		b.WriteString(quote.Squash(line))
		b.WriteByte('\n')
	}
}

package anamnesis

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"anamnesis/anamnesis/consult"
	"anamnesis/anamnesis/note"
	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
)

//go:embed prompt/system.md
var systemPrompt string

//go:embed prompt/occasion_jump.md
var occasionJump string

//go:embed prompt/occasion_window.md
var occasionWindow string

//go:embed prompt/occasion_end.md
var occasionEnd string

//go:embed prompt/occasion_no_cards.md
var occasionNoCards string

//go:embed prompt/situation_end.md
var situationEnd string

//go:embed prompt/situation_jump.md
var situationJump string

//go:embed prompt/situation_window.md
var situationWindow string

//go:embed prompt/schema.json
var schemaText string

//go:embed prompt/piece.md
var piecePrompt string

//go:embed prompt/repair.md
var repairPrompt string

// maxRepairQuoteRunes is how much of an unusable reply the repair try shows.
const maxRepairQuoteRunes = 200

// maxReasonRunes is how much of the reason for going back a question quotes.
const maxReasonRunes = 200

// systemText returns the system prompt for the occasion of a pass.
func systemText(r *Request) string {
	occasion := occasionJump
	switch {
	case r.Over:
		occasion = occasionEnd
	case r.Standing:
		occasion = occasionWindow
	}
	if r.makesRoom() {
		occasion += occasionNoCards
	}
	return consult.Fill(systemPrompt, "occasion", strings.TrimSpace(occasion), "schema", strings.TrimSpace(schemaText))
}

// pieceText returns the question about one piece.
func pieceText(r *Request, evidence string, part, parts int) string {
	reason := cmp.Or(quote.Shorten(r.Reason, maxReasonRunes), "none given")
	situation := situationJump
	switch {
	case r.Over:
		situation = situationEnd
	case r.Standing:
		situation = situationWindow
	}
	ranges := r.Ranges
	for _, p := range r.Pairs {
		ranges = append(slices.Clip(ranges), op.Range{First: p.failed.seq, Last: p.fixed.end})
	}
	return consult.Fill(piecePrompt,
		"situation", consult.Fill(situation, "from", itoa(r.From), "to", itoa(r.To), "attempt", itoa(max(r.Attempt, 1)),
			"reason", reason, "left", r.span().LeftBefore()),
		"task", quote.Shorten(r.Task, note.MaxTaskRunes), "part", itoa(part), "parts", itoa(parts),
		"ops", note.RangeList(ranges, note.MaxRangesNamed), "evidence", strings.TrimRight(evidence, "\n"))
}

// omittedLine names the operations that no piece shows.
func omittedLine(ops []uint64) string {
	if len(ops) == 0 {
		return ""
	}
	return fmt.Sprintf("Left out to make room: %d operations (%s).\n", len(ops), note.OpList(ops))
}

func repairText(question, reply string, problem error) string {
	reply = quote.Shorten(quote.Clip(reply, 4*maxRepairQuoteRunes), maxRepairQuoteRunes)
	return consult.Fill(repairPrompt, "question", question, "problem", problem.Error(), "reply", reply)
}

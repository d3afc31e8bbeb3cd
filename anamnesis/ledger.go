package anamnesis

import (
	"fmt"
	"slices"

	"anamnesis/anamnesis/note"
)

// ledgerShare is the part of the EAS that the list of left paths may take, as one over it.
const ledgerShare = 8

// ledger lists the paths that the task has left, oldest first: those of jumps in the span, and those that the
// blocks in it list. So none of them goes when the steps that tell of it leave the context.
func ledger(recs []*record) (lines []string) {
	for _, rec := range recs {
		switch rec.kind {
		case recBlock:
			for _, line := range note.ParseList(rec.text, note.LedgerTitle) {
				if !slices.Contains(lines, line) {
					lines = append(lines, line)
				}
			}
		case recLeft:
			lines = append(lines, fmt.Sprintf("op %d, back to step %d: %s", rec.seq, rec.to, rec.text))
		}
	}
	return lines
}

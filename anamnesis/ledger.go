package anamnesis

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"anamnesis/anamnesis/note"
	"anamnesis/opstream/op"
)

// ledgerShare is the part of the EAS that the list of left paths may take, as one over it.
const ledgerShare = 8

// maxStateFiles is how many edited files a line of the ledger names.
const maxStateFiles = 2

// ledger lists the paths that the task has left, oldest first: those of jumps in the span, and those that the
// blocks in it list. So none of them goes when the steps that tell of it leave the context. A line names the state
// of the files: the step that the path began at, and what it had edited.
func ledger(recs []*record) (lines []note.Left) {
	var edited []string
	for i, rec := range recs {
		covers := func(r op.Range) bool { return r.Contains(rec.seq) }
		listed := slices.ContainsFunc(recs[i+1:], func(later *record) bool {
			return later.kind == recBlock && slices.ContainsFunc(later.replaces, covers) &&
				note.ParseLedger(later.text) != nil // versions before the ledger wrote blocks without
		})
		switch {
		case listed: // in the words of the later block
		case rec.kind == recCall:
			for _, f := range slices.Concat(rec.writes, rec.changed) {
				edited = append(edited, path.Base(f))
			}
		case rec.kind == recBlock:
			lines = append(lines, note.ParseLedger(rec.text)...)
			for _, line := range note.ParseList(rec.text, note.UndoneTitle) {
				file, _, _ := strings.Cut(line, ": ")
				edited = append(edited, path.Base(file))
			}
		case rec.kind == recLeft:
			state := ""
			slices.Sort(edited)
			if edited = slices.Compact(edited); len(edited) > 0 {
				state = " (" + pathList(edited, maxStateFiles)
				if more := len(edited) - maxStateFiles; more > 0 {
					state += fmt.Sprintf(" and %d more", more)
				}
				state += " edited)"
			}
			text := fmt.Sprintf("back to step %d%s: %s", rec.to, state, rec.text)
			lines = append(lines, note.Left{First: rec.seq, Last: rec.seq, Text: text})
			edited = nil
		}
	}
	// A block and the operations that it stands for may both be in the span; of two lines of one jump, the one that
	// stands for more counts.
	slices.SortStableFunc(lines, func(a, b note.Left) int {
		return cmp.Or(cmp.Compare(a.First, b.First), b.More-a.More)
	})
	return slices.CompactFunc(lines, func(a, b note.Left) bool {
		return a.First == b.First && (a.First > 0 || a.Text == b.Text)
	})
}

package anamnesis

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"anamnesis/anamnesis/note"
	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
)

// Limits of the further lists in the block of steps whose work remains.
const (
	maxPlaces      = 6   // steps to go back to
	maxPlaceRunes  = 120 // of what was said at one
	maxEffects     = 6   // commands that reached beyond the directory
	maxHints       = 4   // lines of advice that commands printed
	maxLeftRunes   = 160 // of the reason for leaving a path
	maxLikeSuccess = 3   // successes of one shape before the others
)

// places lists steps that the model can go back to, each with what it said next: without its words, which
// leave the context, it could not tell which decision a step stands for. Entries of earlier blocks stay
// while their step is on the current path. Steps to which the task has gone back before come first, then
// the latest.
func places(r *Request, recs []*record) []note.Statement {
	type place struct {
		step int
		said note.Statement
	}
	var all []place
	add := func(step int, text string, ops []uint64) {
		s := note.Statement{Text: fmt.Sprintf("step %d: %s", step, text), Ops: ops}
		if !slices.ContainsFunc(all, func(o place) bool { return o.said.Text == s.Text }) {
			all = append(all, place{step: step, said: s})
		}
	}
	back := map[int]bool{}
	for _, rec := range recs {
		switch rec.kind {
		case recBlock: // its replies have left the context
			for _, p := range note.ParseList(rec.text, note.PlacesTitle) {
				var step int
				_, err := fmt.Sscanf(p, "step %d:", &step)
				if _, live := r.Live[step]; err == nil && (live || step == 0) {
					_, text, _ := strings.Cut(p, ": ")
					add(step, text, nil)
				}
			}
		case recReply:
			if from, ok := r.Live[rec.step]; ok {
				add(from, quote.ClipMarked(firstLine([]string{rec.text}), maxPlaceRunes), []uint64{rec.seq})
			}
		case recLeft:
			back[rec.to] = true
		}
	}
	slices.SortStableFunc(all, func(a, b place) int { return b.step - a.step })
	var out []note.Statement
	for _, again := range []bool{true, false} {
		for _, p := range all {
			if back[p.step] == again {
				out = append(out, p.said)
			}
		}
	}
	return out[:min(len(out), maxPlaces)]
}

// effects lists the commands that no jump undoes, those of earlier blocks included.
func effects(r *Request, recs []*record) []note.Statement {
	var all []string
	for _, rec := range recs {
		if rec.kind == recBlock {
			all = append(all, note.ParseList(rec.text, note.EffectsTitle)...)
		}
	}
	var out []note.Statement
	command := func(s string) string {
		_, c, _ := strings.Cut(s, ": ")
		return c
	}
	for _, e := range append(all, r.Effects...) {
		if !slices.ContainsFunc(out, func(o note.Statement) bool { return command(o.Text) == command(e) }) {
			out = append(out, note.Statement{Text: e})
		}
	}
	return out[max(0, len(out)-maxEffects):]
}

// hint matches a line with which a command advises its user.
var hint = regexp.MustCompile(`(?im)^\W*(?:hint|help|tip|advice|suggestion): (\S.*)$`)

// hints quotes the advice that commands printed, the latest last.
func hints(recs []*record) []note.Statement {
	var out []note.Statement
	for _, rec := range recs {
		if !rec.ran() || op.Acts(rec.tool) != op.RunsShell {
			continue
		}
		for _, text := range rec.outputs() {
			for _, m := range hint.FindAllString(text, maxHints) {
				said := rec.action() + " printed: " + quote.Clip(quote.Squash(m), note.MaxErrorRunes)
				out = append(out, note.Statement{Text: said, Ops: []uint64{rec.end}})
			}
		}
	}
	return out[max(0, len(out)-maxHints):]
}

// digits matches what differs between commands of one shape.
var digits = regexp.MustCompile(`\d+`)

// shape is equal for calls that differ only in numbers.
func (r *record) shape() string { return digits.ReplaceAllString(r.key(), "#") }

// setReasons adds the reason for a jump to the failure that it left: the last failure before the jump, or
// the first path of the block that the jump made. The block of a compaction counts only if no failure
// before it is in the span.
func setReasons(recs []*record, reason string) {
	reason = quote.Shorten(reason, maxLeftRunes)
	var ended *record
	for _, rec := range slices.Backward(recs) {
		if rec.kind == recLeft { // of the jump before
			break
		}
		if rec.kind == recBlock && ended == nil {
			ended = rec
		}
		if rec.kind == recBlock && !rec.standing || rec.failed() && rec.noLesson == "" {
			ended = rec
			break
		}
	}
	if ended != nil && ended.left == "" {
		ended.left = reason
	}
}

package anamnesis

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"anamnesis/anamnesis/note"
	"anamnesis/anamnesis/quote"
	"anamnesis/anamnesis/shell"
	"anamnesis/opstream/op"
)

// edits lists the files that calls changed, each with its diff in short or the command that changed it.
func edits(r *Request, recs []*record) (out []note.Statement) {
	runes := note.BlockCap(r.EAS) / 2 // of one file: some eighth of the block
	diffs, ops := make(map[string][]string), make(map[string][]uint64)
	var order []string
	for _, rec := range recs {
		files, diff := rec.writes, []string{"by " + quote.Shorten(callSummary(rec.args), runes)}
		switch {
		case len(rec.silentChanges()) > 0:
			files = []string{pathList(rec.silentChanges(), maxStatePaths)}
		case len(files) == 0 || !rec.ok():
			continue
		// The arguments of a call that writes several files do not say which of their lines went into which file.
		case len(files) == 1:
			if lines := diffLines(rec.args); len(lines) > 0 {
				diff = lines[:min(len(lines), maxDiffLines)]
			}
		}
		for _, f := range files {
			if ops[f] == nil {
				order = append(order, f)
			}
			diffs[f], ops[f] = append(diffs[f], diff...), append(ops[f], rec.end)
		}
	}
	for _, f := range order {
		lines := diffs[f][max(0, len(diffs[f])-maxDiffLines):]
		text := pathList([]string{f}, 1) + ": " + quote.Shorten(strings.Join(lines, " | "), runes)
		out = append(out, note.Statement{Text: text, Ops: note.SortedOps(ops[f])})
	}
	return out
}

// silentChanges returns the files that a command changed without a word, as far as no other call of its step wrote
// them; nil for other calls.
func (r *record) silentChanges() []string {
	if !r.ok() || op.Acts(r.tool) != op.RunsShell || firstLine(r.outputs()) != "" {
		return nil
	}
	return r.unwritten
}

// editsOnly reports whether a command did no more than to change a file that it names: it verified nothing.
func (r *record) editsOnly() bool {
	command := shell.Command(r.args)
	named := func(file string) bool { return strings.Contains(command, path.Base(file)) }
	return slices.ContainsFunc(r.silentChanges(), named)
}

// figure matches a line that tells how a run came out: a count of tests, or a named number.
var figure = regexp.MustCompile(`(?i)\b\d+ (?:passed|failed|errors?|failures?|tests?|skipped|warnings?)\b|%$|` +
	`\b[a-z][\w .()-]{1,40}(?:: |=| = )-?\d[\d.,]*\s?%?\w{0,3}$`)

// result returns the line of a call's output that says most about how it came out: the last with a figure, else
// the first.
func (r *record) result() string {
	outputs := r.outputs()
	for _, text := range slices.Backward(outputs) {
		for _, line := range slices.Backward(strings.Split(text, "\n")) {
			if line = strings.Trim(quote.Squash(line), "=-* "); len(line) > 1 && figure.MatchString(line) {
				return quote.ClipMarked(line, maxResultRunes)
			}
		}
	}
	return quote.ClipMarked(firstLine(outputs), maxResultRunes)
}

// timeLimits lists the calls that were ended at their time limit, each once.
func timeLimits(recs []*record) (out []note.Statement) {
	seen := make(map[string]bool)
	for _, rec := range recs {
		if rec.noLesson != "timeout" || seen[rec.key()] {
			continue
		}
		seen[rec.key()] = true
		text := rec.action() + " was ended at its time limit"
		if rec.millis >= 1000 {
			text += fmt.Sprintf(" (%d s)", rec.millis/1000)
		}
		out = append(out, note.Statement{Text: text, Ops: []uint64{rec.end}})
	}
	return out
}

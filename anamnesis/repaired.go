package anamnesis

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	output "anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/repair"
	"anamnesis/knowledge_base/card"
)

// Limits of a repair's card.
const (
	maxRepairCards = 5 // of one request
	maxRepairLines = 6 // of the changes that a solution quotes
)

// Repaired is a card about a failure that a later call of the task put right.
type Repaired struct {
	Card   *card.Card
	Failed uint64 // the result of the call that failed
}

// Repairs makes a card of each failed command in the request's operations that
// succeeded later, on whatever branch. A failure without a telling line makes none,
// and neither does a command that succeeded without any change. No model is asked, and equal requests return equal cards.
func Repairs(r *Request) []Repaired {
	recs := records(r)
	run := repair.Run{ID: r.Task, Repo: r.Repo, Request: r.Goal}
	var of []*record // the call's record
	for _, rec := range recs {
		if rec.ran() {
			run.Calls, of = append(run.Calls, repairCall(rec)), append(of, rec)
		}
	}
	hash := hashEvidence(recs)
	var out []Repaired
	for _, p := range repair.Pairs(run) {
		failed, fixed := of[p.Failed], of[p.Fixed]
		nothing := len(p.Changes) == 0 && len(p.Environment) == 0 && Squash(p.Works) == Squash(p.Command)
		if p.Failure.Line == "" || nothing || len(out) == maxRepairCards {
			continue
		}
		between := of[p.Failed : p.Fixed+1]
		d := repairDraft(p, failed, fixed)
		for _, rec := range between {
			d.tainted = d.tainted || rec.tainted
		}
		c := cards(r, []cardDraft{d}, WriterExtractor, hash)[0]
		c.ID = card.NewID("repair", r.Task, strconv.FormatUint(failed.end, 10))
		c.Provenance.JumpOp = 0
		c.Provenance.Ranges = []card.Range{{First: failed.seq, Last: fixed.end}}
		out = append(out, Repaired{c, failed.end})
	}
	return out
}

// repairCall is a call as the search for repairs sees it. What a file tool wrote
// counts as its change; a command's text is read for its own.
func repairCall(rec *record) repair.Call {
	c := repair.Call{Output: output.Output{
		Command: commandOf(rec.args), Text: rec.stdout, Stderr: rec.stderr, Error: rec.isError, Refused: rec.refused,
	}}
	if rec.stdout+rec.stderr == "" {
		c.Text = rec.text
	}
	if rec.exit != nil {
		c.Exit, c.HasExit = *rec.exit, true
	}
	if rec.tool != bashTool {
		c.Command = ""
		c.Changes = writtenBy(rec)
	}
	return c
}

// writtenBy is what a successful call of a file tool added, by its arguments.
func writtenBy(rec *record) []repair.Change {
	out := []repair.Change{}
	if len(rec.writes) != 1 || rec.failed() {
		return out
	}
	type edit struct{ Old, New string }
	var args struct {
		edit
		Content string
		Edit    json.RawMessage
	}
	if json.Unmarshal([]byte(rec.args), &args) != nil {
		return out
	}
	edits := []edit{args.edit}
	if json.Unmarshal(args.Edit, &edits) != nil {
		_ = json.Unmarshal(args.Edit, &edits[0]) // a call without an edit adds its content alone
	}
	text := args.Content
	for _, e := range edits {
		if e.Old != "" && e.New != "" && !strings.Contains(e.Old+e.New, "\n") {
			e.New = e.Old + " → " + e.New
		}
		text += "\n" + e.New
	}
	change := repair.Change{Path: rec.writes[0]}
	for line := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(line) != "" {
			change.Added = append(change.Added, line)
		}
	}
	return append(out, change)
}

// heading matches lines of a file that say little of a change: comments, imports,
// brackets alone.
var heading = regexp.MustCompile(`^\s*(//|#|/?\*|--|package\b|import\b|from\s+\S+\s+import\b|use\b|"[^"]*"[,;]?\s*$|[\W_]*$)`)

// repairDraft words a pair: what failed, what put it right, and what limits that.
func repairDraft(p repair.Pair, failed, fixed *record) cardDraft {
	line := clipMarked(Squash(p.Failure.Line), MaxErrorRunes)
	command := clipMarked(Squash(p.Command), maxActionRunes)
	d := cardDraft{topic: clipMarked(line, maxExtractorTopic), ops: append(failed.ops(), fixed.ops()...)}
	d.issue = []string{clipMarked(fmt.Sprintf("`%s` failed: %s", command, line), maxBulletRunes)}
	works := clipMarked(Squash(p.Works), maxActionRunes)
	if works != command {
		d.solution = append(d.solution, fmt.Sprintf("`%s` succeeded.", works))
	}
	for _, e := range p.Environment {
		d.solution = append(d.solution, "Run before: `"+clipMarked(Squash(e), maxActionRunes)+"`")
	}
	for _, c := range p.Changes {
		var lines []string
		for _, l := range c.Added {
			if !heading.MatchString(l) {
				lines = append(lines, strings.TrimSpace(l))
			}
		}
		if len(lines) == 0 {
			lines = c.Added
		}
		if n := len(lines) - maxRepairLines; n > 0 {
			lines = append(lines[:maxRepairLines], fmt.Sprintf("… %d more lines", n))
		}
		d.solution = append(d.solution, clipMarked(fmt.Sprintf("Changed in %s: %s", filepath.ToSlash(c.Path), Squash(strings.Join(lines, " ⏎ "))), maxBulletRunes))
	}
	d.solution = d.solution[:min(len(d.solution), maxCardBullets)]
	if len(p.Versions) > 0 {
		d.constraint = append(d.constraint, "Seen with "+clipMarked(Squash(strings.Join(p.Versions, "; ")), maxBulletRunes))
	}
	for _, t := range p.Tried[:min(len(p.Tried), 3)] {
		if tried := clipMarked(Squash(t.Command), maxActionRunes); tried != command {
			d.constraint = append(d.constraint, fmt.Sprintf("Tried before without success: `%s`", tried))
		}
	}
	return d
}

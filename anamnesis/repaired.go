package anamnesis

import (
	"encoding/json"
	"path"
	"slices"
	"strconv"
	"strings"

	"anamnesis/anamnesis/edit"
	output "anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/note"
	"anamnesis/anamnesis/repair"
	"anamnesis/anamnesis/shell"
	"anamnesis/anamnesis/wording"
	"anamnesis/knowledge_base/card"
	"anamnesis/opstream/op"
)

// maxRepairCards is how many cards of repairs one request makes.
const maxRepairCards = 5

// Repaired is a failure that a later call of the task put right.
type Repaired struct {
	Card   *card.Card  `json:"card"`   // that says so
	Pair   repair.Pair `json:"pair"`   // with the whole change, of which the card quotes a part; Failed and Fixed are operations
	Failed uint64      `json:"failed"` // the result of the call that failed
}

// Repairs returns the failed commands in the request's operations that succeeded later, on
// whatever branch. No model is asked, and equal requests return equal cards.
func Repairs(r *Request) []Repaired {
	recs := records(r)
	run := repair.Run{ID: r.Task, Repo: r.Repo, Request: r.Goal}
	var of []*record // the call's record
	undone := left(r.Ops, recs)
	said := map[int]string{} // what the agent said last, by step
	for _, rec := range recs {
		if rec.kind == recReply {
			said[rec.step] = rec.text
		}
		if rec.ran() {
			call := repairCall(rec)
			call.Said, call.Undone = said[rec.step], undone[rec]
			run.Calls, of = append(run.Calls, call), append(of, rec)
		}
	}
	var out []Repaired
	for _, p := range KeptRepairs(run) {
		failed, fixed := of[p.Failed], of[p.Fixed]
		p = r.local(p)
		d := wording.Repair(p)
		d.Ops = append(failed.ops(), fixed.ops()...)
		for _, rec := range of[p.Failed : p.Fixed+1] {
			d.Tainted = d.Tainted || rec.tainted
		}
		c := cards(r, []note.Card{d}, WriterExtractor, "")[0]
		c.ID = card.NewID("repair", r.Task, strconv.FormatUint(failed.end, 10))
		c.Provenance.JumpOp = 0
		c.Provenance.Ranges = []card.Range{{First: failed.seq, Last: fixed.end}}
		c.Provenance.EvidenceHash = EvidenceHash(slices.DeleteFunc(slices.Clone(r.Ops), func(o op.Op) bool { return o.Seq < failed.seq || o.Seq > fixed.end }))
		p.Failed, p.Fixed = int(failed.seq), int(fixed.end)
		out = append(out, Repaired{c, p, failed.end})
	}
	return out
}

// left returns the calls of the paths that backward jumps left.
func left(ops []op.Op, recs []*record) map[*record]bool {
	out := make(map[*record]bool)
	n := 0 // records before the jump
	for i := range ops {
		jump, ok := ops[i].Body.(*op.JumpDone)
		if !ok || jump.To >= jump.From {
			continue
		}
		for n < len(recs) && recs[n].seq < ops[i].Seq {
			n++
		}
		for k := n - 1; k >= 0 && recs[k].step > jump.To; k-- {
			out[recs[k]] = true
		}
	}
	return out
}

// local names what a repair says to run or change by its place in the world, and leaves
// out changes outside of it.
func (r *Request) local(p repair.Pair) repair.Pair {
	if r.WorldDir == "" {
		return p
	}
	in := func(s string) string { return strings.ReplaceAll(s, strings.TrimSuffix(r.WorldDir, "/")+"/", "") }
	p.Works, p.Environment, p.Tried, p.Changes = in(p.Works), slices.Clone(p.Environment), slices.Clone(p.Tried), slices.Clone(p.Changes)
	for i, e := range p.Environment {
		p.Environment[i] = in(e)
	}
	for i := range p.Changes {
		p.Changes[i].Path = in(p.Changes[i].Path)
	}
	for i, t := range p.Tried {
		p.Tried[i].Command, p.Tried[i].Changes = in(t.Command), slices.Clone(t.Changes)
		for k := range t.Changes {
			p.Tried[i].Changes[k].Path = in(t.Changes[k].Path)
		}
	}
	helper := func(c edit.Change) bool { return path.IsAbs(c.Path) && !strings.Contains(p.Command, c.Path) }
	if !slices.ContainsFunc(p.Changes, func(c edit.Change) bool { return !helper(c) }) {
		return p
	}
	p.Changes = slices.DeleteFunc(p.Changes, helper) // a script that edited the files, say: the edits are what counts
	return p
}

// KeptRepairs returns the repairs of a run that become cards. A failure of which no
// line tells is none of them, and neither is a command that succeeded without a
// difference that is known.
func KeptRepairs(run repair.Run) []repair.Pair {
	var out []repair.Pair
	for _, p := range repair.Pairs(run) {
		said := func(o repair.Pair) bool { // the same trouble again, and no other repair
			return o.Failure.Signature == p.Failure.Signature && (p.Fixed == o.Fixed || len(p.Changes) == 0 && slices.Equal(p.Environment, o.Environment))
		}
		if p.Failure.Line != "" && !p.Failure.Silent && wording.Tells(p) && len(out) < maxRepairCards && !slices.ContainsFunc(out, said) {
			out = append(out, p)
		}
	}
	return out
}

// repairCall is a call as the search for repairs sees it. What a file tool wrote
// counts as its change; a command's text is read for its own.
func repairCall(rec *record) repair.Call {
	c := repair.Call{Output: output.Output{
		Command: shell.Command(rec.args), Text: rec.stdout, Stderr: rec.stderr, Error: rec.isError, Refused: rec.refused,
	}}
	if rec.stdout+rec.stderr == "" {
		c.Text = rec.text
	}
	if rec.exit != nil {
		c.Exit, c.HasExit = *rec.exit, true
	}
	if op.Acts(rec.tool) != op.RunsShell {
		c.Command = ""
		c.Changes = writtenBy(rec)
		if len(rec.reads) == 1 && len(rec.writes) == 0 {
			c.Read = rec.reads[0]
		}
	}
	return c
}

// writtenBy is what a successful call of a file tool added, by its arguments.
func writtenBy(rec *record) []edit.Change {
	out := []edit.Change{}
	if len(rec.writes) != 1 || rec.failed() {
		return out
	}
	type replaced struct{ Old, New string }
	var args struct {
		replaced
		Content string
		Edit    json.RawMessage
		Edits   json.RawMessage
	}
	if json.Unmarshal([]byte(rec.args), &args) != nil {
		return out
	}
	edits := []replaced{args.replaced}
	for _, given := range []json.RawMessage{args.Edit, args.Edits} {
		if json.Unmarshal(given, &edits) != nil {
			_ = json.Unmarshal(given, &edits[0]) // a call without an edit adds its content alone
		}
	}
	lines, whole := strings.Split(args.Content, "\n"), true
	change := edit.Change{Path: rec.writes[0]}
	for _, e := range edits {
		whole = whole && e.Old == "" // a file that is written whole replaces nothing
		old, now := strings.Split(e.Old, "\n"), strings.Split(e.New, "\n")
		change.Removed = append(change.Removed, old...)
		lines = append(lines, edit.Rewritten(old, now)...)
	}
	change.Added = slices.DeleteFunc(lines, func(l string) bool { return strings.TrimSpace(l) == "" })
	if whole {
		change.Whole = change.Added
	}
	return append(out, change)
}

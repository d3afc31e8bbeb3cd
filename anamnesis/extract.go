package anamnesis

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/note"
	"anamnesis/anamnesis/quote"
	"anamnesis/anamnesis/shell"
	"anamnesis/opstream/op"
)

// Limits of what the extractor looks at and says.
const (
	maxArgRunes    = 40 // of one further argument
	maxStatePaths  = 4  // written paths named in a state
	maxExtracted   = 40 // of one list
	maxPathsNamed  = 8
	maxPathBytes   = 120 // of one path named
	maxNoteRunes   = 280 // of the agent's own words
	maxResultRunes = 100 // of a successful call's first line

	leftBecause = "left because: "
)

// extract makes notes from the records alone. Failed calls become falsified paths with their errors
// verbatim, successes become verified facts, and files and the agent's last words become findings. The
// same records produce the same notes, so that a pass that is repeated after a crash writes the same.
func extract(r *Request, recs []*record) note.Notes {
	var n note.Notes
	if reason := quote.Shorten(r.Reason, note.MaxStatementRunes); reason != "" && !r.Told {
		n.Causes = append(n.Causes, note.Statement{Text: "reason given for going back: " + reason})
	}
	falsified, overcome := falsifiedPaths(recs)
	n.Falsified = falsified
	n.Causes = append(n.Causes, repeatedErrors(falsified)...)
	n.Edits = edits(r, recs)
	n.Findings = append(n.Findings, overcome...)
	n.Findings = append(n.Findings, timeLimits(recs)...)
	n.Findings = append(n.Findings, agentNotes(recs, r.Reason)...)
	n.Findings = append(n.Findings, hints(recs)...)
	n.Findings = append(n.Findings, unsettled(recs)...)
	n.Verified = append(investigations(recs), successes(recs)...)
	addEarlierBlocks(&n, recs)
	if r.Standing {
		n.Places, n.Effects = places(r, recs), effects(r, recs)
		n.Findings = slices.DeleteFunc(n.Findings, func(s note.Statement) bool { // the list of places quotes them
			same := func(p note.Statement) bool { return slices.Equal(p.Ops, s.Ops) }
			return len(s.Ops) == 1 && slices.ContainsFunc(n.Places, same)
		})
	}
	return n
}

// attempts gathers the calls with the same action and the same trouble.
type attempts struct {
	last   *record
	error  string
	ops    []uint64
	states []string
	times  int
}

// falsifiedPaths turns failed calls into falsified paths, the most informative first. A call that later
// succeeded with the same arguments is no falsified path but a finding: something in between made it work.
func falsifiedPaths(recs []*record) (paths []note.Falsified, overcome []note.Statement) {
	type key struct{ call, trouble string }
	byKey := make(map[key]*attempts)
	var order []*attempts
	lastOK := make(map[string]*record)
	for _, rec := range recs {
		if rec.ok() {
			lastOK[rec.key()] = rec
		}
		if !rec.failed() || rec.noLesson != "" {
			continue
		}
		k := key{rec.key(), rec.trouble}
		f := byKey[k]
		if f == nil {
			f = &attempts{error: rec.quoted}
			byKey[k] = f
			order = append(order, f)
		}
		f.last = rec
		f.times++
		if !slices.Contains(f.states, rec.state) {
			f.states = append(f.states, rec.state)
		}
		f.ops = append(f.ops, rec.end)
	}
	slices.SortStableFunc(order, func(a, b *attempts) int { return cmp.Compare(b.weight(recs), a.weight(recs)) })
	var failed []*attempts // and succeeded later, one for each command
	for _, f := range order {
		if ok := lastOK[f.last.key()]; ok == nil || ok.seq < f.last.seq {
			paths = append(paths, f.path())
			continue
		}
		i := slices.IndexFunc(failed, func(g *attempts) bool { return g.last.key() == f.last.key() })
		if i < 0 {
			failed = append(failed, f)
			continue
		}
		g := failed[i]
		if g.ops, g.times = note.SortedOps(append(g.ops, f.ops...)), g.times+f.times; f.last.seq > g.last.seq {
			g.last, g.error = f.last, f.error
		}
	}
	for _, f := range failed {
		ok := lastOK[f.last.key()]
		text := f.last.action() + " failed"
		if f.times > 1 {
			text += fmt.Sprintf(" %d times, at last", f.times)
		}
		if text += " " + f.last.state; f.error != "" {
			text += ", with “" + quote.ClipMarked(f.error, maxResultRunes) + "”,"
		}
		text += " and succeeded later " + ok.state
		overcome = append(overcome, note.Statement{Text: text, Ops: append(slices.Clone(f.ops), ok.end)})
	}
	return paths, overcome
}

// weight ranks failures. Commands and errors with a message come before bad arguments, repeated failures
// before single ones, later ones before earlier ones.
func (f *attempts) weight(recs []*record) float64 {
	w := float64(min(f.times, 3))
	if op.Acts(f.last.tool) == op.RunsShell {
		w += 2
	}
	if f.error != "" {
		w += 2
	}
	// The place in the span adds less than 1, so that it only orders failures that are equal otherwise.
	return w + float64(f.last.seq-recs[0].seq)/float64(recs[len(recs)-1].end-recs[0].seq)
}

func (f *attempts) path() note.Falsified {
	states := f.states
	if n := len(states); n > 3 {
		states = []string{states[0], fmt.Sprintf("%d more", n-2), states[n-1]}
	}
	p := note.Falsified{
		Action: f.last.action(), Error: f.error,
		State:      quote.Shorten(strings.Join(states, "; "), note.MaxStateRunes),
		Confidence: note.ConfidenceHigh, Ops: f.ops, Why: "the tool reported an error",
	}
	if f.last.exit != nil && *f.last.exit != 0 {
		p.Why = fmt.Sprintf("exit code %d", *f.last.exit)
	}
	if at := f.last.place; at != "" && !strings.Contains(f.error, at) {
		p.Why += " at " + quote.Shorten(at, maxPathBytes)
	}
	if f.times > 1 {
		p.Why += fmt.Sprintf(", %d times", f.times)
	}
	line := f.last.result()
	says := figure.MatchString(line) && !strings.Contains(line, f.error) && !strings.Contains(f.error, line)
	if f.error != "" && says {
		p.Why += fmt.Sprintf("; it printed “%s”", line)
	}
	if f.last.left != "" {
		p.Why += "; " + leftBecause + f.last.left
	}
	if f.error == "" {
		p.Confidence = note.ConfidenceMedium // some commands exit above 0 to say "nothing found"
		p.Why += ", nothing printed"
	}
	return p
}

// repeatedErrors names each error that different actions met: its cause is probably none of them.
func repeatedErrors(paths []note.Falsified) []note.Statement {
	ops := make(map[string][]uint64)
	actions := make(map[string]int)
	var order []string
	for _, p := range paths {
		if p.Error == "" {
			continue
		}
		if actions[p.Error] == 0 {
			order = append(order, p.Error)
		}
		actions[p.Error]++
		ops[p.Error] = append(ops[p.Error], p.Ops...)
	}
	var out []note.Statement
	for _, e := range order {
		if actions[e] > 1 {
			text := fmt.Sprintf("%d different actions met the same error: %s", actions[e], e)
			out = append(out, note.Statement{Text: text, Ops: note.SortedOps(ops[e])})
		}
	}
	return out
}

// quoteOf returns a failure's line as a block quotes it. Quotes must occur in the output, so of a line
// that a terminal wrapped it returns the part that was printed on one line.
func quoteOf(f failure.Failure, outputs []string) string {
	line := quote.Squash(f.Line)
	for _, text := range outputs {
		if strings.Contains(quote.Squash(text), line) {
			return quote.Clip(line, note.MaxErrorRunes)
		}
	}
	lines := strings.Split(strings.Join(outputs, "\n"), "\n")
	if f.Index < 0 || f.Index >= len(lines) {
		return ""
	}
	return quote.Clip(quote.Squash(lines[f.Index]), note.MaxErrorRunes)
}

// agentNotes returns the agent's own last words on the path and its first: without a model they are the best
// diagnosis there is, and say what was tried.
func agentNotes(recs []*record, reason string) []note.Statement {
	const most = 3
	reason = quote.Squash(reason)
	var out []note.Statement
	for _, rec := range slices.Backward(recs) {
		text := ""
		switch {
		case rec.kind == recReply:
			text = rec.text
		case rec.kind == recCall && op.Acts(rec.tool) == op.Thinks && rec.ok():
			text = callSummary(rec.args)
		}
		if text = quote.Squash(text); text == "" || strings.Contains(reason, text) {
			continue // the block begins with the reason for going back
		}
		text = "the agent noted: " + quote.ClipMarked(text, maxNoteRunes)
		out = append(out, note.Statement{Text: text, Ops: []uint64{rec.seq}})
	}
	if n := len(out); n > most {
		begin := out[n-1]
		begin.Text = strings.Replace(begin.Text, "the agent noted", "the agent began", 1)
		out = append(out[:most-1], begin)
	}
	return out
}

// unsettled lists calls that were refused or whose outcome is unknown.
func unsettled(recs []*record) []note.Statement {
	var out []note.Statement
	for _, rec := range recs {
		if rec.kind != recCall || len(out) == maxExtracted {
			continue
		}
		text := ""
		switch {
		case rec.refused:
			text = "was refused and did not run: "
		case rec.unknown && op.Acts(rec.tool) != op.Rewinds:
			text = "outcome unknown, it may have had its effect: "
		default:
			continue
		}
		out = append(out, note.Statement{Text: text + rec.action(), Ops: []uint64{rec.end}})
	}
	return out
}

// successes lists the commands that succeeded, each once, the latest first. It leaves out commands that
// only look at something, which verify nothing. Of calls that differ only in numbers, all but the latest
// few come last: a long series would take the place of everything else.
func successes(recs []*record) []note.Statement {
	seen, like := make(map[string]bool), make(map[string]int)
	var out, more []note.Statement
	for _, rec := range slices.Backward(recs) {
		if len(out)+len(more) == maxExtracted {
			break
		}
		if !rec.ok() || op.Acts(rec.tool) != op.RunsShell || onlyLooks(rec.args) || rec.editsOnly() || seen[rec.key()] {
			continue
		}
		seen[rec.key()] = true
		text, line := rec.action()+" succeeded "+rec.state, rec.result()
		output := failure.Output{Command: shell.Command(rec.args), Text: strings.Join(rec.outputs(), "\n")}
		// A failure may stand behind "|| true", or in the output of a program that exits with 0.
		if f, _ := failure.Read(output); f.Certain && f.Line != "" {
			text, line = rec.action()+" exited with 0 "+rec.state, quote.Shorten(f.Line, maxResultRunes)
		}
		if line != "" {
			text += "; it printed “" + line + "”"
		} else {
			text += "; it printed nothing"
		}
		if like[rec.shape()]++; like[rec.shape()] > maxLikeSuccess {
			more = append(more, note.Statement{Text: text, Ops: []uint64{rec.end}})
			continue
		}
		out = append(out, note.Statement{Text: text, Ops: []uint64{rec.end}})
	}
	return append(out, more...)
}

func onlyLooks(args string) bool { return shell.ReadsOnly(shell.Command(args)) }

func firstLine(texts []string) string {
	for _, text := range texts {
		for line := range strings.SplitSeq(text, "\n") {
			if s := quote.Squash(line); s != "" {
				return s
			}
		}
	}
	return ""
}

// addEarlierBlocks adds the falsified paths of blocks that the span itself contains. The operations that
// these rest on are outside the span, so that without this they would be forgotten at the second jump.
func addEarlierBlocks(n *note.Notes, recs []*record) {
	for _, rec := range recs {
		if rec.kind != recBlock {
			continue
		}
		for i, f := range note.ParseFalsified(rec.text) {
			f.Ops = []uint64{rec.seq}
			if i == 0 && rec.left != "" && !strings.Contains(f.Why, leftBecause) {
				f.Why = strings.TrimPrefix(f.Why+"; "+leftBecause+rec.left, "; ")
			}
			n.Falsified = append(n.Falsified, f)
		}
	}
}

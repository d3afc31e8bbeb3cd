package anamnesis

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/note"
	"anamnesis/anamnesis/quote"
	"anamnesis/anamnesis/shell"
	"anamnesis/opstream/op"
)

// recordKind says what a record represents.
type recordKind int

const (
	recCall  recordKind = iota // a tool call and its result
	recReply                   // what the model said
	recSaid                    // a user's words
	recFault                   // a model request that failed
	recBlock                   // an earlier pass's block, itself discarded now
	recNote                    // a notice, a dropped jump, recalled cards
	recLeft                    // a jump back
)

// record is one thing that happened in the span, in a structured form that
// can be ranked, shortened and quoted. Every string is raw: it is cleaned
// where it is shown.
type record struct {
	kind recordKind
	seq  uint64 // first op
	end  uint64 // last op
	step int
	to   int // of a jump back

	standing bool       // of a block: it was made to make room, not for a jump
	replaces []op.Range // of a block: the operations that it stands for

	text string // of everything but calls; of calls the output as the model saw it

	// Calls only.
	tool     string
	args     string
	stdout   string
	stderr   string
	exit     *int
	millis   int64
	isError  bool
	refused  bool
	isolated bool // ran without a network
	unknown  bool // no result, or an unknown outcome
	reads    []string
	writes   []string
	state    string // of the files when the call ran, in words
	changed  []string
	nChange  int
	// unwritten are those of changed that no call of the step is recorded to have written.
	unwritten []string
	tainted   bool

	// Failed calls only.
	quoted   string // the telling line, as a block quotes it
	trouble  string // its signature
	place    string // where it happened, where the output names a place
	noLesson string // why there is nothing to learn from it; empty: there is
	left     string // why the path that it ended was left; of a block, too
}

func (r *record) isTainted() bool { return r.tainted }

// failed reports whether the call ran and did not succeed. A jump that was refused is no failure of
// the work.
func (r *record) failed() bool {
	return r.ran() && (r.isError || r.exit != nil && *r.exit != 0)
}

// ok reports whether the call ran and succeeded. That a jump was scheduled is no success of the work.
func (r *record) ok() bool { return r.ran() && !r.failed() }

// ran reports whether the record is a call that ran, other than one for a jump.
func (r *record) ran() bool {
	return r.kind == recCall && !r.refused && !r.unknown && op.Acts(r.tool) != op.Rewinds
}

func (r *record) ops() []uint64 {
	if r.end == r.seq {
		return []uint64{r.seq}
	}
	return []uint64{r.seq, r.end}
}

// outputs returns what the call's process printed or, if none ran, what the model was shown.
func (r *record) outputs() []string {
	var out []string
	for _, s := range []string{r.stdout, r.stderr} {
		if strings.TrimSpace(s) != "" {
			out = append(out, s)
		}
	}
	if len(out) == 0 && strings.TrimSpace(r.text) != "" {
		out = append(out, r.text)
	}
	return out
}

// action returns the call in one short line: the tool and its main argument.
func (r *record) action() string {
	return quote.Shorten(r.tool+": "+callSummary(r.args), note.MaxActionRunes)
}

// readFailure reads what a failed call printed.
func (r *record) readFailure() {
	outputs := r.outputs()
	o := failure.Output{Command: shell.Command(r.args), Text: strings.Join(outputs, "\n"), Error: true}
	if r.exit != nil {
		o.Exit, o.HasExit = *r.exit, true
	}
	f, _ := failure.Read(o)
	r.quoted, r.trouble, r.place = quoteOf(f, outputs), f.Signature, f.Place
	// Whether the call timed out or was aborted stands only in the text that the model was shown: the
	// tool wrote it there, not the process.
	o.Text = cmp.Or(r.text, o.Text)
	_, r.noLesson = failure.Lesson(o)
}

// key is equal for calls of one tool with the same arguments, however these are spelled.
func (r *record) key() string { return r.tool + "\x00" + op.CanonicalArgs(r.args) }

// recorder turns ops into records.
type recorder struct {
	r        *Request
	out      []*record
	open     map[string][]*record // calls without a result, by call id
	asked    map[string]op.Call   // calls of replies, by call id
	after    int                  // the step whose files the next call finds; -1: unknown
	edited   []string             // paths changed since this path began, the latest last
	stepFrom int                  // index in out where the current step begins
	rangeAt  int                  // index of the range that is read
	taint    *tainter
}

// records turns the span's operations into records. It skips the kinds that say nothing about the work,
// and those of newer versions.
func records(r *Request) []*record {
	c := newRecorder(r)
	for i := range r.Ops {
		c.add(&r.Ops[i])
	}
	for _, rec := range c.out {
		if rec.kind == recCall && rec.end == 0 {
			rec.unknown, rec.end = true, rec.seq
		}
		if rec.failed() {
			rec.readFailure()
		}
	}
	for i, rec := range c.out {
		if rec.kind == recLeft {
			setReasons(c.out[:i], rec.text)
		}
	}
	return c.out
}

func newRecorder(r *Request) *recorder {
	start := -1
	if len(r.Starts) > 0 {
		start = r.Starts[0]
	}
	return &recorder{
		r: r, open: make(map[string][]*record), asked: make(map[string]op.Call),
		after: start, taint: newTainter(r.WorldDir, r.Tainted),
	}
}

func (c *recorder) add(o *op.Op) {
	c.taint.now = o.Seq
	c.advanceRange(o.Seq)
	switch b := o.Body.(type) {
	case *op.ToolCalled:
		c.open[b.Call] = append(c.open[b.Call], c.pushCall(o, b.Name, b.Args))
	case *op.ToolReturned:
		c.addResult(o, b)
	case *op.ModelReplied:
		for _, call := range b.Calls {
			c.asked[call.ID] = call
		}
		if strings.TrimSpace(b.Text) != "" {
			c.push(o, recReply, b.Text)
		}
	case *op.ModelFailed:
		c.push(o, recFault, b.Error)
	case *op.UserSaid:
		c.push(o, recSaid, b.Text)
	case *op.PassDone:
		if b.Block != "" {
			rec := c.push(o, recBlock, b.Block)
			rec.standing, rec.replaces = b.Trigger == op.TriggerWindow, b.Ranges
		}
	case *op.JumpDropped:
		c.push(o, recNote, fmt.Sprintf("a jump to step %d was not made: %s", b.To, b.Why))
	case *op.NoticeGiven:
		c.push(o, recNote, b.Text)
	case *op.StrategyGiven:
		c.push(o, recNote, b.Text)
	case *op.WorldSaved:
		c.addSave(o.Step, b)
	case *op.WorldChanged:
		c.addEdited(b.Changed)
	case *op.JumpIntended:
		if why := b.Why(); b.Backward && why != "" { // a jump forward leaves no path
			c.push(o, recLeft, why).to = b.To
		}
	case *op.JumpDone:
		c.beginPath(b.To)
	case *op.WorldRestored:
		c.beginPath(-1) // files set back by hand: no step is left by it
	}
}

// beginPath starts a path after a step, or after an unknown one if after is -1. It forgets what was
// edited: those edits are not in the files that the path finds.
func (c *recorder) beginPath(after int) { c.after, c.edited = after, nil }

func (c *recorder) addEdited(paths []string) {
	for _, p := range paths {
		c.edited = append(slices.DeleteFunc(c.edited, func(q string) bool { return p == q }), p)
	}
}

// advanceRange moves to the range an operation lies in. A path that does not continue
// the one before begins with another state of the files.
func (c *recorder) advanceRange(seq uint64) {
	for c.rangeAt+1 < len(c.r.Starts) && c.r.Ranges[c.rangeAt+1].First <= seq {
		if c.rangeAt++; c.r.Starts[c.rangeAt] >= 0 {
			c.beginPath(c.r.Starts[c.rangeAt])
			c.stepFrom = len(c.out)
		}
	}
}

// push adds a record of one operation.
func (c *recorder) push(o *op.Op, kind recordKind, text string) *record {
	rec := &record{kind: kind, seq: o.Seq, end: o.Seq, step: o.Step, text: text}
	c.out = append(c.out, rec)
	return rec
}

// pushCall adds the record of a call that begins at an operation.
func (c *recorder) pushCall(o *op.Op, name, args string) *record {
	rec := &record{kind: recCall, seq: o.Seq, step: o.Step, tool: name, args: args, state: c.state(o.Step)}
	c.out = append(c.out, rec)
	return rec
}

func (c *recorder) addResult(o *op.Op, b *op.ToolReturned) {
	var rec *record
	if waiting := c.open[b.Call]; len(waiting) > 0 {
		rec, c.open[b.Call] = waiting[0], waiting[1:]
	} else { // the call was refused before it began, or began before the span
		rec = c.pushCall(o, b.Name, c.asked[b.Call].Args)
	}
	rec.end = o.Seq
	rec.text, rec.stdout, rec.stderr = b.Text, b.Stdout, b.Stderr
	rec.exit, rec.isError, rec.refused, rec.unknown = b.Exit, b.IsError, b.Refused, b.Unknown
	rec.millis = b.Millis
	rec.reads, rec.writes, rec.isolated = b.Reads, b.Writes, b.Isolated
	rec.tainted = c.taint.examine(rec, b.Network) || c.citesTainted(rec)
	c.addEdited(b.Writes)
}

func (c *recorder) addSave(step int, b *op.WorldSaved) {
	tainted, unwritten := false, slices.Clone(b.Changed)
	for _, rec := range c.out[c.stepFrom:] {
		unwritten = slices.DeleteFunc(unwritten, func(p string) bool { return slices.Contains(rec.writes, p) })
	}
	for _, rec := range c.out[c.stepFrom:] {
		if rec.kind == recCall {
			rec.changed, rec.nChange, rec.unwritten = b.Changed, b.NChanged, unwritten
			tainted = tainted || rec.tainted && op.Acts(rec.tool) == op.RunsShell
		}
	}
	if tainted {
		c.taint.recordChanges(b.Changed, b.NChanged <= len(b.Changed))
	}
	c.stepFrom, c.after = len(c.out), step
	c.addEdited(b.Changed)
}

// state describes the files that a call of a step finds: after which step they stand, and which of them
// the path has changed, the latest first. A falsified path holds only for such a state.
func (c *recorder) state(step int) string {
	s := fmt.Sprintf("before step %d", step)
	if c.after >= 0 {
		s = fmt.Sprintf("after step %d", c.after)
	}
	n := len(c.edited)
	if n == 0 {
		return s
	}
	latest := slices.Clone(c.edited)
	slices.Reverse(latest)
	s += ": " + pathList(latest, maxStatePaths)
	if n > maxStatePaths {
		s += fmt.Sprintf(" and %d more", n-maxStatePaths)
	}
	return s + " edited"
}

// pathList names at most n paths on one line. Of a long path it keeps the end, which names the file.
func pathList(paths []string, n int) string {
	named := make([]string, 0, n)
	for _, p := range paths[:min(len(paths), n)] {
		if cut := len(p) - maxPathBytes; cut > 0 {
			p = "…" + p[quote.RuneStart(p, cut):]
		}
		named = append(named, quote.Squash(p))
	}
	return strings.Join(named, ", ")
}

// callSummary returns the main argument of a call, such as its command or path, or all arguments if none
// is known to be the main one.
func callSummary(args string) string {
	var m map[string]json.RawMessage
	_ = json.Unmarshal([]byte(args), &m) // arguments of another form name nothing
	for _, name := range []string{"command", "cmd", "path", "file_path", "pattern", "query", "thought"} {
		var v string
		if json.Unmarshal(m[name], &v) != nil || v == "" {
			continue
		}
		if rest := len(m) - 1; rest > 0 && name != "command" && name != "cmd" {
			return v + " " + otherArgs(m, name)
		}
		return v
	}
	return op.CanonicalArgs(args)
}

// otherArgs lists the arguments but one, sorted by name.
func otherArgs(m map[string]json.RawMessage, but string) string {
	var parts []string
	for name, v := range m {
		if name != but {
			parts = append(parts, name+"="+quote.ClipMarked(string(v), maxArgRunes))
		}
	}
	slices.Sort(parts)
	return "(" + strings.Join(parts, ", ") + ")"
}

func itoa(n int) string { return strconv.Itoa(n) }

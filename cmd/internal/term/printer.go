package term

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"anamnesis/anamnesis/experience"
	"anamnesis/anamnesis/quote"
	"anamnesis/anamnesis/testrun"
	"anamnesis/cmd/internal/timeline"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/mention"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/tool"
)

// Printer shows a running task. Its methods may be called from any goroutine.
type Printer interface {
	// Op shows an operation that has become durable.
	Op(o op.Op)
	// Delta shows a piece of a reply on its way.
	Delta(d model.Delta)
	// Progress shows how far a running call says it is.
	Progress(c op.Call, text string)
	// Passing shows that a pass is about to ask the model.
	Passing(b op.PassBegun)
	// Retry shows that the model is asked again.
	Retry(at model.Attempt)
	// Waiting shows a wait for the provider and what is left of it.
	Waiting(o state.Outage, left time.Duration)
	// End shows how the turn ended. report is what happened in the task, as text; empty: it is not shown.
	End(out runtime.Outcome, st *state.State, report string)
}

// textPrinter writes progress to one writer and the answer to another, so that
// the answer alone can be piped on.
type textPrinter struct {
	mu       sync.Mutex
	answer   io.Writer
	progress io.Writer
	width    int
	log      bool   // progress is a file or a pipe: a notice stays on one line, and lines begin with the time
	dir      string // the task's
	outputs  Outputs
	calls    map[string]op.Call
	midLine  bool
	at       time.Time     // of the operation that is shown
	fault    string        // of the last retry
	wait     op.Wait       // the wait shown
	told     time.Duration // what was left of it when that was last shown
}

// Outputs says whether the first and last lines of commands' outputs are shown, and why other
// calls failed.
type Outputs bool

const (
	NoOutputs   Outputs = false
	WithOutputs Outputs = true
)

// NewText shows a run as text: the agent's last answer on answer, everything on progress, in
// lines of at most width columns. If answer is nil, the answer is shown on progress only. Paths
// within dir, the task's directory, are shown relative to it.
func NewText(answer, progress io.Writer, width int, dir string, outputs Outputs) Printer {
	_, file := progress.(*os.File)
	return &textPrinter{answer: answer, progress: progress, width: width, log: file && !IsTerminal(progress), dir: dir,
		outputs: outputs, calls: make(map[string]op.Call)}
}

func (p *textPrinter) Delta(d model.Delta) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d.Restart {
		p.line("  (the reply was cut off; asking again)")
		return
	}
	if d.Text != "" {
		fmt.Fprint(p.progress, Clean(d.Text))
		p.midLine = !strings.HasSuffix(d.Text, "\n")
	}
}

func (p *textPrinter) Progress(c op.Call, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line("  … %s: %s", tool.Display(c, p.dir), text)
}

func (p *textPrinter) Passing(b op.PassBegun) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ranges := make([]string, len(b.Ranges))
	for i, r := range b.Ranges {
		ranges[i] = r.String()
	}
	what := "what to keep of ops " + strings.Join(ranges, ", ")
	if len(ranges) == 0 {
		what = "what to learn from commands that failed and later succeeded"
	}
	p.line("◆ asking the model %s", what)
}

func (p *textPrinter) Retry(at model.Attempt) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fault := *at.Fault
	fault.Tries = 0 // at says which try it was
	why := ": " + fault.Error()
	if at.Try > 1 && why == p.fault {
		why = ", for the same reason"
	} else {
		p.fault = why
	}
	p.line("! asking again in %s (try %d of %d)%s", at.Wait.Round(100*time.Millisecond), at.Try+1, at.Of, why)
}

// Waiting shows the wait when it begins, and on a terminal again each time half of it is over.
func (p *textPrinter) Waiting(o state.Outage, left time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	switch {
	case o.Wait != p.wait:
		why := o.Error
		if why == p.fault && o.Tries > 1 {
			why = "the same reason"
		}
		p.fault = o.Error
		p.line("! the provider fails: asking again at %s, in %s, giving up at %s: %s", state.Clock(o.Until, now),
			seconds(left), state.Clock(o.End, now), why)
	case p.log || left > p.told/2 || left < time.Second:
		return
	default:
		p.line("  asking again in %s", seconds(left))
	}
	p.wait, p.told = o.Wait, left
}

func seconds(d time.Duration) time.Duration { return max(d.Round(time.Second), time.Second) }

// maxNoticeWidth bounds a notice, which is wrapped, in columns.
const maxNoticeWidth = 1000

// line writes one line of progress on a line of its own. On a terminal a notice is wrapped at words;
// a call and a command's output stay on one line.
func (p *textPrinter) line(format string, args ...any) {
	if p.midLine {
		fmt.Fprintln(p.progress)
		p.midLine = false
	}
	text := fmt.Sprintf(format, args...)
	indent := text[:len(text)-len(strings.TrimLeft(text, " "))]
	mark, _ := utf8.DecodeRuneInString(text[len(indent):])
	if strings.ContainsRune("•▸│●", mark) {
		text = indent + Line(text, p.width-len(indent))
	} else if text = indent + Line(text, max(p.width, maxNoticeWidth)); !p.log {
		text = wrapped(text, p.width)
	}
	if p.log && indent == "" {
		at := p.at
		if at.IsZero() {
			at = time.Now()
		}
		text = at.Local().Format("01-02 15:04:05 ") + text
	}
	fmt.Fprintln(p.progress, text)
}

func (p *textPrinter) Op(o op.Op) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at = o.Time
	defer func() { p.at = time.Time{} }()
	switch b := o.Body.(type) {
	case *op.ModelReplied:
		for _, c := range b.Calls {
			p.calls[c.ID] = c
		}
	case *op.ToolCalled: // the user may have edited it
		p.calls[b.Call] = op.Call{ID: b.Call, Name: b.Name, Args: b.Args}
		if op.Acts(b.Name) == op.RunsShell { // a command may take its time
			p.line("▸ %s", tool.Display(p.calls[b.Call], p.dir))
		}
	case *op.ToolReturned:
		p.returned(o.Seq, b)
	case *op.TurnEnded: // End shows it
		return
	case *op.UserSaid:
		if b.Source != op.SourceSteer { // the user has just typed the others
			for _, l := range mention.Attached(b.Text) {
				p.line("  %s", l)
			}
			return
		}
	}
	if l := timeline.LineOf(o, p.dir); l.Icon != "" {
		p.line("%s %s", l.Icon, l.Text)
		for _, detail := range l.Detail {
			p.line("  %s", detail)
		}
	}
}

func (p *textPrinter) returned(seq uint64, b *op.ToolReturned) {
	call, ok := p.calls[b.Call]
	if !ok { // called by an earlier process
		call = op.Call{Name: b.Name}
	}
	how := cmp.Or(b.Display, timeline.CallEnd(b))
	end := strings.Join(strings.Fields(how+" "+duration(b.Millis)), " ")
	// The call is cut first, to a third of the line at least.
	what := Line(strings.Join(strings.Fields(tool.Display(call, p.dir)), " "),
		max(p.width-runewidth.StringWidth(end)-3, p.width/3))
	p.line("%s", strings.TrimSpace("• "+what+" "+end))
	delete(p.calls, b.Call)
	if p.outputs == WithOutputs && (b.Exit != nil || b.IsError && !b.Refused) {
		exit := 1
		if b.Exit != nil {
			exit = *b.Exit
		}
		for _, l := range Folded(Command(call.Args), Result(b.Text), exit, int(b.Cut),
			fmt.Sprintf(": anamnesis show %d", seq)) {
			p.line("  │ %s", l)
		}
	}
}

// duration returns how long a call ran; empty if it was short.
func duration(ms int64) string {
	if ms < 100 {
		return ""
	}
	return "(" + (time.Duration(ms) * time.Millisecond).String() + ")"
}

func (p *textPrinter) End(out runtime.Outcome, st *state.State, report string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.midLine {
		fmt.Fprintln(p.progress)
		p.midLine = false
	}
	if len(out.Autorun) > 0 {
		p.line("! %s", AutorunLine(out))
	}
	if out.Tests != nil && report == "" {
		p.line("! %s", TestsLine(out.Tests))
	}
	if out.Reason == "done" && p.answer != nil {
		fmt.Fprintln(p.answer, strings.TrimRight(Clean(out.Answer), "\n"))
	}
	if report != "" {
		fmt.Fprint(p.progress, "\n"+report)
	}
}

// maxAutorun bounds the files that AutorunLine names.
const maxAutorun = 10

// AutorunLine names the changed files of a turn that other programs run by themselves.
func AutorunLine(out runtime.Outcome) string {
	text := strings.Join(out.Autorun[:min(len(out.Autorun), maxAutorun)], ", ")
	if more := len(out.Autorun) - maxAutorun; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return "changed, and run by other programs by themselves: look at " + text
}

// Bounds of what TestsLine names.
const (
	maxTests          = 5
	maxCommandColumns = 60
)

// TestsLine names the failed tests of a run, or says that it ran none.
func TestsLine(run *experience.Check) string {
	text := "ran no tests"
	if run.Status != testrun.RanNone {
		text = "tests failed"
		names := run.Names[:min(len(run.Names), maxTests)]
		switch more := run.Failed - len(names); {
		case len(names) == 0 && more > 0:
			text = quote.Number(more, "test") + " failed"
		case len(names) > 0:
			text += ": " + strings.Join(names, ", ")
			if more > 0 {
				text += fmt.Sprintf(" and %d more", more)
			}
		}
	}
	return fmt.Sprintf("%s (%s)", text, Line(run.Command, maxCommandColumns))
}

// jsonPrinter writes one JSON object a line.
type jsonPrinter struct {
	mu  sync.Mutex
	enc *json.Encoder
}

// NewJSON shows a run as a stream of JSON objects, one a line, each with a
// type: start, delta, op, progress, pass, retry, result.
func NewJSON(w io.Writer, start session.Info) Printer {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	p := &jsonPrinter{enc: enc}
	p.write(struct {
		Type string `json:"type"`
		session.Info
	}{"start", start})
	return p
}

// write ignores write errors: the run continues without a reader.
func (p *jsonPrinter) write(v any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.enc.Encode(v)
}

func (p *jsonPrinter) Op(o op.Op) {
	p.write(struct {
		Type string  `json:"type"`
		Seq  uint64  `json:"seq"`
		Step int     `json:"step"`
		Kind op.Kind `json:"kind"`
		Body op.Body `json:"body"`
	}{"op", o.Seq, o.Step, o.Body.Kind(), o.Body})
}

func (p *jsonPrinter) Delta(d model.Delta) {
	p.write(struct {
		Type      string `json:"type"`
		Text      string `json:"text,omitempty"`
		Reasoning string `json:"reasoning,omitempty"`
		Restart   bool   `json:"restart,omitempty"`
	}{"delta", d.Text, d.Reasoning, d.Restart})
}

func (p *jsonPrinter) Progress(c op.Call, text string) {
	p.write(struct {
		Type string `json:"type"`
		Call string `json:"call"`
		Name string `json:"name"`
		Text string `json:"text"`
	}{"progress", c.ID, c.Name, text})
}

func (p *jsonPrinter) Passing(b op.PassBegun) {
	p.write(struct {
		Type string `json:"type"`
		op.PassBegun
	}{"pass", b})
}

func (p *jsonPrinter) Retry(at model.Attempt) {
	p.write(struct {
		Type   string `json:"type"`
		Try    int    `json:"try"`
		Of     int    `json:"of"`
		WaitMS int64  `json:"wait_ms"`
		Error  string `json:"error"`
	}{"retry", at.Try, at.Of, at.Wait.Milliseconds(), at.Fault.Error()})
}

// Waiting shows nothing: the operation before the wait says how long it is.
func (p *jsonPrinter) Waiting(state.Outage, time.Duration) {}

func (p *jsonPrinter) End(out runtime.Outcome, st *state.State, report string) {
	p.write(struct {
		Type   string   `json:"type"`
		Task   string   `json:"task"`
		Reason string   `json:"reason"`
		Detail string   `json:"detail,omitempty"`
		Answer string   `json:"answer"`
		Steps  int      `json:"steps"`
		Jumps  int      `json:"jumps"`
		Mails  int      `json:"mails,omitempty"`            // D-Mails that moved no files
		Marked int      `json:"checkpoint_count,omitempty"` // checkpoints of the tool dmail
		Usage  op.Usage `json:"usage"`
		// Learned are the cards of the pass at the end.
		Learned []string `json:"learned,omitempty"`
		// Autorun are changed files that other programs run by themselves, each with the program.
		Autorun []string `json:"autorun,omitempty"`
		// Tests is the last test run if tests failed in it or it ran none.
		Tests *experience.Check `json:"tests,omitempty"`
		// Report is what happened in the task, as text: at most a screen.
		Report string `json:"report,omitempty"`
	}{"result", st.Opened.Task, out.Reason, out.Detail, out.Answer, st.Steps.CountEnded(), st.Totals.Jumps,
		st.Totals.Mails, len(st.Marked), st.Totals.Usage, out.Learned, out.Autorun, out.Tests, report})
}

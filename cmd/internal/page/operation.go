package page

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"anamnesis/anamnesis/quote"
	"anamnesis/cmd/internal/page/patch"
	"anamnesis/cmd/internal/page/picture"
	"anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/timeline"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/inspect"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/state/steps"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

const (
	// opTextBytes is how much of an operation's text, and of its recorded body, one
	// page shows.
	opTextBytes = 64 << 10
	// messagesShown is how many messages of a context one page shows,
	// messageBytes how much of each, contextBytes how much of all.
	messagesShown = 60
	messageBytes  = 4 << 10
	contextBytes  = 96 << 10
)

// detail is what is opened beside a timeline: an operation, a step or a context.
type detail struct {
	Task, Path string
	Back       string // the part of the timeline it belongs to
	Title      string
	Op         *opDetail
	Step       *stepDetail
	Context    *contextDetail
	Blame      []blamed
}

// auto returns what a task's page opens first: the step under way, else the last jump, else
// the last step. The caller holds mu.
func (w *watch) auto(live int) *detail {
	d := &detail{Task: w.id, Path: taskPath(w.id)}
	id := w.builder.State().Current
	if step, ok := w.builder.UnderWay(); ok && live != 0 {
		id = step.ID
	} else if jumps := w.builder.Tree().Arcs; len(jumps) > 0 {
		if o, err := w.op(jumps[len(jumps)-1].Seq); err == nil {
			d.Title, d.Op = "The last jump", o
			return d
		}
	}
	step, err := w.step(id)
	if err != nil {
		return nil // no step has begun
	}
	d.Title, d.Step = fmt.Sprintf("Step %d", step.Node.Step), step
	return d
}

// showDetail answers with a detail, as a part or as a page.
func (s *Server) showDetail(w http.ResponseWriter, r *http.Request, d detail) error {
	if partOnly(r) {
		return s.renderPart(w, "detail", d)
	}
	return s.render(w, r, http.StatusOK, "detail", view{Title: d.Title + " · " + d.Task, Section: "/tasks",
		Style: "timeline.css", Body: d})
}

type opDetail struct {
	taskdir.Line
	Text     cutText
	Body     cutText // as it is recorded
	Problem  string
	Prev     uint64
	Next     uint64
	HasStep  bool
	Describe string
	Subagent string   // the subagent's task
	Reverted []string // the files that a jump took back, each with its verb
	More     int      // and those that are not named
}

type cutText struct {
	Text string
	More int // bytes left out
}

func cut(text string, limit int) cutText {
	if len(text) <= limit {
		return cutText{Text: term.Output(text)}
	}
	head := quote.CutBytes(text, limit)
	return cutText{term.Output(head), len(text) - len(head)}
}

func pathNumber(r *http.Request, name string) (uint64, error) {
	n, err := strconv.ParseUint(r.PathValue(name), 10, 63)
	if err != nil {
		return 0, refuse(http.StatusNotFound, "%q is not a number. Go back to the task.", r.PathValue(name))
	}
	return n, nil
}

func (s *Server) showOp(w http.ResponseWriter, r *http.Request) error {
	id, o, err := s.opOf(r)
	if err != nil {
		return err
	}
	d := detail{Task: id, Path: taskPath(id), Title: fmt.Sprintf("Operation %d", o.Seq), Op: o}
	d.Back = backTo(d.Path, o.Seq)
	return s.showDetail(w, r, d)
}

// opOf reads the operation that a request names, and the name of its task.
func (s *Server) opOf(r *http.Request) (task string, o *opDetail, err error) {
	seq, err := pathNumber(r, "seq")
	if err != nil {
		return "", nil, err
	}
	t, err := s.watches.acquire(r.PathValue("task"))
	if err != nil {
		return "", nil, err
	}
	defer t.mu.Unlock()
	o, err = t.op(seq)
	return t.id, o, err
}

// backTo returns the address of the timeline around an operation.
func backTo(path string, seq uint64) string {
	return fmt.Sprintf("%s#op-%d", shown{first: max(seq, opsShown/2+1) - opsShown/2, row: -1}.query(path), seq)
}

// op reads one operation. The caller holds mu.
func (w *watch) op(seq uint64) (*opDetail, error) {
	l, err := w.follower.Line(seq)
	switch {
	case errors.Is(err, taskdir.ErrNoOp):
		return nil, refuse(http.StatusNotFound, "Task %s has no operation %d; the last that can be read is %d.", w.id,
			seq, w.last)
	case err != nil:
		return nil, fmt.Errorf("%w. 'anamnesis doctor %s' looks closer", err, w.id)
	}
	o := &opDetail{Line: l, Describe: timeline.LineOf(l.Op, w.builder.State().Opened.Dir).String(),
		HasStep: l.Step < w.builder.Steps()}
	if l.Err != nil {
		o.Problem = l.Err.Error()
	}
	switch b := l.Body.(type) {
	case *op.SubagentStarted:
		o.Subagent = b.Task
	case *op.SubagentEnded:
		o.Subagent = b.Task
	case *op.JumpDone:
		o.Reverted, o.More = timeline.FileActions(b), max(0, b.NReverted-len(b.Reverted))
	}
	var pretty bytes.Buffer
	if json.Indent(&pretty, l.JSON, "", "  ") == nil {
		o.Body = cut(pretty.String(), opTextBytes)
	}
	if l.Body != nil {
		if text := state.OpText(l.Op); !json.Valid([]byte(text)) {
			o.Text = cut(strings.Trim(text, "\n"), opTextBytes)
		}
	}
	if o.Prev = seq - 1; seq < w.last {
		o.Next = seq + 1
	}
	return o, nil
}

type stepDetail struct {
	timeline.Node
	Diff    patch.Diff
	Problem string         // why there is no patch.Diff
	Broken  []picture.Line // its calls that failed
	Jumps   bool           // the task can jump to its end

	opened      op.TaskOpened
	own, parent steps.Step
	before      string // commit of its parent
}

func (s *Server) showStep(w http.ResponseWriter, r *http.Request) error {
	id, err := pathNumber(r, "step")
	if err != nil {
		return err
	}
	t, err := s.watches.acquire(r.PathValue("task"))
	if err != nil {
		return err
	}
	step, err := t.step(int(min(id, 1<<30)))
	t.mu.Unlock()
	if err != nil {
		return err
	}
	step.compare(r.Context(), s, t.id)
	d := detail{Task: t.id, Path: taskPath(t.id), Title: fmt.Sprintf("Step %d", step.Node.Step), Step: step}
	d.Back = backTo(d.Path, step.First)
	return s.showDetail(w, r, d)
}

// step finds a step. The caller holds mu.
func (w *watch) step(id int) (*stepDetail, error) {
	nodes := w.builder.Tree().Nodes
	for _, n := range nodes {
		if n.Step == id {
			st := w.builder.State()
			d := &stepDetail{Node: n, opened: st.Opened, own: st.Steps.At(id),
				parent: st.Steps.At(n.Parent), Jumps: st.Opened.Origin == nil && st.CanJump(n.Step, false) == nil}
			if n.ParentRow >= 0 {
				d.before = nodes[n.ParentRow].Commit
			}
			if n.Failed > 0 {
				d.Broken = w.failed(n)
			}
			return d, nil
		}
	}
	return nil, refuse(http.StatusNotFound, "Task %s has no step %d. Go back to the task.", w.id, id)
}

// failed returns the calls of a step that failed, with what they printed.
func (w *watch) failed(n timeline.Node) (out []picture.Line) {
	lines, err := w.follower.Lines(n.First-1, int(min(n.Last-n.First+1, opsShown)))
	if err != nil {
		return nil // the list of operations shows the fault
	}
	for _, l := range lines {
		if o := picture.LineOf(l, w.builder.State().Opened.Dir); o.Output != "" {
			out = append(out, o)
		}
	}
	return out
}

func (d *stepDetail) compare(ctx context.Context, s *Server, task string) {
	if d.Problem = d.incomparable(task, s.tasks.Home.StoreOf(&d.opened)); d.Problem != "" {
		return
	}
	var err error
	if d.Diff, err = s.worldDiff(ctx, &state.State{Opened: d.opened}, d.before, d.Commit); err != nil {
		d.Problem = fmt.Sprintf("What was changed cannot be shown: %v. 'anamnesis doctor %s' looks closer.", err, task)
	}
	d.Diff.Why = fmt.Sprintf("%s/steps/%d/blame", taskPath(task), d.own.ID)
}

// incomparable returns why the step cannot be compared, or "". It does not create a missing
// store.
func (d *stepDetail) incomparable(task, store string) string {
	held, err := worldstate.HasTask(store, task)
	switch {
	case d.own.ID == 0:
		return "The task begins here: there is nothing before it to compare with."
	case !d.own.Ended:
		return "The step is under way: its files are saved when it ends."
	case !d.own.Saved:
		return "The step has no checkpoint: " + d.own.NoCheckpoint
	case !d.parent.Saved:
		return fmt.Sprintf("Step %d, which this one continues, has no checkpoint: %s",
			d.parent.ID, d.parent.NoCheckpoint)
	case err != nil:
		return fmt.Sprintf("The snapshots cannot be read: %v. 'anamnesis doctor %s' looks closer.", err, task)
	case !held:
		return "The snapshots of this task are not in the home any more, so what was changed cannot be shown."
	}
	return ""
}

type contextDetail struct {
	Seq, At       uint64 // the operation asked for; the last one the context holds
	Sent          bool   // it was sent as it is shown
	X             inspect.Explanation
	Messages      []contextMessage
	First, Last   int // of the messages, from 1
	Total         int
	Before, After string
}

type contextMessage struct {
	inspect.ExplainedMessage
	Number int
	Text   cutText
	Calls  []op.Call
}

func (s *Server) showContext(w http.ResponseWriter, r *http.Request) error {
	from, err := numberIn(r, "from", 0)
	if err != nil {
		return err
	}
	id, o, err := s.opOf(r)
	if err != nil {
		return err
	}
	seq := o.Seq
	c := &contextDetail{Seq: seq, At: seq}
	// A request holds the context before it.
	if asked, ok := o.Line.Body.(*op.ModelAsked); ok && asked.LastSeq > 0 && asked.LastSeq < seq {
		c.At, c.Sent = asked.LastSeq, true
	}
	x, messages, err := s.tasks.Explain(id, c.At)
	if err != nil {
		return fmt.Errorf("%w. 'anamnesis doctor %s' looks closer", err, id)
	}
	path := taskPath(id)
	c.paginate(x, messages, int(min(from, 1<<30)), fmt.Sprintf("%s/ops/%d/context", path, seq))
	d := detail{Task: id, Path: path, Back: backTo(path, seq),
		Title: fmt.Sprintf("Context at operation %d", seq), Context: c}
	return s.showDetail(w, r, d)
}

// paginate selects the messages from one on, or with from 0 the newest, within the limits of a
// page.
func (c *contextDetail) paginate(x inspect.Explanation, messages []model.Message, from int, path string) {
	c.X, c.Total = x, len(messages)
	from = cmp.Or(from, max(len(messages)-messagesShown, 0)+1)
	c.First = max(min(from, len(messages)), 1)
	room := contextBytes
	for i := c.First - 1; i < min(c.First-1+messagesShown, len(messages)); i++ {
		m := contextMessage{ExplainedMessage: x.Messages[i], Number: i + 1, Calls: messages[i].Calls}
		m.Text = cut(messages[i].Text, min(messageBytes, max(room, 0)))
		room -= len(m.Text.Text)
		c.Messages, c.Last = append(c.Messages, m), i+1
	}
	if c.First > 1 {
		c.Before = fmt.Sprintf("%s?from=%d", path, max(c.First-messagesShown, 1))
	}
	if c.Last < c.Total {
		c.After = fmt.Sprintf("%s?from=%d", path, c.Last+1)
	}
}

package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"anamnesis/anamnesis/quote"
	"anamnesis/cmd/internal/page/patch"
	"anamnesis/cmd/internal/page/picture"
	"anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/timeline"
	"anamnesis/knowledge_base/card"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
)

const (
	// maxEvidenceOps is how many operations are shown beside a card.
	maxEvidenceOps = 60
	// maxEvidenceText is how much of each is shown, in bytes.
	maxEvidenceText = 4 << 10
	// maxJumpDistance is how many operations after a card's evidence are searched for
	// the jump that left it.
	maxJumpDistance = 500
)

// evidenceView shows what a card was made from.
type evidenceView struct {
	ID, Topic string
	Task      string
	TaskPath  string
	None      string // why there is no evidence
	Ops       []evidenceOp
	More      int // operations that are not shown
	Jump      *op.JumpIntended
	JumpPath  string
	Changed   string // the title of the patch.Diff
	Diff      patch.Diff
	NoDiff    string      // why there is none
	Worked    *patch.Diff // what the task did in place of the steps that were left
	To, End   int         // from which step to which
}

type evidenceOp struct {
	Seq        uint64
	Step       int
	Kind       op.Kind
	Line, Text string
	Cut        bool
	Open       bool   // its text is shown at once
	Output     string // the end of what a command that failed printed
	Path       string
}

// showEvidence shows the operations a card was made from, the jump that left
// them, and what they had changed; for htmx beside the card, else as a page.
func (s *Server) showEvidence(w http.ResponseWriter, r *http.Request) error {
	c, _, err := s.readCard(r.PathValue("card"))
	if err != nil {
		return err
	}
	v := s.evidence(r, c)
	if partOnly(r) {
		return s.renderPart(w, "evidence", v)
	}
	return s.render(w, r, http.StatusOK, "evidence", view{Title: "Evidence: " + c.Topic, Section: "/cards", Body: v})
}

func taskPath(task string) string { return "/tasks/" + url.PathEscape(task) }

func opPath(task string, seq uint64) string {
	return taskPath(task) + "/ops/" + strconv.FormatUint(seq, 10)
}

func (s *Server) evidence(r *http.Request, c *card.Card) evidenceView {
	p := c.Provenance
	v := evidenceView{ID: c.ID, Topic: c.Topic, Task: p.Task}
	if p.Task == "" || len(p.Ranges) == 0 {
		v.None = "The card names no operations: it was written by hand, or brought from elsewhere."
		return v
	}
	err := s.gather(&v, p)
	switch {
	case errors.Is(err, taskdir.ErrNoTask):
		v.None = "The task is not on this machine."
		return v
	case err != nil:
		v.None = "The task cannot be read: " + err.Error()
		return v
	}
	v.TaskPath = taskPath(p.Task)
	st, err := s.tasks.State(p.Task)
	switch {
	case err != nil:
	case v.Jump != nil:
		v.Changed = "What those steps had changed"
		v.Diff, err = s.worldDiff(r.Context(), st, v.Jump.ToCommit, v.Jump.FromCommit)
		s.instead(r.Context(), &v, st)
	case len(v.Ops) == 0:
		v.NoDiff = "None of the operations can be read."
	default:
		// A card of what worked: its operations begin with the failure and end with the success.
		first, last := &v.Ops[0], &v.Ops[len(v.Ops)-1]
		first.Open, last.Open = true, true
		v.Changed = fmt.Sprintf("What changed from step %d to step %d", first.Step, last.Step)
		var from, to string
		if from, to, err = s.commits(p.Task, first.Step, last.Step); err == nil {
			v.Diff, err = s.worldDiff(r.Context(), st, from, to)
		}
	}
	if err != nil {
		v.NoDiff = "The diff cannot be made: " + err.Error()
	}
	return v
}

// instead compares the target of a jump with the end of the task's path, if that is later.
func (s *Server) instead(ctx context.Context, v *evidenceView, st *state.State) {
	jump := v.Jump
	if on := st.Steps.PathSet(st.Current); jump.To >= len(on) || !on[jump.To] || st.Current == jump.To {
		return
	}
	if _, to, err := s.commits(v.Task, jump.To, st.Current); err == nil {
		if d, err := s.worldDiff(ctx, st, jump.ToCommit, to); err == nil && len(d.Lines) > 0 {
			v.Worked, v.To, v.End = &d, jump.To, st.Current
		}
	}
}

// commits returns the snapshots of two steps of a task.
func (s *Server) commits(task string, from, to int) (first, last string, err error) {
	t, err := s.watches.acquire(task)
	if err != nil {
		return "", "", err
	}
	defer t.mu.Unlock()
	for _, n := range t.builder.Tree().Nodes {
		if n.Step == from {
			first = n.Commit
		}
		if n.Step == to {
			last = n.Commit
		}
	}
	if first == "" || last == "" {
		return "", "", fmt.Errorf("step %d or %d has no checkpoint", from, to)
	}
	return first, last, nil
}

// errEnough stops a walk over operations.
var errEnough = errors.New("enough")

// gather collects the operations of the card's ranges and finds the jump that
// left them.
func (s *Server) gather(v *evidenceView, p card.Provenance) error {
	first, last := p.Ranges[0].First, uint64(0)
	for _, r := range p.Ranges {
		first, last = min(first, r.First), max(last, r.Last)
	}
	err := s.tasks.Ops(p.Task, max(first, 1)-1, func(o op.Op) error {
		within := slices.ContainsFunc(p.Ranges, func(r card.Range) bool { return r.First <= o.Seq && o.Seq <= r.Last })
		switch b := o.Body.(type) {
		case *op.JumpIntended:
			if o.Seq > last && slices.ContainsFunc(b.Discarded,
				func(r op.Range) bool { return r.First <= last && last <= r.Last }) {
				v.Jump, v.JumpPath = b, opPath(p.Task, o.Seq)
			}
		default:
			if within && informs(o) {
				v.add(p.Task, o)
			}
		}
		if v.Jump != nil || o.Seq > last+maxJumpDistance {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return err
}

// informs reports whether an operation adds something to those beside it.
func informs(o op.Op) bool {
	switch b := o.Body.(type) {
	case nil, *op.ModelAsked, *op.ToolCalled, *op.ToolStarted, *op.LogSealed, *op.JumpRequested:
		return false
	case *op.WorldSaved:
		return b.NChanged > 0 || b.Error != ""
	}
	return true
}

func (v *evidenceView) add(task string, o op.Op) {
	if len(v.Ops) == maxEvidenceOps {
		v.More++
		return
	}
	text := strings.Trim(term.Output(state.OpText(o)), "\n")
	said := timeline.LineOf(o, "")
	if strings.HasPrefix(text, "{") && strings.TrimSpace(op.ProjectedText(o.Body)) == "" { // as it is recorded
		text = said.String()
	}
	e := evidenceOp{Seq: o.Seq, Step: o.Step, Kind: o.Body.Kind(), Line: said.Text, Text: text,
		Path: opPath(task, o.Seq)}
	e.Output = picture.FailedOutput(o)
	e.Text = quote.CutBytes(text, maxEvidenceText)
	e.Cut = len(e.Text) < len(text)
	v.Ops = append(v.Ops, e)
}

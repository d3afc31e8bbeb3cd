package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"anamnesis/anamnesis/note"
	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/tool"
)

// A D-Mail replaces everything in the context after a checkpoint by a message that the agent
// wrote. Its request and its pass are those of a jump, so that the loop guard and crash
// recovery need no further cases. It ends with op.MailDelivered, or, if files are restored,
// with the jump.

// toolSendDMail is the tool whose presence shows checkpoints in the step marks.
const toolSendDMail = "SendDMail"

// maxMarked is how many checkpoints the tool dmail numbers in one task.
const maxMarked = 10_000

const (
	writerMail = "mail"
)

// CheckMail returns the jump that sends a D-Mail, or why it cannot be sent.
func (tl taskTimeline) CheckMail(m op.Mail) (*op.JumpRequested, error) {
	s := tl.t.Ledger.State()
	to := m.Checkpoint
	if m.Numbered {
		if to < 0 || to >= len(s.Marked) {
			known := "none was created in an earlier step"
			if marks := s.Marked.Valid(-1, &s.Steps); len(marks) > 0 {
				known = "those created are " + state.IDRanges(marks)
			}
			return nil, fmt.Errorf("there is no checkpoint %d; %s", to, known)
		}
		to = s.Marked[to].Step
	}
	st, err := s.Checkpoint(to)
	switch {
	case err != nil && m.Numbered:
		return nil, fmt.Errorf("checkpoint %d is the end of the step under way; send to it from a later step", m.Checkpoint)
	case err != nil:
		return nil, err
	case m.RestoreFiles && !st.Saved:
		return nil, fmt.Errorf("the files of step %d were not saved (%s); without restore_files it can be sent", to, st.NoCheckpoint)
	case strings.TrimSpace(m.Message) == "":
		return nil, errors.New("the message is empty; it is all that remains of the steps after the checkpoint")
	}
	if n, most := tl.t.Ledger.Journal.Count(m.Message), note.BlockCap(s.Model.EAS); n > most {
		return nil, fmt.Errorf("the message has %d tokens and may have %d; say what matters in fewer words, write long texts to a file and name it", n, most)
	}
	return &op.JumpRequested{To: to, Reason: "D-Mail: " + quote.OneLine(m.Message, notice.MaxDelivered), Mail: &m}, nil
}

// MarkCheckpoint numbers the end of the step under way.
func (tl taskTimeline) MarkCheckpoint(ctx context.Context, call string) (int, error) {
	return tl.t.markCheckpoint(context.WithoutCancel(ctx), call)
}

func (t *Task) markCheckpoint(ctx context.Context, call string) (int, error) {
	number := 0
	err := t.Ledger.Journal.PostWith(ctx, func(p *journal.Public) (op.Body, error) {
		if number = p.Marked; number >= maxMarked {
			return nil, &tool.CallError{Tool: "dmail", Text: fmt.Sprintf("No checkpoint was created: %d are the most a task has.", maxMarked)}
		}
		p.Marked++
		return &op.CheckpointMarked{Checkpoint: number, Call: call}, nil
	})
	return number, err
}

// stepMark is the line that ends a step in the context.
func (t *Task) stepMark(id int) string {
	mark := fmt.Sprintf("[step %d]", id)
	if slices.Contains(t.Ledger.State().Opened.Tools, toolSendDMail) {
		mark += fmt.Sprintf(" CHECKPOINT %d", id)
	}
	return mark
}

// deliverMail removes what came after a checkpoint from the context and inserts the D-Mail. No
// file moves.
func (t *Task) deliverMail(ctx context.Context) error {
	j := t.Ledger.State().Jump.Pending
	if err := t.mailPass(ctx, j); err != nil {
		return err
	}
	return t.Ledger.Record(ctx, &op.MailDelivered{From: t.Ledger.State().Current, To: j.To, Reason: j.Reason})
}

// mailPass records the pass that replaces the steps after the checkpoint. It takes effect when
// the D-Mail is delivered, or with its jump. A pass that an earlier process recorded is
// reused.
func (t *Task) mailPass(ctx context.Context, j *state.Pending) error {
	if len(j.Passes) > 0 {
		return nil
	}
	r := op.Range{First: t.Ledger.State().Steps.At(j.To + 1).First, Last: t.Ledger.State().Steps.At(t.Ledger.State().Steps.Next() - 1).Last}
	ops, err := t.Ledger.Ops(r)
	if err != nil {
		return err
	}
	p := &op.PassDone{Ranges: []op.Range{r}, EAS: t.Ledger.State().Model.EAS, Trigger: op.TriggerMail, Writer: writerMail, Cards: []string{}}
	p.MessagesRemoved, p.RangeTokens = t.Ledger.State().Context.Removes(p)
	ops = slices.DeleteFunc(ops, t.Ledger.State().Settled)
	m := notice.Mail{
		Mail: *j.Mail, To: j.To, From: t.Ledger.State().Current, Ops: r, Messages: p.MessagesRemoved,
		Ledger: notice.LedgerOf(t.Place.Dir, ops), Later: t.Ledger.State().LaterCheckpoints(j.JumpRequested),
	}
	effects, _ := t.subagentsIn(ops)
	m.Effects = append(m.Effects, effects...)
	if !j.Mail.RestoreFiles {
		p.Words = notice.WordsOf(ops, nil, notice.WordsOfLeft, t.Ledger.Counter.Count)
		m.Changed, m.Unknown = t.Place.ChangedSince(ctx, j.To)
		m.Left = t.Ledger.State().LeftBefore(j.To)
	}
	p.Block = m.String()
	return t.Ledger.Record(ctx, p)
}

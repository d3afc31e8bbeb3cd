// Package mail sends D-Mails. A D-Mail replaces everything in the context after a checkpoint by a
// message that the agent wrote. Its request and its pass are those of a jump, so that the loop guard
// and crash recovery need no further cases. It ends with op.MailDelivered, or, if files are restored,
// with the jump.
package mail

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"anamnesis/anamnesis/note"
	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/state/steps"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/workspace"
)

// maxMarked is how many checkpoints the tool dmail numbers in one task.
const maxMarked = 10_000

// writerMail is the writer of a pass whose block the agent wrote.
const writerMail = "mail"

// Sender sends the D-Mails of a task. It is the Mailbox of the task's tools.
type Sender struct {
	place   *workspace.Place
	effects func(ops []op.Op) []string
}

// New returns the sender of a task in a place. effects lists what subagents did beyond the
// directory during some operations.
func New(p *workspace.Place, effects func(ops []op.Op) []string) *Sender {
	return &Sender{place: p, effects: effects}
}

// StepMark returns the end of a step's mark that names its checkpoint, empty if the task has no
// tool that takes one.
func (s *Sender) StepMark(id int) string {
	if !slices.Contains(s.place.State().Opened.Tools, sendName) {
		return ""
	}
	return fmt.Sprintf(" CHECKPOINT %d", id)
}

// CheckMail implements Mailbox.
func (s *Sender) CheckMail(m op.Mail) (*op.JumpRequested, error) {
	st := s.place.State()
	to := m.Checkpoint
	if m.Numbered {
		if to < 0 || to >= len(st.Marked) {
			known := "none was created in an earlier step"
			if marks := validMarks(st, -1); len(marks) > 0 {
				known = "those created are " + steps.IDRanges(marks)
			}
			return nil, fmt.Errorf("there is no checkpoint %d; %s", to, known)
		}
		to = st.Marked[to].Step
	}
	end, err := st.Checkpoint(to)
	switch {
	case err != nil && m.Numbered:
		return nil, fmt.Errorf("checkpoint %d is the end of this step; send to it from a later one", m.Checkpoint)
	case err != nil:
		return nil, err
	case m.RestoreFiles && !end.Saved:
		return nil, fmt.Errorf("the files of step %d were not saved (%s); without restore_files it can be sent", to,
			end.NoCheckpoint)
	case strings.TrimSpace(m.Message) == "":
		return nil, errors.New("the message is empty; it is all that remains of the steps after the checkpoint")
	}
	if n, most := s.place.Journal.Count(m.Message), note.BlockCap(st.Model.EAS); n > most {
		return nil, fmt.Errorf("the message has %d tokens and may have %d; say what matters in fewer words, write "+
			"long texts to a file and name it", n, most)
	}
	return &op.JumpRequested{To: to, Reason: "D-Mail: " + quote.OneLine(m.Message, notice.MaxDelivered), Mail: &m}, nil
}

// MarkCheckpoint implements Mailbox.
func (s *Sender) MarkCheckpoint(ctx context.Context, call string) (number int, err error) {
	err = s.place.Journal.PostWith(context.WithoutCancel(ctx), func(queue []op.Op) ([]op.Body, error) {
		number = len(s.place.State().Marked)
		for _, o := range queue {
			if _, ok := o.Body.(*op.CheckpointMarked); ok {
				number++
			}
		}
		if number >= maxMarked {
			return nil, &tool.CallError{Text: fmt.Sprintf("Not created: a task has at most %d checkpoints.", maxMarked)}
		}
		return []op.Body{&op.CheckpointMarked{Checkpoint: number, Call: call}}, nil
	})
	return number, err
}

// Deliver removes what came after a checkpoint from the context and inserts the D-Mail. No
// file moves.
func (s *Sender) Deliver(ctx context.Context) error {
	j := s.place.State().Jump.Pending
	if err := s.Pass(ctx, j); err != nil {
		return err
	}
	return s.place.Record(ctx, &op.MailDelivered{From: s.place.State().Current, To: j.To, Reason: j.Reason})
}

// Pass records the pass that replaces the steps after the checkpoint. It takes effect when
// the D-Mail is delivered, or with its jump. A pass that an earlier process recorded is
// reused.
func (s *Sender) Pass(ctx context.Context, j *state.Pending) error {
	if len(j.Passes) > 0 {
		return nil
	}
	st := s.place.State()
	r := op.Range{First: st.Steps.At(j.To + 1).First, Last: st.Steps.At(st.Steps.Next() - 1).Last}
	ops, err := s.place.Ops(r)
	if err != nil {
		return err
	}
	p := &op.PassDone{
		Ranges: []op.Range{r}, EAS: st.Model.EAS, Trigger: op.TriggerMail, Writer: writerMail, Cards: []string{},
	}
	p.MessagesRemoved, p.RangeTokens = st.Context.Removes(p)
	ops = slices.DeleteFunc(ops, st.Settled)
	m := Message{
		Mail: *j.Mail, To: j.To, From: st.Current, Ops: r, Messages: p.MessagesRemoved,
		Ledger: notice.LedgerOf(s.place.Dir, ops), Later: laterCheckpoints(st, j.JumpRequested),
	}
	m.Effects = append(m.Effects, s.effects(ops)...)
	if !j.Mail.RestoreFiles {
		p.Words = notice.WordsOf(ops, nil, notice.WordsOfLeft, s.place.Counter.Count)
		m.Changed, m.Unknown = s.place.ChangedSince(ctx, j.To)
		m.Left = leftBefore(st, j.To)
	}
	p.Block = m.String()
	return s.place.Record(ctx, p)
}

func validMarks(st *state.State, above int) []int {
	var valid []int
	for number, mark := range st.Marked {
		if number > above && st.Steps.At(mark.Step).Ended {
			valid = append(valid, number)
		}
	}
	return valid
}

// leftBefore names the steps up to id that an earlier jump left, if the path does not pass
// through id: the context still shows them, without the later notice that they were left.
func leftBefore(st *state.State, id int) string {
	on := st.Steps.PathSet(st.Current)
	return steps.IDRanges(slices.DeleteFunc(st.Steps.Path(id), func(id int) bool { return on[id] }))
}

// laterCheckpoints lists the checkpoints after the one a D-Mail goes to: they stay valid. Without numbers, each step
// is one.
func laterCheckpoints(st *state.State, j op.JumpRequested) string {
	if j.Mail.Numbered {
		return steps.IDRanges(validMarks(st, j.Mail.Checkpoint))
	}
	return op.Range{First: uint64(j.To + 1), Last: uint64(st.Steps.Next() - 1)}.String()
}

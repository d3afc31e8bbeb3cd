package state

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/loop"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/state/projection"
	"anamnesis/orchestrator/state/steps"
)

// Fold applies one operation to the state. It depends only on its two arguments; operations
// must arrive in order of Seq. After an error the state must not be used.
func Fold(s *State, o op.Op) error {
	if o.Seq != s.Last+1 {
		return fmt.Errorf("%w: op %d follows op %d", ErrStream, o.Seq, s.Last)
	}
	s.Last = o.Seq
	s.tokenSums.add(uint64(max(o.Tok, 0)))
	if err := s.place(o); err != nil {
		return err
	}
	if err := s.apply(o); err != nil {
		return fmt.Errorf("fold op %d: %w", o.Seq, err)
	}
	s.Context.Apply(o)
	s.Research.Fold(o)
	s.Questions.Fold(o)
	if sent := op.SentBy(o.Body); sent != nil {
		s.Inbox = max(s.Inbox, sent.N)
	}
	switch o.Body.(type) {
	case *op.ContextMasked, *op.PassDone, *op.JumpIntended, *op.MailDelivered: // results have left the context
		s.Calls.Repeats.Prune(s.Context.Visible())
	}
	return nil
}

func (s *State) place(o op.Op) error {
	switch {
	case o.Step < s.Steps.Len():
		// An ended step takes no more operations: later ones are the log's own.
		if !s.Steps.At(o.Step).Ended {
			s.Steps.Edit(o.Step, func(st *steps.Step) { st.Last = o.Seq })
		}
	case o.Step == s.Steps.Len():
		s.Steps.Add(steps.Step{ID: o.Step, Parent: s.Current, First: o.Seq, Last: o.Seq})
	default:
		return fmt.Errorf("%w: op %d belongs to step %d, but only %d were begun", ErrStream, o.Seq, o.Step,
			s.Steps.Len())
	}
	return nil
}

func (s *State) apply(o op.Op) error {
	switch b := o.Body.(type) {
	case *op.TaskOpened:
		return s.opened(o.Seq, b)
	case *op.TaskResumed:
		s.resumed(b)
	case *op.UserSaid:
		s.said(o.Seq, b)
	case *op.CardsRecalled:
		s.Recall.Done = true
		s.Totals.CardsRecalled += len(b.Cards)
		if !b.InResult() {
			s.Recall.Why = ""
		}
	case *op.ModelAsked:
		s.Turn.AskedAt = b.LastSeq
		s.Pressure.Target, s.Pressure.Asked = 0, b.Tokens
	case *op.ModelReplied:
		s.reply(o.Seq, b)
	case *op.ModelFailed:
		if s.Outage = nil; b.Wait != nil {
			s.Outage = &Outage{Wait: *b.Wait, Error: b.Error}
		}
		if b.Overflow {
			s.overflowed(b.Error)
		}
	case *op.ContextMasked:
		s.Totals.Masked += len(b.Results)
		s.Pressure.Target = b.Target
	case *op.ApprovalDecided:
		s.decided(b)
	case *op.ToolCalled:
		c, err := s.call(b, b.Call)
		if err != nil {
			return err
		}
		c.Called, c.World, c.Effects, c.Changes = true, b.World, b.Effects, b.Changes
		c.Args = b.Args // the user may have edited them
		s.World.Dirty = s.World.Dirty || b.Changes
	case *op.ToolStarted:
		c, err := s.call(b, b.Call)
		if err != nil {
			return err
		}
		c.Started = b
	case *op.ToolReturned:
		return s.returned(o, b)
	case *op.JobStarted, *op.JobEnded:
		s.Jobs.fold(o)
	case *op.SubagentStarted:
		s.Subagents.fold(o)
		s.World.Busy = s.World.Busy || b.Dir == ""
	case *op.SubagentEnded:
		s.Subagents.fold(o)
		s.Totals.Usage = s.Totals.Usage.Plus(b.Usage)
		s.Turn.Steps += b.Steps
	case *op.CheckRan:
		s.check(o.Seq, b)
	case *op.GitSeen:
		s.Git = put(s.Git, b.Dir, Git{b.GitAt, append(s.Git[b.Dir].Seen, o.Seq)})
	case *op.TodosSet:
		s.Todos = b.Todos
	case *op.WorldSaved:
		return s.endStep(o, b)
	case *op.WorldChanged:
		s.changed(o.Seq, b)
	case *op.RestoreIntended:
		s.World.Restoring = b
	case *op.WorldRestored:
		s.restored(b)
	case *op.JumpRequested:
		s.Jump.Pending = &Pending{JumpRequested: *b}
		s.Goal.Back = false
	case *op.JumpDropped:
		if p := s.Jump.Pending; p != nil && p.By == op.ByGoal { // not tried again
			s.Goal.Runs = slices.DeleteFunc(slices.Clone(s.Goal.Runs), func(r GoalRun) bool { return r.Step == b.To })
		}
		s.Jump.Pending = nil
	case *op.PassDone:
		s.pass(projection.Pass{PassDone: b, Seq: o.Seq, Step: o.Step, Tok: o.Tok})
	case *op.JumpIntended:
		s.Jump.Intended = &Jumping{JumpIntended: *b, Seq: o.Seq}
		if b.Card != "" {
			s.Totals.CardsWritten++
		}
		s.takeEffect()
	case *op.JumpDone:
		return s.jumped(b)
	case *op.CheckpointMarked:
		s.Marked = append(s.Marked, Marked{Step: o.Step, Call: b.Call})
	case *op.MailDelivered:
		return s.mailDelivered(o.Seq, b)
	case *op.PassBegun:
		s.Learning = b
	case *op.RepairsFound:
		s.repaired(b)
	case *op.StrategyGiven:
		if b.By == op.ByGoal {
			s.planned(b.Calls, b.Usage)
			break
		}
		question := b.Question
		if len(b.Plan) > 0 {
			question = ""
		}
		s.reflected(b.To, question, "", b.Calls, b.Usage)
	case *op.ReflectFailed:
		if b.By == op.ByGoal {
			s.planned(b.Calls, b.Usage)
			break
		}
		s.reflected(b.To, "", b.Why, b.Calls, b.Usage)
	case *op.TurnEnded:
		s.Turn.end(b)
		s.Outage = nil
		s.Pressure.relieve(&s.Model)
	case *op.ModeSet:
		s.Grants.Plan, s.Grants.Mode = b.Plan, cmp.Or(b.Approval, s.Grants.Mode)
	case *op.HookRan:
		s.Turn.Answered = s.Turn.Answered && !b.GoOn
	case *op.NoticeGiven:
		s.Turn.Quarter = max(s.Turn.Quarter, b.Quarter)
	case *op.QuestionAsked, *op.QuestionAnswered, *op.ResearchDone, *op.ReflectAsked, *op.OutputKept, *op.InboxRead,
		*op.LogRecovered, *op.LogSealed, nil:
		// The others change the context, the questions or the research only, if anything.
	default:
		return fmt.Errorf("%w: Fold does not handle %s", ErrStream, b.Kind())
	}
	return nil
}

// opened applies the task's first operation.
func (s *State) opened(seq uint64, b *op.TaskOpened) error {
	if seq != 1 {
		return fmt.Errorf("%w: a second %s", ErrStream, b.Kind())
	}
	s.Opened, s.Redact, s.Instructions, s.Grants.Mode = *b, b.Redact, b.Instructions, b.Approval
	s.Model = Model{Name: b.Model, BaseURL: b.BaseURL, Reflect: b.Reflect, EAS: b.EAS, Window: b.Window}
	if s.Limits.Steps = b.MaxSteps; b.Limits != nil {
		s.Limits = *b.Limits
	}
	if s.Recall.Why = "start"; b.Goal != nil {
		s.Goal.Goal = *b.Goal
	}
	return nil
}

// restored applies the end of a user's restore of the world.
func (s *State) restored(b *op.WorldRestored) {
	if r := s.World.Restoring; r != nil && r.Overwrite && len(r.Paths) == 0 && !b.Abandoned {
		s.overwritten(b.ToStep)
	}
	s.World.Restoring = nil
	if b.Base != "" {
		s.snapshot(Snapshot{Commit: b.Base, Tree: b.Tree})
	}
	if b.Notice != "" { // the files are no longer those of the step, so earlier calls prove nothing
		s.Calls.Repeats.Epoch++
		s.Calls.Undone = nil
	}
}

// decided applies a decision on a call as far as it concerns later ones.
func (s *State) decided(b *op.ApprovalDecided) {
	if b.ForTask {
		s.Grants.Mode = string(approval.ModeAuto)
	}
	if b.Same && b.Print != "" {
		s.Grants.Prints = put(s.Grants.Prints, b.Print, true)
	}
	s.Grants.Rules = append(slices.Clip(s.Grants.Rules), b.Rules...)
	if b.By == ByUndoneGuard {
		s.Calls.heldOnce(s.worldNow(), s.Reply.all(), b.Call)
	}
	if b.By == ByNeverStarts {
		for _, fact := range b.Subjects {
			s.Calls.NeverStarts = put(s.Calls.NeverStarts, fact, true)
		}
	}
}

// said applies a user's words. If the loop guard asked for a strategy, they are it.
func (s *State) said(seq uint64, b *op.UserSaid) {
	if end := s.Turn.End; end != nil && end.Reason == "stuck" {
		s.Jump.Ticks = nil
	}
	if p := s.Jump.Pending; p != nil && (p.Question != "" || p.NoStrategy != "") {
		s.Jump.Ticks = nil
	}
	if !s.Turn.Open {
		s.Turn = Turn{Open: true, AskedAt: s.Turn.AskedAt}
	}
	s.Turn.LastWords, s.Goal.Meant = seq, len(s.Goal.Runs) > 0
	s.Calls.Streak = loop.Streak{} // the user may want the same call once more
	if b.Source == op.SourceRequest {
		if s.Said.Request = b.Text; s.Said.First == "" || s.Said.First == NoPrompt {
			s.Said.First = b.Text
		}
	}
}

// resumed applies that a process resumed the task.
func (s *State) resumed(b *op.TaskResumed) {
	s.Redact = WithNames(s.Redact, b.Redact)
	if b.Instructions != nil {
		s.Instructions = *b.Instructions
	}
	if b.Model != "" {
		if b.Model != s.Model.Name || b.BaseURL != s.Model.BaseURL {
			s.Outage = nil // another provider
		}
		s.Model.Name, s.Model.BaseURL = b.Model, b.BaseURL
	}
	if b.Reflect != "" {
		s.Model.Reflect = b.Reflect
	}
	if b.EAS > 0 { // another model
		s.Model.EAS, s.Model.Window = b.EAS, b.Window
	}
	s.Grants.Mode = cmp.Or(b.Approval, s.Grants.Mode)
	s.Opened.WhenAsked = cmp.Or(b.WhenAsked, s.Opened.WhenAsked)
	s.Opened.Task = cmp.Or(b.Task, s.Opened.Task)
	if b.Limits != nil {
		s.Limits = *b.Limits
	}
	if b.Goal != nil {
		s.Goal = Goal{Goal: *b.Goal}
	}
	if b.Dir != "" {
		if b.Dir != s.Opened.Dir {
			s.Moved = append(s.Moved, s.Opened.Dir)
		}
		s.Opened.Dir, s.Opened.Store = b.Dir, b.Store
	}
	if b.Continue && !s.Turn.Open {
		s.Turn = Turn{Open: true, LastWords: s.Turn.LastWords, AskedAt: s.Turn.AskedAt}
	}
}

func (s *State) reply(seq uint64, b *op.ModelReplied) {
	if s.Pressure.Overflows > 0 && s.Pressure.Asked >= s.Model.Window { // as large as the refused one
		s.Model.Window = s.Pressure.Window
	}
	s.Pressure.Seen, s.Pressure.Overflows = s.Turn.AskedAt, 0
	s.Outage = nil
	r := &Reply{Seq: seq}
	if b.Joins && s.Reply != nil {
		r = s.Reply
	}
	for _, c := range b.Calls {
		r.Calls = append(r.Calls, CallState{Call: c})
	}
	s.Reply = r
	s.Turn.LeftRead = false
	words := b.Finish != op.FinishCheckpoint // for the user
	continues := s.Turn.Finish == op.FinishLength && s.Turn.Empties > 0
	s.Turn.Finish, s.Turn.Empty = b.Finish, strings.TrimSpace(b.Text) == "" ||
		slices.Contains(b.Repairs, op.RepairUnreadCall)
	if s.Turn.Empties++; b.Unfinished() == "" {
		s.Turn.Empties = 0
	}
	s.Turn.Answered = len(b.Calls) == 0 && words && (s.Turn.Empties == 0 || s.Turn.Empties > MaxEmptyReplies)
	switch {
	case s.Turn.Empty || !words:
	case continues:
		s.Said.Answer += b.Text
	default:
		s.Said.Answer = b.Text
	}
	if n := len(b.Calls); n > 0 {
		s.Calls.Last = &model.Past{CallID: b.Calls[n-1].ID}
	}
	s.Totals.Replies++
	s.Totals.Usage = s.Totals.Usage.Plus(b.Usage)
}

// call returns a call of the reply. An operation of another one is impossible: the loop
// records intents first.
func (s *State) call(b op.Body, id string) (*CallState, error) {
	if s.Reply == nil {
		return nil, fmt.Errorf("%w: %s for call %q outside a reply", ErrStream, b.Kind(), id)
	}
	i := slices.IndexFunc(s.Reply.Calls, func(c CallState) bool { return c.ID == id })
	if i < 0 {
		return nil, fmt.Errorf("%w: %s for unknown call %q", ErrStream, b.Kind(), id)
	}
	return &s.Reply.Calls[i], nil
}

// returned applies a call's result.
func (s *State) returned(o op.Op, b *op.ToolReturned) error {
	c, err := s.call(b, b.Call)
	if err != nil {
		return err
	}
	if c.Returned {
		return fmt.Errorf("%w: two results for call %q", ErrStream, b.Call)
	}
	c.Returned = true
	if c.Called && op.Acts(c.Name) != op.Rewinds { // the same call after going back is no repetition
		s.Calls.Streak = s.Calls.Streak.After(c.Name, c.Args)
	}
	s.Repairs.recordResult(s.Reply.Seq, c, b)
	failed := b.IsError || b.Refused || (b.Exit != nil && *b.Exit != 0)
	if c.Called && !b.Unknown {
		s.Calls.Repeats.Add(loop.Call{World: c.World, Tool: c.Name, Args: c.Args, Effects: c.Effects},
			loop.Run{Seq: o.Seq, Failed: failed})
	}
	s.Reply.Wrote = s.Reply.Wrote || len(b.Writes) > 0 && !failed
	if c.ID == s.Calls.Last.CallID {
		s.Calls.Last.Result = b.Text
	}
	s.Steps.Edit(o.Step, func(st *steps.Step) {
		st.Calls = append(st.Calls, c.Name)
		if failed {
			st.Failed++
		} else {
			began(st, c, o.Seq)
		}
	})
	return nil
}

func (s *State) endStep(o op.Op, b *op.WorldSaved) error {
	if s.Steps.At(o.Step).Ended {
		return fmt.Errorf("%w: step %d ended twice", ErrStream, o.Step)
	}
	if b.Parent < 0 || b.Parent > o.Step || (b.Parent == o.Step && o.Step != 0) {
		return fmt.Errorf("%w: step %d has parent %d", ErrStream, o.Step, b.Parent)
	}
	world := steps.MarkOf(b.Tree)
	same := o.Step > 0 && world == s.worldNow() && !s.World.Now.Partial
	s.Steps.Edit(o.Step, func(st *steps.Step) {
		st.Ended, st.Parent, st.Todos = true, b.Parent, s.Todos
		st.Saved, st.World, st.NoCheckpoint = b.Commit != "", world, b.Error
		if same {
			st.Began = nil // the step changed nothing on the path
		}
	})
	if same && s.Reply != nil && s.Reply.Wrote {
		s.Calls.Repeats.Epoch++ // an ignored file was written, which the world id does not cover
	}
	s.Current, s.Reply = o.Step, nil
	s.snapshot(Snapshot{})
	s.World.Gone = b.Gone
	if o.Step > 0 {
		s.Turn.Steps++
	}
	return nil
}

func (s *State) jumped(b *op.JumpDone) error {
	if b.To < 0 || b.To >= s.Steps.Len() || !s.Steps.At(b.To).Ended {
		return fmt.Errorf("%w: jump to step %d, which has not ended", ErrStream, b.To)
	}
	if j := s.Jump.Intended; j != nil && j.Backward && j.By == op.ByAgent {
		s.Jump.Ticks = append(s.Jump.Ticks, Tick{b.To, j.Seq})
		s.Calls.undo(&s.Steps, s.Discarded(b.To), j.Reason)
	}
	if j := s.Jump.Intended; j != nil {
		for _, id := range s.Discarded(b.To) {
			s.Steps.Edit(id, func(st *steps.Step) { st.LeftBy = j.Why() })
		}
		if j.Overwrite && !b.Abandoned {
			s.overwritten(b.To)
		}
	}
	s.Jump.Pending, s.Jump.Intended = nil, nil
	s.Current = b.To
	s.snapshot(Snapshot{Commit: b.Base, Tree: b.Tree})
	s.Todos = s.Steps.At(b.To).Todos
	s.Calls.redo(&s.Steps, s.Current)
	if n := s.Steps.Len() - 1; !s.Steps.At(n).Ended {
		s.Steps.Edit(n, func(st *steps.Step) { st.Parent = b.To })
	}
	s.Totals.Jumps++
	// After a jump the agent continues, even if it had answered before.
	s.Turn.Answered = false
	return nil
}

// mailDelivered applies the end of a D-Mail that moved no files. It counts as a jump back to
// its checkpoint.
func (s *State) mailDelivered(seq uint64, b *op.MailDelivered) error {
	if b.To < 0 || b.To >= s.Steps.Len() || !s.Steps.At(b.To).Ended {
		return fmt.Errorf("%w: a D-Mail to step %d, which has not ended", ErrStream, b.To)
	}
	s.takeEffect()
	s.Jump.Ticks = append(s.Jump.Ticks, Tick{b.To, seq})
	s.Jump.Pending = nil
	s.Totals.Mails++
	s.Turn.Answered = false
	return nil
}

// pass applies a pass. One made for a jump waits for the jump's intent.
func (s *State) pass(p projection.Pass) {
	s.Totals.Passes++
	s.Totals.CardsWritten += len(p.Cards)
	s.Totals.Usage = s.Totals.Usage.Plus(p.Usage)
	if p.Trigger == op.TriggerEnd {
		s.learned(p)
		return
	}
	if s.Jump.Pending != nil && s.Jump.Intended == nil && p.Trigger != op.TriggerWindow {
		s.Jump.Pending.Passes = append(s.Jump.Pending.Passes, p)
		return
	}
	s.compact(p)
	if p.Trigger == op.TriggerWindow {
		s.Pressure.Target = p.Target
		for _, r := range p.Ranges {
			s.Pressure.Compacted = max(s.Pressure.Compacted, r.Last)
		}
	}
}

// takeEffect compacts the ranges of the passes made for the pending jump.
func (s *State) takeEffect() {
	if s.Jump.Pending == nil {
		return
	}
	for _, p := range s.Jump.Pending.Passes {
		s.compact(p)
	}
	s.Jump.Pending.Passes = nil
}

// compact replaces a pass's ranges, which are whole steps, by its block.
func (s *State) compact(p projection.Pass) {
	if p.Block == "" {
		return
	}
	s.Totals.Blocks++
	read := p.Trigger != op.TriggerMail // a D-Mail is written without reading the steps
	carried := !read && p.Words != ""
	for id := range s.Steps.In(p.Ranges) {
		s.Steps.Edit(id, func(st *steps.Step) {
			st.Compacted, st.Read, st.Carried = true, st.Read || read, st.Carried || carried
		})
	}
	s.Context.Compact(p)
}

// reflected applies the end of a reflection. A plan restarts the count of jumps; without one
// the pending jump waits for a user.
func (s *State) reflected(to int, question, failed string, calls int, usage op.Usage) {
	s.Totals.Reflections += calls
	s.Totals.Usage = s.Totals.Usage.Plus(usage)
	s.Outage = nil
	if question == "" && failed == "" {
		s.Jump.Ticks = slices.DeleteFunc(s.Jump.Ticks, func(t Tick) bool { return t.To == to })
		if len(s.Jump.Ticks) == 0 {
			s.Jump.Ticks = nil
		}
		return
	}
	if s.Jump.Pending != nil {
		s.Jump.Pending.Question, s.Jump.Pending.NoStrategy = question, failed
	}
}

// WithNames returns names and those of more that it lacks.
func WithNames(names, more []string) []string {
	for _, name := range more {
		if !slices.Contains(names, name) {
			names = append(slices.Clip(names), name)
		}
	}
	return names
}

func (t *Turn) end(b *op.TurnEnded) {
	t.End = b
	// Words recorded after the decision to end the turn and before its end have no answer yet.
	t.Open = b.Reason == "done" && t.LastWords > t.AskedAt
}

func (s *State) repaired(b *op.RepairsFound) {
	if s.Repairs = (Repairs{}); b.Asks {
		s.Turn.Pairs = b.Range
	}
	s.Turn.Learned = append(s.Turn.Learned, b.Cards...)
	s.Totals.CardsWritten += len(b.Cards) - len(b.Superseded)
}

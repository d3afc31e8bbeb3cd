package op

// Kind names what an operation records. The part before the dot is what it is about.
//
// A new kind gets a place in Bodies and a method Kind on this page, and a case in each of state.Fold, its
// projection and timeline.LineOf. timeline.Builder shows it among the steps, if it has a row there.
type Kind string

// The kinds that code names without their bodies.
const (
	KindTaskOpened   Kind = "task.opened"
	KindTaskResumed  Kind = "task.resumed"
	KindUserSaid     Kind = "user.said"
	KindToolReturned Kind = "tool.returned"
	KindWorldSaved   Kind = "world.saved"
	KindPassDone     Kind = "pass.done"
	KindJumpIntended Kind = "jump.intended"
	KindJumpDone     Kind = "jump.done"
)

// Bodies returns an empty body of each kind. TestEveryKindIsHandled compares with it the methods below and the
// functions that handle kinds.
func Bodies() []Body {
	return []Body{
		new(TaskOpened), new(TaskResumed), new(UserSaid), new(CardsRecalled), new(ModelAsked),
		new(ModelReplied), new(ModelFailed), new(QuestionAsked), new(QuestionAnswered), new(ApprovalDecided),
		new(ResearchDone), new(ToolCalled), new(ToolStarted), new(OutputKept), new(ToolReturned), new(TodosSet),
		new(SubagentStarted), new(SubagentEnded), new(JobStarted), new(JobEnded), new(WorldSaved),
		new(WorldChanged), new(RestoreIntended), new(WorldRestored), new(JumpRequested),
		new(JumpDropped), new(CheckpointMarked), new(MailDelivered), new(PassBegun), new(PassDone),
		new(RepairsFound), new(ContextMasked), new(ReflectAsked), new(CheckRan), new(StrategyGiven),
		new(ReflectFailed), new(JumpIntended), new(JumpDone), new(NoticeGiven), new(ModeSet), new(TurnEnded),
		new(GitSeen), new(HookRan), new(InboxRead), new(LogRecovered), new(LogSealed),
	}
}

// The names of the kinds, in the order in which a task usually meets them. The log itself writes the last two.

func (*TaskOpened) Kind() Kind       { return KindTaskOpened }
func (*TaskResumed) Kind() Kind      { return KindTaskResumed }
func (*UserSaid) Kind() Kind         { return KindUserSaid }
func (*CardsRecalled) Kind() Kind    { return "cards.recalled" }
func (*ModelAsked) Kind() Kind       { return "model.asked" }
func (*ModelReplied) Kind() Kind     { return "model.replied" }
func (*ModelFailed) Kind() Kind      { return "model.failed" }
func (*QuestionAsked) Kind() Kind    { return "question.asked" }
func (*QuestionAnswered) Kind() Kind { return "question.answered" }
func (*HookRan) Kind() Kind          { return "hook.ran" }
func (*ApprovalDecided) Kind() Kind  { return "approval.decided" }
func (*ResearchDone) Kind() Kind     { return "research.done" }
func (*ToolCalled) Kind() Kind       { return "tool.called" }
func (*ToolStarted) Kind() Kind      { return "tool.started" }
func (*OutputKept) Kind() Kind       { return "output.kept" }
func (*ToolReturned) Kind() Kind     { return KindToolReturned }
func (*TodosSet) Kind() Kind         { return "todos.set" }
func (*SubagentStarted) Kind() Kind  { return "subagent.started" }
func (*SubagentEnded) Kind() Kind    { return "subagent.ended" }
func (*JobStarted) Kind() Kind       { return "job.started" }
func (*JobEnded) Kind() Kind         { return "job.ended" }
func (*WorldSaved) Kind() Kind       { return KindWorldSaved }
func (*WorldChanged) Kind() Kind     { return "world.changed" }
func (*RestoreIntended) Kind() Kind  { return "restore.intended" }
func (*WorldRestored) Kind() Kind    { return "world.restored" }
func (*JumpRequested) Kind() Kind    { return "jump.requested" }
func (*JumpDropped) Kind() Kind      { return "jump.dropped" }
func (*CheckpointMarked) Kind() Kind { return "checkpoint.marked" }
func (*MailDelivered) Kind() Kind    { return "mail.delivered" }
func (*PassBegun) Kind() Kind        { return "pass.begun" }
func (*PassDone) Kind() Kind         { return KindPassDone }
func (*RepairsFound) Kind() Kind     { return "repairs.found" }
func (*ContextMasked) Kind() Kind    { return "context.masked" }
func (*ReflectAsked) Kind() Kind     { return "reflect.asked" }
func (*StrategyGiven) Kind() Kind    { return "strategy.given" }
func (*ReflectFailed) Kind() Kind    { return "reflect.failed" }
func (*JumpIntended) Kind() Kind     { return KindJumpIntended }
func (*JumpDone) Kind() Kind         { return KindJumpDone }
func (*NoticeGiven) Kind() Kind      { return "notice.given" }
func (*ModeSet) Kind() Kind          { return "mode.set" }
func (*CheckRan) Kind() Kind         { return "check.ran" }
func (*GitSeen) Kind() Kind          { return "git.seen" }
func (*InboxRead) Kind() Kind        { return "inbox.read" }
func (*TurnEnded) Kind() Kind        { return "turn.ended" }
func (*LogRecovered) Kind() Kind     { return "log.recovered" }
func (*LogSealed) Kind() Kind        { return "log.sealed" }

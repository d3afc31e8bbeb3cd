package op

// Kind names what an operation records. The part before the dot is what it is about.
//
// A new kind gets a constant, a place in Bodies and a method Kind on this page, and a case in each of state.Fold, its
// projection and timeline.LineOf. timeline.Builder shows it among the steps, if it has a row there.
type Kind string

// The kinds, in the order in which a task usually meets them.
const (
	KindTaskOpened       Kind = "task.opened"
	KindTaskResumed      Kind = "task.resumed"
	KindUserSaid         Kind = "user.said"
	KindCardsRecalled    Kind = "cards.recalled"
	KindModelAsked       Kind = "model.asked"
	KindModelReplied     Kind = "model.replied"
	KindModelFailed      Kind = "model.failed"
	KindQuestionAsked    Kind = "question.asked"
	KindQuestionAnswered Kind = "question.answered"
	KindApprovalDecided  Kind = "approval.decided"
	KindResearchDone     Kind = "research.done"
	KindToolCalled       Kind = "tool.called"
	KindToolStarted      Kind = "tool.started"
	KindOutputKept       Kind = "output.kept"
	KindToolReturned     Kind = "tool.returned"
	KindTodosSet         Kind = "todos.set"
	KindSubagentStarted  Kind = "subagent.started"
	KindSubagentEnded    Kind = "subagent.ended"
	KindJobStarted       Kind = "job.started"
	KindJobEnded         Kind = "job.ended"
	KindWorldSaved       Kind = "world.saved"
	KindWorldChanged     Kind = "world.changed"
	KindRestoreIntended  Kind = "restore.intended"
	KindWorldRestored    Kind = "world.restored"
	KindJumpRequested    Kind = "jump.requested"
	KindJumpDropped      Kind = "jump.dropped"
	KindCheckpointMarked Kind = "checkpoint.marked"
	KindMailDelivered    Kind = "mail.delivered"
	KindPassBegun        Kind = "pass.begun"
	KindPassDone         Kind = "pass.done"
	KindRepairsFound     Kind = "repairs.found"
	KindContextMasked    Kind = "context.masked"
	KindReflectAsked     Kind = "reflect.asked"
	KindStrategyGiven    Kind = "strategy.given"
	KindReflectFailed    Kind = "reflect.failed"
	KindJumpIntended     Kind = "jump.intended"
	KindJumpDone         Kind = "jump.done"
	KindNoticeGiven      Kind = "notice.given"
	KindCheckRan         Kind = "check.ran"
	KindGitSeen          Kind = "git.seen"
	KindTurnEnded        Kind = "turn.ended"
	// The log itself writes these two.
	KindLogRecovered Kind = "log.recovered"
	KindLogSealed    Kind = "log.sealed"
)

// Bodies returns an empty body of each kind. It is the only list of kinds:
// TestEveryKindIsHandled compares with it the constants and the functions that handle kinds.
func Bodies() []Body {
	return []Body{
		new(TaskOpened), new(TaskResumed), new(UserSaid), new(CardsRecalled), new(ModelAsked),
		new(ModelReplied), new(ModelFailed), new(QuestionAsked), new(QuestionAnswered), new(ApprovalDecided), new(ResearchDone),
		new(ToolCalled), new(ToolStarted), new(OutputKept), new(ToolReturned), new(TodosSet),
		new(SubagentStarted), new(SubagentEnded), new(JobStarted), new(JobEnded), new(WorldSaved),
		new(WorldChanged), new(RestoreIntended), new(WorldRestored), new(JumpRequested),
		new(JumpDropped), new(CheckpointMarked), new(MailDelivered), new(PassBegun), new(PassDone),
		new(RepairsFound), new(ContextMasked), new(ReflectAsked), new(CheckRan), new(StrategyGiven),
		new(ReflectFailed), new(JumpIntended), new(JumpDone), new(NoticeGiven), new(TurnEnded),
		new(GitSeen), new(LogRecovered), new(LogSealed),
	}
}

func (*TaskOpened) Kind() Kind       { return KindTaskOpened }
func (*TaskResumed) Kind() Kind      { return KindTaskResumed }
func (*UserSaid) Kind() Kind         { return KindUserSaid }
func (*CardsRecalled) Kind() Kind    { return KindCardsRecalled }
func (*ModelAsked) Kind() Kind       { return KindModelAsked }
func (*ModelReplied) Kind() Kind     { return KindModelReplied }
func (*ModelFailed) Kind() Kind      { return KindModelFailed }
func (*QuestionAsked) Kind() Kind    { return KindQuestionAsked }
func (*QuestionAnswered) Kind() Kind { return KindQuestionAnswered }
func (*ApprovalDecided) Kind() Kind  { return KindApprovalDecided }
func (*ResearchDone) Kind() Kind     { return KindResearchDone }
func (*ToolCalled) Kind() Kind       { return KindToolCalled }
func (*ToolStarted) Kind() Kind      { return KindToolStarted }
func (*OutputKept) Kind() Kind       { return KindOutputKept }
func (*ToolReturned) Kind() Kind     { return KindToolReturned }
func (*TodosSet) Kind() Kind         { return KindTodosSet }
func (*SubagentStarted) Kind() Kind  { return KindSubagentStarted }
func (*SubagentEnded) Kind() Kind    { return KindSubagentEnded }
func (*JobStarted) Kind() Kind       { return KindJobStarted }
func (*JobEnded) Kind() Kind         { return KindJobEnded }
func (*WorldSaved) Kind() Kind       { return KindWorldSaved }
func (*WorldChanged) Kind() Kind     { return KindWorldChanged }
func (*RestoreIntended) Kind() Kind  { return KindRestoreIntended }
func (*WorldRestored) Kind() Kind    { return KindWorldRestored }
func (*JumpRequested) Kind() Kind    { return KindJumpRequested }
func (*JumpDropped) Kind() Kind      { return KindJumpDropped }
func (*CheckpointMarked) Kind() Kind { return KindCheckpointMarked }
func (*MailDelivered) Kind() Kind    { return KindMailDelivered }
func (*PassBegun) Kind() Kind        { return KindPassBegun }
func (*PassDone) Kind() Kind         { return KindPassDone }
func (*RepairsFound) Kind() Kind     { return KindRepairsFound }
func (*ContextMasked) Kind() Kind    { return KindContextMasked }
func (*ReflectAsked) Kind() Kind     { return KindReflectAsked }
func (*CheckRan) Kind() Kind         { return KindCheckRan }
func (*StrategyGiven) Kind() Kind    { return KindStrategyGiven }
func (*ReflectFailed) Kind() Kind    { return KindReflectFailed }
func (*JumpIntended) Kind() Kind     { return KindJumpIntended }
func (*JumpDone) Kind() Kind         { return KindJumpDone }
func (*NoticeGiven) Kind() Kind      { return KindNoticeGiven }
func (*TurnEnded) Kind() Kind        { return KindTurnEnded }
func (*GitSeen) Kind() Kind          { return KindGitSeen }
func (*LogRecovered) Kind() Kind     { return KindLogRecovered }
func (*LogSealed) Kind() Kind        { return KindLogSealed }

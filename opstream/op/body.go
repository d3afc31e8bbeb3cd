package op

import (
	"encoding/json"
	"time"
)

// TaskOpened is a task's first operation: everything that stays true of it.
type TaskOpened struct {
	Task    string `json:"task"`           // the task's id
	Dir     string `json:"dir"`            // the world's directory, absolute
	Repo    string `json:"repo,omitempty"` // the project the directory belongs to: host and path of its origin, or a name
	Store   string `json:"store"`          // the bare repository of its snapshots
	Model   string `json:"model"`          // model name, or script:FILE
	BaseURL string `json:"base_url"`       // empty: the provider's own
	// Reflect is the model asked as the Reflect-Agent; empty: Model.
	Reflect  string `json:"reflect_model,omitempty"`
	EAS      int    `json:"eas"`              // effective attention span, tokens
	EASFrom  string `json:"eas_from"`         // where that number comes from
	Window   int    `json:"window,omitempty"` // advertised context window, tokens; 0: unknown
	Encoding string `json:"encoding"`         // tokenizer the tok fields are counted in
	Approval string `json:"approval"`         // ask | edits | auto | deny
	MaxSteps int    `json:"max_steps"`        // 0: the default
	// Sandbox is what commands are held in: world | read-only | off; empty means
	// world. Writable are directories beside the world that they may write.
	Sandbox string `json:"sandbox,omitempty"`
	// Allow, Ask and Deny are rules given for the task, as they are written.
	Allow    []string `json:"allow,omitempty"`
	Ask      []string `json:"ask,omitempty"`
	Deny     []string `json:"deny,omitempty"`
	Writable []string `json:"writable,omitempty"`
	// Parent is the task that a subagent's task is a part of; nil for others.
	Parent *Parent `json:"parent,omitempty"`
	// Tools are the tools the agent has beside those that every agent has.
	Tools  []string `json:"tools,omitempty"`
	KB     string   `json:"kb"`     // knowledge base folder
	System string   `json:"system"` // the system prompt, rendered once
	// NoResearch lets calls about new subjects run without an investigation;
	// Guarded are calls that need one beside the built-in kinds.
	NoResearch bool          `json:"no_research,omitempty"`
	Guarded    []CallPattern `json:"guarded,omitempty"`
	// Redact names the variables whose values are kept out of the record, beside
	// those whose names say so. The values stand nowhere.
	Redact []string `json:"redact,omitempty"`
	// NoFinalPass: the paths the task left are not read at its end.
	NoFinalPass bool `json:"no_final_pass,omitempty"`
	// Mark is the word in the program's own marks, which only this task knows; empty in
	// tasks whose marks have none.
	Mark string `json:"mark,omitempty"`
	// Experiment: each unreviewed card is kept from a random tenth of such tasks.
	Experiment bool `json:"experiment,omitempty"`
	// Agent is the spec the task was opened with; nil in tasks of before specs.
	Agent *Agent `json:"agent,omitempty"`
	// Instructions are the files of the repository that System quotes.
	Instructions []SourceFile `json:"instructions,omitempty"`
	Program      string       `json:"program"` // version that wrote it
	// Origin is the session of another agent that the task was recorded from; nil for
	// our own.
	Origin *Origin `json:"origin,omitempty"`
}

// Origin names a session of another agent.
type Origin struct {
	Agent   string `json:"agent"`   // claude-code | codex | opencode | gemini | kimi
	Session string `json:"session"` // the agent's own id of it
	// File is the session file that the task was imported from; empty where it was
	// recorded while it ran.
	File    string `json:"file,omitempty"`
	Version string `json:"version,omitempty"` // of the agent
	// Began is when an imported session began.
	Began time.Time `json:"began,omitzero"`
}

// Imported reports whether the task was read from a session file: it has no
// snapshots.
func (o *Origin) Imported() bool { return o != nil && o.File != "" }

// TaskResumed says that a process took the task up again.
type TaskResumed struct {
	PID     int    `json:"pid"`
	Model   string `json:"model,omitempty"`         // when changed on resume
	BaseURL string `json:"base_url,omitempty"`      // when changed on resume
	Reflect string `json:"reflect_model,omitempty"` // when changed on resume
	EAS     int    `json:"eas,omitempty"`           // when changed with the model
	EASFrom string `json:"eas_from,omitempty"`
	Window  int    `json:"window,omitempty"` // of the changed model; 0: unknown
	Program string `json:"program"`
	// Continue opens a turn that had ended unanswered, without new words.
	Continue bool `json:"continue,omitempty"`
	// Redact names further variables of TaskOpened.Redact's kind.
	Redact []string `json:"redact,omitempty"`
	// Instructions are what became of TaskOpened's, where the files changed since
	// they were last looked at. Notice says so to the model.
	Instructions *[]SourceFile `json:"instructions,omitempty"`
	Notice       string        `json:"notice,omitempty"`
}

// SourceFile is a file as it was read.
type SourceFile struct {
	Path  string `json:"path"` // absolute
	Hash  string `json:"hash"` // SHA-256 of its bytes, hex
	Bytes int    `json:"bytes"`
}

// Source says through which door a user's words came.
type Source string

// The doors.
const (
	SourceRequest   Source = "request"   // the task's request, or a later turn's
	SourceSteer     Source = "steer"     // said while a turn was running
	SourceRejection Source = "rejection" // feedback given with a refused call
	SourceAnswer    Source = "answer"    // reply to a question of the agent
)

// UserSaid is a user's words. A jump never loses them.
type UserSaid struct {
	Text   string `json:"text"`
	Source Source `json:"source"`
}

// CardRef names one card that was shown.
type CardRef struct {
	ID    string  `json:"id"`
	Topic string  `json:"topic"`
	State string  `json:"state"`
	Score float64 `json:"score,omitempty"`
	// Rung is how far the card could be believed: verified | reviewed | hypothesis.
	Rung string `json:"rung,omitempty"`
	// What it says that a task can bear out: the error it quotes, in its normal form;
	// the command that fails with it, and the tree it failed in; what its solution
	// names to be run or changed.
	Error string   `json:"error,omitempty"`
	Check string   `json:"check,omitempty"`
	World string   `json:"world,omitempty"`
	Tries []string `json:"tries,omitempty"`
}

// CardsRecalled is one recall, rendered once as quoted data.
type CardsRecalled struct {
	Query string    `json:"query"`
	Cards []CardRef `json:"cards"`
	Text  string    `json:"text"`            // what the model is shown; empty when nothing was found
	Why   string    `json:"why"`             // start | jump | asked | failure | warning
	Error string    `json:"error,omitempty"` // the knowledge base could not be searched
	// Degraded says why the search went by words only; in the first record for
	// which that holds.
	Degraded string `json:"degraded,omitempty"`
	// Met are cards about the error that the call just met, which the task had not
	// been shown, nor any card drawn from them.
	Met []string `json:"met,omitempty"`
	// Withheld are unreviewed cards that the experiment kept from this task.
	Withheld []CardRef `json:"withheld,omitempty"`
}

// InResult reports whether a call's result shows the cards, so that the context does
// not hold them a second time.
func (b *CardsRecalled) InResult() bool {
	return b.Why == "asked" || b.Why == "failure" || b.Why == "warning"
}

// ModelAsked is the intent of one model request.
type ModelAsked struct {
	Hash    string `json:"hash"`     // SHA-256 of the request, hex
	LastSeq uint64 `json:"last_seq"` // the last op the projection contains
	Tokens  int    `json:"tokens"`   // estimate of the prompt, in the task's encoding
}

// Call is one tool call of a model's reply.
type Call struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Args is the arguments as the model sent them: normally a JSON object,
	// but kept as text so that a malformed one is recorded as it was.
	Args string `json:"args"`
}

// ModelReplied is one complete reply: half a reply is ModelFailed.
type ModelReplied struct {
	Text      string `json:"text"`
	Reasoning string `json:"reasoning,omitempty"`
	Calls     []Call `json:"calls,omitempty"`
	Finish    string `json:"finish"` // provider's finish reason, never empty
	Usage     Usage  `json:"usage"`
	Model     string `json:"model,omitempty"` // as the provider named it
	Millis    int64  `json:"ms"`
	// Joins: the calls are of the reply before, whose own are not all done. So another
	// agent's calls are told, one by one.
	Joins bool `json:"joins,omitempty"`
}

// ModelFailed ends a request that got no reply.
type ModelFailed struct {
	Error   string `json:"error"`
	Status  int    `json:"status,omitempty"`  // HTTP status, where there was one
	Tries   int    `json:"tries"`             // requests made
	Partial string `json:"partial,omitempty"` // text that had arrived
	// Overflow: the request did not fit the model's context window.
	Overflow bool `json:"overflow,omitempty"`
}

// ApprovalDecided records who let a call run, or did not.
type ApprovalDecided struct {
	Call     string `json:"call"`     // call id
	Decision string `json:"decision"` // allow | refuse | edit: decided anew with Args
	By       string `json:"by"`       // person | mode:deny | …
	Feedback string `json:"feedback,omitempty"`
	// ForTask: and every later call of this task.
	ForTask bool `json:"for_task,omitempty"`
	// Print names exactly what was approved: the tool, its arguments and the
	// scripts they name. Same: and every later call of this task with that print.
	Print string `json:"print,omitempty"`
	Same  bool   `json:"same,omitempty"`
	// Rules allow later calls of this task, beside this one: Bash(go test *).
	Rules []string `json:"rules,omitempty"`
	// Args are the arguments that the user put in place of the call's, of an edit.
	Args string `json:"args,omitempty"`
	// Subjects are what the call is about, where it had to be looked up first,
	// and Research, where that was done, the records that let it run.
	Subjects []string `json:"subjects,omitempty"`
	Research []uint64 `json:"research,omitempty"`
}

// ToolCalled is the intent of one tool call, durable before it runs.
type ToolCalled struct {
	Call string `json:"call"`
	Name string `json:"name"`
	Args string `json:"args"`
	// World is the tree id of the world the call ran in; empty when an earlier
	// call of the same reply may have changed it.
	World string `json:"world,omitempty"`
	// Effects: the call may change what the world id does not show, such as
	// ignored files or something outside the directory.
	Effects bool `json:"effects,omitempty"`
	// Changes: the tool is not one that only looks.
	Changes bool `json:"changes,omitempty"`
}

// ToolStarted names the process that runs a call, so that a crashed task can
// find what it left behind.
type ToolStarted struct {
	Call      string `json:"call"`
	PID       int    `json:"pid"`
	StartTime uint64 `json:"start_time"` // clock ticks since boot, /proc/PID/stat field 22
	BootID    string `json:"boot_id"`
}

// ToolReturned is the result of one tool call.
type ToolReturned struct {
	Call    string   `json:"call"`
	Name    string   `json:"name"`
	Text    string   `json:"text"` // what the model is shown
	IsError bool     `json:"is_error,omitempty"`
	Refused bool     `json:"refused,omitempty"` // approval or a rule said no; nothing ran
	Unknown bool     `json:"unknown,omitempty"` // the program died while it ran: outcome unknown
	Exit    *int     `json:"exit,omitempty"`    // exit code, when a process ran
	Stdout  string   `json:"stdout,omitempty"`  // kept apart where a process ran
	Stderr  string   `json:"stderr,omitempty"`
	Cut     int64    `json:"cut,omitempty"`    // bytes of output that were left out
	Kept    []uint64 `json:"kept,omitempty"`   // the output.kept operations that hold the output whole, where it was cut
	Reads   []string `json:"reads,omitempty"`  // files read, relative to the world
	Writes  []string `json:"writes,omitempty"` // files written, relative to the world
	Network bool     `json:"network,omitempty"`
	// Isolated: the command ran in a sandbox without a network and without Unix
	// sockets of others.
	Isolated bool   `json:"isolated,omitempty"`
	Display  string `json:"display,omitempty"` // a few words about the result for people
	Repeats  uint64 `json:"repeats,omitempty"` // the result of the same call in the same world that this call repeats
	// Parts are what the result holds besides text, in the order Text names them.
	Parts  []Part `json:"parts,omitempty"`
	Millis int64  `json:"ms"`
}

// Skipped is one path a snapshot could not hold, and why.
type Skipped struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// WorldSaved ends a step: the world as it stood then.
type WorldSaved struct {
	Parent   int       `json:"parent"` // the step this step continues; itself for step 0
	Commit   string    `json:"commit"` // empty when the world could not be saved
	Tree     string    `json:"tree"`   // the world id
	Complete bool      `json:"complete"`
	Skipped  []Skipped `json:"skipped,omitempty"`
	Files    int       `json:"files"`
	Changed  []string  `json:"changed,omitempty"` // at most 100 paths, sorted
	NChanged int       `json:"n_changed"`
	Mark     string    `json:"mark"`            // the step mark, as the model sees it
	Error    string    `json:"error,omitempty"` // why there is no checkpoint
	Lost     []string  `json:"lost,omitempty"`  // which earlier snapshots the store has lost, and why: the one before it among them
	// Mixed names another program that may have changed files in this step, too; the
	// WorldChanged before it has the changes.
	Mixed string `json:"mixed,omitempty"`
}

// WorldChanged is a snapshot taken apart from a step's end, with what differs from
// the snapshot before it and who made the difference. What the user changed, and
// what nobody is known to have changed, is no step's: later jumps keep it. The paths
// follow from the two commits.
type WorldChanged struct {
	By       string   `json:"by"`                  // user | unknown | agent: of the step under way, before a wait
	From     string   `json:"from_commit"`         // commit
	Or       string   `json:"or_commit,omitempty"` // commit; a path that equals it in To is not part of the change either
	To       string   `json:"to_commit"`           // commit
	Tree     string   `json:"tree"`                // of To, the world id
	Changed  []string `json:"changed,omitempty"`   // at most 100 paths, sorted
	NChanged int      `json:"n_changed"`
	// Task is the subagent that saw it; empty: the task itself.
	Task   string `json:"task,omitempty"`
	Notice string `json:"notice,omitempty"` // what the model is told
}

// RestoreIntended is the point of no return of a restore that moves files and
// nothing else: both worlds are durable. WorldRestored is its result.
type RestoreIntended struct {
	FromCommit string   `json:"from_commit"` // the world just before
	ToCommit   string   `json:"to_commit"`
	ToStep     int      `json:"to_step"`
	Paths      []string `json:"paths,omitempty"` // subset, when one was given
	Overwrite  bool     `json:"overwrite,omitempty"`
	Plan       string   `json:"plan"` // plan hash
	By         string   `json:"by"`
	Lost       bool     `json:"lost,omitempty"` // the directory was found without a file
}

// WorldRestored is a restore that moved files and nothing else.
type WorldRestored struct {
	From    string    `json:"from"` // commit saved just before
	To      string    `json:"to"`
	ToStep  int       `json:"to_step"`
	Paths   []string  `json:"paths,omitempty"` // subset, when one was given
	Written int       `json:"written"`
	Deleted int       `json:"deleted"`
	Kept    []Skipped `json:"kept,omitempty"`
	By      string    `json:"by"`
	Notice  string    `json:"notice"` // what the model is told; empty where nothing moved
	// Interrupted: it did not come to its end, and Written and Deleted are what
	// was found to differ from the world before.
	Interrupted bool `json:"interrupted,omitempty"`
	// Abandoned: it was given up; what RestoreIntended.Overwrite was to revert stands.
	Abandoned bool `json:"abandoned,omitempty"`
	// Base is the snapshot since which a change counts as the user's, until the
	// next one is taken: the world after the restore. Empty: that of the current step.
	Base string `json:"base,omitempty"`
	Tree string `json:"tree,omitempty"` // of Base, the world id
}

// PassBegun is the intent of a pass at a task's end. A jump's own records stand
// for its passes.
type PassBegun struct {
	Ranges  []Range `json:"ranges"` // of paths that were left, each one line of states
	Trigger string  `json:"trigger"`
}

// Triggers of passes that are treated apart.
const (
	TriggerWindow = "window" // the context is too large
	TriggerMail   = "mail"   // a D-Mail stands for the steps
	TriggerEnd    = "end"    // the task ends: the pass writes cards and no block
)

// PassDone is one anamnesis pass: the ranges it stands for are replaced, at
// their place, by the block. A pass for a jump takes effect with the jump's
// JumpIntended, so that a jump that is not made takes nothing away.
type PassDone struct {
	Ranges      []Range  `json:"ranges"`
	RangeTokens int      `json:"range_tokens"`
	EAS         int      `json:"eas"`
	Trigger     string   `json:"trigger"`               // jump | cumulative | person | window | mail | end
	Block       string   `json:"block"`                 // empty for a cold-only pass
	Words       string   `json:"words,omitempty"`       // triggers window and mail: the user's own words from the ranges
	Target      int      `json:"target,omitempty"`      // trigger window: tokens the context is to come down to
	Cards       []string `json:"cards"`                 // ids written
	NotWritten  []string `json:"not_written,omitempty"` // cards that could not be, and why
	Observed    []string `json:"observed,omitempty"`    // hashes of the cards' texts that say only what the ranges record
	NoCards     string   `json:"no_cards,omitempty"`    // why there were none to write
	Writer      string   `json:"writer"`                // model | extractor | mail
	Fallback    string   `json:"fallback,omitempty"`    // why the extractor wrote all or a part
	Dropped     int      `json:"dropped"`               // statements that failed grounding
	// MessagesRemoved, of trigger mail, is how many messages of the context the
	// block replaces; RangeTokens is then what they had there.
	MessagesRemoved int   `json:"messages_removed,omitempty"`
	Calls           int   `json:"calls"` // model calls
	Usage           Usage `json:"usage"`
	Millis          int64 `json:"ms"`
}

// NoticeGiven is a line of the program to the model.
type NoticeGiven struct {
	Text string `json:"text"`
}

// TurnEnded ends a turn: the agent answered, or something stopped it.
type TurnEnded struct {
	// Reason is done | interrupted | limit | stuck | failed.
	Reason string `json:"reason"`
	Detail string `json:"detail,omitempty"`
}

// LogRecovered is written by the log when it repaired a torn tail.
type LogRecovered struct {
	File      string `json:"file"`      // segment
	Offset    int64  `json:"offset"`    // where the torn bytes began
	Bytes     int64  `json:"bytes"`     // how many were set aside
	SavedAs   string `json:"saved_as"`  // the file that holds them
	Rewritten int    `json:"rewritten"` // unacknowledged lines kept
}

// LogSealed is written by the log on idle and close.
type LogSealed struct{}

// Kind implements Body.
func (*TaskOpened) Kind() Kind { return KindTaskOpened }

// Kind implements Body.
func (*TaskResumed) Kind() Kind { return KindTaskResumed }

// Kind implements Body.
func (*UserSaid) Kind() Kind { return KindUserSaid }

// Kind implements Body.
func (*CardsRecalled) Kind() Kind { return KindCardsRecalled }

// Kind implements Body.
func (*ModelAsked) Kind() Kind { return KindModelAsked }

// Kind implements Body.
func (*ModelReplied) Kind() Kind { return KindModelReplied }

// Kind implements Body.
func (*ModelFailed) Kind() Kind { return KindModelFailed }

// Kind implements Body.
func (*ApprovalDecided) Kind() Kind { return KindApprovalDecided }

// Kind implements Body.
func (*ToolCalled) Kind() Kind { return KindToolCalled }

// Kind implements Body.
func (*ToolStarted) Kind() Kind { return KindToolStarted }

// Kind implements Body.
func (*ToolReturned) Kind() Kind { return KindToolReturned }

// Kind implements Body.
func (*WorldSaved) Kind() Kind { return KindWorldSaved }

// Kind implements Body.
func (*WorldChanged) Kind() Kind { return KindWorldChanged }

// Kind implements Body.
func (*RestoreIntended) Kind() Kind { return KindRestoreIntended }

func (*WorldRestored) Kind() Kind { return KindWorldRestored }

// Kind implements Body.
func (*JumpRequested) Kind() Kind { return KindJumpRequested }

// Kind implements Body.
func (*JumpDropped) Kind() Kind { return KindJumpDropped }

// Kind implements Body.
func (*PassBegun) Kind() Kind { return KindPassBegun }

// Kind implements Body.
func (*PassDone) Kind() Kind { return KindPassDone }

// Kind implements Body.
func (*JumpIntended) Kind() Kind { return KindJumpIntended }

// Kind implements Body.
func (*JumpDone) Kind() Kind { return KindJumpDone }

// Kind implements Body.
func (*NoticeGiven) Kind() Kind { return KindNoticeGiven }

// Kind implements Body.
func (*TurnEnded) Kind() Kind { return KindTurnEnded }

// Kind implements Body.
func (*LogRecovered) Kind() Kind { return KindLogRecovered }

// Kind implements Body.
func (*LogSealed) Kind() Kind { return KindLogSealed }

// ValidArgs reports whether a call's arguments are a JSON object.
func (c Call) ValidArgs() bool {
	var m map[string]json.RawMessage
	return json.Unmarshal([]byte(c.Args), &m) == nil && m != nil
}

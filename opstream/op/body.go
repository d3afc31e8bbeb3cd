package op

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// TaskOpened is a task's first operation. Its facts hold for the whole task.
type TaskOpened struct {
	Task    string `json:"task"`           // the task's id
	Dir     string `json:"dir"`            // the world's directory, absolute
	Repo    string `json:"repo,omitempty"` // the project of the directory: host and path of its origin, or a name
	Store   string `json:"store"`          // the bare repository of its snapshots then; see taskdir.Home.StoreOf
	Model   string `json:"model"`          // model name, or script:FILE
	BaseURL string `json:"base_url"`       // empty: the provider's own
	// Reflect is the model asked as the Reflect-Agent; empty: Model.
	Reflect  string  `json:"reflect_model,omitempty"`
	EAS      int     `json:"eas"`              // effective attention span, tokens
	EASFrom  string  `json:"eas_from"`         // where that number comes from
	Window   int     `json:"window,omitempty"` // advertised context window, tokens; 0: unknown
	Encoding string  `json:"encoding"`         // tokenizer the tok fields are counted in
	Approval string  `json:"approval"`         // ask | edits | auto | deny
	MaxSteps int     `json:"max_steps"`        // 0: the default
	Limits   *Limits `json:"limits,omitempty"` // MaxSteps among them; nil: no others
	// Sandbox confines commands: world | read-only | off; empty means world. Writable are
	// directories beside the world that they may write.
	Sandbox string `json:"sandbox,omitempty"`
	// Allow, Ask and Deny are the task's rules, as written.
	Allow    []string `json:"allow,omitempty"`
	Ask      []string `json:"ask,omitempty"`
	Deny     []string `json:"deny,omitempty"`
	Writable []string `json:"writable,omitempty"`
	// Parent is the task that this subagent's task belongs to; nil for others.
	Parent *Parent `json:"parent,omitempty"`
	// Tools are the agent's tools beside those that every agent has.
	Tools  []string `json:"tools,omitempty"`
	KB     string   `json:"kb"`     // knowledge base folder then
	System string   `json:"system"` // the system prompt, rendered once
	// NoResearch lets calls about new subjects run without an investigation;
	// Guarded are calls that need one beside the built-in kinds.
	NoResearch bool          `json:"no_research,omitempty"`
	Guarded    []CallPattern `json:"guarded,omitempty"`
	// Redact names further variables whose values are secret, beside those recognised by name.
	// The values are never recorded.
	Redact []string `json:"redact,omitempty"`
	// NoFinalPass: the paths the task left are not read at its end.
	NoFinalPass bool `json:"no_final_pass,omitempty"`
	// Mark is the word in the program's own marks, a secret of this task; empty in older tasks.
	Mark string `json:"mark,omitempty"`
	// Experiment: earlier versions withheld some unreviewed cards from such tasks.
	Experiment bool `json:"experiment,omitempty"`
	// Agent is the spec the task was opened with; nil in tasks older than specs.
	Agent *Agent `json:"agent,omitempty"`
	// Instructions are the files of the repository that System quotes.
	Instructions []SourceFile `json:"instructions,omitempty"`
	Program      string       `json:"program"` // version that wrote it
	// Origin is the session of another agent that the task was recorded from, if any.
	Origin *Origin `json:"origin,omitempty"`
	Goal   *Goal   `json:"goal,omitempty"` // nil: the agent alone says when it is done
	// WhenAsked is what becomes of a question that no user is present to answer: wait | refuse | stop; empty
	// in older tasks: refuse.
	WhenAsked string `json:"when_asked,omitempty"`
	// Worktree is what Dir was made of; nil: the task works in a directory of the user's.
	Worktree *Worktree `json:"worktree,omitempty"`
}

// Worktree is a directory that was made of another one for a task.
type Worktree struct {
	From string `json:"from"`          // the top of the repository, or the directory
	Root string `json:"root"`          // the worktree of From, or its copy; the task's directory is in it
	Git  bool   `json:"git,omitempty"` // it is a git worktree
}

// Origin names a session of another agent.
type Origin struct {
	Agent   string `json:"agent"`   // claude-code | codex | opencode | gemini | kimi
	Session string `json:"session"` // the agent's own id of it
	// File is the session file that the task was imported from; empty if it was recorded while
	// it ran.
	File    string `json:"file,omitempty"`
	Version string `json:"version,omitempty"` // of the agent
	// Began is when an imported session began.
	Began time.Time `json:"began,omitzero"`
}

// Imported reports whether the task was read from a session file: it has no
// snapshots.
func (o *Origin) Imported() bool { return o != nil && o.File != "" }

// Recorded reports whether the task is recorded while another agent works in it.
func (o *Origin) Recorded() bool { return o != nil && o.File == "" }

// TaskResumed records that a process resumed the task.
type TaskResumed struct {
	PID     int    `json:"pid"`
	Model   string `json:"model,omitempty"`         // when changed on resume
	BaseURL string `json:"base_url,omitempty"`      // when changed on resume
	Reflect string `json:"reflect_model,omitempty"` // when changed on resume
	EAS     int    `json:"eas,omitempty"`           // when changed with the model
	EASFrom string `json:"eas_from,omitempty"`
	Window  int    `json:"window,omitempty"` // of the changed model; 0: unknown
	Program string `json:"program"`
	// Why says why the model before cannot answer, if this one takes over from it in a running task.
	Why string `json:"why,omitempty"`
	// Approval is the mode that takes back that the user allowed everything.
	Approval string `json:"approval,omitempty"`
	// Continue opens a turn that ended without an answer, without new words.
	Continue bool `json:"continue,omitempty"`
	// Redact names further variables of TaskOpened.Redact's kind.
	Redact []string `json:"redact,omitempty"`
	// Instructions replace TaskOpened's if the files changed since they were last read. Notice
	// informs the model.
	Instructions *[]SourceFile `json:"instructions,omitempty"`
	Notice       string        `json:"notice,omitempty"`
	// Dir and Store replace TaskOpened's if the user named the directory: it was moved or copied,
	// or the home was.
	Dir   string `json:"dir,omitempty"`
	Store string `json:"store,omitempty"`
	// Task replaces TaskOpened's: what was before is a copy of that task's record.
	Task string `json:"task,omitempty"`
	// Goal replaces the task's, if the user changed it; without commands there is none.
	Goal *Goal `json:"goal,omitempty"`
	// Limits replace the task's, if the user changed one.
	Limits *Limits `json:"limits,omitempty"`
	// WhenAsked replaces TaskOpened's.
	WhenAsked string `json:"when_asked,omitempty"`
}

// Limits are a task's limits; 0: none, or the default.
type Limits struct {
	Steps  int           `json:"steps,omitempty"`   // of a turn
	Tokens int           `json:"tokens,omitempty"`  // of the whole task and its subagents: prompts and replies
	USD    float64       `json:"usd,omitempty"`     // likewise
	Time   time.Duration `json:"time_ns,omitempty"` // of each process
}

// SourceFile is a file as it was read.
type SourceFile struct {
	Path  string `json:"path"` // absolute
	Hash  string `json:"hash"` // SHA-256 of its bytes, hex
	Bytes int    `json:"bytes"`
}

// Source is how a user's words arrived.
type Source string

// The sources.
const (
	SourceRequest   Source = "request"   // the task's request, or a later turn's
	SourceSteer     Source = "steer"     // said while a turn was running
	SourceRejection Source = "rejection" // feedback given with a refused call
	SourceAnswer    Source = "answer"    // reply to a question of the agent
)

// UserSaid is a user's words. A jump never discards them.
type UserSaid struct {
	Text     string `json:"text"`
	Source   Source `json:"source"`
	Question string `json:"question,omitempty"` // what they answered, with its choices
	Parts    []Part `json:"parts,omitempty"`    // images; Text names each
	Inbox    *Sent  `json:"inbox,omitempty"`    // if they came through a bucket
}

// CardRef names one card that was shown.
type CardRef struct {
	ID    string  `json:"id"`
	Topic string  `json:"topic"`
	State string  `json:"state"`
	Score float64 `json:"score,omitempty"`
	// Rung is how far the card could be trusted: verified | reviewed | hypothesis.
	Rung string `json:"rung,omitempty"`
	// What a task can confirm of the card: the error it quotes, normalised; the command that
	// fails with it, and the tree it failed in; what its solution runs or changes.
	Error string   `json:"error,omitempty"`
	Check string   `json:"check,omitempty"`
	World string   `json:"world,omitempty"`
	Tries []string `json:"tries,omitempty"`
}

// CardsRecalled is one recall, rendered once as quoted data.
type CardsRecalled struct {
	Query string    `json:"query"`
	Cards []CardRef `json:"cards"`
	Text  string    `json:"text"`            // the text for the model; empty if nothing was found
	Facts []string  `json:"facts,omitempty"` // of the repository, that Text begins with
	Why   string    `json:"why"`             // start | prompt | jump | asked | failure | warning
	Error string    `json:"error,omitempty"` // the knowledge base could not be searched
	// Degraded says why the search used words only. It is set in the first record of that
	// state.
	Degraded string `json:"degraded,omitempty"`
	// Damage says, at a task's start, which lists of reviews are damaged.
	Damage []string `json:"damage,omitempty"`
	// Met are cards about the error that the call just met, unless the task was shown them or
	// a card drawn from them.
	Met []string `json:"met,omitempty"`
	// Withheld are unreviewed cards that an experiment of earlier versions kept from this task.
	Withheld []CardRef `json:"withheld,omitempty"`
}

// InResult reports whether a call's result shows the cards already, so that the context does
// not repeat them.
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
	// Extra is what the provider put beside the call, by its name for it; see ModelReplied.
	Extra map[string]json.RawMessage `json:"extra,omitempty"`
}

// ModelReplied is one complete reply. An incomplete reply is a ModelFailed.
type ModelReplied struct {
	Text      string `json:"text"`
	Reasoning string `json:"reasoning,omitempty"`
	Calls     []Call `json:"calls,omitempty"`
	Finish    string `json:"finish"` // provider's finish reason, never empty
	Usage     Usage  `json:"usage"`
	Model     string `json:"model,omitempty"` // as the provider named it
	// Extra is what the provider put beside the text and the calls: its reasoning, signatures,
	// ids. It goes back to Origin, the base URL and model that made it, and to no other.
	Extra  map[string]json.RawMessage `json:"extra,omitempty"`
	Origin string                     `json:"origin,omitempty"`
	Millis int64                      `json:"ms"`
	// Repairs are the names of what was odd in the reply or its request and was repaired: see Oddities.
	Repairs []string `json:"repairs,omitempty"`
	// Joins: the calls belong to the previous reply, whose own are not all done. Another
	// agent's calls are reported that way, one by one.
	Joins bool `json:"joins,omitempty"`
}

// Unfinished returns the program's message to the model if the reply is to be followed by another one although
// it makes no call: it is empty, was cut at the token limit, or its text is a call that cannot be read. Empty
// otherwise.
func (b *ModelReplied) Unfinished() string {
	switch {
	case len(b.Calls) > 0 || b.Finish == FinishCheckpoint || b.Finish == "content_filter":
		return ""
	case b.Finish == FinishLength && strings.TrimSpace(b.Text) == "":
		return "The last reply reached the token limit before it said anything. " +
			"Think in fewer words, then call a tool or answer."
	case b.Finish == FinishLength:
		return "The last reply was cut off at the token limit. Continue where it ended. Do not repeat what it said."
	case strings.TrimSpace(b.Text) == "":
		return "The last reply had neither text nor a tool call. Call a tool, or answer the user in text."
	case slices.Contains(b.Repairs, RepairUnreadCall):
		return "The last reply contains a tool call written as text. It did not run. " +
			"Call the tool through the tool interface, or answer the user in text."
	}
	return ""
}

// FinishLength is the finish of a reply that reached the provider's limit of tokens.
const FinishLength = "length"

// FinishCheckpoint is the finish of a reply that is the note of a checkpoint, which the agent of a
// recorded session asked for. It is no answer to the user.
const FinishCheckpoint = "checkpoint"

// ModelFailed ends a request that got no reply.
type ModelFailed struct {
	Error   string `json:"error"`
	Status  int    `json:"status,omitempty"`  // HTTP status, where there was one
	Tries   int    `json:"tries"`             // requests made
	Partial string `json:"partial,omitempty"` // text that had arrived
	// Overflow: the request did not fit the model's context window.
	Overflow bool `json:"overflow,omitempty"`
	// Wait is the wait that follows, before the request is made again; nil: it is not.
	Wait *Wait `json:"wait,omitempty"`
}

// Wait is a wait for a provider that fails in passing.
type Wait struct {
	Until time.Time `json:"until"` // when it is asked again
	// Since is when the outage began: the first of the failures in a row, later by the waits that
	// the provider itself named, which do not count. End is when the task gives up.
	Since time.Time `json:"since"`
	End   time.Time `json:"end"`
	Tries int       `json:"tries"`         // failures in a row
	Cut   int       `json:"cut,omitempty"` // of them, replies that had begun
}

// ApprovalDecided records whether a call may run and who decided.
type ApprovalDecided struct {
	Call     string `json:"call"`     // call id
	Decision string `json:"decision"` // allow | refuse | edit: decided anew with Args
	By       string `json:"by"`       // ByUser | mode:deny | …
	Feedback string `json:"feedback,omitempty"`
	// ForTask: the decision holds for every later call of this task.
	ForTask bool `json:"for_task,omitempty"`
	// Print identifies exactly what was approved: the tool, its arguments and the scripts they
	// name. Same: the decision holds for later calls of this task with that print.
	Print string `json:"print,omitempty"`
	Same  bool   `json:"same,omitempty"`
	// Always: the decision holds for calls with that print in this directory, in every task.
	Always bool `json:"always,omitempty"`
	// Rules allow later calls of this task, beside this one: Bash(go test *).
	Rules []string `json:"rules,omitempty"`
	// Args are the arguments that the user edited.
	Args string `json:"args,omitempty"`
	// Subjects are what the call is about, if it had to be researched first. Research are the
	// records that let it run.
	Subjects []string `json:"subjects,omitempty"`
	Research []uint64 `json:"research,omitempty"`
}

// ToolCalled is the intent of one tool call, durable before it runs.
type ToolCalled struct {
	Call string `json:"call"`
	Name string `json:"name"`
	Args string `json:"args"`
	// World is the tree id of the world the call ran in; empty if an earlier call of the same
	// reply may have changed it.
	World string `json:"world,omitempty"`
	// Effects: the call may change what the world id does not cover, such as ignored files or
	// anything outside the directory.
	Effects bool `json:"effects,omitempty"`
	// Changes: the tool may change the world.
	Changes bool `json:"changes,omitempty"`
}

// ToolStarted identifies the process that runs a call, so that a later process can find what a
// crashed task left running.
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
	Unknown bool     `json:"unknown,omitempty"` // the program died while it ran, or its agent reported no outcome
	Exit    *int     `json:"exit,omitempty"`    // exit code, when a process ran
	Stdout  string   `json:"stdout,omitempty"`  // separate where a process ran
	Stderr  string   `json:"stderr,omitempty"`
	Cut     int64    `json:"cut,omitempty"`    // bytes of output that were left out
	Kept    []uint64 `json:"kept,omitempty"`   // output.kept operations with the whole output, where it was cut
	Reads   []string `json:"reads,omitempty"`  // files read, relative to the world
	Writes  []string `json:"writes,omitempty"` // files written, relative to the world
	Network bool     `json:"network,omitempty"`
	// Isolated: the command ran in a sandbox without network and without foreign Unix sockets.
	Isolated bool   `json:"isolated,omitempty"`
	Display  string `json:"display,omitempty"` // a few words about the result, for users
	Repeats  uint64 `json:"repeats,omitempty"` // the result of the same call in the same world that this call repeats
	// Parts are the non-text parts of the result, in the order in which Text names them.
	Parts  []Part `json:"parts,omitempty"`
	Millis int64  `json:"ms"`
}

// Output returns what a command printed: its streams where they were kept apart, otherwise the text.
func (b *ToolReturned) Output() string {
	if b.Stdout == "" && b.Stderr == "" {
		return b.Text
	}
	return b.Stdout + "\n" + b.Stderr
}

// Skipped is one path a snapshot could not hold, and why.
type Skipped struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// WorldSaved ends a step and describes the world at that time.
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
	Lost     []string  `json:"lost,omitempty"`  // snapshots that the store lost, the previous one among them, and why
	// Mixed names another program that may also have changed files in this step. The
	// WorldChanged before it has the changes.
	Mixed string `json:"mixed,omitempty"`
	// IgnoredGone are ignored files and folders, in no snapshot, that went away in this step:
	// at most 100, sorted.
	IgnoredGone []string `json:"ignored_gone,omitempty"`
	// Unobserved: another program may have made some of the changes while a call ran.
	Unobserved bool `json:"unobserved,omitempty"`
	// Gone: there is no checkpoint because the directory was not at its path.
	Gone bool `json:"gone,omitempty"`
}

// WorldChanged is a snapshot apart from a step's end, with its difference from the snapshot
// before and the author of that difference. Changes by the user, and those of unknown authors,
// belong to no step: later jumps keep them. The two commits determine the paths.
type WorldChanged struct {
	By   string `json:"by"`                  // user | unknown | agent: of the step under way, before a wait
	From string `json:"from_commit"`         // commit
	Or   string `json:"or_commit,omitempty"` // commit; a path that equals it in To is not part of the change either
	To   string `json:"to_commit"`           // commit
	Tree string `json:"tree"`                // of To, the world id
	// Only, if given, are the paths of the change: the others are the calls' of the step.
	Only     []string `json:"only,omitempty"`
	Changed  []string `json:"changed,omitempty"` // at most 100 paths, sorted
	NChanged int      `json:"n_changed"`
	// Task is the subagent that saw the change; empty for the task itself.
	Task   string `json:"task,omitempty"`
	Notice string `json:"notice,omitempty"` // shown to the model
}

// RestoreIntended is the point of no return of a restore that moves files only: both worlds
// are durable. WorldRestored is its result.
type RestoreIntended struct {
	FromCommit string   `json:"from_commit"` // the world just before
	ToCommit   string   `json:"to_commit"`
	ToStep     int      `json:"to_step"`
	Paths      []string `json:"paths,omitempty"` // subset, when one was given
	Overwrite  bool     `json:"overwrite,omitempty"`
	Plan       string   `json:"plan"` // plan hash
	By         string   `json:"by"`
	Lost       bool     `json:"lost,omitempty"` // the directory was found empty
}

// WorldRestored records a restore that moved files only.
type WorldRestored struct {
	From           string    `json:"from"` // commit saved just before
	To             string    `json:"to"`
	ToStep         int       `json:"to_step"`
	Paths          []string  `json:"paths,omitempty"` // subset, when one was given
	Written        int       `json:"written"`
	Deleted        int       `json:"deleted"`
	Kept           []Skipped `json:"kept,omitempty"`
	LostAttributes []Skipped `json:"lost_attributes,omitempty"` // as of JumpDone
	By             string    `json:"by"`
	Notice         string    `json:"notice"` // shown to the model; empty if nothing moved
	// Interrupted: the restore did not finish. Written and Deleted are the differences found
	// from the world before.
	Interrupted bool `json:"interrupted,omitempty"`
	// Abandoned: the restore was given up; the changes that RestoreIntended.Overwrite was to
	// revert remain.
	Abandoned bool `json:"abandoned,omitempty"`
	// Base is the snapshot after the restore. Until the next one is taken, changes since Base
	// count as the user's. Empty: the current step's.
	Base string `json:"base,omitempty"`
	Tree string `json:"tree,omitempty"` // of Base, the world id
}

// PassBegun is the intent of a pass at a task's end. A jump's own records serve as the intent
// of its passes.
type PassBegun struct {
	Ranges  []Range `json:"ranges"` // of paths that were left, each one line of states
	Trigger string  `json:"trigger"`
}

// Triggers of passes.
const (
	TriggerJump       = "jump"       // a jump discards more than the EAS
	TriggerCumulative = "cumulative" // all discarded steps in the context exceed the EAS together
	TriggerUser       = "person"     // the user asked for it
	TriggerWindow     = "window"     // the context is too large
	TriggerMail       = "mail"       // a D-Mail replaces the steps
	TriggerEnd        = "end"        // the task ends: the pass writes cards and no block
)

// PassDone is one anamnesis pass: the block replaces the ranges at their place. A pass for a
// jump takes effect with the jump's JumpIntended, so that a jump that is not performed removes
// nothing.
type PassDone struct {
	Ranges      []Range  `json:"ranges"`
	RangeTokens int      `json:"range_tokens"`
	EAS         int      `json:"eas"`
	Trigger     string   `json:"trigger"`               // TriggerJump, …
	Block       string   `json:"block"`                 // empty for a cold-only pass
	Words       string   `json:"words,omitempty"`       // triggers window and mail: the user's words from the ranges
	Target      int      `json:"target,omitempty"`      // trigger window: tokens the context is to come down to
	Cards       []string `json:"cards"`                 // ids written
	NotWritten  []string `json:"not_written,omitempty"` // cards that could not be written, and why
	Lessons     []string `json:"lessons,omitempty"`     // hashes of the cards' texts
	Paired      []string `json:"paired,omitempty"`      // those of Lessons that rest on a pair of the path that stayed
	Observed    []string `json:"observed,omitempty"`    // earlier versions: Lessons that say what the ranges record
	NoCards     string   `json:"no_cards,omitempty"`    // why there were none to write
	Writer      string   `json:"writer"`                // model | extractor | mail
	Fallback    string   `json:"fallback,omitempty"`    // why the extractor wrote all or a part
	Dropped     int      `json:"dropped"`               // statements that failed grounding
	// MessagesRemoved, of trigger mail, is how many messages of the context the block
	// replaces; RangeTokens is their size there.
	MessagesRemoved int   `json:"messages_removed,omitempty"`
	Calls           int   `json:"calls"` // model calls
	Usage           Usage `json:"usage"`
	Millis          int64 `json:"ms"`
}

// HookRan is what a hook of the user or of the project said at an event, or why it failed.
type HookRan struct {
	Event    string `json:"event"` // as in PreToolUse
	Hook     string `json:"hook"`  // its command
	Call     string `json:"call,omitempty"`
	Decision string `json:"decision,omitempty"` // block | allow | ask
	Failed   bool   `json:"failed,omitempty"`   // it decided nothing, and Said says why
	Said     string `json:"said,omitempty"`
	Notice   string `json:"notice,omitempty"` // for the model
	GoOn     bool   `json:"go_on,omitempty"`  // the turn goes on, although the agent has answered
	Millis   int64  `json:"ms"`
}

// NoticeGiven is a message of the program to the model.
type NoticeGiven struct {
	Text string `json:"text"`
	// Quarter is how many quarters of a limit the notice says that are used; 0: it says something else.
	Quarter int `json:"quarter,omitempty"`
}

// TurnEnded ends a turn: the agent answered, or something stopped it.
type TurnEnded struct {
	// Reason is done | interrupted | limit | stuck | failed.
	Reason string `json:"reason"`
	Detail string `json:"detail,omitempty"`
	Limit  Limit  `json:"limit,omitempty"` // that was reached
}

// Limit names a limit of a task by its setting.
type Limit string

// The limits.
const (
	LimitSteps  Limit = "max-steps"
	LimitTokens Limit = "max-tokens"
	LimitCost   Limit = "max-cost"
	LimitTime   Limit = "max-time"
)

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

// ValidArgs reports whether a call's arguments are a JSON object.
func (c Call) ValidArgs() bool {
	var m map[string]json.RawMessage
	return json.Unmarshal([]byte(c.Args), &m) == nil && m != nil
}

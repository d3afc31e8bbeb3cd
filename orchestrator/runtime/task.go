package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"anamnesis/anamnesis/tokens"
	"anamnesis/knowledge_base/retrieval"
	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/hook"
	"anamnesis/orchestrator/feature/planmode"
	"anamnesis/orchestrator/feature/question"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/guard/consent"
	"anamnesis/orchestrator/guard/quarantine"
	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/leftover"
	"anamnesis/orchestrator/memory"
	"anamnesis/orchestrator/mention"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/replica"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/file"
	"anamnesis/orchestrator/toolset"
	"anamnesis/orchestrator/workspace"
	"anamnesis/worldstate"
)

var (
	// ErrTaskExists: a task of that name has been created meanwhile.
	ErrTaskExists = errors.New("task exists")
	// ErrSecretName: a name that would be recorded holds a secret.
	ErrSecretName = errors.New("a name holds a secret")
	// ErrNotText: a directory's path is not UTF-8, and would be recorded as another.
	ErrNotText = errors.New("a directory's path is not UTF-8 text")
)

// Options are the environment of a task in this process. The zero value has no model and no
// user to ask.
type Options struct {
	Model   model.Model // what answers; nil: the task can be looked at and jumped, not run
	Reflect model.Model // answers as the Reflect-Agent; nil: Model does
	// Fallback opens the model that takes over from one that cannot answer; nil, or a nil *Next: none does.
	Fallback  func(ctx context.Context) (*Next, error)
	Tools     *tool.Registry
	Sources   []tool.Source // tools that come and go, after Tools
	Subagents []Subagent    // those that the tool Task hands work to
	Limits    state.Limits
	Callbacks Callbacks
	Guards    Guards
	Cards     Cards
	Hooks     []hook.Hook // of the user and the project
	Store     Store
	Recorder  Recorder
	Grace     time.Duration // see notice.Finishing; 0: notice.DefaultGrace
	Recreate  bool          // OpenTask recreates a missing directory of the world
	// Dir is the directory in which OpenTask continues the task; empty: its own, which must have
	// been named in this home. What it records of the resume has the directory.
	Dir string
	// AbandonRestore gives up an interrupted restore of the files instead of finishing it; see
	// Task.AbandonRestore.
	AbandonRestore bool
	Now            func() time.Time
	// Program is the version recorded in the stream.
	Program string
	// Secrets are known secret values. They are redacted wherever they would be recorded,
	// shown or sent, as are values recognised as secrets.
	Secrets []redact.Secret

	family *family // of a subagent: its parent's
	// changed informs the task that began this one of a change in their common directory; nil
	// if there is no such task or directory.
	changed func(ctx context.Context, b *op.WorldChanged) error
	// above is the decision on a call by the task that began this one; nil if there is none,
	// or a user allowed everything.
	above func(approval.Facts) approval.Decision
	// planning reports whether the task that began this one is in plan mode; nil if there is none.
	planning func() bool
}

// Callbacks are a front end's for a task. Each may be nil. They may be called from any
// goroutine, and must not call the task.
type Callbacks struct {
	// Op is called with each operation once it is durable, in order.
	Op func(op.Op)
	// Delta is called with a piece of a reply as it arrives; it is not recorded.
	Delta func(model.Delta)
	// Progress is called with the progress that a running call reports; it is not recorded.
	Progress func(c op.Call, text string)
	// Output is called with what a running command prints, Editing with what a call is about
	// to change, before Approve. Both are redacted and not recorded.
	Output  func(c op.Call, p []byte)
	Editing func(c op.Call, changes []file.Change)
	// Queued is called before each request of the agent. It returns what the user has to say
	// with it, and forgets it.
	Queued func() string
	// Waiting is called when a wait for the provider begins, and each second with what is left of
	// it.
	Waiting func(o state.Outage, left time.Duration)
	// Passing is called when a pass is about to ask the model, which may take minutes.
	Passing func(op.PassBegun)
	// Approve decides whether a call may run. If nil, calls that need approval are refused.
	Approve func(ctx context.Context, q gate.Question) gate.Answer
	// Ask answers a question of the program or the model; false means no answer.
	Ask func(ctx context.Context, question string) (string, bool)
}

// Guards decide which calls run.
type Guards struct {
	Approval string            // overrides the task's mode in this process
	Rules    []approval.Rule   // the user's and the project's, beside those the task was opened with
	Sandbox  guard.Confinement // overrides that of the task's commands in this process
	// RunUndone lets a call that a jump has undone run in the same state of the files without
	// asking first.
	RunUndone bool
	WhenAsked question.When  // what becomes of a question that no user is present to answer; empty: question.Refuse
	Trust     *consent.Trust // has the calls that the user always lets run in the directory; may be nil
	// KnownModel reports which models need no research before their name is used; nil: none is
	// known.
	KnownModel func(name string) bool
}

// Cards are the settings of recall and of passes.
type Cards struct {
	Embedder retrieval.Embedder // makes the vectors of the cards; nil: the built-in one
	Reader   memory.Reader      // chooses what passes ask if there is no model
}

// Store are the settings of a task's stream and world; the task fills in the rest.
type Store struct {
	Stream opstream.Options
	World  worldstate.Options
	// SnapshotEvery is how many operations the stream must grow by before its fold is written
	// again; 0: journal.DefaultSnapshotEvery.
	SnapshotEvery uint64
	// Replica keeps the task and its subagents in a bucket, too; nil: they are kept here only.
	Replica *replica.Holder
	// Deadline ends commands if the bucket cannot be reached; nil: none does.
	Deadline *guard.Deadline
	// Arrived: the directory is not the one where this home left the task's files, so that they are brought here.
	Arrived bool
}

// Recorder are the settings of a process that records another agent.
type Recorder struct {
	// Socket is where other processes ask this one to close the task: see
	// taskdir.LiveDir.KeptOpen.
	Socket string
	// Disturbed is called after the save that ends a step. by, if not empty, names another
	// program that may have changed files in this step; late reports that the step's own agent
	// did not wait for the save. nil: neither ever happens.
	Disturbed func() (by string, late bool)
}

// Task is one process's hold on a task: its ledger, its world, its memory and its permissions.
// Run belongs to one goroutine; what is requested through Ledger may come from any.
type Task struct {
	Ledger *journal.Ledger
	Place  *workspace.Place
	Memory *memory.Memory

	opts     *Options
	tools    *toolset.Set
	left     *leftover.Leftovers
	user     *user
	features features
	runner   *runner
	hold     hold
	askNow   atomic.Bool // a user does not want to wait for the provider
}

// hold is what a process found when it opened a task.
type hold struct {
	live        *taskdir.LiveDir     // nil: the task was closed
	recovery    *worldstate.Recovery // the outcome of an interrupted restore, if any
	made        bool                 // OpenTask made the directory again
	named       bool                 // the user named the directory, and no operation has it yet
	quarantined string               // see Quarantined
}

// Quarantined reports what commands of programs that died had left in the directory and was
// taken out when the task was opened; empty: nothing.
func (t *Task) Quarantined() string { return t.hold.quarantined }

// Create makes a new task in dir and records the request. When it fails, the
// name is free again.
func Create(ctx context.Context, h taskdir.Home, n New, o Options) (*Task, error) {
	dir, err := taskdir.WorldDir(n.Dir)
	if err != nil {
		return nil, err
	}
	n.Dir = dir
	if err := n.CheckNames(o.Secrets); err != nil {
		return nil, err
	}
	if err := taskdir.OutsideHome(h, dir); err != nil {
		return nil, err
	}
	// Slow work precedes the hold, so that a process that finds the hold finds the task.
	counter, err := tokens.ForEncoding(n.Encoding)
	if err != nil {
		return nil, err
	}
	live, err := taskdir.HoldDir(h, dir, n.Task, n.ParentTask())
	if err != nil {
		return nil, err
	}
	opened := &n.TaskOpened
	opened.Dir, opened.Store, opened.KB, opened.Program = dir, h.Store(dir), h.KnowledgeBase(), o.Program
	opened.Repo = cmp.Or(opened.Repo, worldstate.RepositoryName(dir))
	opened.Mark = cmp.Or(opened.Mark, notice.NewMarkWord())
	if opened.System != "" {
		opened.System += "\n\n"
	}
	opened.System += notice.MarkRule(opened.Mark)
	opened.Redact = state.WithNames(nil, opened.Redact)
	if opened.Limits != nil {
		opened.MaxSteps = opened.Limits.Steps
	}
	found := hold{live: live, quarantined: quarantine.Recover(h.Runs(), h.State, dir)}
	t, err := open(ctx, h, counter, opened, o, found)
	if err != nil {
		return nil, err
	}
	if t.Ledger.State().Last != 0 {
		return nil, errors.Join(fmt.Errorf("%w: %s", ErrTaskExists, opened.Task), t.Close())
	}
	// One write: the request cannot be lost while the task stays.
	said := &op.UserSaid{Text: n.Request, Source: op.SourceRequest}
	if opened.Parent == nil {
		said.Text, said.Parts = mention.Attach(dir, n.Request)
	}
	bodies := []op.Body{opened, said}
	if n.Plan {
		bodies = append(bodies, planmode.Set(false, true, ""))
	}
	if opened.ParentTask() == "" {
		ran, err := t.features.hooks.Prompt(ctx, n.Request)
		if err != nil {
			return nil, errors.Join(err, t.Close())
		}
		bodies = append(bodies, ran...)
	}
	if err := t.Ledger.Record(ctx, bodies...); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// OpenTask opens a task that is not running: it folds the stream, ends processes that a dead
// one left running, and completes or reverts an interrupted restore.
func OpenTask(ctx context.Context, h taskdir.Home, id string, o Options) (*Task, error) {
	st, err := taskdir.ReadState(h, id)
	if err != nil {
		return nil, err
	}
	if o.family == nil {
		if err := taskdir.CheckParent(st); err != nil {
			return nil, err
		}
	}
	was, foreign := st.Opened.Dir, h.CheckOwn(&st.Opened) != nil
	if err := workspace.Locate(h, st, o.Dir); err != nil {
		return nil, err
	}
	dir := st.Opened.Dir
	if err := (&New{TaskOpened: op.TaskOpened{Task: id, Dir: dir}}).CheckNames(o.Secrets); err != nil && o.Dir != "" {
		return nil, err
	}
	// Without the directory it would look as if the user had deleted all files.
	gone, err := workspace.DirGone(id, dir)
	if err == nil && gone && o.Recreate {
		err = workspace.RecreateDir(dir)
	} else if err == nil {
		err = workspace.WantDir(id, dir)
	}
	if err != nil {
		return nil, err
	}
	live, err := taskdir.HoldDir(h, dir, id, st.Opened.ParentTask())
	if err != nil {
		return nil, err
	}
	found := hold{live: live, made: gone, named: foreign || dir != was}
	found.quarantined = quarantine.Recover(h.Runs(), h.State, dir)
	o.Store.World.Moved = st.Moved
	counter, err := tokens.ForEncoding(st.Opened.Encoding)
	if err != nil {
		return nil, errors.Join(err, live.Release())
	}
	return open(ctx, h, counter, &st.Opened, o, found)
}

// Resume is journal.Ledger.Resume in the directory that the user named, if any.
func (t *Task) Resume(ctx context.Context, message string, to *op.TaskResumed, more ...op.Body) error {
	kept := t.opts.Store.Replica
	if kept != nil && t.opts.Dir != "" && !t.opts.Store.Arrived {
		t.opts.Store.Arrived = t.Place.Reset(ctx)
	}
	if t.opts.Store.Arrived {
		text, err := t.Place.Fill(ctx)
		if err != nil {
			return err
		}
		to.Notice = strings.TrimSpace(text + "\n\n" + to.Notice)
	}
	// The hooks come before the record: words that one of them blocks leave no trace in the task.
	said, err := t.features.hooks.Prompt(ctx, message)
	if err != nil {
		return err
	}
	t.nameDir(to)
	if err := t.Ledger.Resume(ctx, message, to, more...); err != nil {
		return err
	}
	if kept != nil && t.opts.Store.Arrived {
		kept.Place(t.Place.Dir)
	}
	if err := t.Ledger.Record(ctx, said...); err != nil {
		return err
	}
	if err := t.Ledger.Journal.Safe(ctx); err != nil { // before anything is begun, the task is this process's
		return err
	}
	if t.opts.Store.Arrived { // Fill made the directory what it was
		return t.Place.RecordGit(ctx, false) // this repository's commits are no work of the task
	}
	return t.Place.Adopt(ctx, to.Dir != "")
}

// Request records what the user wants next. Run answers it.
func (t *Task) Request(ctx context.Context, text string) error {
	said, err := t.features.hooks.Prompt(ctx, text)
	if err != nil {
		return err
	}
	return errors.Join(t.Ledger.Say(ctx, text, op.SourceRequest), t.Ledger.Journal.Post(ctx, said...))
}

// SetMode changes the approval mode, and whether the agent only plans, from its next call on. It may be called from
// any goroutine.
func (t *Task) SetMode(ctx context.Context, mode approval.Mode, plan bool) error {
	t.features.gate.SetMode(mode)
	return t.Ledger.Journal.Post(ctx, planmode.Set(planmode.On(t.Ledger), plan, string(mode)))
}

// nameDir adds the directory that the user named to the record of a resume.
func (t *Task) nameDir(to *op.TaskResumed) {
	if !t.hold.named {
		return
	}
	if t.Place.Dir != t.Ledger.State().Opened.Dir {
		to.Notice = strings.TrimSpace(notice.Moved(t.Ledger.State().Opened.Dir, t.Place.Dir) + "\n\n" + to.Notice)
	}
	to.Dir, to.Store, t.hold.named = t.Place.Dir, t.Ledger.Home.StoreOf(&t.Ledger.State().Opened), false
}

// open opens the stores, folds what the stream holds, recovers the world, and makes the task of
// these parts. If it fails, everything is released again.
func open(ctx context.Context, h taskdir.Home, counter *tokens.Counter, opened *op.TaskOpened, given Options,
	found hold) (_ *Task, err error) {
	o := given.withDefaults()
	undo := []func() error{found.live.Release}
	defer func() {
		if err != nil {
			for _, release := range slices.Backward(undo) {
				err = errors.Join(err, release())
			}
		}
	}()
	// The world is opened first: if it is refused, no stream is left behind.
	w := o.Store.World
	w.Task, w.Home, w.Exclude = opened.Task, h.User, h.Excluded()
	w.FileLimitBytes, w.SizeLimitBytes, w.Secrets = h.FileLimitBytes, h.StoreLimitBytes, h.Secrets
	dir, err := workspace.OpenDirectory(opened.Dir, h.StoreOf(opened), &w)
	if err != nil {
		return nil, err
	}
	undo = append(undo, dir.Close)
	if err := found.live.KeptOpen(o.Recorder.Socket); err != nil {
		return nil, err
	}
	stream := o.Store.Stream
	stream.Now, stream.Snapshot = o.Now, state.FoldVersion
	var safe func(context.Context) error
	if kept := o.Store.Replica; kept != nil {
		stream.AfterAppend, safe = func(uint64) { kept.Wrote() }, kept.Safe
	}
	ledger, err := journal.OpenLedger(h, opened.Task, counter, o.Store.SnapshotEvery, journal.Options{
		Stream: stream, Mark: opened.Mark, Count: counter.Count, Secrets: o.Secrets, Learned: &o.family.learned,
		Files: dir.Root, Dir: dir.Dir, Safe: safe,
		Event: func(b op.Op) {
			if o.Callbacks.Op != nil {
				o.Callbacks.Op(b)
			}
		},
	})
	if err != nil {
		return nil, err
	}
	undo = append(undo, ledger.Journal.Close)
	if o.Store.Replica != nil {
		o.Store.Replica.Attach(opened.Task, h.StoreOf(opened), ledger.Journal.Log())
	}
	place := workspace.NewPlace(dir, ledger, workspace.Options{
		Abandon: o.AbandonRestore, Changed: o.changed, Disturbed: o.Recorder.Disturbed, Confine: o.Guards.Sandbox,
		Kept: o.Store.Replica != nil,
	})
	left := leftover.New(place, o.family.atWork)
	// Processes of a dead run could still write: end them before the world is read.
	if err := left.EndProcesses(); err != nil {
		return nil, err
	}
	recoverWorld := place.World.Recover
	if place.Abandon {
		recoverWorld = place.World.Abandon
	}
	if found.recovery, err = recoverWorld(ctx); err != nil {
		return nil, fmt.Errorf("recover the world: %w", err)
	}
	mem, err := memory.Open(ledger, dir.Dir, h.KnowledgeBase(), memory.Options{
		Model: o.Model, Reader: o.Cards.Reader, Embedder: o.Cards.Embedder, Passing: o.Callbacks.Passing,
	})
	if err != nil {
		return nil, err
	}
	undo = append(undo, mem.Close)
	tools, err := toolset.New(toolset.Options{
		Own: o.Tools, Sources: o.Sources, Agent: opened.Agent, Asked: opened.Tools, Count: counter.Count,
		Sandbox: place.Sandbox.Get, Redactor: ledger.Journal.Redactor(),
	})
	if err != nil {
		return nil, err
	}
	asked := &user{place: place, callbacks: &o.Callbacks}
	if asked.task, asked.hold = opened.Task, found.live; opened.ParentTask() == "" {
		asked.task, asked.hold = "", nil
		o.family.desk = question.New(ledger, found.live, o.Guards.WhenAsked, func(asks string) (busy bool) {
			ledger.Journal.ReadQueue(func(queue []op.Op) {
				begun := func(o op.Op) bool { _, ok := o.Body.(*op.JobStarted); return ok }
				busy = len(ledger.State().Jobs.Running) > 0 || slices.ContainsFunc(queue, begun)
			})
			return busy || o.family.othersAtWork(asks)
		})
	}
	asked.desk = o.family.desk
	var f features
	asked.notify = func(kind, text string) { f.hooks.Notify(kind, text) }
	f = newFeatures(o, place, mem, tools, asked, gate.Options{
		Tools: func() *tool.Registry { return tools.Registry }, Rules: o.Guards.Rules, Trust: o.Guards.Trust,
		Approve: asked.approve(), Editing: o.Callbacks.Editing,
		Mode: approval.Mode(cmp.Or(o.Guards.Approval, ledger.State().Grants.Mode, opened.Approval)), Above: o.above,
	})
	runs := &runner{place: place, memory: mem, hooks: f.hooks, checks: f.checks(), grace: o.Grace}
	runs.nested = make(map[string]bool)
	return &Task{
		Ledger: ledger, Place: place, Memory: mem, opts: o, tools: tools, left: left, user: asked, features: f,
		runner: runs, hold: found,
	}, nil
}

// Offer is [taskdir.LiveDir.Offer], refused while a command runs in the background.
func (t *Task) Offer(closed func() error) (reclaim func() bool, err error) {
	return t.hold.live.Offer(func() error {
		if len(t.Ledger.State().Jobs.Running) > 0 {
			return taskdir.ErrBusy
		}
		return closed()
	})
}

// Close releases the process's hold on the task and seals the stream; the task can be opened
// again. A second call does nothing.
func (t *Task) Close() error {
	if t.hold.live == nil {
		return nil
	}
	errs := []error{t.stop()}
	t.Ledger.SnapshotClose()
	errs = append(errs, t.Ledger.Journal.Close(), t.Place.Close(), t.Memory.Close())
	errs = append(errs, t.hold.live.Release()) // last: until here no other task may work in the directory
	t.hold.live = nil
	return errors.Join(errs...)
}

// limits returns the turn's limits, with the tokens each request needs beside the context.
func (t *Task) limits() state.Limits {
	l := t.opts.Limits
	l.Worked = t.Ledger.Now().Sub(t.opts.family.begun)
	if end := t.opts.family.begun.Add(l.Time); l.Time > 0 {
		out := t.Ledger.State().Outage
		// A wait for the provider that outlasts the time ends the turn at once: nothing could follow it.
		l.TimeUp = !t.Ledger.Now().Before(end) || out != nil && out.Until.After(end)
	}
	// Each look at the limits publishes this task's usage: subagents at work compare theirs with the common budget.
	t.opts.family.setUsed(t.Ledger.ID, t.Ledger.State().Spent(), t.Ledger.State().Subagents)
	l.Others = t.opts.family.others(t.Ledger.State().Spent())
	l.ToolTokens, l.User = t.tools.Tokens, t.user.answers()
	l.Present = t.opts.Callbacks.Ask != nil
	l.Waits = t.user.task == "" && t.user.desk.Asks()
	return l
}

func (o Options) withDefaults() *Options {
	if o.Now == nil {
		o.Now = o.Store.Stream.Now
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.family == nil {
		o.family = newFamily(o.Now())
	}
	return &o
}

package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"anamnesis/anamnesis/tokens"
	"anamnesis/knowledge_base/retrieval"
	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/guard/quarantine"
	"anamnesis/orchestrator/jobs"
	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/leftover"
	"anamnesis/orchestrator/loop"
	"anamnesis/orchestrator/memory"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/redact"
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
)

var (
	// ErrSecretName: a name that would be recorded holds a secret.
	ErrSecretName = errors.New("a name holds a secret")
	// ErrNotText: a directory's path is not UTF-8, and would be recorded as another.
	ErrNotText = errors.New("a directory's path is not UTF-8 text")
)

// Options are the environment of a task in this process. The zero value has no model and no
// user to ask.
type Options struct {
	Model     model.Model // what answers; nil: the task can be looked at and jumped, not run
	Reflect   model.Model // answers as the Reflect-Agent; nil: Model does
	Tools     *tool.Registry
	Sources   []tool.Source // tools that come and go, after Tools
	Subagents []Subagent    // those that the tool Task hands work to
	Limits    state.Limits
	Callbacks Callbacks
	Guards    Guards
	Cards     Cards
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
	// Polling names calls that may be repeated in an unchanged world, because
	// they wait for something outside it; nil: loop.Polling.
	Polling []loop.Pattern
	// RunUndone lets a call that a jump has undone run in the same state of the files without
	// asking first.
	RunUndone bool
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
	// NoWatch makes each save scan the directory, for processes that save once.
	NoWatch bool
}

// Recorder are the settings of a process that records another agent.
type Recorder struct {
	// Kept is a world that stays open when the task is closed; nil: the task opens its own.
	Kept *worldstate.World
	// Socket is where other processes ask this one to close the task: see
	// taskdir.LiveDir.KeptOpen.
	Socket string
	// Disturbed is called after the save that ends a step. by, if not empty, names another
	// program that may have changed files in this step; late reports that the step's own agent
	// did not wait for the save. nil: neither ever happens.
	Disturbed func() (by string, late bool)
}

// Task is one process's hold on a task: its ledger, its world, its memory and its permissions.
// Run belongs to one goroutine; Say and Jump may be called from any.
type Task struct {
	Ledger *journal.Ledger
	Place  *workspace.Place
	Memory *memory.Memory

	sandbox  *sandbox
	features features
	runner   *runner

	opts     Options
	tools    *toolset.Set
	left     *leftover.Leftovers
	gate     *gate.Gate
	live     *taskdir.LiveDir
	recovery *worldstate.Recovery // the outcome of an interrupted restore, if any
	made     bool                 // OpenTask made the directory again
	named    bool                 // the user named the directory, and no operation has it yet

	quarantined string // see Quarantined
}

// Quarantined reports what commands of programs that died had left in the directory and was
// taken out when the task was opened; empty: nothing.
func (t *Task) Quarantined() string { return t.quarantined }

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
	counter.Count("")
	live, err := taskdir.HoldDir(h, dir, n.ID, n.parent())
	if err != nil {
		return nil, err
	}
	t := &Task{opts: o.withDefaults(), live: live, quarantined: quarantine.Recover(h.Runs(), h.State, dir)}
	word := cmp.Or(n.Mark, notice.NewMarkWord())
	if n.System != "" {
		n.System += "\n\n"
	}
	n.System += notice.MarkRule(word)
	opened := &op.TaskOpened{
		Mark: word,
		Task: n.ID, Dir: dir, Repo: cmp.Or(n.Repo, worldstate.RepositoryName(dir)), Store: h.Store(dir), Model: n.Model, BaseURL: n.BaseURL, Reflect: n.Reflect,
		EAS: n.EAS, EASFrom: n.EASFrom, Window: n.Window, Encoding: n.Encoding, Approval: n.Approval, Allow: approval.Texts(n.Rules, approval.Allow), Ask: approval.Texts(n.Rules, approval.Ask), Deny: approval.Texts(n.Rules, approval.Refuse), Sandbox: n.Sandbox, Writable: n.Writable, MaxSteps: n.Limits.Steps, Tools: n.Tools,
		KB: h.KnowledgeBase(), System: n.System, Agent: n.Agent, Instructions: n.Instructions, Program: o.Program,
		Origin: n.Origin, NoResearch: n.NoResearch, Guarded: n.Guarded, NoFinalPass: n.NoFinalPass, Parent: n.Parent, Redact: state.WithNames(nil, n.Redact),
	}
	if n.Limits != (op.Limits{}) {
		opened.Limits = &n.Limits
	}
	if err := t.open(ctx, h, n.ID, counter, opened); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	if t.Ledger.State().Last != 0 {
		return nil, errors.Join(fmt.Errorf("%w: %s", ErrTaskExists, n.ID), t.Close())
	}
	// One write: the request cannot be lost while the task stays.
	if err := t.Ledger.Record(ctx, opened, &op.UserSaid{Text: n.Request, Source: op.SourceRequest}); err != nil {
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
	if err := (&New{ID: id, Dir: dir}).CheckNames(o.Secrets); err != nil && o.Dir != "" {
		return nil, err
	}
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
	t := &Task{opts: o.withDefaults(), live: live, made: gone, named: foreign || dir != was, quarantined: quarantine.Recover(h.Runs(), h.State, dir)}
	t.opts.Store.World.Moved = st.Moved
	counter, err := tokens.ForEncoding(st.Opened.Encoding)
	if err == nil {
		err = t.open(ctx, h, id, counter, &st.Opened)
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// Resume is journal.Ledger.Resume in the directory that the user named, if any.
func (t *Task) Resume(ctx context.Context, message string, to *op.TaskResumed) error {
	t.nameDir(to)
	if err := t.Ledger.Resume(ctx, message, to); err != nil {
		return err
	}
	return t.Place.Adopt(ctx, to.Dir != "")
}

// nameDir adds the directory that the user named to the record of a resume.
func (t *Task) nameDir(to *op.TaskResumed) {
	if !t.named {
		return
	}
	if t.Place.Dir != t.Ledger.State().Opened.Dir {
		to.Notice = strings.TrimSpace(notice.Moved(t.Ledger.State().Opened.Dir, t.Place.Dir) + "\n\n" + to.Notice)
	}
	to.Dir, to.Store, t.named = t.Place.Dir, t.Ledger.Home.StoreOf(&t.Ledger.State().Opened), false
}

// open opens the stores, folds what the stream holds and recovers the world.
func (t *Task) open(ctx context.Context, h taskdir.Home, id string, counter *tokens.Counter, opened *op.TaskOpened) error {
	var err error
	// The world is opened first: if it is refused, no stream is left behind.
	w := t.opts.Store.World
	w.Task, w.Home, w.Exclude, w.Watch = id, h.User, h.Excluded(), opened.Parent == nil && !t.opts.Store.NoWatch
	w.FileLimitBytes, w.SizeLimitBytes, w.Secrets = h.FileLimitBytes, h.StoreLimitBytes, h.Secrets
	if t.Place, err = workspace.OpenPlace(opened.Dir, h.StoreOf(opened), &w, t.opts.Recorder.Kept); err != nil {
		return err
	}
	if err := t.live.KeptOpen(t.opts.Recorder.Socket); err != nil {
		return err
	}
	t.Place.Abandon, t.Place.Changed, t.Place.Disturbed = t.opts.AbandonRestore, t.opts.changed, t.opts.Recorder.Disturbed
	stream := t.opts.Store.Stream
	stream.Now, stream.Snapshot = t.opts.Now, state.FoldVersion
	t.Ledger, err = journal.OpenLedger(h, id, counter, t.opts.Store.SnapshotEvery, journal.Options{
		Stream: stream, Mark: opened.Mark, Count: counter.Count, Secrets: t.opts.Secrets, Learned: &t.opts.family.learned,
		Files: t.Place.Root, Dir: t.Place.Dir,
		Event: func(o op.Op) {
			if t.opts.Callbacks.Op != nil {
				t.opts.Callbacks.Op(o)
			}
		},
	})
	if err != nil {
		return err
	}
	t.Place.Ledger = t.Ledger
	t.sandbox = &sandbox{ledger: t.Ledger, dir: t.Place.Dir, override: t.opts.Guards.Sandbox, writes: &t.Place.Writes}
	if opened.Origin == nil {
		t.Place.Examine = t.sandbox.examine
	}
	t.left = leftover.New(t.Place, t.opts.family.atWork)
	// Processes of a dead run could still write: end them before the world is read.
	if err := t.left.EndProcesses(); err != nil {
		return err
	}
	recoverWorld := t.Place.World.Recover
	if t.Place.Abandon {
		recoverWorld = t.Place.World.Abandon
	}
	if t.recovery, err = recoverWorld(ctx); err != nil {
		return fmt.Errorf("recover the world: %w", err)
	}
	if t.Memory, err = memory.Open(t.Ledger, t.Place.Dir, h.KnowledgeBase(), memory.Options{
		Model: t.opts.Model, Reader: t.opts.Cards.Reader, Embedder: t.opts.Cards.Embedder, Passing: t.opts.Callbacks.Passing,
	}); err != nil {
		return err
	}
	t.Place.Jobs = jobs.New(jobs.Options{
		Task: t.Ledger.ID, Home: h, Dir: filepath.Join(h.Task(t.Ledger.ID), "jobs"), Before: t.Ledger.State().Jobs.Begun,
		Post: func(ctx context.Context, b op.Body) error { return t.Ledger.Journal.Post(ctx, b) },
	})
	if t.tools, err = toolset.New(toolset.Options{
		Own: t.opts.Tools, Sources: t.opts.Sources, Agent: opened.Agent, Asked: opened.Tools, Count: counter.Count, Sandbox: t.sandbox.Get, Redactor: t.Ledger.Journal.Redactor(),
	}); err != nil {
		return err
	}
	t.gate = gate.New(t.Place, gate.Options{
		Tools: func() *tool.Registry { return t.tools.Registry }, Approve: t.opts.Callbacks.Approve, Asking: &t.opts.family.askMu, Rules: t.opts.Guards.Rules,
		Mode: approval.Mode(cmp.Or(t.opts.Guards.Approval, t.Ledger.State().Grants.Mode, opened.Approval)), Above: t.opts.above,
	})
	t.features = t.makeFeatures()
	t.runner = t.makeRunner()
	return nil
}

// Offer is [taskdir.LiveDir.Offer], refused while a command runs in the background.
func (t *Task) Offer(closed func() error) (take func() bool, err error) {
	return t.live.Offer(func() error {
		if len(t.Ledger.State().Jobs.Running) > 0 {
			return taskdir.ErrBusy
		}
		return closed()
	})
}

// Close releases the process's hold on the task and seals the stream; the task can be opened
// again. A second call does nothing.
func (t *Task) Close() error {
	if t.live == nil {
		return nil
	}
	var errs []error
	if t.Place != nil && t.Place.Jobs != nil { // before the stream: their ends are recorded
		errs = append(errs, t.Place.Jobs.Close())
		t.Place.Jobs = nil
	}
	if t.Memory != nil {
		errs = append(errs, t.Memory.CountCards())
	}
	if t.Ledger != nil {
		t.Ledger.SnapshotClose()
		errs = append(errs, t.Ledger.Journal.Close())
	}
	if t.Place != nil {
		errs = append(errs, t.Place.Close())
	}
	if t.Memory != nil {
		errs = append(errs, t.Memory.Close())
	}
	errs = append(errs, t.live.Release()) // last: until here no other task may work in the directory
	t.live = nil
	return errors.Join(errs...)
}

// limits returns the turn's limits, with the tokens each request needs beside the context.
func (t *Task) limits() state.Limits {
	l := t.opts.Limits
	if end := t.opts.family.begun.Add(l.Time); l.Time > 0 {
		out := t.Ledger.State().Outage
		l.TimeUp = !t.Ledger.Now().Before(end) || out != nil && out.Until.After(end)
	}
	t.opts.family.setUsed(t.Ledger.ID, t.Ledger.State().Spent(), t.Ledger.State().Subagents)
	l.Others = t.opts.family.others(t.Ledger.State().Spent())
	l.ToolTokens, l.User = t.tools.Tokens, t.opts.Callbacks.Ask != nil
	return l
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.family == nil {
		o.family = newFamily(o.Now())
	}
	return o
}

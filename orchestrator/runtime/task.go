package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"anamnesis/anamnesis"
	"anamnesis/anamnesis/tokens"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/retrieval"
	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/jobs"
	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/loop"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/file"
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

// Options are the surroundings of a task in this process. The zero value has
// no model and asks nobody.
type Options struct {
	Model   model.Model // what answers; nil: the task can be looked at and jumped, not run
	Tools   *tool.Registry
	Sources []tool.Source // tools that come and go, after Tools
	// Embedder makes the vectors of the cards; nil: the built-in one.
	Embedder retrieval.Embedder
	Reflect  model.Model                                  // answers as the Reflect-Agent; nil: Model does
	Approve  func(ctx context.Context, q Question) Answer // nil: nobody can be asked
	// Ask puts a question to the user; false: no answer. nil: nobody can be asked.
	Ask      func(ctx context.Context, question string) (string, bool)
	Approval string // overrides the task's mode in this process
	// NoLessons leaves the results of failed commands as they are; else a card about
	// the same error is named there.
	NoLessons bool
	// NoWarnings lets a call run that a card says fails in this project; else it is
	// held once.
	NoWarnings bool
	// Rules are the user's and the project's standing answers, beside those the
	// task was opened with.
	Rules []approval.Rule
	// Sandbox overrides what the task's commands are held in, in this process.
	Sandbox guard.Confinement
	Limits  state.Limits
	// Subagents are the agents that the tool Task hands work to.
	Subagents []Subagent
	// Polling names calls that may be repeated in an unchanged world, because
	// they wait for something outside it; nil: loop.Polling.
	Polling []loop.Pattern
	// RunUndone lets a call that a jump has undone run in the same state of the
	// files at once, without being asked about.
	RunUndone bool
	// KnownModel says which models need no looking up before their name is used;
	// nil: none is known.
	KnownModel func(name string) bool
	Recreate   bool // OpenTask makes the world's directory again when it is gone
	// AbandonRestore gives up a restore of the files that was interrupted, in place of
	// finishing it; see Task.AbandonRestore.
	AbandonRestore bool
	// Event sees every operation once it is durable, in order. It must not call
	// the task.
	Event func(op.Op)
	// Delta sees a reply while it arrives; nothing of it is recorded yet.
	Delta func(model.Delta)
	// Progress sees how far a running call says it is; nothing of it is recorded.
	Progress func(c op.Call, text string)
	// Output sees what a running command prints. Editing sees what a call is about to
	// change, before it is asked about. Both are redacted, and not recorded.
	Output  func(c op.Call, p []byte)
	Editing func(c op.Call, changes []file.Change)
	// Queued is called before each request. It returns what the user has to say with it,
	// and forgets it; empty: nothing.
	Queued func() string
	// Passing sees that a pass is about to ask the model, which may take minutes;
	// what comes of it is recorded.
	Passing func(op.PassBegun)
	Now     func() time.Time
	// Stream and World are the settings of the task's stream and world; what follows
	// from the task itself is filled in.
	Stream opstream.Options
	World  worldstate.Options
	// SnapshotEvery is how many operations the stream grows by, at least,
	// until its fold is written down again; 0: DefaultSnapshotEvery.
	SnapshotEvery uint64
	// Kept is a world that stays open when the task is closed; nil: the task opens its
	// own. Socket is where the process is asked to close the task: see
	// taskdir.LiveDir.KeptOpen.
	Kept   *worldstate.World
	Socket string
	// Disturbed is asked after the save that ends a step. A by that is not empty names
	// another program that may have changed files in this step; late says that the
	// step's own agent did not wait for the save. nil: neither ever.
	Disturbed func() (by string, late bool)
	// NoWatch has each save scan the directory, for processes that save once.
	NoWatch bool
	// Program is the version recorded in the stream.
	Program string
	// Secrets are values known to be secret: they are redacted wherever they
	// would be recorded, shown or sent, as is what looks like a secret.
	Secrets []redact.Secret

	family *family // of a subagent: its parent's
	// Changed tells the task that began this one of a change in their directory; nil
	// where none did, or it has a directory of its own.
	changed func(ctx context.Context, b *op.WorldChanged) error
	// above is what the task that began this one would decide of a call; nil where
	// none did, or a user allowed everything.
	above func(approval.Facts) approval.Decision
}

// Task is one piece of work in this process: its ledger, its world, what it knows and
// what it may use. Run belongs to one goroutine; Say and Jump may be called from any.
type Task struct {
	ledger
	place
	toolset
	memory
	sandbox

	live  *taskdir.LiveDir
	model model.Model

	mu       sync.Mutex // guards approval and opts.above
	approval string
}

// ledger is the task's journal and the state folded from it. But for what the journal
// itself allows, only Run's goroutine uses it, or calls that run one after another.
type ledger struct {
	ID      string
	home    taskdir.Home
	journal *journal.Journal
	counter *tokens.Counter
	opts    Options

	state     state.State
	here      workspace.SavedWorld // of the current step, once it was asked for
	unusable  bool                 // a fold failed
	snapshot  uint64               // seq of the last operation in a snapshot of the index
	takenOver uint64               // the last operation when this process took the task over
}

// place is the task's directory, what is known of it and what runs in it. But for root
// and jobs, only Run's goroutine uses it, or calls that run one after another.
type place struct {
	*ledger  // of the same task
	Dir      string
	world    *worldstate.World
	recovery *worldstate.Recovery // what became of an interrupted restore; nil: there was none
	damaged  string               // see Damaged
	made     bool                 // OpenTask made the directory again
	jobs     *jobs.Jobs           // nil until the task is open
	rootMu   sync.Mutex           // guards root
	root     *os.Root             // of the directory; see worldRoot

	// Of the calls under way; see changed.go.
	seen          workspace.SavedWorld // the last snapshot
	dirty, looked bool                 // a call that may write ran since; no call ran since it was taken
	partial       []string             // what the step under way had changed by then
}

// toolset is what the agent is offered. Run's goroutine changes it, between calls.
type toolset struct {
	*ledger    // of the same task
	tools      *tool.Registry
	toolSpecs  []model.ToolSpec
	toolTok    map[string]int // tokens of each of toolSpecs, by its text
	toolTokens int            // and of all
	spec       *op.Agent      // says which tools are offered; nil: all
	asked      []string       // tools that are offered whatever spec says
	offers     []uint64       // versions of the sources' tools in tools; nil: not asked yet
}

// memory is what the task can find beside its context: the cards.
type memory struct {
	cards    *knowledgebase.Store
	layers   knowledgebase.Layers // what is searched: the project's own cards, if it has any, and cards
	lessons  lessons              // what other tasks repaired
	degraded string               // why the cards were last searched by words only, as it was told
	taint    *anamnesis.TaintLog  // Run's goroutine only; nil until a pass needs it

	seenMu     sync.Mutex // guards experience
	experience anamnesis.Experience
	trusted    sync.Map // what streams say of cards, by their texts
}

// Create makes a new task in dir and records the request. When it fails, the
// name is free again.
func Create(ctx context.Context, h taskdir.Home, n New, o Options) (*Task, error) {
	dir, err := taskdir.WorldDir(n.Dir)
	if err != nil {
		return nil, err
	}
	named := n
	named.Dir = dir
	if err := named.CheckNames(o.Secrets); err != nil {
		return nil, err
	}
	if err := taskdir.OutsideHome(h, dir); err != nil {
		return nil, err
	}
	// What takes long comes before the hold: who looks then finds the task.
	counter, err := tokens.ForEncoding(n.Encoding)
	if err != nil {
		return nil, err
	}
	counter.Count("")
	live, err := taskdir.HoldDir(h, dir, n.ID, n.parent())
	if err != nil {
		return nil, err
	}
	t := unopened(h, n.ID, dir, live, o)
	t.counter = counter
	word := cmp.Or(n.Mark, notice.NewMarkWord())
	if n.System != "" {
		n.System += "\n\n"
	}
	n.System += notice.MarkRule(word)
	opened := &op.TaskOpened{
		Mark: word,
		Task: n.ID, Dir: dir, Repo: cmp.Or(n.Repo, worldstate.RepositoryName(dir)), Store: h.Store(dir), Model: n.Model, BaseURL: n.BaseURL, Reflect: n.Reflect,
		EAS: n.EAS, EASFrom: n.EASFrom, Window: n.Window, Encoding: n.Encoding, Approval: n.Approval, Allow: ruleTexts(n.Rules, approval.Allow), Ask: ruleTexts(n.Rules, approval.Ask), Deny: ruleTexts(n.Rules, approval.Refuse), Sandbox: n.Sandbox, Writable: n.Writable, MaxSteps: n.MaxSteps, Tools: n.Tools,
		KB: h.KnowledgeBase(), System: n.System, Agent: n.Agent, Instructions: n.Instructions, Program: o.Program,
		Origin: n.Origin, NoResearch: n.NoResearch, Guarded: n.Guarded, NoFinalPass: n.NoFinalPass, Experiment: n.Experiment, Parent: n.Parent, Redact: state.WithNames(nil, n.Redact),
	}
	if err := t.open(ctx, h, opened); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	if t.state.Last != 0 {
		return nil, errors.Join(fmt.Errorf("%w: %s", ErrTaskExists, n.ID), t.Close())
	}
	// One write: the request cannot be lost while the task stays.
	if err := t.record(ctx, opened, &op.UserSaid{Text: n.Request, Source: op.SourceRequest}); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// OpenTask opens a task that is not running: it folds the stream, ends what a
// dead process left behind and brings a half-done restore to one of its ends.
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
	gone, err := workspace.DirGone(id, st.Opened.Dir)
	if err == nil && gone && o.Recreate {
		err = workspace.RecreateDir(st.Opened.Dir)
	} else if err == nil {
		err = workspace.WantDir(id, st.Opened.Dir)
	}
	if err != nil {
		return nil, err
	}
	live, err := taskdir.HoldDir(h, st.Opened.Dir, id, st.Parent())
	if err != nil {
		return nil, err
	}
	t := unopened(h, id, st.Opened.Dir, live, o)
	t.made = gone
	if err := t.open(ctx, h, &st.Opened); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// unopened returns a task before it is opened.
func unopened(h taskdir.Home, id, dir string, live *taskdir.LiveDir, o Options) *Task {
	t := &Task{ledger: ledger{ID: id, home: h, opts: o.withDefaults()}, live: live}
	t.place.ledger, t.toolset.ledger, t.Dir = &t.ledger, &t.ledger, dir
	return t
}

// Resume records that this process goes on with the task, with a user's
// words if there are any.
func (t *ledger) Resume(ctx context.Context, message string, to *op.TaskResumed) error {
	bodies := []op.Body{to}
	if message != "" {
		bodies = append(bodies, &op.UserSaid{Text: message, Source: op.SourceRequest})
	}
	return t.record(ctx, bodies...)
}

// open opens the stores, folds what the stream holds and recovers the world.
func (t *Task) open(ctx context.Context, h taskdir.Home, opened *op.TaskOpened) error {
	var err error
	if t.counter == nil {
		if t.counter, err = tokens.ForEncoding(opened.Encoding); err != nil {
			return err
		}
	}
	if t.root, err = os.OpenRoot(t.Dir); err != nil {
		return fmt.Errorf("open the world: %w", err)
	}
	// The world first: what it refuses leaves no stream behind.
	w := t.opts.World
	w.Task, w.Home, w.Exclude, w.Watch, w.FileLimitBytes = t.ID, h.User, h.Roots(), opened.Parent == nil && !t.opts.NoWatch, h.FileLimitBytes
	if t.world = t.opts.Kept; t.world != nil {
		err = t.world.SetTask(t.ID)
	} else {
		t.world, err = worldstate.Open(t.Dir, opened.Store, &w)
	}
	if err == nil && t.opts.Socket != "" {
		err = t.live.KeptOpen(t.opts.Socket)
	}
	if err != nil {
		return err
	}
	stream := t.opts.Stream
	stream.Now, stream.Checkpoint = t.opts.Now, state.FoldVersion
	if t.journal, err = journal.Open(h.Task(t.ID), h.Vault(t.ID), journal.Options{
		Stream: stream, Mark: opened.Mark, Count: t.counter.Count, Secrets: t.opts.Secrets, Learned: &t.opts.family.learned,
		Files: t.worldRoot, Dir: t.Dir,
		Event: func(o op.Op) {
			if t.opts.Event != nil {
				t.opts.Event(o)
			}
		},
	}); err != nil {
		return err
	}
	if err := t.catchUp(); err != nil {
		return err
	}
	// What a dead run left running could still write: end it before the world
	// is looked at.
	if err := errors.Join(endLeftovers(&t.state), t.endSubagentLeftovers()); err != nil {
		return err
	}
	recoverWorld := t.world.Recover
	if t.opts.AbandonRestore {
		recoverWorld = t.world.Abandon
	}
	if t.recovery, err = recoverWorld(ctx); err != nil {
		return fmt.Errorf("recover the world: %w", err)
	}
	if err := t.openCards(opened.KB); err != nil {
		return err
	}
	t.model = t.opts.Model
	t.jobs = jobs.New(jobs.Options{
		Task: t.ID, Home: h, Dir: filepath.Join(h.Task(t.ID), "jobs"), Before: t.state.JobsBegun, Now: t.now,
		Post: func(ctx context.Context, b op.Body) error { return t.journal.Post(ctx, b) },
	})
	t.spec, t.asked = opened.Agent, opened.Tools
	if t.opts.Tools != nil {
		t.opts.Tools = t.opts.Tools.Only(t.mayUse)
		if err := t.offer(t.opts.Tools); err != nil {
			return err
		}
	}
	if t.approval = t.state.Approval; t.approval == "" {
		t.approval = opened.Approval
	}
	if t.opts.Approval != "" {
		t.approval = t.opts.Approval
	}
	return nil
}

// CheckpointRefused says why the checkpoint beside the stream was not used when
// the task was opened and the whole stream was folded; nil when it was, or there
// was none.
func (t *ledger) CheckpointRefused() error { return t.journal.Log().CheckpointRefused() }

// catchUp folds the stream as it is on disk, from its checkpoint on.
func (t *ledger) catchUp() error {
	t.state = *state.FromSnapshot(t.journal.Log())
	t.snapshot = t.state.Last
	err := taskdir.EachDecoded(t.journal.Log().Since(t.state.Last), t.fold)
	if err != nil {
		return err
	}
	t.takenOver = t.state.Last
	return t.journal.Settle(&t.state, t.fold)
}

// Fold takes one operation into the task's state.
func (t *ledger) fold(o op.Op) error {
	err := state.Fold(&t.state, o)
	t.unusable = t.unusable || err != nil
	if b, ok := o.Body.(*op.WorldSaved); ok {
		t.here = workspace.SavedWorld{Step: o.Step, Commit: worldstate.ID(b.Commit), Tree: b.Tree}
	}
	return err
}

// Close ends the process's hold on the task. The stream is sealed; the task
// can be opened again. A second call does nothing.
func (t *Task) Close() error {
	if t.live == nil {
		return nil
	}
	var errs []error
	if t.jobs != nil { // before the stream: their ends are recorded
		errs = append(errs, t.jobs.Close())
		t.jobs = nil
	}
	if t.journal != nil {
		errs = append(errs, t.countCards())
		t.writeSnapshot(true)
		errs = append(errs, t.journal.Close())
	}
	if t.world != nil && t.world != t.opts.Kept {
		errs = append(errs, t.world.Close())
	}
	for _, s := range t.layers {
		errs = append(errs, s.Close())
	}
	if t.root != nil {
		errs = append(errs, t.root.Close())
	}
	errs = append(errs, t.live.Release()) // last: until here nobody else may work in the directory
	t.world, t.cards, t.layers, t.root, t.live = nil, nil, nil, nil, nil
	return errors.Join(errs...)
}

// limits are the turn's bounds, with what each request carries besides the
// context.
func (t *toolset) limits() state.Limits {
	l := t.opts.Limits
	l.TimeUp = l.Time > 0 && t.now().Sub(t.opts.family.begun) >= l.Time
	l.Others = t.opts.family.others(t.state.Spent())
	l.ToolTokens, l.Person = t.toolTokens, t.opts.Ask != nil
	return l
}

// State returns the folded state. It may be read while Run is not running.
func (t *ledger) State() *state.State { return &t.state }

// Unanswered folds what was asked for since Run returned and reports whether
// there are words to answer or a jump to make. It may be called while Run is
// not running.
func (t *ledger) Unanswered() bool {
	return t.settle() == nil && (t.state.Turn.Open || t.state.Pending != nil)
}

// Say records a user's words. They are durable when it returns; the agent
// sees them with its next request.
func (t *ledger) Say(ctx context.Context, text string, source op.Source) error {
	return t.journal.Post(ctx, &op.UserSaid{Text: text, Source: source})
}

// Jump schedules a jump for a user: it is made when the present step is
// complete. Fold forces the anamnesis pass; overwrite reverts a user's edits
// since the last step, too, which are otherwise kept.
func (t *ledger) Jump(ctx context.Context, to int, reason string, fold, overwrite bool) error {
	var p journal.Public
	t.journal.Look(func(now journal.Public, _ []op.Op) { p = now })
	if to < 0 || to >= p.Ended {
		return fmt.Errorf("%w: step %d; valid steps are %s", state.ErrNoStep, to, p.Valid)
	}
	return t.schedule(ctx, &op.JumpRequested{To: to, Reason: reason, By: state.ByUser, Fold: fold, Overwrite: overwrite})
}

// Serve obeys the commands that other processes send to the task, until stop is
// called; stop returns when the last is answered.
func (t *ledger) Serve(ctx context.Context, h taskdir.Home) (stop func(), err error) {
	return taskdir.Serve(h, t.ID, func(c taskdir.Command) error {
		switch c.Verb {
		case "say":
			return t.Say(ctx, c.Text, op.SourceSteer)
		case "jump":
			return t.Jump(ctx, c.To, c.Reason, c.Fold, c.Overwrite)
		}
		return fmt.Errorf("unknown command %q", c.Verb)
	})
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.SnapshotEvery == 0 {
		o.SnapshotEvery = DefaultSnapshotEvery
	}
	if o.family == nil {
		o.family = newFamily(o.Now())
	}
	return o
}

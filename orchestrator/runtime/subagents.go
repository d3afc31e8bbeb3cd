package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/subagent"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/toolset"
	"anamnesis/orchestrator/workspace"
)

// maxSubagents is how many subagents one task begins.
const maxSubagents = 1000

// Subagent is an agent that the tool Task hands work to.
type Subagent struct {
	Spec op.Agent
	// Offers reports which tools it is offered; nil: all. Task and tools that rewind are never
	// offered.
	Offers func(name string, looks bool) bool
	// System returns its system prompt for the directory it works in.
	System func(dir string) string
	// Model answers; nil: the task's own does.
	Model *SubagentModel
}

// SubagentModel is a model with the facts that a stream records about it.
type SubagentModel struct {
	Model         model.Model
	Name, BaseURL string
	EAS           int // effective attention span, tokens
	EASFrom       string
	Window        int // advertised context window, tokens; 0: unknown
	Encoding      string
}

// subagents begins those of a task. It implements subagent.Agents; its methods may be called from
// the goroutines of calls.
type subagents struct {
	opts   *Options
	ledger *journal.Ledger
	place  *workspace.Place
	gate   *gate.Gate
	tools  *toolset.Set
	// planning reports whether the agent only plans.
	planning func() bool
}

// refused is the result of a call whose subagent does not begin.
func refused(format string, args ...any) error {
	return &tool.CallError{Text: subagent.ToolName + " was not run: " + fmt.Sprintf(format, args...) + "."}
}

// Begin implements subagent.Agents.
func (t *subagents) Begin(ctx context.Context, s subagent.Start) (subagent.Working, error) {
	i := slices.IndexFunc(t.opts.Subagents, func(a Subagent) bool { return a.Spec.Name == s.Agent })
	if i < 0 {
		return nil, refused("unknown subagent %q", s.Agent)
	}
	keep := context.WithoutCancel(ctx) // operations are recorded even after ctx ends
	w := &working{t: t, start: s, spec: t.opts.Subagents[i]}
	var err error
	if s.Resume == "" {
		err = w.create(keep)
	} else {
		err = w.resume(keep)
	}
	if err != nil {
		if w.id != "" {
			t.opts.family.release(w.id)
		}
		return nil, err
	}
	st := w.child.Ledger.State()
	w.before, w.had, w.from = st.Totals.Usage, st.Spent(), st.Last
	t.opts.family.recordBefore(w.id, w.had)
	started := &op.SubagentStarted{Call: s.Call, Task: w.id, Agent: s.Agent, Description: s.Description,
		Resumed: s.Resume != "", Before: w.before, From: w.from}
	if w.child.Place.Dir != t.place.Dir {
		started.Dir = w.child.Place.Dir
	}
	if err := t.ledger.Journal.Post(keep, started); err != nil {
		t.opts.family.release(w.id)
		return nil, errors.Join(err, w.child.Close())
	}
	return w, nil
}

// create makes the subagent's task.
func (w *working) create(ctx context.Context) error {
	t, s := w.t, w.start
	if err := w.name(); err != nil {
		return err
	}
	dir := t.place.Dir
	if s.Fork {
		var err error
		if dir, err = t.place.Fork(ctx, w.id); err != nil {
			return refused("no copy of the directory can be made: %v", err)
		}
	}
	o, err := t.options(w.spec, s)
	if err != nil {
		return err
	}
	st, m := t.ledger.State(), w.spec.model(t)
	n := New{Request: s.Prompt, TaskOpened: op.TaskOpened{
		Task: w.id, Dir: dir, Repo: st.Opened.Repo, Redact: st.Redact, NoFinalPass: true,
		Model: m.Name, BaseURL: m.BaseURL, EAS: m.EAS, EASFrom: m.EASFrom, Window: m.Window, Encoding: m.Encoding,
		Approval: o.Guards.Approval, Sandbox: string(o.Guards.Sandbox), Writable: st.Opened.Writable,
		NoResearch: st.Opened.NoResearch, Guarded: slices.Concat(st.Opened.Guarded, w.spec.Spec.Guarded),
		Parent: &op.Parent{
			Task: t.ledger.ID, Op: t.calledAt(s.Call), Call: s.Call, Agent: w.spec.Spec.Name,
			ReadOnly: w.spec.Spec.ReadOnly, Fork: s.Fork,
		},
	}}
	spec := w.spec.Spec
	spec.Prompt = "" // System is the result
	n.Agent = &spec
	n.System = w.spec.System(dir)
	if w.child, err = Create(ctx, t.ledger.Home, n, o); err != nil {
		return fmt.Errorf("begin the subagent %s: %w", w.id, err)
	}
	return nil
}

// calledAt returns the operation that began a call of the reply under way.
func (t *subagents) calledAt(call string) (seq uint64) {
	t.ledger.Journal.ReadQueue(func(queue []op.Op) {
		for _, o := range queue {
			if b, ok := o.Body.(*op.ToolCalled); ok && b.Call == call {
				seq = o.Seq
			}
		}
	})
	return seq
}

// name reserves a free name for the subagent's task. Subagents that begin at the same time are
// numbered in the order of their calls.
func (w *working) name() error {
	first := len(w.t.ledger.State().Subagents) + 1
	for _, c := range w.t.ledger.State().Reply.Calls {
		if c.ID == w.start.Call {
			break
		}
		if c.Name == subagent.ToolName {
			first++
		}
	}
	for n := first; n <= maxSubagents; n++ {
		id := taskdir.SubagentID(w.t.ledger.ID, n)
		if _, err := os.Lstat(w.t.ledger.Home.Task(id)); err == nil || !w.t.opts.family.reserve(id) {
			continue
		}
		w.id = id
		return nil
	}
	return refused("this task has begun %d subagents, and may begin no more", maxSubagents)
}

func (w *working) resume(ctx context.Context) error {
	t, s := w.t, w.start
	st := t.ledger.State()
	known := st.Subagents
	i := slices.IndexFunc(known, func(c state.BegunSubagent) bool { return c.Task == s.Resume })
	if i < 0 {
		var ids []string
		for _, c := range known {
			ids = append(ids, c.Task)
		}
		return refused("no subagent of this task is %q; there are: %s", s.Resume, notice.List(ids, len(ids)))
	}
	switch c := known[i]; {
	case c.Agent != s.Agent:
		return refused("%s is the agent %s, not %s", c.Task, c.Agent, s.Agent)
	// The step under way is on no path yet.
	case !st.Steps.OnPath(c.Step, st.Current) && c.Step != st.Steps.Next():
		return refused("%s was begun in step %d, which a jump left, and ended with it; begin a new one", c.Task, c.Step)
	case !t.opts.family.reserve(c.Task):
		return refused("%s is still at work", c.Task)
	}
	w.id = s.Resume
	o, err := t.options(w.spec, s)
	if err != nil {
		return err
	}
	if known[i].Dir == "" { // it works where this task does, also after a move
		o.Dir = t.place.Dir
	}
	w.child, err = OpenTask(ctx, t.ledger.Home, w.id, o)
	switch {
	case errors.Is(err, workspace.ErrNoDirectory), errors.Is(err, taskdir.ErrNoTask),
		errors.Is(err, taskdir.ErrElsewhere):
		return refused("%v", err)
	case err != nil:
		return fmt.Errorf("continue the subagent %s: %w", w.id, err)
	}
	if err := w.addWords(ctx); err != nil {
		return errors.Join(err, w.child.Close())
	}
	return nil
}

// addWords records the new words, after a notice of what changed in the files meanwhile.
func (w *working) addWords(ctx context.Context) error {
	c := w.child
	changes, err := c.Place.ChangedSinceLast(ctx)
	if err != nil {
		return err
	}
	if len(changes) > 0 {
		text := "[files] Changed since you worked last, so that what you read of them may be out of date: " +
			notice.List(notice.Paths(changes), len(changes)) + "."
		if err := c.Ledger.Record(ctx, &op.NoticeGiven{Text: text}); err != nil {
			return err
		}
	}
	to := &op.TaskResumed{PID: os.Getpid(), Program: w.t.opts.Program}
	if m := w.spec.model(w.t); m.Name != c.Ledger.State().Model.Name {
		to.Model, to.BaseURL, to.EAS, to.EASFrom, to.Window = m.Name, m.BaseURL, m.EAS, m.EASFrom, m.Window
	}
	return c.Resume(ctx, w.start.Prompt, to)
}

// model returns the model that answers, with what is recorded of it.
func (s *Subagent) model(t *subagents) SubagentModel {
	if s.Model != nil {
		return *s.Model
	}
	m := t.ledger.State().Model
	return SubagentModel{
		Model: t.opts.Model, Name: m.Name, BaseURL: m.BaseURL, EAS: m.EAS, EASFrom: "the task's", Window: m.Window,
		Encoding: t.ledger.State().Opened.Encoding,
	}
}

// options are a subagent's options: the task's, with no further permission than the
// task has.
func (t *subagents) options(s Subagent, start subagent.Start) (Options, error) {
	rules, err := t.gate.Rules()
	if err != nil {
		return Options{}, err
	}
	mode, _ := t.gate.Mode()
	parents := slices.Clone(rules)
	own, err := approval.ParseRules("the agent "+s.Spec.Name, s.Spec.Allow, s.Spec.Ask, s.Spec.Deny)
	if err != nil {
		return Options{}, err
	}
	rules = append(rules, own...)
	o := *t.opts
	o.Sources, o.Subagents, o.Store.World.Progress = nil, nil, nil
	to := &o.Callbacks
	to.Delta, to.Progress, to.Output, to.Passing, to.Waiting = nil, nil, nil, nil, nil
	o.changed = nil
	if !start.Fork {
		o.changed = func(ctx context.Context, b *op.WorldChanged) error { return t.ledger.Journal.Post(ctx, b) }
	}
	o.Model, o.Guards.Rules, o.Callbacks.Op = s.model(t).Model, rules, follow(s.Spec.Name, t.place.Dir, start.Progress)
	o.Tools = t.tools.Registry.Only(s.offers)
	// The stricter of two decisions holds, so that a subagent's own rules allow nothing that the task's refuse or ask.
	o.above = func(f approval.Facts) approval.Decision {
		now, _ := t.gate.Mode() // the user may change it meanwhile
		return approval.Decide(now, f, parents)
	}
	o.planning = t.planning
	o.Guards.Approval = string(approval.StricterMode(mode, approval.Mode(s.Spec.Approval)))
	o.Guards.Sandbox = t.place.Sandbox.Confinement()
	if s.Spec.Sandbox != "" {
		o.Guards.Sandbox = guard.StricterConfinement(o.Guards.Sandbox, guard.Confinement(s.Spec.Sandbox))
	}
	if approve := t.opts.Callbacks.Approve; approve != nil {
		o.Callbacks.Approve = func(ctx context.Context, q gate.Question) gate.Answer {
			q.Name = s.Spec.Name + ": " + q.Name
			return approve(ctx, q)
		}
	}
	if ask := t.opts.Callbacks.Ask; ask != nil {
		o.Callbacks.Ask = func(ctx context.Context, question string) (string, bool) {
			return ask(ctx, fmt.Sprintf("(the subagent %s asks) %s", s.Spec.Name, question))
		}
	}
	return o, nil
}

func (s *Subagent) offers(spec tool.Spec) bool {
	return !spec.Delegates && !spec.Rewinds && (s.Offers == nil || s.Offers(spec.Name, spec.Looks()))
}

// follow shows a user what a subagent does in the task's directory; nil if no user watches.
func follow(name, dir string, show func(text string)) func(op.Op) {
	if show == nil {
		return nil
	}
	calls := make(map[string]op.Call) // operations come one at a time
	return func(o op.Op) {
		switch b := o.Body.(type) {
		case *op.ModelReplied:
			for _, c := range b.Calls {
				calls[c.ID] = c
			}
		case *op.ModelFailed:
			if b.Wait != nil {
				out := state.Outage{Wait: *b.Wait, Error: b.Error}
				show(name + " " + out.Text(o.Time))
			}
		case *op.ToolReturned:
			show(name + ": " + tool.Display(calls[b.Call], dir))
			delete(calls, b.Call)
		}
	}
}

// subagentsIn returns what subagents did during the calls among some operations: the commands
// that may have reached beyond the directory, and what the user said to them. It reports a
// record that cannot be read.
func subagentsIn(p *workspace.Place, ops []op.Op) (effects []string, words []notice.Said) {
	seen := make(map[string]bool)
	for _, o := range ops {
		b, ok := o.Body.(*op.SubagentStarted)
		if !ok || seen[b.Task] {
			continue
		}
		seen[b.Task] = true
		var calls []op.Op
		err := taskdir.EachOpSince(p.Home, b.Task, b.From, func(o op.Op) error {
			switch ob := o.Body.(type) {
			case *op.ToolCalled, *op.ToolReturned:
				calls = append(calls, o)
			case *op.UserSaid:
				if ob.Source != op.SourceRequest { // those are the agent's
					words = append(words, notice.Said{UserSaid: *ob, Seq: o.Seq, Task: b.Task + " "})
				}
			}
			return nil
		})
		dir := p.Dir
		if b.Dir != "" {
			dir = b.Dir
		}
		for _, e := range notice.LedgerOf(dir, calls).Effects {
			effects = append(effects, b.Task+" "+e)
		}
		if err != nil {
			effects = append(effects, fmt.Sprintf("%s: its effects are unknown: %v", b.Task, err))
		}
	}
	return effects, words
}

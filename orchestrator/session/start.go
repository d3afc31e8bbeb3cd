package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/agent"
	"anamnesis/orchestrator/feature/hook"
	"anamnesis/orchestrator/feature/question"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/remedy"
	"anamnesis/orchestrator/replica"
	"anamnesis/orchestrator/replica/bucket"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/builtin"
	"anamnesis/orchestrator/tool/mcp"
	"anamnesis/orchestrator/workspace"
	"anamnesis/worldstate"
)

// How long a provider that fails transiently is waited for. A wait that it names does not count.
const (
	DefaultPatience = 24 * time.Hour
	SessionPatience = 10 * time.Minute // while a user waits at a front end
)

// Settings apply to one run of a task. The zero value means the defaults, or what the task and
// its agent specify.
type Settings struct {
	Model, BaseURL string // a name or script:FILE; an OpenAI-compatible server
	ReflectModel   string // asked when the agent repeats itself; empty: Model
	Images         string // see openai.Images
	Approval       string // an approval.Mode; empty: ask if Client.Approve is set, otherwise deny
	Plan           *bool  // whether the agent only plans; nil: as before
	Sandbox        string // a guard.Confinement

	// WhenAsked is a question.When for a client that cannot be asked; empty: of a new task question.Refuse, of
	// another one its own.
	WhenAsked string

	// Goal is what the task is to reach; without commands the agent alone says when it is done. nil: of a resumed task
	// its own.
	Goal *op.Goal

	TaskDir string // where a resumed task continues; empty: its own directory

	Limits   op.Limits
	Fallback op.Limits     // of a resumed task without limits of its own
	Patience time.Duration // see Client.Patience

	Grace        time.Duration // of the running command if the program is asked to stop; see runtime.Options
	AllowSecrets []string      // patterns of secret files that the agent may read
	Redact       []string      // variables whose values are never recorded, shown or sent
	ToolsWait    time.Duration // how long the first step waits for MCP servers
	Hooks        []hook.Hook   // of the user and the project
	Servers      []mcp.Server  // MCP servers beside those that are configured
	Remote       Remote        // where the task is kept beside this home

	tools       []string // beside those that every agent has; see op.TaskOpened
	earlierCost float64  // what the task cost before prices were known, at most
}

// Request is a new task.
type Request struct {
	Settings
	// Default applies if neither Settings nor the agent decides. It uses Model, Approval and
	// Sandbox.
	Default Settings
	Dir     string
	Text    string
	ID      string // empty: made from Text
	Agent   string // name or file of a spec; empty: the default
	// EAS and Window are in tokens; 0: from the EAS table. EASFrom says who set EAS;
	// empty: --eas.
	EAS, Window int
	EASFrom     string
	EASLower    bool // EAS counts only if it is below the table's: no user has approved it
	Rules       []approval.Rule
	Writable    []string // directories beside Dir that commands may write
	Tools       []string // beside those that every agent has
	Worktree    *op.Worktree

	NoResearch  bool             // see runtime.New
	Guarded     []op.CallPattern // beside those of the agent
	NoFinalPass bool
}

// check rejects settings that make no sense.
func (s *Settings) check(getenv func(string) string) error {
	if _, err := builtin.OptIn(s.tools...); err != nil {
		return settingf("tools", ": %v", err)
	}
	if _, err := guard.ParseConfinement(s.Sandbox); s.Sandbox != "" && err != nil {
		return settingf("sandbox", "%s", strings.TrimPrefix(err.Error(), "sandbox"))
	}
	switch question.When(s.WhenAsked) {
	case "", question.Wait, question.Refuse, question.Stop:
	default:
		return settingf("when-asked", " %q: want wait, refuse or stop", s.WhenAsked)
	}
	for _, name := range s.Redact {
		if n := len(getenv(name)); n < redact.MinKnownBytes {
			return settingf("redact", " %s: the variable's value has %d bytes; a secret has at least %d", name, n,
				redact.MinKnownBytes)
		}
	}
	return nil
}

// Check rejects a request that makes no sense, before anything is asked or opened. It makes
// the paths of Writable absolute.
func (s *Service) Check(r *Request) error {
	r.tools = r.Tools
	if err := r.check(s.getenv); err != nil {
		return err
	}
	for i, dir := range r.Writable {
		real, err := RealDir(dir)
		if err != nil {
			return settingf("writable", ": %v", err)
		}
		if info, err := os.Stat(real); err != nil || !info.IsDir() {
			return settingf("writable", " %s: not a directory", dir)
		}
		if err := workspace.CheckWritable(s.Home, real); err != nil {
			return settingf("writable", ": %v", err)
		}
		r.Writable[i] = real
	}
	return nil
}

// opening is the state of opening a task.
type opening struct {
	*Service
	Settings
	client   Client
	warnings []string
	bucket   bucket.Bucket // which has seen the task, if it is resumed
	lock     io.Closer     // of a task that is kept in a bucket, until its replica.Holder has it; nil: none
}

func (o *opening) warn(format string, args ...any) {
	o.warnings = append(o.warnings, fmt.Sprintf(format, args...))
}

// Start creates a task and records its request. Run then runs it.
func (s *Service) Start(ctx context.Context, r Request, c Client) (*Session, error) {
	if err := s.Check(&r); err != nil {
		return nil, err
	}
	if info, err := os.Stat(r.Dir); err != nil || !info.IsDir() {
		return nil, settingf("dir", " %s: not a directory; make it, or name another", r.Dir)
	}
	var err error
	if r.Text, err = s.expand(ctx, r.Dir, r.Text, c.Trust); err != nil {
		return nil, err
	}
	o := &opening{Service: s, Settings: r.Settings, client: c}
	who, err := o.pickAgent(ctx, r.Dir, r.Agent)
	if err != nil {
		return nil, err
	}
	o.follow(&who.Spec)
	o.Model = cmp.Or(o.Model, r.Default.Model)
	o.Approval = cmp.Or(o.Approval, r.Default.Approval)
	o.Sandbox = cmp.Or(o.Sandbox, r.Default.Sandbox)
	m, err := o.chooseModels(ctx, o.Model, o.BaseURL)
	if err != nil {
		return nil, err
	}
	if err := o.costKnown(m); err != nil {
		return nil, err
	}
	mode, notice, err := o.approvalMode(o.Approval)
	if err != nil {
		return nil, err
	}
	n, err := o.newTask(&r, m, mode)
	if err != nil {
		return nil, err
	}
	if err := o.brief(&n, who); err != nil {
		return nil, err
	}
	n.NoResearch, n.NoFinalPass, n.Plan = r.NoResearch, r.NoFinalPass, r.Plan != nil && *r.Plan
	n.Guarded = slices.Concat(n.Agent.Guarded, r.Guarded)
	opts, done, err := o.surroundings(ctx, n.Dir, m, mode, who.Spec.Subagents, r.Redact)
	if err != nil {
		return nil, err
	}
	request := WithoutSecrets(r.Text, opts.Secrets)
	if n.Task == "" { // as late as possible: it reserves the name
		if n.Task, err = taskdir.NewTaskID(s.Home, request, o.Remote.suffix()); err != nil {
			done()
			return nil, err
		}
	}
	kept, err := o.replicate(ctx, n.Task, n.Dir, nil, &opts.Store)
	unreserve := func(err error) {
		if err != nil && (r.ID == "" || kept != nil) {
			taskdir.Unreserve(s.Home, n.Task)
		}
	}
	if err != nil {
		done()
		unreserve(err)
		return nil, err
	}
	return o.hold(ctx, m, kept, done, Info{
		Task: n.Task, Title: taskdir.Title(request), Agent: n.Agent.Name, Dir: n.Dir,
		EAS: n.EAS, EASFrom: n.EASFrom, Approval: mode, Plan: n.Plan, Notice: notice,
	}, func() (*runtime.Task, error) {
		t, err := runtime.Create(ctx, o.Home, n, opts)
		unreserve(err)
		return t, err
	})
}

// hold announces a task, opens it and makes a session of it. done is called when the session
// ends, or at once if there is none.
func (o *opening) hold(ctx context.Context, m *Model, kept *replica.Holder, done func(), info Info,
	open func() (*runtime.Task, error)) (*Session, error) {
	info.Model, info.Banner, info.Warnings = m.Name, m.Banner, o.warnings
	if o.client.Started != nil {
		o.client.Started(info)
	}
	t, err := open()
	if err != nil {
		done()
		return nil, JoinClose(err, release(kept))
	}
	o.warnings = nil // Info has those so far, Opening those from here on
	o.refused(t)
	err = o.sandbox(ctx, t)
	s := &Session{
		Info: info, Opening: o.warnings, task: t, home: o.Home, service: o.Service, client: o.client,
		done: done, replica: kept, inbox: t.Ledger.State().Inbox,
	}
	if err != nil {
		return nil, JoinClose(err, s.Close())
	}
	return s, nil
}

// refused warns if opening the task took longer because its snapshot was not used, and of what
// was quarantined.
func (o *opening) refused(t *runtime.Task) {
	if err := t.Ledger.Journal.Log().SnapshotRefused(); err != nil {
		o.warn("%s; the whole stream was folded instead", oneLine(err.Error()))
	}
	if left := t.Quarantined(); left != "" {
		o.warn(leftText, oneLine(left))
	}
}

const leftText = "a command did not end before its program did; what it left: %s"

// sandbox warns of what the task's sandbox cannot confine on this machine.
func (o *opening) sandbox(ctx context.Context, t *runtime.Task) error {
	box, err := t.Place.Sandbox.Get(ctx)
	if ctx.Err() != nil {
		return nil // the turn ends as interrupted
	}
	if earlier := box.Earlier(); earlier != "" && !strings.Contains(t.Quarantined(), earlier) {
		o.warn(leftText, oneLine(earlier))
	}
	for _, m := range box.Missing() {
		o.warn("%s; the setting sandbox: off accepts this", m)
	}
	return err
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func (o *opening) newTask(r *Request, m *Model, mode string) (runtime.New, error) {
	row, err := o.EAS(r.Dir, m.Lookup)
	if err != nil {
		return runtime.New{}, err
	}
	n := runtime.New{Request: r.Text, TaskOpened: op.TaskOpened{
		Task: r.ID, Dir: r.Dir, Model: m.Name, BaseURL: m.BaseURL, Reflect: m.reflectName,
		EAS: row.EAS, EASFrom: row.Source, Window: row.Advertised, Encoding: row.Encoding,
		Allow: approval.Texts(r.Rules, approval.Allow), Ask: approval.Texts(r.Rules, approval.Ask),
		Deny:     approval.Texts(r.Rules, approval.Refuse),
		Approval: mode, Sandbox: o.Sandbox, Writable: r.Writable, Tools: o.tools, Redact: o.Redact,
		WhenAsked: o.WhenAsked, Worktree: r.Worktree,
	}}
	if r.Worktree != nil {
		n.Repo = worldstate.RepositoryName(r.Worktree.From)
	}
	if n.TaskOpened.Goal, err = checkedGoal(r.Goal); err != nil {
		return n, err
	}
	if limits := o.Limits; limits != (op.Limits{}) {
		n.Limits = &limits
	}
	if !row.Known && row.Origin == "" {
		n.EASFrom = fmt.Sprintf("%s is not in the EAS table", m.Lookup)
	}
	larger := row.Ignored
	if r.EASLower && r.EAS > n.EAS {
		larger = r.EAS
	} else if r.EAS > 0 {
		n.EAS, n.EASFrom, larger = r.EAS, cmp.Or(r.EASFrom, "given for this task"), 0
	}
	if larger > 0 {
		o.warn("the project's eas of %d is larger than the EAS of %d tokens: it counts once you approve the project's "+
			"settings", larger, n.EAS)
	}
	if r.Window > 0 {
		n.Window = r.Window
	}
	if n.Window > 0 && n.EAS > n.Window {
		return n, r.easTooLarge(&n)
	}
	if err := n.CheckNames(o.TaskSecrets(r.Dir, o.Redact)); err != nil || n.Task == "" { // before they are shown
		return n, err
	}
	if taskdir.CheckTaskID(n.Task) != nil {
		return n, settingf("task", ": %q cannot be a task's name: letters, digits, '_', '-' and '.', at most 80",
			n.Task)
	}
	if _, err := taskdir.ReadState(o.Home, n.Task); !errors.Is(err, taskdir.ErrNoTask) {
		return n, remedy.With(Usagef("task %s exists; use another name", n.Task), remedy.Resume, n.Task)
	}
	return n, nil
}

// checkedGoal returns a goal that a task can have; nil without checks.
func checkedGoal(g *op.Goal) (*op.Goal, error) {
	if g == nil {
		return nil, nil
	}
	for _, command := range g.Until {
		if strings.TrimSpace(command) == "" {
			return nil, settingf("until", ": the command is empty")
		}
	}
	switch {
	case len(g.Until) > 0:
		return g, nil
	case g.Score != "":
		return nil, settingf("score", " needs a check that says when the task is done: give until, too")
	case g.Frozen:
		return nil, settingf("until-frozen", " needs a check: give until, too")
	case g.KeepLast:
		return nil, settingf("keep-last", " needs a check: give until, too")
	}
	return nil, nil
}

// easTooLarge returns the error of an EAS that exceeds the window, and names which of the two
// the request can change.
func (r *Request) easTooLarge(n *runtime.New) error {
	const why = "a model cannot attend to more than its window"
	if r.EAS > 0 {
		return settingf("eas", " %d is larger than the window of %d tokens: %s; lower the EAS or give a larger window",
			n.EAS, n.Window, why)
	}
	return settingf("window", " %d is smaller than the EAS of %d tokens (%s): %s; give an EAS of at most "+
		"%[1]d or a larger window", n.Window, n.EAS, n.EASFrom, why)
}

// approvalMode resolves a mode. Without a user to ask, the default is deny.
func (o *opening) approvalMode(name string) (mode, notice string, err error) {
	waits := o.whenAsked() == question.Wait || o.whenAsked() == question.Stop
	asks := o.client.Approve != nil || waits
	if name != "" {
		m, err := approval.ParseMode(name)
		if err != nil {
			return "", "", settingf("approval", ": %v", err)
		}
		if m == approval.ModeAsk && !asks {
			return string(m), "approval mode ask without a terminal: calls that need approval are refused; " +
				"the setting approval=auto lets them run", nil
		}
		return string(m), "", nil
	}
	if waits {
		notice = "approval mode is ask: there is no terminal, so when it asks, the task will " + string(o.whenAsked())
	}
	if asks {
		return string(approval.ModeAsk), notice, nil
	}
	return string(approval.ModeDeny), "approval mode is deny: there is no terminal to ask at; the setting " +
		"approval=edits lets edits of files run, and the setting approval=auto all calls", nil
}

// whenAsked returns what becomes of questions, if the client cannot be asked.
func (o *opening) whenAsked() question.When {
	if o.client.Approve != nil || o.client.Ask != nil {
		return ""
	}
	return question.When(o.WhenAsked)
}

// follow sets from a spec what the settings leave open.
func (s *Settings) follow(spec *agent.Spec) {
	s.Model = cmp.Or(s.Model, spec.Model)
	s.Sandbox = cmp.Or(s.Sandbox, spec.Sandbox)
	s.Approval = cmp.Or(s.Approval, spec.Approval)
	for _, name := range builtin.OptInNames() {
		left := slices.Contains(spec.ExcludeTools, name) || slices.Contains(s.tools, name)
		if slices.Contains(spec.Tools, name) && !left {
			s.tools = append(s.tools, name)
		}
	}
}

// surroundings returns a task's options in this process, with its directory's rules, subagents
// and sources of tools. done closes the sources. names are variables with secret values.
func (o *opening) surroundings(ctx context.Context, dir string, m *Model, approval string, subagents []op.Agent,
	names []string) (opts runtime.Options, done func(), err error) {
	fail := func(err error) (runtime.Options, func(), error) { return runtime.Options{}, nil, err }
	more, err := builtin.OptIn(o.tools...)
	if err != nil {
		return fail(settingf("tools", ": %v", err))
	}
	net, err := o.Web()
	if err != nil {
		return fail(err)
	}
	own := slices.Concat(builtin.Tools(builtin.Options{AllowSecrets: o.AllowSecrets, Web: net}), more, o.o.Tools)
	tools, err := tool.NewRegistry(own...)
	if err != nil {
		return fail(err)
	}
	embedder, err := o.Embedder()
	if err != nil {
		return fail(err)
	}
	m.OnRetry(o.client.Retry)
	opts = runtime.Options{
		Model: m.Model, Reflect: m.reflect, Grace: o.Grace, Tools: tools,
		Program: o.Program(), Secrets: o.TaskSecrets(dir, names),
		Limits: state.Limits{
			Limits: o.Limits, EarlierUSD: o.earlierCost,
			Outage: cmp.Or(o.Patience, o.client.Patience, DefaultPatience),
		},
		Cards: runtime.Cards{Embedder: embedder},
		Guards: runtime.Guards{
			Approval: approval, Sandbox: guard.Confinement(o.Sandbox), KnownModel: o.knownModel(dir),
			WhenAsked: o.whenAsked(), Trust: o.trust(),
		},
		Store:     o.o.Store,
		Hooks:     o.Hooks,
		Callbacks: o.client.Callbacks,
	}
	opts.Fallback = o.fallback(dir, m.BaseURL, m.Fallback)
	opts.Store.World.Progress = o.client.Scan
	if opts.Guards.Rules, err = o.standingRules(dir); err != nil {
		return fail(err)
	}
	if err := o.addSubagents(ctx, dir, subagents, &opts); err != nil {
		return fail(err)
	}
	// The sources come last: no later error can leave their processes running.
	done, err = o.addSources(ctx, dir, &opts)
	return opts, done, err
}

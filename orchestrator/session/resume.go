package session

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/planmode"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/remedy"
	"anamnesis/orchestrator/replica"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/workspace"
)

// Resume opens a task that is not running, with a message of the user if there is one. Run
// then continues from the last durable operation. A call that was running when its process
// died is reported as of unknown outcome and not run again.
func (s *Service) Resume(ctx context.Context, task, message string, set Settings, c Client) (*Session, error) {
	if err := set.check(s.getenv); err != nil {
		return nil, err
	}
	if set.Remote.Detach {
		return s.resumeDetached(ctx, task, message, set, c)
	}
	o := &opening{Service: s, Settings: set, client: c}
	defer o.unlock()
	cursor, err := o.fetch(ctx, task)
	if err != nil {
		return nil, err
	}
	st, err := taskdir.ReadState(s.Home, task)
	if err != nil {
		return nil, err
	}
	if st.Opened.Task != task {
		if st, err = s.nameCopy(ctx, task, st); err != nil {
			return nil, err
		}
	}
	arrived, err := o.arrive(st, cmp.Or(cursor, set.Remote.copied))
	if err != nil {
		return nil, err
	}
	if err := taskdir.CheckParent(st); err != nil {
		return nil, err
	}
	if o := st.Opened.Origin; o != nil {
		err := Usagef("task %s is a session of %s: continue it there", task, o.Agent)
		return nil, remedy.With(err, remedy.JumpOther, task)
	}
	if err := workspace.Locate(s.Home, st, o.TaskDir); err != nil {
		return nil, fmt.Errorf("resume: %w", err)
	}
	if message, err = s.expand(ctx, st.Opened.Dir, message, c.Trust); err != nil {
		return nil, err
	}
	plan := st.Grants.Plan
	if set.Plan != nil {
		plan = *set.Plan
	}
	var more []op.Body
	if plan != st.Grants.Plan {
		more = append(more, planmode.Set(!plan, plan, set.Approval))
		if !plan && message == "" && !st.Turn.Open {
			message = planmode.Carry
		}
	}
	goOn, err := continues(st, message) // a waiting message continues a task that is done
	if err != nil && (cursor == nil || !o.unread(ctx, st)) {
		if cursor != nil && st.Turn.End != nil { // a scheduler starts the task again until it gets ErrDone
			err = remedy.With(fmt.Errorf("task %s %w", task, ErrDone), remedy.Request, task)
		}
		return nil, err
	}
	limits := o.resumedLimits(st)
	o.WhenAsked = cmp.Or(o.WhenAsked, st.Opened.WhenAsked)
	m, err := o.resumedModel(ctx, task, st)
	if err != nil {
		return nil, err
	}
	mode, notice, err := o.resumedApproval(st)
	if err != nil {
		return nil, err
	}
	o.tools = st.Opened.Tools
	resumed, err := o.resumed(st, m)
	if err != nil {
		return nil, err
	}
	resumed.Continue, resumed.Redact = goOn, unknownTo(st, o.Redact)
	if goal, err := checkedGoal(set.Goal); err != nil {
		return nil, err
	} else if goal = cmp.Or(goal, &op.Goal{}); set.Goal != nil && !goal.Equal(st.Goal.Goal) {
		resumed.Goal = goal
	}
	if limits != st.Limits {
		resumed.Limits = &limits
	}
	if o.WhenAsked != st.Opened.WhenAsked {
		resumed.WhenAsked = o.WhenAsked
	}
	info := Info{
		Task: task, Title: taskdir.Title(st.Said.First), Dir: st.Opened.Dir,
		EAS: st.Model.EAS, EASFrom: st.Opened.EASFrom,
		Approval: mode, Plan: plan, Notice: notice, Limits: limitsText(limits),
	}
	if info.Limits != "" {
		info.Notice += "; limits: " + info.Limits
	}
	if resumed.EAS > 0 {
		info.EAS, info.EASFrom = resumed.EAS, resumed.EASFrom
	}
	var subagents []op.Agent
	if a := st.Opened.Agent; a != nil { // nil in tasks older than specs
		info.Agent, subagents = a.Name, a.Subagents
	}
	o.warnUnset(st)
	opts, done, err := o.surroundings(ctx, st.Opened.Dir, m, mode, subagents, append(resumed.Redact, st.Redact...))
	if err != nil {
		return nil, err
	}
	holder, err := o.replicate(ctx, task, st.Opened.Dir, cursor, &opts.Store)
	if err != nil {
		done()
		return nil, err
	}
	opts.Store.Arrived = arrived
	return o.hold(ctx, m, holder, done, info, func() (*runtime.Task, error) {
		opts.Dir = o.TaskDir
		t, err := runtime.OpenTask(ctx, o.Home, task, opts)
		if err != nil {
			return nil, err
		}
		if err := t.Resume(ctx, message, resumed, more...); err != nil {
			return nil, JoinClose(err, t.Close())
		}
		for part := range strings.SplitSeq(resumed.Notice, "\n\n") { // the user sees which files were replaced
			if mark, files, ok := strings.Cut(part, "] "); ok && strings.HasPrefix(mark, "[FILES") {
				o.client.note(files)
			}
		}
		return t, nil
	})
}

// arrive makes the directory of a task that comes from another directory or machine, and reports whether it does:
// its files are not there yet. kept is nil if no bucket keeps the task.
func (o *opening) arrive(st *state.State, kept *replica.Cursor) (bool, error) {
	if kept == nil || kept.Left(cmp.Or(o.TaskDir, st.Opened.Dir)) {
		return false, nil
	}
	if o.TaskDir == "" {
		o.TaskDir = st.Opened.Dir
		here, _ := RealDir(".") // if it is gone, the user is not in the task's
		if entries, err := os.ReadDir(o.TaskDir); err == nil && len(entries) > 0 && here != o.TaskDir {
			return false, settingf("dir", ": the task worked last in another directory than %s is now, or on another "+
				"machine, and the task's files would replace those there; name the directory to work in, "+
				"%[1]s if it is that one", o.TaskDir)
		}
	}
	kept.Place = "" // until it has the files
	if err := os.MkdirAll(o.TaskDir, 0o755); err != nil {
		return false, settingf("dir", " %s: %v", o.TaskDir, err)
	}
	return true, nil
}

// resumedLimits sets the limits that a task continues with: each from the flags, or the task's own, or
// the configuration's.
func (o *opening) resumedLimits(st *state.State) op.Limits {
	l := &o.Limits
	l.Steps = cmp.Or(l.Steps, st.Limits.Steps, o.Fallback.Steps)
	l.Tokens = cmp.Or(l.Tokens, st.Limits.Tokens, o.Fallback.Tokens)
	l.USD = cmp.Or(l.USD, st.Limits.USD, o.Fallback.USD)
	l.Time = cmp.Or(l.Time, st.Limits.Time, o.Fallback.Time)
	return *l
}

// limitsText says which limits hold; empty if none does.
func limitsText(l op.Limits) string {
	var out []string
	for _, one := range []struct {
		set  bool
		text string
	}{
		{l.USD > 0, "max-cost " + strconv.FormatFloat(l.USD, 'f', -1, 64)},
		{l.Tokens > 0, fmt.Sprintf("max-tokens %d", l.Tokens)},
		{l.Steps > 0, fmt.Sprintf("max-steps %d", l.Steps)}, {l.Time > 0, fmt.Sprintf("max-time %v", l.Time)},
	} {
		if one.set {
			out = append(out, one.text)
		}
	}
	return strings.Join(out, ", ")
}

// resumedModel returns the model a task continues with: its own, unless the settings name
// another. Usage from before prices were known counts at the present price.
func (o *opening) resumedModel(ctx context.Context, task string, st *state.State) (*Model, error) {
	name, baseURL := cmp.Or(o.Model, st.Model.Name), o.BaseURL
	if baseURL == "" && o.Model == "" {
		baseURL = st.Model.BaseURL
	}
	if redact.HasMarker(baseURL) {
		err := Usagef("task %s: the address of its model contains a password, which is not stored", task)
		return nil, remedy.With(err, remedy.AddressAgain, "")
	}
	o.ReflectModel = cmp.Or(o.ReflectModel, st.Model.Reflect)
	m, err := o.chooseModels(ctx, name, baseURL)
	if err != nil {
		return nil, err
	}
	if m.Price != nil {
		o.earlierCost = m.Price.Most(st.Totals.Usage.Unpriced())
	}
	return m, o.costKnown(m)
}

// resumedApproval returns the mode a task continues with: from the settings, or from the
// task's start, or as the user changed it since. notice says which it is, why, and how to
// change it.
func (o *opening) resumedApproval(st *state.State) (mode, notice string, err error) {
	from, why := o.Approval, "you set it"
	switch spec := st.Opened.Agent; {
	case from != "":
	case st.Grants.Mode != st.Opened.Approval:
		from, why = st.Grants.Mode, "the user chose it in this task"
	case st.Grants.Mode == string(approval.ModeAuto) || st.Grants.Mode == string(approval.ModeEdits):
		from, why = st.Grants.Mode, "the task was started with it"
	case spec != nil && spec.Approval != "":
		from, why = spec.Approval, "set by the agent "+spec.Name
	default:
		why = "it is the default at a terminal"
	}
	mode, notice, err = o.approvalMode(from)
	if notice == "" {
		notice = fmt.Sprintf(
			"approval mode is %s: %s; the setting approval changes it (ask, edits, auto, deny)", mode, why)
	}
	return mode, notice, err
}

// resumed returns the record of a resume: what changes with another model, and the notice
// about changed instructions.
func (o *opening) resumed(st *state.State, m *Model) (*op.TaskResumed, error) {
	r := o.here()
	if m.Name != st.Model.Name || m.BaseURL != st.Model.BaseURL {
		r.Model, r.BaseURL = m.Name, m.BaseURL
	}
	if m.reflectName != st.Model.Reflect {
		r.Reflect = m.reflectName
	}
	if st.Grants.Mode != st.Opened.Approval { // the user changed the mode; what is set now replaces that
		r.Approval = o.Approval
	}
	if m.Name != st.Model.Name {
		row, err := o.EAS(st.Opened.Dir, m.Lookup)
		if err != nil {
			return nil, err
		}
		r.EAS, r.EASFrom, r.Window = row.EAS, row.Source, row.Advertised
	}
	return r, o.agentSince(st, r)
}

// here returns the record that this process opens a task.
func (s *Service) here() *op.TaskResumed {
	return &op.TaskResumed{PID: os.Getpid(), Program: s.Program()}
}

// continues reports whether a resume without a message reopens the last turn.
func continues(st *state.State, message string) (bool, error) {
	if message != "" || st.Turn.Open || st.Jump.Intended != nil || st.World.Restoring != nil || st.Jump.Pending != nil {
		return false, nil // words, a notice or a jump are pending
	}
	if st.Turn.End == nil {
		return false, remedy.With(Usagef("task %s has no request yet", st.Opened.Task), remedy.Request, st.Opened.Task)
	}
	if st.Turn.End.Reason == "done" && st.Turn.Answered {
		return false, remedy.With(Usagef("task %s is done", st.Opened.Task), remedy.Request, st.Opened.Task)
	}
	return true, nil
}

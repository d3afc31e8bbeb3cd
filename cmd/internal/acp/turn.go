package acp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	view "anamnesis/cmd/internal/term"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/file"
)

// Prompt answers a prompt with one turn of the task, or answers a slash command.
func (a *Agent) Prompt(ctx context.Context, p sdk.PromptRequest) (sdk.PromptResponse, error) {
	a.turns.Add(1)
	defer a.turns.Done()
	s, err := a.session(p.SessionId)
	if err != nil {
		return sdk.PromptResponse{}, err
	}
	text := promptText(p.Prompt)
	if strings.TrimSpace(text) == "" {
		return sdk.PromptResponse{}, refused("the prompt is empty")
	}
	s.turn.Lock() // the SDK has cancelled an earlier prompt of the session, which ends soon
	defer s.turn.Unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	s.mu.Lock()
	s.cancel = cancel
	begun, mode := s.begun, s.mode
	s.mu.Unlock()

	svc, r, set, err := a.open(s.dir)
	if err != nil {
		return sdk.PromptResponse{}, err
	}
	v := newViewer(a, s, false)
	if name, rest, ok := slash(text); ok {
		answer := (&place{svc: svc, task: string(s.id), dir: s.dir}).answer(ctx, name, rest)
		v.send(sdk.UpdateAgentMessageText(answer))
		return sdk.PromptResponse{StopReason: sdk.StopReasonEndTurn}, failed(v.err)
	}
	open := func() (*session.Session, error) {
		set.Servers = s.servers
		choose(&set, mode)
		return svc.Resume(ctx, string(s.id), text, set, v.client(ctx))
	}
	if !begun {
		open = func() (*session.Session, error) {
			r.Dir, r.ID, r.Text, r.Servers = s.dir, string(s.id), text, s.servers
			choose(&r.Settings, mode)
			return svc.Start(ctx, r, v.client(ctx))
		}
	}
	return v.turn(ctx, open)
}

// choose sets the mode that the editor chose; empty: none.
func choose(set *session.Settings, mode string) {
	plan := mode == modePlan
	if mode != "" {
		set.Plan = &plan
	}
	if mode != "" && !plan {
		set.Approval = mode
	}
}

// promptText is a prompt as text: what the editor embeds is named and quoted.
func promptText(blocks []sdk.ContentBlock) string {
	var parts []string
	for _, b := range blocks {
		switch {
		case b.Text != nil:
			parts = append(parts, b.Text.Text)
		case b.ResourceLink != nil:
			parts = append(parts, "@"+pathOf(b.ResourceLink.Uri))
		case b.Resource != nil && b.Resource.Resource.TextResourceContents != nil:
			c := b.Resource.Resource.TextResourceContents
			parts = append(parts, fmt.Sprintf("\n%s:\n```\n%s\n```\n", pathOf(c.Uri), strings.TrimRight(c.Text, "\n")))
		}
	}
	return strings.Join(parts, "")
}

// pathOf is a file's path, or the address itself.
func pathOf(uri string) string {
	if u, err := url.Parse(uri); err == nil && u.Scheme == "file" {
		return u.Path
	}
	return uri
}

func (v *viewer) turn(ctx context.Context, open func() (*session.Session, error)) (r sdk.PromptResponse, err error) {
	s, err := open()
	if err != nil {
		if ctx.Err() != nil {
			return sdk.PromptResponse{StopReason: sdk.StopReasonCancelled}, nil
		}
		return r, failed(err)
	}
	v.session.mu.Lock()
	v.session.begun = true
	v.session.mu.Unlock()
	for _, w := range s.Opening {
		v.note(w)
	}
	out, err := s.Run(ctx)
	// Between prompts no process holds the task, so that another one can continue it.
	if err = session.JoinClose(err, s.Close()); err != nil {
		return r, failed(err)
	}
	v.mu.Lock()
	err = v.err
	v.mu.Unlock()
	switch out.Reason {
	case "done", "idle":
		r.StopReason = sdk.StopReasonEndTurn
	case "interrupted", "evicted":
		r.StopReason = sdk.StopReasonCancelled
	case "limit":
		v.note("stopped by a limit: " + out.Detail)
		r.StopReason = sdk.StopReasonMaxTurnRequests
	case "failed":
		if out.Err == nil {
			out.Err = errors.New(out.Detail)
		}
		return r, failed(out.Err)
	default:
		v.send(sdk.UpdateAgentMessageText(out.Reason + ": " + out.Detail))
		r.StopReason = sdk.StopReasonEndTurn
	}
	return r, failed(err)
}

// viewer shows a task's operations as updates of a session.
type viewer struct {
	a       *Agent
	session *editorSession

	mu       sync.Mutex
	past     bool // the operations are of earlier turns
	streamed bool // something of the reply under way was shown
	ids      map[string]sdk.ToolCallId
	changes  map[string][]file.Change // by call
	printer  view.Printer             // of what ACP has no form for
	printed  bytes.Buffer
	err      error
}

func newViewer(a *Agent, s *editorSession, past bool) *viewer {
	v := &viewer{a: a, session: s, past: past, ids: map[string]sdk.ToolCallId{}, changes: map[string][]file.Change{}}
	v.printer = view.NewText(nil, &v.printed, width, s.dir, view.NoOutputs)
	return v
}

// send shows an update. After the first error it shows nothing more. A turn that was cancelled still shows its end.
func (v *viewer) send(u sdk.SessionUpdate) {
	if v.err == nil {
		v.err = v.a.update(context.Background(), v.session.id, u)
	}
}

func (v *viewer) note(text string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.send(sdk.UpdateAgentThoughtText(text + "\n"))
}

// client is the editor's side of the task.
func (v *viewer) client(ctx context.Context) session.Client {
	// The callbacks come from several goroutines.
	locked := func(do func()) {
		v.mu.Lock()
		defer v.mu.Unlock()
		do()
	}
	print := func(do func()) {
		locked(func() {
			do()
			v.flush()
		})
	}
	return session.Client{
		Patience: session.SessionPatience,
		Callbacks: session.Callbacks{
			Op:       func(o op.Op) { locked(func() { v.op(o) }) },
			Delta:    func(d model.Delta) { locked(func() { v.delta(d) }) },
			Editing:  func(c op.Call, changes []file.Change) { locked(func() { v.editing(c, changes) }) },
			Progress: func(c op.Call, text string) { print(func() { v.printer.Progress(c, text) }) },
			Passing:  func(b op.PassBegun) { print(func() { v.printer.Passing(b) }) },
			Waiting:  func(o state.Outage, left time.Duration) { print(func() { v.printer.Waiting(o, left) }) },
			Approve:  v.approve,
		},
		Started: func(i session.Info) {
			for _, text := range append([]string{i.Banner}, i.Warnings...) {
				if text != "" {
					v.note(text)
				}
			}
			locked(func() {
				v.send(sdk.SessionUpdate{CurrentModeUpdate: &sdk.SessionCurrentModeUpdate{
					SessionUpdate: "current_mode_update",
					CurrentModeId: sdk.SessionModeId(modeID(i.Plan, i.Approval))}})
			})
		},
		Retry: func(at model.Attempt) { print(func() { v.printer.Retry(at) }) },
		Note:  v.note,
		Trust: func(ctx context.Context, question string) bool {
			chosen := v.ask(ctx, sdk.ToolCallUpdate{ToolCallId: "trust", Title: &question}, []option{
				{sdk.PermissionOptionKindAllowAlways, "approve", "Approve it as it is"},
				{sdk.PermissionOptionKindRejectOnce, "refuse", "Do not use it"},
			})
			return chosen == "approve"
		},
	}
}

func (v *viewer) delta(d model.Delta) {
	switch {
	case d.Restart:
		v.send(sdk.UpdateAgentThoughtText("(the reply was cut off; asking again)\n"))
		return
	case d.Reasoning != "":
		v.send(sdk.UpdateAgentThoughtText(d.Reasoning))
	}
	if d.Text != "" {
		v.streamed = true
		v.send(sdk.UpdateAgentMessageText(d.Text))
	}
}

func (v *viewer) op(o op.Op) {
	switch b := o.Body.(type) {
	case *op.UserSaid:
		if v.past || b.Source == op.SourceSteer {
			v.send(sdk.UpdateUserMessageText(b.Text))
		}
	case *op.ModelReplied:
		if !v.streamed && b.Text != "" {
			v.send(sdk.UpdateAgentMessageText(b.Text))
		}
		v.streamed = false
		for _, c := range b.Calls {
			// some models count their calls from 1 with each reply
			v.ids[c.ID] = sdk.ToolCallId(fmt.Sprintf("%d.%s", o.Seq, c.ID))
			v.send(sdk.StartToolCall(v.ids[c.ID], tool.Display(c, v.session.dir), sdk.WithStartKind(kindOf(c.Name)),
				sdk.WithStartStatus(sdk.ToolCallStatusPending),
				sdk.WithStartRawInput(arguments(c))))
		}
	case *op.ToolCalled:
		v.send(sdk.UpdateToolCall(v.id(b.Call),
			sdk.WithUpdateTitle(tool.Display(op.Call{ID: b.Call, Name: b.Name, Args: b.Args}, v.session.dir)),
			sdk.WithUpdateStatus(sdk.ToolCallStatusInProgress)))
	case *op.ToolReturned:
		v.returned(b)
	case *op.TodosSet:
		var plan []sdk.PlanEntry
		for _, t := range b.Todos {
			status := sdk.PlanEntryStatus(t.Status)
			if t.Status == op.TodoDone {
				status = sdk.PlanEntryStatusCompleted
			}
			plan = append(plan, sdk.PlanEntry{Content: t.Title, Priority: sdk.PlanEntryPriorityMedium, Status: status})
		}
		v.send(sdk.UpdatePlan(plan...))
	case *op.WorldSaved:
		if b.Error != "" || !b.Complete || len(b.Lost) > 0 {
			v.printer.Op(o)
		}
	default:
		v.printer.Op(o)
	}
	v.flush()
}

func (v *viewer) flush() {
	if v.printed.Len() > 0 {
		v.send(sdk.UpdateAgentThoughtText(v.printed.String()))
		v.printed.Reset()
	}
}

func (v *viewer) id(call string) sdk.ToolCallId {
	return cmp.Or(v.ids[call], sdk.ToolCallId(call))
}

func arguments(c op.Call) any {
	if json.Valid([]byte(c.Args)) {
		return json.RawMessage(c.Args)
	}
	return map[string]string{"malformed": c.Args}
}

func kindOf(name string) sdk.ToolKind {
	switch op.Acts(name) {
	case op.Reads:
		return sdk.ToolKindRead
	case op.Edits:
		return sdk.ToolKindEdit
	case op.Searches:
		return sdk.ToolKindSearch
	case op.RunsShell:
		return sdk.ToolKindExecute
	case op.Thinks:
		return sdk.ToolKindThink
	case op.Fetches:
		return sdk.ToolKindFetch
	}
	return sdk.ToolKindOther
}

func (v *viewer) editing(c op.Call, changes []file.Change) {
	v.changes[c.ID] = changes
	v.send(sdk.UpdateToolCall(v.id(c.ID), sdk.WithUpdateContent(diffs(v.session.dir, changes))))
}

func diffs(dir string, changes []file.Change) []sdk.ToolCallContent {
	var all []sdk.ToolCallContent
	for _, c := range changes {
		path := c.Path
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if c.New {
			all = append(all, sdk.ToolDiffContent(path, c.After))
		} else {
			all = append(all, sdk.ToolDiffContent(path, c.After, c.Before))
		}
	}
	return all
}

func (v *viewer) returned(b *op.ToolReturned) {
	status := sdk.ToolCallStatusCompleted
	if b.IsError || b.Refused || b.Unknown || b.Exit != nil && *b.Exit != 0 {
		status = sdk.ToolCallStatusFailed
	}
	content := []sdk.ToolCallContent{sdk.ToolContent(sdk.TextBlock(b.Text))}
	if changes := v.changes[b.Call]; len(changes) > 0 && status == sdk.ToolCallStatusCompleted {
		content = diffs(v.session.dir, changes)
	}
	delete(v.changes, b.Call)
	v.send(sdk.UpdateToolCall(v.id(b.Call), sdk.WithUpdateStatus(status), sdk.WithUpdateContent(content)))
}

// option is one that the user may choose.
type option struct {
	kind     sdk.PermissionOptionKind
	id, name string
}

// ask asks the user in the editor; empty: no answer.
func (v *viewer) ask(ctx context.Context, call sdk.ToolCallUpdate, options []option) string {
	r := sdk.RequestPermissionRequest{SessionId: v.session.id, ToolCall: call}
	for _, o := range options {
		r.Options = append(r.Options, sdk.PermissionOption{Kind: o.kind,
			OptionId: sdk.PermissionOptionId(o.id), Name: o.name})
	}
	res, err := v.a.conn.RequestPermission(ctx, r)
	if err != nil || res.Outcome.Selected == nil {
		return ""
	}
	return string(res.Outcome.Selected.OptionId)
}

// approve asks whether a call may run.
func (v *viewer) approve(ctx context.Context, q gate.Question) gate.Answer {
	v.mu.Lock()
	title, content := tool.Display(q.Call, v.session.dir), diffs(v.session.dir, v.changes[q.ID])
	if q.Note != "" {
		content = append(content, sdk.ToolContent(sdk.TextBlock(q.Note)))
	}
	call := sdk.ToolCallUpdate{ToolCallId: v.id(q.ID), Title: &title, Kind: new(kindOf(q.Name)), Content: content,
		RawInput: arguments(q.Call)}
	v.mu.Unlock() // the other callbacks go on while the user is asked
	options := []option{{sdk.PermissionOptionKindAllowOnce, "once", "Allow"}, {sdk.PermissionOptionKindAllowAlways,
		"same", "Allow exactly this in this session"}}
	if len(q.Like) > 0 {
		var rules []string
		for _, r := range q.Like {
			rules = append(rules, r.String())
		}
		options = append(options, option{sdk.PermissionOptionKindAllowAlways, "like", "Allow " +
			strings.Join(rules, ", ") + " in this session"})
	}
	switch v.ask(ctx, call, append(options, option{sdk.PermissionOptionKindRejectOnce, "no", "Refuse"})) {
	case "once":
		return gate.Answer{Allow: true}
	case "same":
		return gate.Answer{Allow: true, Same: true}
	case "like":
		return gate.Answer{Allow: true, Like: true}
	}
	return gate.Answer{}
}

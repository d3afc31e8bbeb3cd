package hook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/guard/consent"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/shell"
	"anamnesis/orchestrator/workspace"
)

// Limits of what hooks say.
const (
	maxContextBytes = 10_000           // that the model is shown of one hook
	maxLineBytes    = 300              // of a failure
	maxBlocks       = 8                // of the end of a turn in a row
	maxLinger       = 10 * time.Second // of notifications when the task is closed
)

// ErrBlocked: a hook forbids a request.
var ErrBlocked = errors.New("a hook blocked the request")

// Runner runs the hooks of a task. Concurrent calls may use it, but for Prompt and Stop.
type Runner struct {
	hooks  []Hook
	place  *workspace.Place
	mode   func() approval.Mode
	blocks int // of the end of a turn, in a row

	background context.Context // of notifications
	end        func()
	work       sync.WaitGroup
}

// New returns the runner of a task in a place.
func New(hooks []Hook, p *workspace.Place, mode func() approval.Mode) *Runner {
	r := &Runner{hooks: hooks, place: p, mode: mode}
	r.background, r.end = context.WithCancel(context.Background())
	return r
}

// said is what the hooks of an event said together.
type said struct {
	ran        []op.Body
	block      string // why something must not happen, or what is wrong with it
	allow, ask bool
	context    string // for the model
}

// output is the JSON that a hook may print.
type output struct {
	Continue   *bool
	StopReason string
	Decision   string // block
	Reason     string
	Message    string `json:"systemMessage"`
	Specific   struct {
		Decision string `json:"permissionDecision"` // allow | deny | ask
		Reason   string `json:"permissionDecisionReason"`
		Context  string `json:"additionalContext"`
	} `json:"hookSpecificOutput"`
}

// describe adds to an input what every event has. It reads the task's state, which no background goroutine may.
func (r *Runner) describe(event string, input map[string]any) map[string]any {
	opened, mode := &r.place.State().Opened, string(r.mode())
	names := map[string]string{"ask": "default", "edits": "acceptEdits", "auto": "bypassPermissions", "deny": "dontAsk"}
	session := r.place.ID // a new task has recorded nothing yet
	if parent := opened.ParentTask(); parent != "" {
		session, input["agent_id"], input["agent_type"] = parent, r.place.ID, opened.ParentAgent()
	}
	maps.Copy(input, map[string]any{
		"session_id": session, "transcript_path": filepath.Join(r.place.Home.Task(r.place.ID), "ops"),
		"cwd": r.place.Dir, "permission_mode": cmp.Or(names[mode], mode), "hook_event_name": event,
	})
	return input
}

// run runs the hooks of an event that match a name, one after the other.
func (r *Runner) run(ctx context.Context, event string, input map[string]any, names ...string) (s said) {
	if hooks := matching(r.hooks, event, names...); len(hooks) > 0 {
		r.runAll(ctx, hooks, r.describe(event, input), &s)
	}
	return s
}

func (r *Runner) runAll(ctx context.Context, hooks []Hook, input map[string]any, s *said) {
	for _, h := range hooks {
		ran := &op.HookRan{Event: h.Event, Hook: h.Command}
		ran.Call, _ = input["tool_use_id"].(string)
		begun := r.place.Now()
		r.call(ctx, h, input, ran, s)
		ran.Millis = r.place.Now().Sub(begun).Milliseconds()
		if ran.Said != "" || ran.Decision != "" {
			s.ran = append(s.ran, ran)
		}
	}
}

func (r *Runner) call(ctx context.Context, h Hook, input map[string]any, ran *op.HookRan, s *said) {
	fail := func(format string, args ...any) {
		ran.Failed = true
		ran.Said = quote.OneLine(quote.Squash(fmt.Sprintf(format, args...)), maxLineBytes)
	}
	data, err := json.Marshal(input)
	if err != nil {
		fail("its input: %v", err)
		return
	}
	env := &tool.Env{Dir: r.place.Dir, Redactor: r.place.Journal.Redactor()}
	project := []string{"CLAUDE_PROJECT_DIR=" + r.place.Dir, "ANAMNESIS_PROJECT_DIR=" + r.place.Dir}
	environ := append(os.Environ(), project...)
	if asked := s.ask; h.Project != "" {
		s.ask = true // without its hook, a call that the project wants to see is the user's to decide
		if !h.approved() {
			fail("not run: the project's hook or a program that it names was changed since it was approved")
			return
		}
		box, err := r.place.Sandbox.Get(ctx)
		if err == nil {
			env.Sandbox, err = box.ForProject(guard.Grants{}, consent.Approval{Kind: Key, Dir: h.Project}.Place())
		}
		if err != nil {
			fail("not run: %v", err)
			return
		}
		s.ask = asked
		environ = append(env.Sandbox.ProjectEnviron(environ, guard.Grants{}), project...)
	}
	res, err := shell.Run(ctx, env, shell.Exec{
		Name: "The hook", Path: "/bin/sh", Args: []string{"sh", "-c", h.Command}, Stdin: append(data, '\n'),
		Timeout: h.Timeout, Env: environ,
	})
	out, stderr := strings.TrimSpace(res.Stdout), strings.TrimSpace(res.Stderr)
	switch {
	case err != nil || res.Exit == nil:
		fail("%s", cmp.Or(res.Display, res.Text))
		return
	case res.Cut > 0:
		fail("what it printed is ignored: it is more than %d characters", shell.MaxOutputRunes)
		return
	// Exit code 2 blocks, as with Claude Code, for which such hooks are written.
	case *res.Exit == 2 && h.Event != notification && !strings.HasPrefix(res.Display, "timed out"):
		ran.Decision, ran.Said = "block", cmp.Or(stderr, out, "it gave no reason")
		s.block = joined(s.block, ran.Said)
		return
	case *res.Exit != 0:
		fail("%s: %s", res.Display, cmp.Or(stderr, out))
		return
	case !strings.HasPrefix(res.Display, "exit "): // such as processes that it left in the background
		fail("%s", res.Display)
	}
	var o output
	if strings.HasPrefix(out, "{") {
		if err := json.Unmarshal([]byte(out), &o); err != nil {
			fail("its JSON cannot be read: %v", err)
			return
		}
	} else if h.Event == promptSubmit {
		o.Specific.Context = out
	}
	text := cmp.Or(o.Specific.Reason, o.Reason, o.StopReason, o.Message)
	switch d := o.Specific.Decision; {
	case o.Decision == "block" || d == "deny" || o.Continue != nil && !*o.Continue:
		if ran.Decision = "block"; h.Event != notification {
			s.block = joined(s.block, cmp.Or(text, "it gave no reason"))
		}
	case d == "allow" || d == "ask": // what else it says is recorded as no decision
		ran.Decision = d
		s.allow, s.ask = s.allow || d == "allow", s.ask || d == "ask"
	}
	context := quote.CutBytes(o.Specific.Context, maxContextBytes)
	s.context, ran.Said = joined(s.context, context), joined(ran.Said, joined(text, context))
}

func joined(a, b string) string { return strings.TrimSpace(a + "\n" + strings.TrimSpace(b)) }

// Check asks the hooks about a call. It is a gate.Check.
func (r *Runner) Check(ctx context.Context, c *gate.Call) ([]op.Body, error) {
	name, input := foreign(c.Name, c.Args, r.place.Dir)
	in := map[string]any{"tool_name": name, "tool_input": input, "tool_use_id": c.ID}
	s := r.run(ctx, preToolUse, in, name, c.Name)
	c.Record = append(c.Record, s.ran...)
	if s.block != "" {
		refused := &op.ApprovalDecided{Call: c.ID, Decision: "refuse", By: "hook"}
		return c.Refuse("Refused by a hook: "+s.block, refused), nil
	}
	c.HookAllows, c.HookAsks = s.allow && !s.ask, s.ask
	if s.context != "" {
		c.Reminder += "\n\n[hook] " + s.context
	}
	return nil, nil
}

// After shows the hooks the result of a call, to which it adds what they say. It reports whether one ran: it may have
// written files.
func (r *Runner) After(ctx context.Context, c *gate.Call, res *tool.Result) (ran bool) {
	event, name := postToolUse, ""
	response := map[string]any{"stdout": cmp.Or(res.Stdout, res.Text), "stderr": res.Stderr}
	response["interrupted"] = ctx.Err() != nil
	in := map[string]any{"tool_use_id": c.ID, "tool_response": response}
	if res.IsError {
		event = postFailure
		in["error"] = res.Text
	}
	if name, in["tool_input"] = foreign(c.Name, c.Args, r.place.Dir); len(matching(r.hooks, event, name, c.Name)) == 0 {
		return false
	}
	in["tool_name"] = name
	s := r.run(ctx, event, in, name, c.Name)
	res.Record = append(res.Record, s.ran...)
	if text := joined(s.block, s.context); text != "" {
		res.Text = strings.TrimRight(res.Text, "\n") + "\n\n[hook] " + text
	}
	return true
}

// Prompt asks the hooks about a request of the user, which may be empty. It returns what is recorded after the
// request, or ErrBlocked.
func (r *Runner) Prompt(ctx context.Context, text string) ([]op.Body, error) {
	if text == "" {
		return nil, nil
	}
	s := r.run(ctx, promptSubmit, map[string]any{"prompt": text}, "")
	if s.block != "" {
		return nil, fmt.Errorf("%w: %s", ErrBlocked, s.block)
	}
	return s.recorded(""), nil
}

// recorded returns what is recorded, with what the model is told.
func (s said) recorded(text string) []op.Body {
	if text = joined(text, s.context); text != "" {
		s.ran[len(s.ran)-1].(*op.HookRan).Notice = "[hook] " + text
	}
	return s.ran
}

// Stop asks the hooks whether the turn may end, and returns what is recorded. answer is the agent's.
// A reason to go on is recorded as one; after maxBlocks in a row the turn ends.
func (r *Runner) Stop(ctx context.Context, answer string) []op.Body {
	event := stop
	if r.place.State().Opened.ParentTask() != "" {
		event = subagentStop
	}
	s := r.run(ctx, event, map[string]any{"stop_hook_active": r.blocks > 0, "last_assistant_message": answer}, "")
	if s.block == "" {
		r.blocks = 0
		return s.recorded("")
	}
	last := s.ran[len(s.ran)-1].(*op.HookRan)
	if r.blocks++; r.blocks > maxBlocks {
		last.Decision, last.Failed, r.blocks = "", true, 0
		last.Said = fmt.Sprintf("blocked the end of the turn %d times in a row; the turn ends", maxBlocks)
		return s.ran
	}
	last.GoOn = true
	return s.recorded("Go on, a hook says: " + s.block)
}

// Notify runs the hooks of a question in the background. kind is Claude Code's name for it.
func (r *Runner) Notify(kind, text string) {
	hooks := matching(r.hooks, notification, kind)
	if len(hooks) == 0 {
		return
	}
	input := r.describe(notification, map[string]any{"message": text, "notification_type": kind})
	r.work.Go(func() {
		var s said
		r.runAll(r.background, hooks, input, &s)
		_ = r.place.Journal.Post(context.Background(), s.ran...) // the task reports that its stream cannot be written
	})
}

// Close waits for notifications that still run.
func (r *Runner) Close() {
	late := time.AfterFunc(maxLinger, r.end)
	r.work.Wait()
	late.Stop()
	r.end()
}

// foreign returns a call as Claude Code's hooks know it: its tool's name there, and our arguments with those of the
// other name beside them.
func foreign(name, args, dir string) (string, map[string]any) {
	in := make(map[string]any)
	_ = json.Unmarshal([]byte(args), &in) // arguments that are no object were refused before
	if path, ok := in["path"].(string); ok && in["file_path"] == nil {
		if in["file_path"] = path; !filepath.IsAbs(path) {
			in["file_path"] = filepath.Join(dir, path)
		}
	}
	edit := in["edit"]
	if list, ok := edit.([]any); ok && len(list) > 0 {
		edit = list[0]
	}
	if e, ok := edit.(map[string]any); ok {
		in["old_string"], in["new_string"] = e["old"], e["new"]
	}
	return cmp.Or(map[string]string{
		"ReadFile": "Read", "WriteFile": "Write", "StrReplaceFile": "Edit", "PatchFile": "Edit",
		"FetchURL": "WebFetch", "SearchWeb": "WebSearch", "SetTodoList": "TodoWrite", "AskUser": "AskUserQuestion",
	}[name], name), in
}

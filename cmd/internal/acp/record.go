package acp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"sync"

	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/sessions"
)

// chat is one session of the agent, recorded as hooks would record it. Its events are sent
// one at a time.
type chat struct {
	p             *Proxy
	id, cwd, task string

	mu    sync.Mutex
	calls map[string]*toolCall // of the turn, by their ids
	text  string               // what the agent said since its last call
	open  bool                 // a turn is under way

	model  string // the one that replies; empty: not known
	chosen string // the last one that the editor's user chose
}

// toolCall is what the updates said of a call so far.
type toolCall struct {
	name, kind, title string
	input             json.RawMessage
	announced         json.RawMessage // the input as a text for the user
	response          json.RawMessage // Claude Code's own form of the result
	terminal          string          // of the editor, in which the command runs
	paths             []string
	diff              *content
	begun, ended      bool
	wrote             bool // through the editor
	refused           bool // by the user or a rule of the agent
}

// update is an update of a session, or the call that a permission is asked for.
type update struct {
	Kind       string          `json:"sessionUpdate"`
	ToolCallID string          `json:"toolCallId"`
	Name       string          `json:"name"`
	Title      string          `json:"title"`
	ToolKind   string          `json:"kind"`
	Status     string          `json:"status"`
	RawInput   json.RawMessage `json:"rawInput"`
	RawOutput  json.RawMessage `json:"rawOutput"`
	Content    json.RawMessage `json:"content"`
	Locations  []struct {
		Path string `json:"path"`
	} `json:"locations"`
	Meta struct {
		Output *struct {
			Data string `json:"data"`
		} `json:"terminal_output_delta"`
		Exit *struct {
			Code exitCode `json:"exit_code"`
		} `json:"terminal_exit"`
		Claude struct {
			Response json.RawMessage `json:"toolResponse"`
			NotRun   string          `json:"nonExecutionKind"`
		} `json:"claudeCode"`
		ClaudeModel string `json:"_claude/model"` // of usage_update
	} `json:"_meta"`
	CurrentModelID string         `json:"currentModelId"`
	ConfigOptions  []configOption `json:"configOptions"`
}

type configOption struct {
	ID       string          `json:"id"`
	Category string          `json:"category"`
	Value    json.RawMessage `json:"currentValue"`
}

// chosenModel is the model that a session's settings name; empty if they name none.
func chosenModel(current string, options []configOption) string {
	for _, o := range options {
		if o.Category == "model" || o.ID == "model" {
			_ = json.Unmarshal(o.Value, &current) // a switch is no model's name
			break
		}
	}
	return current
}

// choose records the model that the session is set to. Each change of any setting repeats the model, which must
// not replace one that a reply has named since.
func (c *chat) choose(model string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if model != c.chosen {
		c.chosen = model
		c.setModel(model)
	}
}

func (c *chat) replied(model string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.setModel(model)
}

// setModel records the model that replies. "default" and "auto" leave the choice to the agent.
func (c *chat) setModel(model string) {
	if model != "" && model != "default" && model != "auto" {
		c.model = model
	}
}

// begin starts the record of a session in its directory.
func (p *Proxy) begin(id, cwd string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if id == "" || cwd == "" || p.sessions[id] != nil {
		return
	}
	for _, agent := range sessions.Agents() {
		if p.svc.Home.HasTask(beside.RecordedIn(p.svc.Home, agent, id, cwd)) {
			return // the agent's own hooks record it
		}
	}
	p.sessions[id] = &chat{p: p, id: id, cwd: cwd, task: beside.RecordedIn(p.svc.Home, beside.ACP, id, cwd),
		calls: map[string]*toolCall{}}
}

func (p *Proxy) chat(id string) *chat {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sessions[id]
}

// close ends the turns that the agent left open.
func (p *Proxy) close(ctx context.Context) {
	p.mu.Lock()
	all := p.sessions
	p.sessions = map[string]*chat{}
	p.mu.Unlock()
	for _, c := range all {
		c.stop(context.WithoutCancel(ctx)) // an interrupted proxy still records how turns ended
	}
}

// event records an event and returns the text for the agent. An error does not stop the agent: it
// is written to the log that doctor reads.
func (c *chat) event(ctx context.Context, name string, more map[string]any) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.send(ctx, name, more)
}

func (c *chat) send(ctx context.Context, name string, more map[string]any) string {
	e := map[string]any{"session_id": c.id, "cwd": c.cwd, "hook_event_name": name, "model": c.model}
	maps.Copy(e, more)
	data, err := json.Marshal(e)
	if err != nil {
		return ""
	}
	c.open = name != "Stop"
	text := ""
	err = beside.Hook(ctx, c.p.svc, beside.ACP, bytes.NewReader(data), c.p.recorders, func(reply []byte) error {
		var r struct {
			Out struct{ AdditionalContext string } `json:"hookSpecificOutput"`
		}
		if json.Unmarshal(reply, &r) == nil {
			text = r.Out.AdditionalContext
		}
		return nil
	})
	if err != nil {
		beside.LogError(c.p.svc.Home, string(beside.ACP), err)
	}
	return text
}

func (c *chat) stop(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.open {
		return
	}
	for id, t := range c.calls {
		// The refusal ended a call whose end the agent has not reported.
		if t.refused && t.begun && !t.ended {
			e := t.event(id)
			e["refused"], e["error"] = true, "The user refused the call."
			c.send(ctx, "PostToolUseFailure", e)
		}
	}
	c.send(ctx, "Stop", map[string]any{"last_assistant_message": c.text})
	c.text, c.calls = "", map[string]*toolCall{}
}

// record records an update. waiting means that the agent waits for a permission: the call has not started.
func (c *chat) record(ctx context.Context, u *update, waiting bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case u.Kind == "agent_message_chunk":
		var b content
		if json.Unmarshal(u.Content, &b) == nil {
			c.text += b.Text
		}
		return
	case u.Kind == "usage_update":
		c.setModel(u.Meta.ClaudeModel)
		return
	case u.ToolCallID == "":
		return
	}
	t := c.calls[u.ToolCallID]
	if t == nil {
		t = &toolCall{}
		c.calls[u.ToolCallID] = t
	}
	if t.ended {
		return // some agents describe the result once more
	}
	t.merge(u)
	if t.terminal != "" && !t.described() {
		c.p.mu.Lock()
		t.announced = c.p.terminals[t.terminal].command
		c.p.mu.Unlock()
	}
	ended := u.Status == "completed" || u.Status == "failed"
	own := t.own()
	if !t.begun && !own && (waiting || ended || u.Status == "in_progress" || t.described()) {
		t.begun, c.text = true, ""
		e := t.event(u.ToolCallID)
		e["running"] = !waiting // a call that runs already may have changed files
		c.send(ctx, "PreToolUse", e)
	}
	if !ended {
		return
	}
	t.ended = true
	if own {
		return
	}
	e := t.event(u.ToolCallID)
	e["writes"] = e["writes"] == true || t.wrote
	text, failed, exit := c.p.result(t, u)
	switch {
	case u.Status == "failed" && t.refused:
		e["refused"], e["error"] = true, text
	case exit != nil && *exit != 0:
		e["error"] = fmt.Sprintf("Exit code %d\n%s", *exit, text)
	case u.Status == "failed" || failed:
		e["error"] = text
	case exit != nil:
		e["tool_response"] = map[string]string{"stdout": text}
	default:
		e["tool_response"] = text
	}
	name := "PostToolUse"
	if e["error"] != nil {
		name = "PostToolUseFailure"
	}
	c.send(ctx, name, e)
}

// writes records that the agent asks the editor to write a file. The write belongs to the running
// call, or begins a call that was only announced. If there is neither, it is a call of its own,
// which is returned.
func (c *chat) writes(ctx context.Context, id, path, text string) (own map[string]any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	announced := ""
	for id, t := range c.calls {
		switch {
		case t.own(), t.ended:
		case t.begun:
			t.wrote = true
			return nil
		case announced == "" || t.kind == "edit":
			announced = id
		}
	}
	e := map[string]any{"tool_use_id": id, "tool_name": "Write", "tool_input": map[string]string{"path": path,
		"content": text}, "writes": true}
	if t := c.calls[announced]; t == nil {
		own = e
	} else {
		t.begun, t.wrote = true, true
		e = t.event(announced)
		e["writes"] = true
	}
	c.text = ""
	c.send(ctx, "PreToolUse", e)
	return own
}

func (c *chat) refuse(call string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.calls[call]; t != nil {
		t.refused = true
	}
}

// wrote records the editor's answer to a write that is a call of its own.
func (c *chat) wrote(ctx context.Context, e map[string]any, failed string) {
	if failed != "" {
		e["error"] = failed
		c.event(ctx, "PostToolUseFailure", e)
		return
	}
	e["tool_response"] = "The editor has written it."
	c.event(ctx, "PostToolUse", e)
}

// merge adds an update to what is known of a call.
func (t *toolCall) merge(u *update) {
	set := func(at *string, value string) {
		if value != "" {
			*at = value
		}
	}
	set(&t.name, u.Name)
	if t.name == "" && t.title == "" && u.ToolKind != "execute" {
		set(&t.name, u.Title) // some agents begin with the tool's name
	}
	set(&t.kind, u.ToolKind)
	set(&t.title, u.Title)
	if len(u.RawInput) > 2 {
		t.input = u.RawInput
	}
	for _, l := range u.Locations {
		t.paths = append(t.paths, l.Path)
	}
	if len(u.Meta.Claude.Response) > 0 {
		t.response = u.Meta.Claude.Response
	}
	var why struct {
		Reason string `json:"decisionReasonType"`
	}
	_ = json.Unmarshal(t.response, &why) // the response of a call that ran has no such field
	t.refused = t.refused || why.Reason != "" || u.Meta.Claude.NotRun != ""
	var list []content
	_ = json.Unmarshal(u.Content, &list) // of another form: nothing is known of it
	for i := range list {
		var inner content
		switch list[i].Type {
		case "diff":
			t.diff = &list[i]
		case "terminal":
			t.terminal = list[i].TerminalID
		case "content": // before it runs, some agents show the input as a text
			if json.Unmarshal(list[i].Content, &inner) == nil && u.Status != "completed" && u.Status != "failed" &&
				strings.HasPrefix(inner.Text, "{") && json.Valid([]byte(inner.Text)) {
				t.announced = json.RawMessage(inner.Text)
			}
		}
	}
}

// described reports whether the agent has named the call's arguments. opencode announces a
// command with its directory alone.
func (t *toolCall) described() bool {
	var in map[string]json.RawMessage
	_ = json.Unmarshal(t.input, &in) // of another form: the call begins with its status
	delete(in, "cwd")
	return len(in) > 0
}

// arguments are the input of the call, in whichever form the agent named it.
func (t *toolCall) arguments() json.RawMessage {
	if len(t.input) == 0 || !t.described() && len(t.announced) > 0 {
		return t.announced
	}
	return t.input
}

// mcpInput is what codex-acp says of a call of an MCP server's tool.
type mcpInput struct {
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

func (t *toolCall) mcp() (in mcpInput, ok bool) {
	ok = json.Unmarshal(t.input, &in) == nil && in.Server != "" && in.Tool != ""
	return in, ok
}

// mcpTitle is how Gemini CLI names the tool of an MCP server.
var mcpTitle = regexp.MustCompile(`^(\S+) \((\S+) MCP Server\)$`)

// tool returns the tool's name if the agent has told it, with the server for a tool of an MCP server.
func (t *toolCall) tool() string {
	if m := mcpTitle.FindStringSubmatch(t.title); m != nil {
		return "mcp__" + m[2] + "__" + m[1]
	}
	if in, ok := t.mcp(); ok {
		return "mcp__" + in.Server + "__" + in.Tool
	}
	return t.name
}

// own reports whether the call is of this program's MCP server.
func (t *toolCall) own() bool { return sessions.IsOwnTool(t.tool()) || sessions.IsOwnTool(t.title) }

// event describes the call as a hook would.
func (t *toolCall) event(id string) map[string]any {
	e := map[string]any{"tool_use_id": id, "writes": t.kind != "read" && t.kind != "search" &&
		t.kind != "think" && t.kind != "fetch"}
	set := func(name string, input any) map[string]any {
		e["tool_name"], e["tool_input"] = name, input
		return e
	}
	var in struct {
		Command json.RawMessage `json:"command"`
		Cmd     json.RawMessage `json:"cmd"`
		Old     *string         `json:"old_string"`
		Old2    *string         `json:"oldString"`
		Content *string         `json:"content"`
		Path    string          `json:"path"`
		Path2   string          `json:"file_path"`
		Path3   string          `json:"filePath"`
	}
	input := t.arguments()
	_ = json.Unmarshal(input, &in) // of another form: nothing is known of it
	if m, ok := t.mcp(); ok {
		return set(t.tool(), m.Arguments)
	}
	path := in.Path + in.Path2 + in.Path3
	if path == "" && len(t.paths) > 0 {
		path = t.paths[0]
	}
	switch {
	case t.kind == "execute" && len(in.Command)+len(in.Cmd) > 0:
		return set("Bash", input)
	case t.kind == "execute":
		return set("Bash", map[string]string{"command": t.title})
	case t.kind == "read" && path != "":
		return set("Read", map[string]string{"path": path})
	case t.kind == "edit" && (in.Old != nil || in.Old2 != nil):
		return set("Edit", input)
	case t.kind == "edit" && in.Content != nil:
		return set("Write", input)
	case t.kind == "edit" && t.diff != nil && t.diff.OldText != nil:
		return set("Edit", map[string]string{"path": t.diff.Path, "old_string": *t.diff.OldText,
			"new_string": t.diff.NewText})
	case t.kind == "edit" && t.diff != nil:
		return set("Write", map[string]string{"path": t.diff.Path, "content": t.diff.NewText})
	}
	name := t.tool()
	if name == "" || strings.ContainsAny(name, " :") { // a title
		name = cmp.Or(t.kind, "call")
	}
	if len(input) == 0 {
		return set(name, map[string]string{"title": t.title})
	}
	return set(name, input)
}

// maxTextBytes is the length to which the text of a result is clipped.
const maxTextBytes = 1 << 20

// result returns the text of an ended call, whether it says itself that it failed, and the exit
// code of its command where the agent or the editor's terminal names it.
func (p *Proxy) result(t *toolCall, u *update) (text string, failed bool, exit *int) {
	var texts []string
	var out struct {
		Exit     exitCode `json:"exit_code"`
		Metadata struct {
			Exit exitCode `json:"exit"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(u.RawOutput, &out) // a text has none
	if exit = cmp.Or(out.Exit.known, out.Metadata.Exit.known); exit == nil && sessions.ExitedZero(t.response) {
		exit = new(int)
	}
	if text, failed = sessions.ResultText(u.RawOutput); text != "" {
		texts = append(texts, text)
	}
	var list []content
	if json.Unmarshal(u.Content, &list) == nil {
		for _, b := range list {
			var inner content
			switch {
			case b.Type == "terminal":
				p.mu.Lock()
				t := p.terminals[b.TerminalID]
				p.mu.Unlock()
				texts = append(texts, t.output)
				exit = cmp.Or(t.exit, exit)
			case len(texts) == 0 && json.Unmarshal(b.Content, &inner) == nil && inner.Text != "":
				texts = append(texts, inner.Text)
			}
		}
	}
	if o := u.Meta.Output; o != nil {
		texts = append(texts, o.Data)
	}
	if e := u.Meta.Exit; e != nil {
		exit = e.Code.known
	}
	text = strings.Join(texts, "\n")
	if cut := len(text) - maxTextBytes; cut > 0 { // an event has a limit, and less than this is recorded
		text = text[:maxTextBytes/2] + text[maxTextBytes/2+cut:]
	}
	return text, failed, exit
}

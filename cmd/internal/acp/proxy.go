// Package acp speaks the Agent Client Protocol, one JSON message a line, on standard
// input and output. Agent is this program's own agent for an editor. Proxy stands
// between an editor and another agent: it records what that does, saves the directory at
// each finished call, adds cards to prompts, and answers /jump, /timeline and /cards.
// What it does not know it forwards byte for byte.
package acp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/install"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/session"
)

// Proxy forwards messages between one editor and one agent.
type Proxy struct {
	svc       *session.Service
	recorders *beside.Recorders
	editor    *lines
	agent     *lines
	program   string // of the MCP server for the agent's sessions; empty: it has one
	data      string // ANAMNESIS_HOME, where it is set

	mu        sync.Mutex
	asked     map[string]request  // by the editor, which the agent has not answered
	served    map[string]request  // by the agent, which the editor has not answered
	sessions  map[string]*chat    // by their ids
	terminals map[string]terminal // of the editor, by their ids
}

// request is a request under way, and what it is about.
type request struct {
	method, session, cwd, terminal string

	write map[string]any // the call that a file write is, if the agent announced none

	model   string          // of session/set_model
	command json.RawMessage // of terminal/create, as a call's input
	call    string          // of session/request_permission
	rejects []string        // the options that refuse it
}

// terminal is what is known of a terminal that the editor runs for the agent.
type terminal struct {
	command json.RawMessage // as a call's input
	output  string
	exit    *int
}

// lines writes whole lines from any goroutine.
type lines struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lines) write(line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err := l.w.Write(line)
	return err
}

func (l *lines) send(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return l.write(append(data, '\n'))
}

// Run starts the agent's command and forwards until the agent ends. The agent's input ends
// with the editor's. Events are recorded by recorders, or here if it is nil. The agent's
// sessions get this program's MCP server, unless the configuration of the agent names it. If svc is
// nil, nothing is recorded or changed.
func Run(ctx context.Context, svc *session.Service, recorders *beside.Recorders, places *install.Places,
	command []string, in io.Reader, out, stderr io.Writer) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stderr = stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return exit.Usagef("acp proxy: the agent's command cannot be started: %w; install it, or name its path", err)
	}
	if svc == nil {
		go func() {
			_, _ = io.Copy(stdin, in)
			_ = stdin.Close()
		}()
		_, err := io.Copy(out, stdout)
		return errors.Join(err, cmd.Wait())
	}
	p := newProxy(svc, recorders, out, stdin)
	if !places.Serves(command) {
		p.program, p.data = places.Program, places.Data
	}
	go func() { // ends with the editor's input, which may outlive the agent
		_ = eachLine(in, func(line []byte) error { return p.fromEditor(ctx, line) })
		_ = stdin.Close()
	}()
	err = eachLine(stdout, func(line []byte) error { return p.fromAgent(ctx, line) })
	p.close(ctx)
	return errors.Join(err, cmd.Wait())
}

// eachLine visits the lines of a stream; the last may lack its newline.
func eachLine(r io.Reader, visit func(line []byte) error) error {
	for b := bufio.NewReader(r); ; {
		line, err := b.ReadBytes('\n')
		if len(line) > 0 {
			if err := visit(line); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func newProxy(svc *session.Service, recorders *beside.Recorders, editor, agent io.Writer) *Proxy {
	return &Proxy{
		svc: svc, recorders: recorders, editor: &lines{w: editor}, agent: &lines{w: agent},
		asked: map[string]request{}, served: map[string]request{}, sessions: map[string]*chat{},
		terminals: map[string]terminal{},
	}
}

// message is a request, a notification or a response.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func (m *message) isRequest() bool  { return m.Method != "" && m.ID != nil }
func (m *message) isResponse() bool { return m.Method == "" && m.ID != nil }

// params are the fields of parameters and results that the proxy reads.
type params struct {
	SessionID  string    `json:"sessionId"`
	Cwd        string    `json:"cwd"`
	Path       string    `json:"path"`    // of fs/write_text_file
	Content    string    `json:"content"` // of fs/write_text_file
	Prompt     []content `json:"prompt"`
	Update     *update   `json:"update"`
	ToolCall   *update   `json:"toolCall"` // of session/request_permission
	TerminalID string    `json:"terminalId"`
	Output     *string   `json:"output"`   // of terminal/output
	ExitCode   exitCode  `json:"exitCode"` // of terminal/wait_for_exit
	ExitStatus struct {
		ExitCode exitCode `json:"exitCode"`
	} `json:"exitStatus"` // of terminal/output
	Command string   `json:"command"` // of terminal/create
	Args    []string `json:"args"`    // of terminal/create
	Options []struct {
		ID   string `json:"optionId"`
		Kind string `json:"kind"`
	} `json:"options"` // of session/request_permission
	Outcome *struct {
		Outcome  string `json:"outcome"`
		OptionID string `json:"optionId"`
	} `json:"outcome"` // of its answer
	ModelID string `json:"modelId"` // of session/set_model
	Models  struct {
		Current string `json:"currentModelId"`
	} `json:"models"`
	ConfigOptions []configOption `json:"configOptions"`
	Meta          struct {
		Quota struct {
			Usage []struct {
				Model string `json:"model"`
			} `json:"model_usage"`
		} `json:"quota"`
	} `json:"_meta"` // of the answer to session/prompt
}

// exitCode is an exit code, which is known if it is a number.
type exitCode struct{ known *int }

func (e *exitCode) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &e.known) != nil {
		e.known = nil // a pointer was made all the same
	}
	return nil
}

// read decodes parameters or a result. A field of another type is left empty.
func (q *params) read(raw json.RawMessage) bool {
	err := json.Unmarshal(raw, q)
	var odd *json.UnmarshalTypeError
	return err == nil || errors.As(err, &odd) && odd.Field != ""
}

type content struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Content json.RawMessage `json:"content"`

	TerminalID string `json:"terminalId"`

	Path    string  `json:"path"` // of a diff
	OldText *string `json:"oldText"`
	NewText string  `json:"newText"`
}

// fromEditor forwards a line of the editor's, or answers it.
func (p *Proxy) fromEditor(ctx context.Context, line []byte) error {
	var m message
	var q params
	if json.Unmarshal(line, &m) != nil {
		return p.agent.write(line)
	}
	switch {
	case m.isRequest() && q.read(m.Params):
		p.mu.Lock()
		p.asked[string(m.ID)] = request{method: m.Method, session: q.SessionID, cwd: q.Cwd, model: q.ModelID}
		p.mu.Unlock()
		switch m.Method {
		case "session/load", "session/resume":
			p.begin(q.SessionID, q.Cwd)
			line = p.withServer(line, q.Cwd)
		case "session/new", "session/fork":
			line = p.withServer(line, q.Cwd)
		case "session/prompt":
			return p.prompt(ctx, line, &m, &q)
		}
	case m.isResponse():
		p.mu.Lock()
		r := p.served[string(m.ID)]
		delete(p.served, string(m.ID))
		_ = q.read(m.Result) // an error has none
		if id := cmp.Or(r.terminal, q.TerminalID); id != "" {
			t := p.terminals[id]
			if r.command != nil {
				t.command = r.command
			}
			if q.Output != nil {
				t.output = *q.Output
			}
			if exit := cmp.Or(q.ExitCode.known, q.ExitStatus.ExitCode.known); exit != nil {
				t.exit = exit
			}
			p.terminals[id] = t
		}
		p.mu.Unlock()
		c := p.chat(r.session)
		switch o := q.Outcome; {
		case c == nil:
		case r.write != nil:
			c.wrote(ctx, r.write, string(m.Error))
		case r.call != "" && o != nil && (o.Outcome == "cancelled" || slices.Contains(r.rejects, o.OptionID)):
			c.refuse(r.call)
		}
	}
	return p.agent.write(line)
}

// prompt forwards a prompt with the text for the agent, or answers a command.
func (p *Proxy) prompt(ctx context.Context, line []byte, m *message, q *params) error {
	c := p.chat(q.SessionID)
	if c == nil {
		return p.agent.write(line) // a session whose directory was never named
	}
	text := ""
	for _, b := range q.Prompt {
		if b.Type == "text" {
			text += b.Text
		}
	}
	if name, rest, ok := slash(text); ok {
		answer := (&place{svc: p.svc, task: c.task, dir: c.cwd}).answer(ctx, name, rest)
		p.mu.Lock()
		delete(p.asked, string(m.ID))
		p.mu.Unlock()
		return errors.Join(p.say(q.SessionID, answer),
			p.editor.send(map[string]any{"jsonrpc": "2.0", "id": m.ID,
				"result": map[string]string{"stopReason": "end_turn"}}))
	}
	if added := c.event(ctx, "UserPromptSubmit", map[string]any{"prompt": text}); added != "" {
		line = withText(line, added)
	}
	return p.agent.write(line)
}

// within changes a list inside a message, and makes the list if there is none. Every other
// field keeps its value. A message whose list did not grow, or of another form, is returned
// unchanged.
func within(line []byte, path []string, change func(list []json.RawMessage) []json.RawMessage) []byte {
	objects, raw := make([]map[string]json.RawMessage, len(path)), json.RawMessage(line)
	for i, name := range path {
		if json.Unmarshal(raw, &objects[i]) != nil || objects[i] == nil {
			return line
		}
		raw = objects[i][name]
	}
	var list []json.RawMessage
	if len(raw) > 0 && json.Unmarshal(raw, &list) != nil {
		return line
	}
	changed := change(list)
	if len(changed) == len(list) {
		return line
	}
	raw = marshal(changed)
	for i, name := range slices.Backward(path) {
		objects[i][name] = raw
		raw = marshal(objects[i])
	}
	return append(raw, '\n')
}

// marshal encodes what cannot fail to be encoded.
func marshal(v any) json.RawMessage {
	data, err := op.PlainJSON(v)
	if err != nil {
		panic("acp: " + err.Error()) // of maps, lists and texts
	}
	return data
}

// withText adds a text before a prompt.
func withText(line []byte, text string) []byte {
	return within(line, []string{"params", "prompt"}, func(list []json.RawMessage) []json.RawMessage {
		return append([]json.RawMessage{marshal(map[string]string{"type": "text", "text": text})}, list...)
	})
}

// withServer adds this program's MCP server to a session, unless it has one of its name.
func (p *Proxy) withServer(line []byte, cwd string) []byte {
	if p.program == "" {
		return line
	}
	return within(line, []string{"params", "mcpServers"}, func(list []json.RawMessage) []json.RawMessage {
		for _, server := range list {
			var s struct{ Name string }
			if json.Unmarshal(server, &s) == nil && s.Name == "anamnesis" {
				return list
			}
		}
		env := []map[string]string{}
		if p.data != "" {
			env = append(env, map[string]string{"name": "ANAMNESIS_HOME", "value": p.data})
		}
		return append(list, marshal(map[string]any{"name": "anamnesis", "command": p.program,
			"args": []string{"mcp", "serve", "--dir", cwd}, "env": env}))
	})
}

// say shows a text as the agent's.
func (p *Proxy) say(sessionID, text string) error {
	return p.editor.send(map[string]any{"jsonrpc": "2.0", "method": "session/update", "params": map[string]any{
		"sessionId": sessionID, "update": map[string]any{"sessionUpdate": "agent_message_chunk",
			"content": map[string]string{"type": "text", "text": text}},
	}})
}

// fromAgent forwards a line of the agent's and records what it tells.
func (p *Proxy) fromAgent(ctx context.Context, line []byte) error {
	var m message
	var q params
	if json.Unmarshal(line, &m) != nil {
		return p.editor.write(line)
	}
	switch {
	case m.isResponse():
		p.mu.Lock()
		r, ok := p.asked[string(m.ID)]
		delete(p.asked, string(m.ID))
		p.mu.Unlock()
		switch {
		case !ok || m.Error != nil && r.method != "session/prompt":
		case q.read(m.Result) && (r.method == "session/new" || r.method == "session/fork") && q.SessionID != "":
			p.begin(q.SessionID, r.cwd)
			r.session = q.SessionID
		}
		if c := p.chat(r.session); c != nil {
			if model := chosenModel(cmp.Or(r.model, q.Models.Current), q.ConfigOptions); model != "" && m.Error == nil {
				c.choose(model)
			}
			// The answer to a prompt ends the turn, and so does its error.
			if r.method == "session/prompt" {
				for _, u := range q.Meta.Quota.Usage {
					c.replied(u.Model)
				}
				c.stop(ctx)
			}
		}
	case !q.read(m.Params):
	case m.isRequest():
		r := request{method: m.Method, session: q.SessionID, terminal: q.TerminalID}
		if q.Command != "" {
			r.command = marshal(map[string]any{"command": append([]string{q.Command}, q.Args...)})
		}
		for _, o := range q.Options {
			if strings.HasPrefix(o.Kind, "reject") {
				r.rejects = append(r.rejects, o.ID)
			}
		}
		c := p.chat(q.SessionID)
		// The call is recorded before the editor gets the request: its answer lets the call change files.
		switch {
		case c == nil:
		case m.Method == "session/request_permission" && q.ToolCall != nil:
			r.call = q.ToolCall.ToolCallID
			c.record(ctx, q.ToolCall, true)
		case m.Method == "fs/write_text_file":
			r.write = c.writes(ctx, "fs_"+strings.Trim(string(m.ID), `"`), q.Path, q.Content)
		}
		p.mu.Lock()
		p.served[string(m.ID)] = r
		p.mu.Unlock()
	case m.Method == "session/update" && q.Update != nil:
		return p.update(ctx, line, &q)
	}
	return p.editor.write(line)
}

// update forwards a session's update and records it.
func (p *Proxy) update(ctx context.Context, line []byte, q *params) error {
	if q.Update.Kind == "available_commands_update" {
		line = withCommands(line)
	}
	// An update reports what already happens, so the editor need not wait until it is recorded.
	err := p.editor.write(line)
	if c := p.chat(q.SessionID); c != nil {
		if model := chosenModel(q.Update.CurrentModelID, q.Update.ConfigOptions); model != "" {
			c.choose(model)
		}
		c.record(ctx, q.Update, false)
	}
	return err
}

// withCommands adds the proxy's commands to those of the agent.
func withCommands(line []byte) []byte {
	return within(line, []string{"params", "update", "availableCommands"},
		func(list []json.RawMessage) []json.RawMessage {
			for _, v := range verbs {
				if slices.ContainsFunc(list, func(c json.RawMessage) bool {
					return bytes.Contains(c,
						[]byte(`"name":"`+v.name+`"`))
				}) {
					continue // the agent has one of that name: it is its own
				}
				c := map[string]any{"name": v.name, "description": v.about}
				if v.hint != "" {
					c["input"] = map[string]string{"hint": v.hint}
				}
				list = append(list, marshal(c))
			}
			return list
		})
}

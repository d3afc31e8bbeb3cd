// Package acp speaks the Agent Client Protocol, one JSON message a line, on standard
// input and output. Agent is this program's own agent for an editor. Proxy stands
// between an editor and another agent: it records what that does, saves the directory at
// each finished call, adds cards to prompts, and answers /jump, /timeline and /cards.
// What it does not know it forwards byte for byte.
package acp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"sync"

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

	mu        sync.Mutex
	asked     map[string]request  // by the editor, which the agent has not answered
	served    map[string]request  // by the agent, which the editor has not answered
	sessions  map[string]*chat    // by their ids
	terminals map[string]terminal // of the editor, by their ids
}

// request is a request under way, and what it is about.
type request struct{ method, session, cwd, terminal string }

// terminal is what the editor said of one that it runs for the agent.
type terminal struct {
	output string
	exit   *int
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

// Run starts the agent's command and forwards until the agent ends. The editor's end of
// input is the agent's. Events are recorded by recorders, or here if it is nil.
func Run(ctx context.Context, svc *session.Service, recorders *beside.Recorders, command []string, in io.Reader, out, stderr io.Writer) error {
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
		return err
	}
	p := &Proxy{
		svc: svc, recorders: recorders, editor: &lines{w: out}, agent: &lines{w: stdin},
		asked: map[string]request{}, served: map[string]request{}, sessions: map[string]*chat{}, terminals: map[string]terminal{},
	}
	go func() { // ends with the editor's input, which may outlive the agent
		_ = each(in, func(line []byte) error { return p.fromEditor(ctx, line) })
		_ = stdin.Close()
	}()
	err = each(stdout, func(line []byte) error { return p.fromAgent(ctx, line) })
	p.close(ctx)
	return errors.Join(err, cmd.Wait())
}

// each visits the lines of a stream.
func each(r io.Reader, visit func(line []byte) error) error {
	b := bufio.NewReader(r)
	for {
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

// message is a request, a notification or a response.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
}

func (m *message) isRequest() bool  { return m.Method != "" && m.ID != nil }
func (m *message) isResponse() bool { return m.Method == "" && m.ID != nil }

// params are the fields of parameters and results that the proxy reads.
type params struct {
	SessionID  string    `json:"sessionId"`
	Cwd        string    `json:"cwd"`
	Prompt     []content `json:"prompt"`
	Update     *update   `json:"update"`
	ToolCall   *update   `json:"toolCall"` // of session/request_permission
	TerminalID string    `json:"terminalId"`
	Output     *string   `json:"output"`   // of terminal/output
	ExitCode   *int      `json:"exitCode"` // of terminal/wait_for_exit
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
	case m.isRequest() && json.Unmarshal(m.Params, &q) == nil:
		p.mu.Lock()
		p.asked[string(m.ID)] = request{method: m.Method, session: q.SessionID, cwd: q.Cwd}
		p.mu.Unlock()
		switch m.Method {
		case "session/load", "session/resume":
			p.begin(q.SessionID, q.Cwd)
		case "session/prompt":
			return p.prompt(ctx, line, &m, &q)
		}
	case m.isResponse():
		p.mu.Lock()
		if r, ok := p.served[string(m.ID)]; ok && r.terminal != "" && json.Unmarshal(m.Result, &q) == nil {
			t := p.terminals[r.terminal]
			if q.Output != nil {
				t.output = *q.Output
			}
			if q.ExitCode != nil {
				t.exit = q.ExitCode
			}
			p.terminals[r.terminal] = t
		}
		delete(p.served, string(m.ID))
		p.mu.Unlock()
	}
	return p.agent.write(line)
}

// prompt forwards a prompt with what the agent is to be told, or answers a command.
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
		answer := (&place{svc: p.svc, task: c.task, dir: c.cwd, jump: func(ctx context.Context, j op.JumpRequested) ([]string, error) {
			done, err := beside.Jump(ctx, p.svc, c.task, j)
			return done.Warnings, err
		}}).answer(ctx, name, rest)
		p.mu.Lock()
		delete(p.asked, string(m.ID))
		p.mu.Unlock()
		return errors.Join(p.say(q.SessionID, answer), p.editor.send(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": map[string]string{"stopReason": "end_turn"}}))
	}
	if added := c.event(ctx, "UserPromptSubmit", map[string]any{"prompt": text}); added != "" {
		if more, ok := withText(line, added); ok {
			line = more
		}
	}
	return p.agent.write(line)
}

// withText adds a text before a prompt. Every other field keeps its bytes.
func withText(line []byte, text string) ([]byte, bool) {
	var m, q map[string]json.RawMessage
	var blocks []json.RawMessage
	if json.Unmarshal(line, &m) != nil || json.Unmarshal(m["params"], &q) != nil || json.Unmarshal(q["prompt"], &blocks) != nil {
		return nil, false
	}
	block, err := json.Marshal(map[string]string{"type": "text", "text": text})
	if err == nil {
		q["prompt"], err = json.Marshal(append([]json.RawMessage{block}, blocks...))
	}
	if err == nil {
		m["params"], err = json.Marshal(q)
	}
	if err != nil {
		return nil, false
	}
	out, err := json.Marshal(m)
	return append(out, '\n'), err == nil
}

// say shows a text as the agent's.
func (p *Proxy) say(sessionID, text string) error {
	return p.editor.send(map[string]any{"jsonrpc": "2.0", "method": "session/update", "params": map[string]any{
		"sessionId": sessionID, "update": map[string]any{"sessionUpdate": "agent_message_chunk", "content": map[string]string{"type": "text", "text": text}},
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
		case ok && (r.method == "session/new" || r.method == "session/fork") && json.Unmarshal(m.Result, &q) == nil && q.SessionID != "":
			p.begin(q.SessionID, r.cwd)
		case ok && r.method == "session/prompt":
			if c := p.chat(r.session); c != nil {
				c.stop(ctx)
			}
		}
	case json.Unmarshal(m.Params, &q) != nil:
	case m.isRequest():
		p.mu.Lock()
		p.served[string(m.ID)] = request{method: m.Method, session: q.SessionID, terminal: q.TerminalID}
		p.mu.Unlock()
		if c := p.chat(q.SessionID); c != nil && m.Method == "session/request_permission" && q.ToolCall != nil {
			c.take(ctx, q.ToolCall, true)
		}
	case m.Method == "session/update" && q.Update != nil:
		return p.update(ctx, line, &q)
	}
	return p.editor.write(line)
}

// update forwards a session's update and records it.
func (p *Proxy) update(ctx context.Context, line []byte, q *params) error {
	if q.Update.Kind == "available_commands_update" {
		if more, ok := withCommands(line); ok {
			line = more
		}
	}
	err := p.editor.write(line)
	if c := p.chat(q.SessionID); c != nil {
		c.take(ctx, q.Update, false)
	}
	return err
}

// withCommands adds the proxy's commands to those of the agent.
func withCommands(line []byte) ([]byte, bool) {
	var m, q, u map[string]json.RawMessage
	var list []json.RawMessage
	if json.Unmarshal(line, &m) != nil || json.Unmarshal(m["params"], &q) != nil || json.Unmarshal(q["update"], &u) != nil || json.Unmarshal(u["availableCommands"], &list) != nil {
		return nil, false
	}
	for _, v := range verbs {
		if bytes.Contains(u["availableCommands"], []byte(`"name":"`+v.name+`"`)) {
			continue // the agent has one of that name: it is its own
		}
		c := map[string]any{"name": v.name, "description": v.about}
		if v.hint != "" {
			c["input"] = map[string]string{"hint": v.hint}
		}
		data, err := json.Marshal(c)
		if err != nil {
			return nil, false
		}
		list = append(list, data)
	}
	var err error
	if u["availableCommands"], err = json.Marshal(list); err == nil {
		if q["update"], err = json.Marshal(u); err == nil {
			m["params"], err = json.Marshal(q)
		}
	}
	if err != nil {
		return nil, false
	}
	out, err := json.Marshal(m)
	return append(out, '\n'), err == nil
}

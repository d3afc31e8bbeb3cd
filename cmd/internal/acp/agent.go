package acp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	sdk "github.com/coder/acp-go-sdk"
	"github.com/google/uuid"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool/mcp"
)

type Options struct {
	Version string
	// Open returns the service for a directory, what a new task there begins with, and
	// the settings that a task there is resumed with.
	Open func(dir string) (*session.Service, session.Request, session.Settings, error)
}

// Agent is this program's own agent for an editor. A session is a task: it begins with
// its first prompt, each further prompt resumes it, and between prompts no process
// holds it.
type Agent struct {
	o    Options
	conn *sdk.AgentSideConnection
	out  *announcer

	mu       sync.Mutex
	sessions map[sdk.SessionId]*editorSession
	turns    sync.WaitGroup
}

// editorSession is an editor's side of one session.
type editorSession struct {
	id      sdk.SessionId // the task's id
	dir     string
	servers []mcp.Server // named by the editor

	turn sync.Mutex // held while a prompt is answered

	mu     sync.Mutex
	mode   string // chosen in the editor; empty: the task's
	begun  bool   // the task exists
	cancel context.CancelCauseFunc
}

// Serve serves an editor until its input or ctx ends. A turn under way then ends as
// interrupted.
func Serve(ctx context.Context, o Options, in io.Reader, out, stderr io.Writer) error {
	a := &Agent{o: o, sessions: map[sdk.SessionId]*editorSession{},
		out: &announcer{w: out, waiting: map[string][]byte{}}}
	ready := make(chan struct{})
	a.conn = sdk.NewAgentSideConnection(a, a.out, &gatedReader{in, ready})
	a.conn.SetLogger(slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	close(ready)
	select {
	case <-ctx.Done():
	case <-a.conn.Done():
	}
	a.mu.Lock()
	for _, s := range a.sessions {
		s.stop(context.Cause(ctx))
	}
	a.mu.Unlock()
	a.turns.Wait()
	return nil
}

// gatedReader reads nothing until Serve has set a.conn and the logger: the SDK reads, and calls the
// agent, as soon as a connection is made.
type gatedReader struct {
	io.Reader
	ready <-chan struct{}
}

func (g *gatedReader) Read(p []byte) (int, error) {
	<-g.ready
	return g.Reader.Read(p)
}

// announcer writes messages. What waits for a session is written right after the
// response that names it: before, the editor does not know the session.
type announcer struct {
	w       io.Writer
	mu      sync.Mutex
	waiting map[string][]byte // lines, by the session's id
}

func (o *announcer) Write(line []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, err := o.w.Write(line)
	for id, more := range o.waiting {
		if err == nil && bytes.Contains(line, []byte(`"sessionId":"`+id+`"`)) {
			delete(o.waiting, id)
			_, err = o.w.Write(more)
		}
	}
	return n, err
}

func (o *announcer) after(id sdk.SessionId, n sdk.SessionNotification) error {
	params, err := json.Marshal(n)
	if err != nil {
		return err
	}
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": sdk.ClientMethodSessionUpdate,
		"params": json.RawMessage(params)})
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting[string(id)] = append(line, '\n')
	return err
}

// Initialize says what this agent can do.
func (a *Agent) Initialize(context.Context, sdk.InitializeRequest) (sdk.InitializeResponse, error) {
	return sdk.InitializeResponse{
		ProtocolVersion: sdk.ProtocolVersionNumber,
		AgentInfo:       &sdk.Implementation{Name: "anamnesis", Title: new("Anamnesis"), Version: a.o.Version},
		AuthMethods:     []sdk.AuthMethod{},
		AgentCapabilities: sdk.AgentCapabilities{
			LoadSession:        true,
			McpCapabilities:    sdk.McpCapabilities{Http: true},
			PromptCapabilities: sdk.PromptCapabilities{EmbeddedContext: true},
			SessionCapabilities: sdk.SessionCapabilities{List: &sdk.SessionListCapabilities{},
				Resume: &sdk.SessionResumeCapabilities{}, Close: &sdk.SessionCloseCapabilities{}},
		},
	}, nil
}

// Authenticate has nothing to do: the key of the model's server is configured.
func (a *Agent) Authenticate(context.Context, sdk.AuthenticateRequest) (sdk.AuthenticateResponse, error) {
	return sdk.AuthenticateResponse{}, nil
}

// SetSessionConfigOption refuses: there are no options.
func (a *Agent) SetSessionConfigOption(_ context.Context, p sdk.SetSessionConfigOptionRequest) (
	sdk.SetSessionConfigOptionResponse, error) {
	return sdk.SetSessionConfigOptionResponse{},
		failed(errors.New("this agent has no configuration options; 'anamnesis config' shows its settings"))
}

// failed returns an error whose text an editor shows.
func failed(err error) error {
	if err == nil {
		return nil
	}
	return &sdk.RequestError{Code: -32603, Message: err.Error()}
}

// noResource is the protocol's code for a session that does not exist.
const noResource = -32002

func refused(format string, args ...any) error {
	return &sdk.RequestError{Code: -32602, Message: fmt.Sprintf(format, args...)}
}

// NewSession begins a session. Its task is made with the first prompt.
func (a *Agent) NewSession(_ context.Context, p sdk.NewSessionRequest) (sdk.NewSessionResponse, error) {
	dir, err := session.RealDir(p.Cwd)
	if err != nil {
		return sdk.NewSessionResponse{}, refused("cwd: %v", err)
	}
	_, r, _, err := a.open(dir)
	if err != nil {
		return sdk.NewSessionResponse{}, err
	}
	s := &editorSession{id: sdk.SessionId("editor_" + strings.ReplaceAll(uuid.NewString(), "-", "")[:12]), dir: dir}
	if s.servers, err = servers(p.McpServers); err != nil {
		return sdk.NewSessionResponse{}, err
	}
	a.mu.Lock()
	a.sessions[s.id] = s
	a.mu.Unlock()
	if err := a.out.after(s.id, sdk.SessionNotification{SessionId: s.id, Update: offered()}); err != nil {
		return sdk.NewSessionResponse{}, failed(err)
	}
	return sdk.NewSessionResponse{SessionId: s.id,
		Modes: modes(cmp.Or(r.Approval, r.Default.Approval, string(approval.ModeAsk)))}, nil
}

func (a *Agent) open(dir string) (*session.Service, session.Request, session.Settings, error) {
	svc, r, set, err := a.o.Open(dir)
	return svc, r, set, failed(err)
}

// servers are the MCP servers that the editor names.
func servers(list []sdk.McpServer) (all []mcp.Server, err error) {
	for _, m := range list {
		s := mcp.Server{}
		switch {
		case m.Stdio != nil:
			s = mcp.Server{Name: m.Stdio.Name, Command: m.Stdio.Command, Args: m.Stdio.Args, Env: map[string]string{}}
			for _, v := range m.Stdio.Env {
				s.Env[v.Name] = v.Value
			}
		case m.Http != nil:
			s = mcp.Server{Name: m.Http.Name, URL: m.Http.Url, Headers: map[string]string{}}
			for _, h := range m.Http.Headers {
				s.Headers[h.Name] = h.Value
			}
		default:
			return nil, refused("mcpServers: this agent speaks stdio and http")
		}
		if err := s.Check(); err != nil {
			return nil, refused("mcpServers: %v", err)
		}
		all = append(all, s)
	}
	return all, nil
}

// modePlan is the mode in which the agent only plans; the others are the approval modes.
const modePlan = "plan"

func modeID(plan bool, mode string) string {
	if plan {
		return modePlan
	}
	return mode
}

// modes are those that the editor offers.
func modes(current string) *sdk.SessionModeState {
	m := &sdk.SessionModeState{CurrentModeId: sdk.SessionModeId(current)}
	for _, mode := range []struct {
		id          approval.Mode
		name, about string
	}{
		{approval.ModeAsk, "Ask", "Asks before it changes files or runs commands"},
		{approval.ModeEdits, "Edits", "Changes files without asking, asks before it runs commands"},
		{approval.ModeAuto, "Auto", "Runs everything that no rule refuses"},
		{approval.ModeDeny, "Read only", "Runs only what changes nothing"},
		{modePlan, "Plan", "Reads and asks, and ends with a plan"},
	} {
		m.AvailableModes = append(m.AvailableModes, sdk.SessionMode{Id: sdk.SessionModeId(mode.id), Name: mode.name,
			Description: new(mode.about)})
	}
	return m
}

// offered announces the slash commands.
func offered() sdk.SessionUpdate {
	u := &sdk.SessionAvailableCommandsUpdate{SessionUpdate: "available_commands_update"}
	for _, v := range verbs {
		c := sdk.AvailableCommand{Name: v.name, Description: v.about}
		if v.hint != "" {
			c.Input = &sdk.AvailableCommandInput{Unstructured: &sdk.UnstructuredCommandInput{Hint: v.hint}}
		}
		u.AvailableCommands = append(u.AvailableCommands, c)
	}
	return sdk.SessionUpdate{AvailableCommandsUpdate: u}
}

// attach connects the editor to a task that exists, and returns its modes.
func (a *Agent) attach(ctx context.Context, id sdk.SessionId, dir string, list []sdk.McpServer) (*editorSession,
	*sdk.SessionModeState, error) {
	svc, _, _, err := a.open(dir)
	if err != nil {
		return nil, nil, err
	}
	st, err := svc.State(string(id))
	if errors.Is(err, taskdir.ErrNoTask) {
		return nil, nil, &sdk.RequestError{Code: noResource, Message: err.Error()}
	}
	if err != nil {
		return nil, nil, failed(err)
	}
	if o := st.Opened.Origin; o != nil {
		return nil, nil, refused("task %s is a session of %s: continue it there", id, o.Agent)
	}
	// A project that was moved is refused when the task is opened.
	s := &editorSession{id: id, dir: st.Opened.Dir, begun: true}
	if s.servers, err = servers(list); err != nil {
		return nil, nil, err
	}
	a.mu.Lock()
	if old := a.sessions[id]; old != nil {
		old.stop(nil)
	}
	a.sessions[id] = s
	a.mu.Unlock()
	return s, modes(modeID(st.Grants.Plan, st.Grants.Mode)), failed(a.update(ctx, id, offered()))
}

// LoadSession continues a task after the editor was shown what it holds.
func (a *Agent) LoadSession(ctx context.Context, p sdk.LoadSessionRequest) (sdk.LoadSessionResponse, error) {
	s, m, err := a.attach(ctx, p.SessionId, p.Cwd, p.McpServers)
	if err != nil {
		return sdk.LoadSessionResponse{}, err
	}
	svc, _, _, err := a.open(s.dir)
	if err != nil {
		return sdk.LoadSessionResponse{}, err
	}
	v := newViewer(a, s, true)
	err = svc.Ops(string(s.id), 0, func(o op.Op) error {
		v.op(o)
		return v.err
	})
	return sdk.LoadSessionResponse{Modes: m}, failed(err)
}

// ResumeSession continues a task that the editor shows already.
func (a *Agent) ResumeSession(ctx context.Context, p sdk.ResumeSessionRequest) (sdk.ResumeSessionResponse, error) {
	_, m, err := a.attach(ctx, p.SessionId, p.Cwd, p.McpServers)
	return sdk.ResumeSessionResponse{Modes: m}, err
}

// ListSessions lists the tasks of this program's own agent, the newest first.
func (a *Agent) ListSessions(_ context.Context, p sdk.ListSessionsRequest) (r sdk.ListSessionsResponse, err error) {
	r.Sessions = []sdk.SessionInfo{}
	dir := ""
	if p.Cwd != nil {
		if dir, err = session.RealDir(*p.Cwd); err != nil {
			return r, failed(err)
		}
	}
	svc, _, _, err := a.open(cmp.Or(dir, "."))
	if err != nil {
		return r, err
	}
	rows, err := svc.Tasks()
	for i := len(rows) - 1; i >= 0; i-- {
		t := rows[i]
		if t.Agent != "" || t.Parent != "" || t.Error != "" || dir != "" && t.Dir != dir {
			continue
		}
		title, changed := t.Title(), t.Changed.UTC().Format(time.RFC3339)
		r.Sessions = append(r.Sessions, sdk.SessionInfo{SessionId: sdk.SessionId(t.ID), Cwd: t.Dir,
			Title: &title, UpdatedAt: &changed})
	}
	return r, failed(err)
}

func (a *Agent) session(id sdk.SessionId) (*editorSession, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.sessions[id]; s != nil {
		return s, nil
	}
	return nil, refused("session %s is not open: load or resume it first", id)
}

// SetSessionMode sets the approval mode, from the next prompt on.
func (a *Agent) SetSessionMode(_ context.Context, p sdk.SetSessionModeRequest) (sdk.SetSessionModeResponse, error) {
	s, err := a.session(p.SessionId)
	if err != nil {
		return sdk.SetSessionModeResponse{}, err
	}
	m, err := approval.ParseMode(string(p.ModeId))
	if p.ModeId == modePlan {
		m, err = modePlan, nil
	}
	if err != nil {
		return sdk.SetSessionModeResponse{}, refused("%v", err)
	}
	s.mu.Lock()
	s.mode = string(m)
	s.mu.Unlock()
	return sdk.SetSessionModeResponse{}, nil
}

// Cancel interrupts the turn under way.
func (a *Agent) Cancel(_ context.Context, p sdk.CancelNotification) error {
	s, err := a.session(p.SessionId)
	if err == nil {
		s.stop(nil)
	}
	return err
}

// CloseSession interrupts the turn under way and forgets the session. The task stays.
func (a *Agent) CloseSession(_ context.Context, p sdk.CloseSessionRequest) (sdk.CloseSessionResponse, error) {
	s, err := a.session(p.SessionId)
	if err != nil {
		return sdk.CloseSessionResponse{}, err
	}
	s.stop(nil)
	a.mu.Lock()
	delete(a.sessions, p.SessionId)
	a.mu.Unlock()
	return sdk.CloseSessionResponse{}, nil
}

// stop ends the turn under way. A nil cause is the user.
func (s *editorSession) stop(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil {
		s.cancel(cause)
	}
}

func (a *Agent) update(ctx context.Context, id sdk.SessionId, u sdk.SessionUpdate) error {
	return a.conn.SessionUpdate(ctx, sdk.SessionNotification{SessionId: id, Update: u})
}

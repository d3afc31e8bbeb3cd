package acp

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/coder/acp-go-sdk"

	assets "anamnesis"
	"anamnesis/orchestrator/session"
)

// window is an editor: it shows what it is told, and answers permissions from a list.
type window struct {
	sdk.Client // what is not asked of it
	answers    chan string
	asked      chan sdk.RequestPermissionRequest

	mu    sync.Mutex
	shown []string
}

func (w *window) RequestPermission(ctx context.Context, r sdk.RequestPermissionRequest) (
	sdk.RequestPermissionResponse, error) {
	w.asked <- r
	select {
	case id := <-w.answers:
		return sdk.RequestPermissionResponse{
			Outcome: sdk.NewRequestPermissionOutcomeSelected(sdk.PermissionOptionId(id)),
		}, nil
	case <-ctx.Done():
		return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeCancelled()}, nil
	}
}

func (w *window) SessionUpdate(_ context.Context, n sdk.SessionNotification) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	u := n.Update
	line := ""
	switch {
	case u.UserMessageChunk != nil:
		line = "user: " + u.UserMessageChunk.Content.Text.Text
	case u.AgentMessageChunk != nil:
		line = "agent: " + u.AgentMessageChunk.Content.Text.Text
	case u.AgentThoughtChunk != nil:
		line = "thought: " + u.AgentThoughtChunk.Content.Text.Text
	case u.ToolCall != nil:
		line = fmt.Sprintf("call: %s %s %s", u.ToolCall.Kind, u.ToolCall.Title, u.ToolCall.Status)
	case u.ToolCallUpdate != nil && u.ToolCallUpdate.Status != nil:
		line = fmt.Sprintf("update: %s", *u.ToolCallUpdate.Status)
		for _, c := range u.ToolCallUpdate.Content {
			if c.Diff != nil {
				line += fmt.Sprintf(" diff %s: %q", filepath.Base(c.Diff.Path), c.Diff.NewText)
			}
			if c.Content != nil {
				line += " " + c.Content.Content.Text.Text
			}
		}
	case u.Plan != nil:
		for _, e := range u.Plan.Entries {
			line += fmt.Sprintf("plan: %s %s;", e.Content, e.Status)
		}
	case u.AvailableCommandsUpdate != nil:
		for _, c := range u.AvailableCommandsUpdate.AvailableCommands {
			line += "/" + c.Name
		}
	case u.CurrentModeUpdate != nil:
		line = "mode: " + string(u.CurrentModeUpdate.CurrentModeId)
	}
	w.shown = append(w.shown, line)
	return nil
}

// took returns what was shown since it was called last.
func (w *window) took() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := strings.Join(w.shown, "\n")
	w.shown = nil
	return text
}

const play = `name: editor
turns:
  - reply: I write it.
    calls:
      - {name: SetTodoList, arguments: {todos: [{title: write, status: in_progress}]}}
      - {name: WriteFile, arguments: {path: a.txt, content: "one\n"}}
  - reply: Now I look.
    calls:
      - {name: Bash, arguments: {command: "cat a.txt; exit 3"}}
  - {reply: It is written.}
  - reply: Again.
    calls:
      - {name: WriteFile, arguments: {path: a.txt, content: "two\n"}}
  - {reply: You refused.}
  - reply: I plan.
    calls:
      - {name: WriteFile, arguments: {path: a.txt, content: "plan\n"}}
  - expect: [{on: last, contains: the task is in plan mode}]
    reply: The plan.
  - reply: I wait.
    calls:
      - {name: Bash, arguments: {command: "touch begun; sleep 600"}}
  - {reply: The last.}
`

// TestAgent: an editor starts our own agent, is asked before files change, cancels,
// jumps, and continues the session from another process.
func TestAgent(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(home, "play.yaml")
	if err := os.WriteFile(file, []byte(play), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"HOME": home, "ANAMNESIS_HOME": filepath.Join(home, ".anamnesis"),
		"PATH": os.Getenv("PATH")}
	svc, err := session.New(
		session.Options{Getenv: func(name string) string { return env[name] }, Version: "test", EAS: assets.EAS})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Version: "test", Open: func(string) (*session.Service, session.Request, session.Settings, error) {
		set := session.Settings{Model: "script:" + file, Sandbox: "off"}
		return svc, session.Request{Settings: set}, session.Settings{Sandbox: "off"}, nil
	}}
	// begin starts the agent in a window of its own; end closes it.
	begin := func() (w *window, conn *sdk.ClientSideConnection, end func()) {
		in, toAgent := io.Pipe()
		fromAgent, out := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- Serve(context.Background(), o, in, out, os.Stderr) }()
		w = &window{answers: make(chan string, 9), asked: make(chan sdk.RequestPermissionRequest, 9)}
		conn = sdk.NewClientSideConnection(w, toAgent, fromAgent)
		r, err := conn.Initialize(t.Context(), sdk.InitializeRequest{ProtocolVersion: sdk.ProtocolVersionNumber})
		if err != nil || !r.AgentCapabilities.LoadSession || r.AgentInfo.Name != "anamnesis" {
			t.Fatalf("initialized as %+v, %v", r, err)
		}
		return w, conn, func() {
			toAgent.Close()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
	}
	w, conn, end := begin()
	s, err := conn.NewSession(t.Context(), sdk.NewSessionRequest{Cwd: dir, McpServers: []sdk.McpServer{}})
	if err != nil || s.Modes == nil || s.Modes.CurrentModeId != "ask" || len(s.Modes.AvailableModes) != 5 {
		t.Fatalf("new session: %+v, %v", s, err)
	}
	id := s.SessionId
	prompt := func(text string) sdk.StopReason {
		t.Helper()
		r, err := conn.Prompt(t.Context(),
			sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{sdk.TextBlock(text)}})
		if err != nil {
			t.Fatal(err)
		}
		return r.StopReason
	}
	has := func(shown string, want ...string) {
		t.Helper()
		for _, text := range want {
			i := strings.Index(shown, text)
			if i < 0 {
				t.Errorf("not shown, or not in this place: %q\n%s", text, shown)
				return
			}
			shown = shown[i:]
		}
	}
	holds := func(want string) {
		t.Helper()
		if data, err := os.ReadFile(filepath.Join(dir, "a.txt")); string(data) != want {
			t.Errorf("a.txt holds %q, %v; want %q", data, err, want)
		}
	}
	prompt("/timeline")
	has(w.took(), "/jump/timeline/cards", "begins with your first prompt")
	w.answers <- "once"
	w.answers <- "once"
	if why := prompt("Write a.txt."); why != sdk.StopReasonEndTurn {
		t.Errorf("the turn ended with %s", why)
	}
	holds("one\n")
	has(w.took(), "mode: ask", "I write it.", "call: edit WriteFile(a.txt) pending", "plan: write in_progress",
		`completed diff a.txt: "one\n"`,
		"call: execute Bash(cat a.txt; exit 3)", "update: failed", "[exit 3]", "agent: It is written.")
	if q := <-w.asked; len(q.ToolCall.Content) != 1 || q.ToolCall.Content[0].Diff == nil ||
		!slices.ContainsFunc(q.Options,
			func(o sdk.PermissionOption) bool { return o.Kind == sdk.PermissionOptionKindRejectOnce }) {
		t.Errorf("asked without the change: %+v", q)
	}
	<-w.asked
	w.answers <- "no"
	prompt("Once more.")
	holds("one\n")
	has(w.took(), "update: failed", "You refused.")
	if _, err := conn.SetSessionMode(t.Context(), sdk.SetSessionModeRequest{SessionId: id, ModeId: "plan"}); err != nil {
		t.Error(err)
	}
	prompt("Plan it.")
	holds("one\n")
	has(w.took(), "mode: plan", "the task is in plan mode", "The plan.")
	if _, err := conn.SetSessionMode(t.Context(), sdk.SetSessionModeRequest{SessionId: id, ModeId: "auto"}); err != nil {
		t.Error(err)
	}
	if _, err := conn.SetSessionMode(t.Context(), sdk.SetSessionModeRequest{SessionId: id, ModeId: "bypass"}); err == nil || !strings.Contains(err.Error(), "ask, edits, auto or deny") {
		t.Errorf("an unknown mode: %v", err)
	}
	cancelled := make(chan error, 1)
	go func() {
		for {
			if _, err := os.Stat(filepath.Join(dir, "begun")); err == nil {
				cancelled <- conn.Cancel(t.Context(), sdk.CancelNotification{SessionId: id})
				return
			}
		}
	}()
	if why := prompt("Wait."); why != sdk.StopReasonCancelled {
		t.Errorf("a cancelled turn ended with %s", why)
	}
	if err := <-cancelled; err != nil {
		t.Error(err)
	}
	has(w.took(), "mode: auto", "I wait.")
	prompt("/jump 0 it was not needed")
	has(w.took(), "end of step 0")
	if _, err := os.Stat(filepath.Join(dir, "a.txt")); !os.IsNotExist(err) {
		t.Errorf("a.txt is still there after the jump: %v", err)
	}
	end()

	w, conn, end = begin()
	defer end()
	list, err := conn.ListSessions(t.Context(), sdk.ListSessionsRequest{Cwd: &dir})
	if err != nil || len(list.Sessions) != 1 || list.Sessions[0].SessionId != id ||
		*list.Sessions[0].Title != "Write a.txt." {
		t.Fatalf("listed %+v, %v", list.Sessions, err)
	}
	if _, err := conn.Prompt(t.Context(), sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{sdk.TextBlock("x")}}); err == nil || !strings.Contains(err.Error(), "load or resume it first") {
		t.Errorf("a session that is not open: %v", err)
	}
	if _, err := conn.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: id, Cwd: dir, McpServers: []sdk.McpServer{}}); err != nil {
		t.Fatal(err)
	}
	has(w.took(), "user: Write a.txt.", "agent: I write it.", "call: edit WriteFile(a.txt)", "update: completed",
		"agent: It is written.", "user: Once more.", "jump from step")
	if _, err := conn.ResumeSession(t.Context(), sdk.ResumeSessionRequest{SessionId: id, Cwd: dir}); err != nil {
		t.Fatal(err)
	}
	if shown := w.took(); strings.Contains(shown, "user:") {
		t.Errorf("a resumed session was shown again: %s", shown)
	}
	prompt("What now?")
	has(w.took(), "agent: The last.")
	if _, err := conn.ResumeSession(t.Context(), sdk.ResumeSessionRequest{SessionId: "nothing", Cwd: dir}); err == nil {
		t.Error("a task that there is not was resumed")
	}
}

package mcpserver_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	assets "anamnesis"
	"anamnesis/cmd/internal/mcpserver"
	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/sessions"
)

func TestMain(m *testing.M) {
	guard.SuperviseMain() // this binary also supervises commands
	os.Exit(m.Run())
}

const words = `turns:
  - calls: [{name: WriteFile, arguments: {path: a, content: one}}]
  - calls: [{name: WriteFile, arguments: {path: a, content: two}}]
  - reply: Written.
`

// place is a home with one idle task, whose file a holds two.
type place struct {
	svc       *session.Service
	dir, task string
	env       map[string]string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	home := t.TempDir()
	p := &place{dir: t.TempDir(),
		env: map[string]string{"HOME": home, "ANAMNESIS_HOME": filepath.Join(home, ".anamnesis")}}
	p.dir, _ = filepath.EvalSymlinks(p.dir)
	var err error
	p.svc, err = session.New(
		session.Options{Getenv: func(name string) string { return p.env[name] }, Version: "test", EAS: assets.EAS})
	if err != nil {
		t.Fatal(err)
	}
	p.task = p.run(t)
	return p
}

func (p *place) run(t *testing.T) string {
	t.Helper()
	script := filepath.Join(t.TempDir(), "words.yaml")
	if err := os.WriteFile(script, []byte(words), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := p.svc.Start(t.Context(), session.Request{
		Settings: session.Settings{Model: "script:" + script, Sandbox: string(guard.ConfineOff)}, Dir: p.dir,
		Text: "Write a.",
	},
		session.Client{
			Callbacks: session.Callbacks{
				Approve: func(context.Context, gate.Question) gate.Answer { return gate.Answer{Allow: true} },
			},
		})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return s.Task
}

// connect returns a client of a server that was started in the directory.
func (p *place) connect(t *testing.T) *mcp.ClientSession {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	go func() {
		done <- mcpserver.New(p.svc, p.dir, func(name string) string { return p.env[name] }).Run(context.Background(),
			inR, outW, "test")
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "1"}, nil)
	cs, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: outR, Writer: inW}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close(); <-done })
	return cs
}

func call(t *testing.T, cs *mcp.ClientSession, name string, args map[string]any) (string, bool) {
	t.Helper()
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	delete(res.Meta, "io.modelcontextprotocol/serverInfo") // the protocol's own
	if res.StructuredContent != nil || len(res.Content) != 1 || len(res.Meta) > 0 {
		t.Errorf("%s: want one text and nothing else, got %+v", name, res)
	}
	text := res.Content[0].(*mcp.TextContent).Text
	if len(text) > 8<<10 {
		t.Errorf("%s: %d bytes", name, len(text))
	}
	return text, res.IsError
}

func (p *place) holds(t *testing.T, want string) {
	t.Helper()
	if text, err := os.ReadFile(filepath.Join(p.dir, "a")); string(text) != want {
		t.Errorf("a holds %q (%v), want %q", text, err, want)
	}
}

// TestTools goes through the tools on a task that nobody runs.
func TestTools(t *testing.T) {
	p := newPlace(t)
	cs := p.connect(t)
	for _, tt := range []struct {
		name string
		args map[string]any
		want []string
		bad  bool
	}{
		{"timeline", nil, []string{p.task, "● 2  WriteFile"}, false},
		{"diff", map[string]any{"from": 1, "to": 2}, []string{"-one", "+two"}, false},
		{"diff", map[string]any{"from": 1, "to": 2, "paths": []string{"b"}}, []string{"nothing changed"}, false},
		{"diff", map[string]any{"from": 1, "to": 2, "paths": []string{filepath.Join(p.dir, "a")}}, []string{"+two"}, false},
		{"diff", map[string]any{"from": 1, "to": 2, "paths": []string{"../a"}}, []string{`path "../a" is outside the session's directory ` + p.dir}, true},
		{"jump_to_step", map[string]any{"step": 1, "reason": "r", "paths": []string{"/etc"}, "task": p.task}, []string{"jump_to_step: path \"/etc\" is outside"}, true},
		{"diff", map[string]any{"from": 1, "to": 9}, []string{"valid steps are"}, true},
		{"show_operation", map[string]any{"seq": 2}, []string{"user.said", "Write a."}, false},
		{"show_operation", map[string]any{"seq": 999}, []string{"has no op 999"}, true},
		{"recall", map[string]any{"query": "cannot find module"}, []string{"No card fits"}, false},
		{"remember", map[string]any{"lesson": "Run make gen first.", "evidence": "make: *** gen.go missing"}, []string{"Draft card"}, false},
		{"remember", map[string]any{"lesson": "", "evidence": ""}, []string{"must not be empty"}, true},
		{"checkpoint", map[string]any{"note": "n", "task": p.task}, []string{"is a checkpoint already"}, true},
		{"jump_to_step", map[string]any{"step": 1, "reason": "r", "dry_run": true}, []string{"step 1", "a"}, false},
		{"jump_to_step", map[string]any{"step": 1, "reason": "", "task": p.task}, []string{"reason is empty"}, true},
		{"jump_to_step", map[string]any{"step": 1, "reason": "nobody works in it"}, []string{"with task:", p.task + " (done, 3 steps)"}, true},
		{"jump_to_step", map[string]any{"step": 7, "reason": "r", "task": p.task}, []string{"valid steps are"}, true},
		{"timeline", map[string]any{"task": "absent"}, []string{"no such task"}, true},
		{"timeline", map[string]any{"task": p.task[:len(p.task)-1]}, []string{p.task, "● 2  WriteFile"}, false},
		{"diff", map[string]any{"from": 1.0, "to": 2, "paths": nil}, []string{"+two"}, false},
		{"diff", map[string]any{"from": 1}, []string{`validating root: required: missing properties: ["to"]`}, true},
		{"jump_to_step", map[string]any{"step": "one", "reason": "r"}, []string{`/properties/step: type: one has type "string", want "integer"`}, true},
		{"jump_to_step", map[string]any{"step": 1, "reason": "r", "overwrite": true}, []string{`unexpected additional properties ["overwrite"]`}, true},
		{"show_operation", map[string]any{"seq": -1}, []string{`/properties/seq: minimum: `}, true},
	} {
		text, bad := call(t, cs, tt.name, tt.args)
		for _, want := range tt.want {
			if !strings.Contains(text, want) || bad != tt.bad {
				t.Errorf("%s %v: error %v: %s; want %q", tt.name, tt.args, bad, text, want)
			}
		}
	}
	p.holds(t, "two")
	if text, bad := call(t, cs, "jump_to_step", map[string]any{"step": 1, "reason": "one was right", "learned": "Two breaks it.", "task": p.task}); bad || !strings.Contains(text, "step 1") || !strings.Contains(text, "Learned: Two breaks it.") {
		t.Errorf("jump: %v %s", bad, text)
	}
	p.holds(t, "one")
	if text, bad := call(t, cs, "jump_to_step", map[string]any{"step": 2, "reason": "r", "paths": []string{"a"}, "task": p.task}); bad || !strings.Contains(text, `wrote   "a"`) {
		t.Errorf("paths: %v %s", bad, text)
	}
	p.holds(t, "two")
}

// TestJumpPaths: the dry run of some paths says what the restore then does, and each path has
// its own reason.
func TestJumpPaths(t *testing.T) {
	p := newPlace(t)
	cs := p.connect(t)
	for name, content := range map[string]string{".gitignore": "*.log\n", "x.log": "ignored", "mine": "new"} {
		if err := os.WriteFile(filepath.Join(p.dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := map[string]any{"step": 1, "reason": "r", "task": p.task,
		"paths": []string{"a", "x.log", "mine", "gone.log"}}
	if text, bad := call(t, cs, "jump_to_step", args); !bad ||
		!strings.Contains(text, `"gone.log" is neither in the world nor in snapshot`) {
		t.Errorf("a path that is absent: %s", text)
	}
	args["paths"] = []string{"a", "x.log", "mine"}
	for _, dry := range []bool{true, false, false} {
		args["dry_run"] = dry
		text, bad := call(t, cs, "jump_to_step", args)
		want := []string{
			`"a"`, `keep    "mine": changed by the user after the target`,
			`keep    "x.log": ignored now, not by the target's rules`,
		}
		switch {
		case dry:
			p.holds(t, "two")
			want = append(want, `write   "a"`)
		default:
			p.holds(t, "one")
		}
		for _, w := range want {
			if bad || !strings.Contains(text, w) {
				t.Errorf("dry run %v: %s; want %q", dry, text, w)
			}
		}
	}
	if text, _ := call(t, cs, "jump_to_step", args); !strings.Contains(text, `as is   "a": the same as in the snapshot`) {
		t.Errorf("again: %s", text)
	}
}

// TestKeepsEdits: what the user changed after the step survives the agent's jump, and
// no argument of the tool overwrites it.
func TestKeepsEdits(t *testing.T) {
	p := newPlace(t)
	cs := p.connect(t)
	if err := os.WriteFile(filepath.Join(p.dir, "a"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, _ := call(t, cs, "jump_to_step", map[string]any{"step": 1, "reason": "r", "task": p.task}); !strings.Contains(text, "a") {
		t.Errorf("the jump says %s", text)
	}
	p.holds(t, "mine")
	list, err := cs.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		schema, _ := tool.InputSchema.(map[string]any)
		props, _ := schema["properties"].(map[string]any)
		if _, ok := props["overwrite"]; ok || props["task"] == nil {
			t.Errorf("%s takes %v", tool.Name, props)
		}
		reads := slices.Contains([]string{"timeline", "diff", "recall", "show_operation"}, tool.Name)
		if tool.Annotations.ReadOnlyHint != reads || tool.Name == "jump_to_step" && !*tool.Annotations.DestructiveHint {
			t.Errorf("%s: %+v", tool.Name, tool.Annotations)
		}
	}
	prompts, err := cs.ListPrompts(t.Context(), nil)
	if err != nil || len(prompts.Prompts) != 3 {
		t.Errorf("prompts: %+v, %v", prompts, err)
	}
}

// TestNeverGuesses: of two sessions in the directory neither is taken, unless the
// client says which it is. No other session is taken for one that is not recorded.
func TestNeverGuesses(t *testing.T) {
	p := newPlace(t)
	p.env["CLAUDE_CODE_SESSION_ID"] = "unknown"
	if text, bad := call(t, p.connect(t), "timeline", nil); !bad || !strings.Contains(text, p.task) {
		t.Errorf("a session that is not recorded: %s", text)
	}
	p.env["CLAUDE_CODE_SESSION_ID"] = ""
	other := p.run(t)
	cs := p.connect(t)
	text, bad := call(t, cs, "jump_to_step", map[string]any{"step": 1, "reason": "r"})
	if !bad || !strings.Contains(text, p.task) || !strings.Contains(text, other) {
		t.Errorf("%v %s", bad, text)
	}
	p.holds(t, "two")
	s := &sessions.Session{Agent: sessions.Claude, ID: "s-1", Dir: p.dir,
		Steps: []sessions.Step{{Parent: -1, Text: "Done."}}}
	im := beside.NewImporter(p.svc)
	if _, err := im.Import(t.Context(), s, "f"); err != nil {
		t.Fatal(err)
	}
	p.env["CLAUDE_CODE_SESSION_ID"] = "s-1"
	cs = p.connect(t)
	if text, bad := call(t, cs, "timeline", nil); bad ||
		!strings.Contains(text, beside.TaskOf(sessions.Claude, "s-1")) {
		t.Errorf("%v %s", bad, text)
	}
	if text, bad := call(t, cs, "jump_to_step", map[string]any{"step": 1, "reason": "r"}); !bad ||
		!strings.Contains(text, "imported") {
		t.Errorf("a jump in an imported session: %v %s", bad, text)
	}
}

// TestReadOnly: an agent that may not write, because it plans or is in a sandbox, may only ask
// what a jump would do.
func TestReadOnly(t *testing.T) {
	for _, tt := range []struct {
		agent         sessions.Agent
		mode, sandbox string
	}{{sessions.Claude, "plan", ""}, {sessions.Codex, "default", "read-only"}} {
		p := newPlace(t)
		in := fmt.Sprintf(`{"session_id":"s-1","cwd":%q,"hook_event_name":"PostToolUse","tool_name":"Read","tool_use_id":"t","tool_input":{"file_path":"a"},"tool_response":"two","permission_mode":%q}`, p.dir, tt.mode)
		if err := beside.Hook(t.Context(), p.svc, tt.agent, strings.NewReader(in), nil, func([]byte) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if tt.agent == sessions.Claude {
			p.env["CLAUDE_CODE_SESSION_ID"] = "s-1"
		}
		cs := p.connect(t)
		for _, dry := range []bool{false, true} {
			q := &mcp.CallToolParams{Name: "jump_to_step",
				Arguments: map[string]any{"step": 0, "reason": "r", "dry_run": dry}}
			if tt.sandbox != "" {
				q.Meta = mcp.Meta{
					"x-codex-turn-metadata": map[string]any{"session_id": "s-1", "sandbox_mode": tt.sandbox},
				}
			}
			res, err := cs.CallTool(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			if text := res.Content[0].(*mcp.TextContent).Text; res.IsError == dry ||
				!dry && !strings.Contains(text, "only dry_run") {
				t.Errorf("%s, dry run %v: %s", tt.agent, dry, text)
			}
		}
	}
}

package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	assets "anamnesis"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool"
)

func TestMain(m *testing.M) {
	guard.SuperviseMain() // this binary also supervises commands
	os.Exit(m.Run())
}

// The second front end declares what it needs of the service.
type (
	tasks interface {
		Start(ctx context.Context, r session.Request, c session.Client) (*session.Session, error)
		Resume(ctx context.Context, task, message string, set session.Settings,
			c session.Client) (*session.Session, error)
		Jump(ctx context.Context, task, dir string, j op.JumpRequested, c session.Client) (session.Jumped, error)
	}
	streams interface {
		Follow(task string) (*taskdir.Follower, error)
		Tasks() ([]taskdir.Summary, error)
	}
)

// face is a front end that approves every call and keeps what it was told.
type face struct {
	tasks
	streams

	mu       sync.Mutex
	started  session.Info
	ops      []op.Kind
	reply    strings.Builder
	approved []string
}

func (f *face) client() session.Client {
	return session.Client{
		Callbacks: session.Callbacks{
			Op:    func(o op.Op) { f.locked(func() { f.ops = append(f.ops, o.Body.Kind()) }) },
			Delta: func(d model.Delta) { f.locked(func() { f.reply.WriteString(d.Text) }) },
			Approve: func(_ context.Context, q gate.Question) gate.Answer {
				f.locked(func() { f.approved = append(f.approved, q.Name) })
				return gate.Answer{Allow: true}
			},
		},
		Started: func(i session.Info) { f.locked(func() { f.started = i }) },
	}
}

func (f *face) locked(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

// turn runs one turn of a session and ends the session.
func (f *face) turn(t *testing.T, s *session.Session, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.Run(t.Context())
	if err = session.JoinClose(err, s.Close()); err != nil || out.Reason != "done" {
		t.Fatalf("the turn ended as %+v: %v", out, err)
	}
}

// follow reads what is new of a task.
func (f *face) follow(t *testing.T, from *taskdir.Follower) (kinds []op.Kind) {
	t.Helper()
	if err := from.Next(func() { kinds = nil }, func(o op.Op) error { kinds = append(kinds, o.Body.Kind()); return nil }); err != nil {
		t.Fatal(err)
	}
	return kinds
}

const words = `turns:
  - reply: I write it.
    calls: [{name: WriteFile, arguments: {path: a, content: one}}]
  - calls: [{name: WriteFile, arguments: {path: a, content: two}}]
  - reply: Written.
  - reply: Back.
`

// TestSecondFace plays a task through the service alone: it is started, its calls
// are approved, it is followed, jumps while nobody runs it, and is resumed.
func TestSecondFace(t *testing.T) {
	svc, dir := service(t), t.TempDir()
	script := filepath.Join(t.TempDir(), "words.yaml")
	if err := os.WriteFile(script, []byte(words), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &face{tasks: svc, streams: svc}
	s, err := f.Start(t.Context(), session.Request{
		Settings: session.Settings{Model: "script:" + script, Sandbox: string(guard.ConfineOff)}, Dir: dir,
		Text: "Write a.",
	}, f.client())
	f.turn(t, s, err)
	if f.started.Approval != string(approval.ModeAsk) || !slices.Equal(f.approved, []string{"WriteFile", "WriteFile"}) {
		t.Errorf("approval %q, asked about %q; want ask, about both calls", f.started.Approval, f.approved)
	}
	if f.reply.String() != "I write it.Written." || !slices.Contains(f.ops, "turn.ended") {
		t.Errorf("the face saw %q and %v", f.reply.String(), f.ops)
	}
	task := s.Task
	follower, err := f.Follow(task)
	if err != nil {
		t.Fatal(err)
	}
	defer follower.Close()
	if before := f.follow(t, follower); !slices.Contains(before, op.KindToolReturned) {
		t.Errorf("followed %v", before)
	}
	res, err := f.Jump(t.Context(), task, "", op.JumpRequested{To: 1, Reason: "one was right"}, f.client())
	if err != nil || res.Scheduled || res.Done.To != 1 {
		t.Fatalf("jump: %+v, %v", res, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "a")); string(text) != "one" {
		t.Errorf("a holds %q (%v) after the jump, want one", text, err)
	}
	if after := f.follow(t, follower); !slices.Contains(after, op.KindJumpDone) ||
		slices.Contains(after, op.KindTaskOpened) {
		t.Errorf("followed %v, want the jump and nothing twice", after)
	}
	s, err = f.Resume(t.Context(), task, "Go on.", session.Settings{}, f.client())
	f.turn(t, s, err)
	if list, err := f.Tasks(); err != nil || len(list) != 1 || list[0].ID != task || list[0].State != "done" {
		t.Errorf("tasks: %+v, %v", list, err)
	}
}

func service(t *testing.T) *session.Service { return serviceOf(t, session.Options{}) }

func serviceOf(t *testing.T, o session.Options) *session.Service {
	t.Helper()
	home := t.TempDir()
	env := map[string]string{"HOME": home, "ANAMNESIS_HOME": filepath.Join(home, ".anamnesis")}
	o.Getenv, o.Version, o.EAS = func(name string) string { return env[name] }, "test", assets.EAS
	svc, err := session.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return svc
}

// TestOwnToolsAndModel: a program gives its tools and its model, and they serve from the start to after a jump.
func TestOwnToolsAndModel(t *testing.T) {
	calls, asked := 0, 0
	own := &ownModel{answer: func(r model.Request) model.Reply {
		asked++
		if !slices.ContainsFunc(r.Tools, func(s model.ToolSpec) bool { return s.Name == "Weather" }) {
			t.Errorf("request %d does not offer the tool", asked)
		}
		if r.Messages[len(r.Messages)-1].Role == model.RoleTool {
			return model.Reply{Text: "It rains.", Finish: "stop"}
		}
		return model.Reply{Finish: "tool_calls",
			Calls: []op.Call{{ID: fmt.Sprint("c", asked), Name: "Weather", Args: "{}"}}}
	}}
	svc := serviceOf(t, session.Options{Tools: []tool.Tool{weather{&calls}}, Model: own})
	f := &face{tasks: svc, streams: svc}
	s, err := f.Start(t.Context(), session.Request{Settings: session.Settings{Sandbox: string(guard.ConfineOff)},
		Dir: t.TempDir(), Text: "How is it?"}, f.client())
	f.turn(t, s, err)
	if _, err := f.Jump(t.Context(), s.Task, "", op.JumpRequested{To: 0, Reason: "again"}, f.client()); err != nil {
		t.Fatal(err)
	}
	s, err = f.Resume(t.Context(), s.Task, "And now?", session.Settings{}, f.client())
	f.turn(t, s, err)
	if calls != 2 || f.started.Model != "own-model" {
		t.Errorf("%d calls with %q, want 2 with own-model", calls, f.started.Model)
	}
}

type weather struct{ calls *int }

func (weather) Spec() tool.Spec {
	return tool.Spec{Name: "Weather", Description: "Says the weather.", Schema: tool.Params(), ReadOnly: true}
}

func (w weather) Call(context.Context, *tool.Env, json.RawMessage) (tool.Result, error) {
	*w.calls++
	return tool.Textf("rain"), nil
}

type ownModel struct {
	answer func(model.Request) model.Reply
}

func (*ownModel) Name() string { return "own-model" }

func (m *ownModel) Ask(_ context.Context, r model.Request, _ func(model.Delta)) (model.Reply, error) {
	if r.Purpose == model.PurposePass {
		return model.Reply{}, &model.Fault{Kind: model.FaultRefused}
	}
	return m.answer(r), nil
}

package runtime

import (
	"context"
	"errors"
	"fmt"
	rand "math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"anamnesis/anamnesis/tokens"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/agent"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/optest"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/builtin"
)

// cacheMeter is a model that works through a long task and measures how much
// of each request repeats the one before, from its beginning and byte for byte.
type cacheMeter struct {
	t       *testing.T
	rand    *rand.Rand
	count   func(string) int
	counted map[string]int
	steps   int // turns it takes
	jumps   []int
	step    int // of the last mark seen

	before         []string
	prompt, cached int
}

func (m *cacheMeter) Name() string { return "meter" }

func (m *cacheMeter) tokens(text string) int {
	n, ok := m.counted[text]
	if !ok {
		n = m.count(text)
		m.counted[text] = n
	}
	return n
}

func (m *cacheMeter) Ask(_ context.Context, r model.Request, _ func(model.Delta)) (model.Reply, error) {
	if r.Purpose == model.PurposePass {
		return model.Reply{}, &model.Fault{Kind: model.FaultNetwork, Tries: 1, Err: errors.New("no model for passes")}
	}
	if err := optest.CheckChat(r.Messages); err != nil {
		m.t.Error(err)
	}
	m.measure(r)
	for _, msg := range r.Messages {
		if i := strings.LastIndex(msg.Text, "[step "); i >= 0 {
			fmt.Sscanf(msg.Text[i:], "[step %d", &m.step)
		}
	}
	reply := model.Reply{Finish: "tool_calls", Text: words(m.rand, 200)}
	call := op.Call{ID: fmt.Sprint("c", r.Turn), Name: "ReadFile",
		Args: fmt.Sprintf(`{"path":"f%d.txt"}`, m.rand.IntN(40))}
	switch {
	case r.Turn >= m.steps:
		return model.Reply{Finish: "stop", Text: "Done."}, nil
	case len(m.jumps) > 0 && r.Turn == m.jumps[0]:
		m.jumps = m.jumps[1:]
		// Back over the last steps, as many as hold more than the EAS or not.
		call.Name, call.Args = "jump_to_step", fmt.Sprintf(`{"step_id":%d,"reason":"a dead end"}`,
			m.step-2-m.rand.IntN(8))
	case r.Turn%3 == 0:
		call.Name, call.Args = "WriteFile", fmt.Sprintf(`{"path":"out%d.txt","content":%q}`, r.Turn, words(m.rand, 150))
	}
	reply.Calls = []op.Call{call}
	return reply, nil
}

// measure counts the messages of a request, and those that it repeats.
func (m *cacheMeter) measure(r model.Request) {
	same := true
	var now []string
	for i, msg := range r.Messages {
		text := string(optest.Render([]model.Message{msg}))
		now = append(now, text)
		n := m.tokens(text)
		m.prompt += n
		if same = same && i < len(m.before) && m.before[i] == text; same {
			m.cached += n
		}
	}
	m.before = now
}

func words(r *rand.Rand, n int) string {
	var sb strings.Builder
	for i := range n {
		if i%12 == 11 {
			sb.WriteByte('\n')
		}
		fmt.Fprintf(&sb, "%s ",
			[]string{"parse", "token", "index", "value", "error", "state", "the", "of", "buffer", "line"}[r.IntN(10)])
	}
	return sb.String()
}

// TestPrefixCache: over long tasks with jumps, compactions and maskings, nearly
// everything sent repeats the request before it, so that a provider's prefix
// cache serves it. Where a compaction falls depends on the draw: the nightly run takes
// three together.
func TestPrefixCache(t *testing.T) {
	heavy(t)
	cached, prompt := 0, 0
	draws := []uint64{4}
	if *soakNightly {
		draws = []uint64{2, 3, 4}
	}
	for _, draw := range draws {
		m := pressedTask(t, draw)
		cached, prompt = cached+m.cached, prompt+m.prompt
	}
	share := float64(cached) / float64(prompt)
	t.Logf("%.1f%% of %d prompt tokens repeat the request before", 100*share, prompt)
	if share < 0.9 {
		t.Errorf("%.1f%% of the prompt repeats the request before, want at least 90%%", 100*share)
	}
}

// pressedTask runs 200 steps with ten jumps and returns what was sent.
func pressedTask(t *testing.T, draw uint64) *cacheMeter {
	t.Helper()
	counter, err := tokens.ForEncoding("o200k_base")
	if err != nil {
		t.Fatal(err)
	}
	m := &cacheMeter{t: t, rand: rand.New(rand.NewPCG(6, draw)), count: counter.Count,
		counted: make(map[string]int), steps: 200}
	for i := range 10 {
		m.jumps = append(m.jumps, 14+18*i)
	}
	task, _ := newMeteredTask(t, m,
		New{TaskOpened: op.TaskOpened{EAS: 16_000, Window: 128_000, Encoding: "o200k_base", Mark: "wqtzob"}})
	for i := range 40 { // From a few lines to long listings
		size := 1000 + m.rand.IntN(2000)
		if i%4 == 0 {
			size = 3000 + m.rand.IntN(4000)
		}
		if err := os.WriteFile(filepath.Join(task.Place.Dir, fmt.Sprintf("f%d.txt", i)), []byte(words(m.rand, size)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	task.opts.Limits.Steps = 1000
	var compactions, masks, window, largest int
	limit := state.LimitFor(128_000, 16_000)
	task.opts.Callbacks.Op = func(o op.Op) {
		switch b := o.Body.(type) {
		case *op.PassDone:
			compactions++
			if b.Trigger == op.TriggerWindow {
				window++
			}
		case *op.ContextMasked:
			masks++
		case *op.ModelAsked:
			largest = max(largest, b.Tokens)
		}
	}
	out, err := task.Run(t.Context())
	if err != nil || out.Reason != "done" {
		t.Fatalf("Run = %+v, %v", out, err)
	}
	st := task.Ledger.State()
	t.Logf("%d steps, %d jumps, %d compactions (%d to make room), %d maskings of %d results, largest context %d of %d tokens; %.1f%% repeated",
		st.Steps.CountEnded(), st.Totals.Jumps, compactions, window, masks, st.Totals.Masked, largest, limit,
		100*float64(m.cached)/float64(m.prompt))
	if st.Totals.Jumps != 10 || compactions < 5 || masks < 10 || st.Totals.Masked < 20 {
		t.Error("too few jumps, compactions or maskings to measure anything")
	}
	if largest > limit {
		t.Errorf("a request had %d tokens, over the limit of %d", largest, limit)
	}
	return m
}

func newMeteredTask(t *testing.T, m model.Model, n New) (*Task, taskdir.Home) {
	t.Helper()
	reg, err := tool.NewRegistry(builtin.Tools(builtin.Options{})...)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	h := taskdir.Home{
		User: filepath.Join(root, "user"), State: filepath.Join(root, "s"), Data: filepath.Join(root, "s"),
		Config: filepath.Join(root, "s"),
	}
	n.Task, n.Dir, n.Request, n.Model, n.Approval, n.System = "t", filepath.Join(root,
		"w"), "Go.", m.Name(), "auto", systemPrompt(t)
	if err := os.Mkdir(n.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	task, err := Create(t.Context(), h, n, Options{Model: m, Tools: reg})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := task.Close(); err != nil {
			t.Error(err)
		}
	})
	return task, h
}

// TestOverflowGoesOn: a provider that refuses a request for its length gets a
// shorter one, and the turn continues.
func TestOverflowGoesOn(t *testing.T) {
	task, _ := newTask(t, `turns:
  - calls: [{name: Bash, arguments: {command: "seq 1 3000"}}]
  - fault: {status: 400, body: context_length_exceeded}
    calls: [{name: recall, arguments: {op: 9, from: 4000}}]
  - expect:
      - {on: any, contains: "op 9: Bash, 14 KiB, exit 0 (taken out to make room; recall with op 9 opens it)\n[step 1]"}
      - {on: all-joined, lacks: "2999"}
      - {on: last, contains: ["| 2599\n", "bytes 4000 to 12000 of 13901", "from 12000 returns the next part"]}
    reply: Done.
`, Options{})
	out, err := task.Run(t.Context())
	if err != nil || out.Reason != "done" || out.Answer != "Done." {
		t.Fatalf("Run = %+v, %v", out, err)
	}
	if st := task.Ledger.State(); st.Totals.Masked != 1 || st.Model.Window == 0 {
		t.Errorf("%d results were masked and the window is taken for %d; want 1, and what did not fit",
			st.Totals.Masked, st.Model.Window)
	}
}

// systemPrompt is the default agent's, in a directory of which nothing is said.
func systemPrompt(t *testing.T) string {
	t.Helper()
	a, err := agent.NewLoader(nil).Load(agent.Default)
	if err != nil {
		t.Fatal(err)
	}
	return agent.Render(&a.Spec, agent.Vars{Now: time.Now(), Dir: "/w"})
}

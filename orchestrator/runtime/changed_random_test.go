package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	rand "math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/state"
)

// touch is one change of the user's in the plain model.
type touch struct {
	when int // in the order of everything that happens
	path string
	text string // empty: deleted
}

// beside is the plain model of a directory that an agent and a user change in turn:
// what stands after a jump is the target, with the user's last version of each path
// that they touched after it. It also decides what both do.
type beside struct {
	t     *testing.T
	task  *Task
	rng   *rand.Rand
	clock int
	left  int // replies of the agent in this turn

	files   map[string]string
	steps   []map[string]string // at the end of each
	ends    []int
	touches []touch
	jumps   map[int]int // of the agent, by target
	calls   map[string]op.Call
}

var besidePaths = []string{"a", "b", "c", "d/x", "d/y", "e/f/g"}

func (m *beside) tick() int { m.clock++; return m.clock }

// user changes some files, each once.
func (m *beside) user() {
	for _, i := range m.rng.Perm(len(besidePaths))[:m.rng.IntN(3)] {
		path := besidePaths[i]
		if _, there := m.files[path]; there && m.rng.IntN(3) == 0 {
			if err := os.Remove(filepath.Join(m.task.Place.Dir, path)); err != nil {
				m.t.Error(err)
			}
			delete(m.files, path)
			m.touches = append(m.touches, touch{m.tick(), path, ""})
			continue
		}
		text := fmt.Sprintf("user %d", m.tick())
		writeFile(m.t, m.task.Place.Dir, path, text)
		m.files[path] = text
		m.touches = append(m.touches, touch{m.clock, path, text})
	}
}

// jumped moves the model as a jump to a step has to.
func (m *beside) jumped(to int, overwrite bool) {
	m.files = maps.Clone(m.steps[to])
	if overwrite {
		m.touches = slices.DeleteFunc(m.touches, func(u touch) bool { return u.when > m.ends[to] })
	}
	for _, u := range m.touches {
		switch {
		case u.when < m.ends[to]:
		case u.text == "":
			delete(m.files, u.path)
		default:
			m.files[u.path] = u.text
		}
	}
	m.compare(fmt.Sprintf("the jump to step %d", to))
}

func (m *beside) compare(after string) {
	m.t.Helper()
	if got := filesOf(m.t, m.task.Place.Dir); !reflect.DeepEqual(got, m.files) {
		m.t.Errorf("after %s:\n got %v\nwant %v\nsteps %v\ntouched %v", after, got, m.files, m.steps, m.touches)
	}
}

func (m *beside) Name() string { return "beside" }

// Ask implements model.Model: the user works while the agent thinks.
func (m *beside) Ask(_ context.Context, r model.Request, _ func(model.Delta)) (model.Reply, error) {
	if r.Purpose != model.PurposeStep {
		return model.Reply{}, &model.Fault{Kind: model.FaultScript, Tries: 1,
			Err: fmt.Errorf("nobody answers a %s request", r.Purpose)}
	}
	m.user()
	if m.left--; m.left <= 0 {
		return model.Reply{Text: "Done.", Finish: "stop"}, nil
	}
	var calls []op.Call
	add := func(name, args string) {
		calls = append(calls, op.Call{ID: fmt.Sprintf("c%d", m.tick()), Name: name, Args: args})
	}
	switch to := m.rng.IntN(len(m.steps)); {
	case m.rng.IntN(4) == 0 && m.jumps[to] < state.MaxBackwardJumps && to != m.task.Ledger.State().Current:
		m.jumps[to]++
		add("jump_to_step", fmt.Sprintf(`{"step_id":%d,"reason":"at random"}`, to))
	case m.rng.IntN(4) == 0:
		add("ReadFile", fmt.Sprintf(`{"path":"missing%d"}`, m.clock))
	default:
		for range 1 + m.rng.IntN(3) {
			add("WriteFile",
				fmt.Sprintf(`{"path":%q,"content":"agent %d"}`, besidePaths[m.rng.IntN(len(besidePaths))], m.clock))
		}
	}
	for _, c := range calls {
		m.calls[c.ID] = c
	}
	return model.Reply{Finish: "tool_calls", Calls: calls}, nil
}

// event follows what the task records.
func (m *beside) event(o op.Op) {
	switch b := o.Body.(type) {
	case *op.ToolReturned:
		if b.Name == "WriteFile" && !b.IsError {
			var args struct{ Path, Content string }
			_ = json.Unmarshal([]byte(m.calls[b.Call].Args), &args) // the model's own
			m.files[args.Path] = args.Content
		}
	case *op.WorldSaved:
		m.steps, m.ends = append(m.steps, maps.Clone(m.files)), append(m.ends, m.tick())
		m.compare(fmt.Sprintf("step %d", o.Step))
	case *op.JumpDone:
		m.jumped(b.To, m.task.Ledger.State().Jump.Intended.Overwrite)
	}
}

// TestUserBesideAgent has an agent write files and jump, and a user change files in
// every phase in which no call runs: while the agent thinks, while a question
// waits in the middle of a reply, between turns, and while the task is closed. After
// each step and jump the directory is what the plain model says.
func TestUserBesideAgent(t *testing.T) {
	seeds, turns := 4, 5
	if *soakNightly {
		seeds, turns = 60, 12
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := &beside{
				t: t, rng: rand.New(rand.NewPCG(uint64(seed), 7)), files: map[string]string{}, jumps: map[int]int{},
				calls: map[string]op.Call{},
			}
			opts := Options{
				Guards: Guards{Approval: "ask", RunUndone: true}, Limits: state.Limits{Limits: op.Limits{Steps: 10000}},
				Callbacks: Callbacks{Op: m.event, Approve: func(context.Context, gate.Question) gate.Answer {
					m.user()
					return gate.Answer{Allow: m.rng.IntN(5) > 0}
				}},
			}
			task, h := newTask(t, "turns: []\n", opts)
			opts = *task.opts
			opts.Model = m
			for turn := range turns {
				if turn > 0 {
					var err error
					if task, err = OpenTask(t.Context(), h, "t", opts); err != nil {
						t.Fatal(err)
					}
				}
				m.task, task.opts.Model, task.Ledger.State().Model.EAS, m.left = task, m, 1<<20, 2+m.rng.IntN(5)
				m.turn(t, turn)
				if err := task.Close(); err != nil {
					t.Fatal(err)
				}
				m.user()
				if t.Failed() {
					return
				}
			}
		})
	}
}

// turn is a turn of the agent, with a jump of the user's before some.
func (m *beside) turn(t *testing.T, turn int) {
	if to := m.rng.IntN(max(len(m.steps), 1)); turn > 0 && m.rng.IntN(2) == 0 && to != m.task.Ledger.State().Current {
		if _, err := m.task.JumpNow(t.Context(), op.JumpRequested{To: to, Overwrite: m.rng.IntN(4) == 0}, &op.TaskResumed{}); err != nil {
			t.Fatal(err)
		}
	}
	if turn > 0 {
		if err := m.task.Resume(t.Context(), fmt.Sprint("Go on ", turn), &op.TaskResumed{}); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := m.task.Run(t.Context()); err != nil || out.Reason != "done" {
		t.Fatalf("Run = %+v, %v", out, err)
	}
}

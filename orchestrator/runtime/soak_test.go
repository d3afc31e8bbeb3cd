package runtime

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/builtin"
)

// soakNightly runs the soak in full and asserts on times, too.
var soakNightly = flag.Bool("nightly", false, "run with the full counts")

// The soak: so many steps, a jump back every so many.
const (
	soakSteps        = 1_000
	soakStepsNightly = 10_000
	soakJumpEvery    = 20
	// soakGrowth is how much a figure of the last tenth may exceed an early one's.
	soakGrowth = 1.3
	// soakAllocations is how many allocations a step may cost for each step before
	// it. In a thousand steps the context still fills and recalls find more cards,
	// which is most of it; the nightly run holds them to soakGrowth.
	soakAllocations = 4
	// soakHeapBytes is what a step may leave in memory: its place in the tree, the
	// counts and offsets of its operations, its ref, its calls in the tally, and its
	// share of the cards: one in nineteen writes one.
	soakHeapBytes = 330
)

// soakTask is a model that edits and reads files forever, and goes back to
// where its last stretch began every soakJumpEvery steps.
type soakTask struct {
	task         *Task
	steps, asked int // of steps a tenth is counted
	until        int // the step it ends after
	state        func() *state.State
	tenths       []*soakTenth
	disk         []int64 // bytes, after each tenth
	began        time.Time
	turns        *soakTurns // nil: it has the machine to itself
}

// soakTurns lets two tasks take their steps in turn. A long run takes minutes,
// in which a machine's speed may double; so both meet the same machine.
type soakTurns struct {
	from   int // the step from which on
	mine   chan struct{}
	theirs chan struct{}
	met    func() // called at step from, before the first turn
}

// next waits until it is this task's turn, after giving the other its turn.
func (u *soakTurns) next(ctx context.Context, asked int) {
	if asked > 0 { // one of them has to be first
		select {
		case u.theirs <- struct{}{}:
		case <-ctx.Done():
		}
	}
	select {
	case <-u.mine:
	case <-ctx.Done():
	}
}

// soakTenth is what a tenth of the steps took.
type soakTenth struct {
	steps       []time.Duration // until it is closed: a measure must not grow, either
	projections []time.Duration // likewise
	n           int             // steps
	step        time.Duration   // mean
	median      time.Duration   // of the steps
	projection  time.Duration   // mean
	context     int             // tokens, largest
	mallocs     uint64
	heap        uint64
	resident    uint64 // bytes of the process in memory; 0 where the system does not say
}

func (m *soakTask) Name() string { return "soak" }

func (m *soakTask) Ask(ctx context.Context, r model.Request, _ func(model.Delta)) (model.Reply, error) {
	if r.Purpose != model.PurposeStep {
		return model.Reply{}, &model.Fault{Kind: model.FaultScript, Tries: 1,
			Err: fmt.Errorf("nobody answers a %s request", r.Purpose)}
	}
	m.tick()
	if m.asked == m.until {
		if m.turns != nil {
			close(m.turns.theirs)
		}
		return model.Reply{Text: "Done.", Finish: "stop"}, nil
	}
	if m.turns != nil && m.asked >= m.turns.from {
		if m.asked == m.turns.from && m.turns.met != nil {
			m.turns.met()
		}
		m.turns.next(ctx, m.asked)
		m.began = time.Now()
	}
	m.asked++
	call := func(name, args string) (model.Reply, error) {
		return model.Reply{Finish: "tool_calls",
			Calls: []op.Call{{ID: fmt.Sprintf("c%d", m.asked), Name: name, Args: args}}}, nil
	}
	file := fmt.Sprintf("dir%d/file%d.txt", m.asked%7, m.asked%50)
	switch {
	case m.asked%soakJumpEvery == 0:
		to := m.state().Current - soakJumpEvery + 2
		return call("jump_to_step",
			fmt.Sprintf(`{"step_id":%d,"reason":"the stretch after step %d led nowhere"}`, max(to, 0), to))
	case m.asked%5 == 3:
		return call("ReadFile", fmt.Sprintf(`{"path":"missing%d.txt"}`, m.asked))
	}
	content := strings.Repeat(fmt.Sprintf("line of step %d, and some more words\\n", m.asked), 10+m.asked%40)
	return call("WriteFile", fmt.Sprintf(`{"path":%q,"content":"%s"}`, file, content))
}

// tick records the step that has just ended.
func (m *soakTask) tick() {
	now := time.Now()
	i := min(m.asked, m.until-1) * 10 / m.steps
	for len(m.tenths) <= i {
		if n := len(m.tenths); n > 0 {
			m.tenths[n-1].close()
		}
		m.tenths = append(m.tenths, newSoakTenth())
		now = time.Now()
	}
	t := m.tenths[i]
	if m.asked > 0 && !m.began.IsZero() {
		t.steps = append(t.steps, now.Sub(m.began))
	}
	start := time.Now()
	_ = m.state().Context.Chat()
	t.projections = append(t.projections, time.Since(start))
	t.context = max(t.context, m.state().Context.Tokens)
	m.began = time.Now()
}

func newSoakTenth() *soakTenth {
	var ms runtime.MemStats
	runtime.ReadMemStats(&ms)
	return &soakTenth{mallocs: ms.Mallocs}
}

func (t *soakTenth) close() {
	var ms runtime.MemStats
	runtime.ReadMemStats(&ms)
	t.mallocs = ms.Mallocs - t.mallocs
	t.n, t.step, t.median, t.projection = len(t.steps), soakMean(t.steps), soakMedian(t.steps), soakMean(t.projections)
	t.steps, t.projections = nil, nil
	runtime.GC() // what lies in pools
	runtime.GC() // goes with the second
	runtime.ReadMemStats(&ms)
	t.heap, t.resident = ms.HeapAlloc, residentBytes()
}

// residentBytes is what the process has in memory, as Linux says it.
func residentBytes() uint64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, resident uint64
	if _, err := fmt.Sscan(string(data), &size, &resident); err != nil {
		return 0
	}
	return resident * uint64(os.Getpagesize())
}

func soakMean(ds []time.Duration) time.Duration {
	sum := time.Duration(0)
	for _, d := range ds {
		sum += d
	}
	return sum / time.Duration(max(len(ds), 1))
}

func soakMedian(ds []time.Duration) time.Duration {
	ds = slices.Sorted(slices.Values(ds))
	return ds[len(ds)/2]
}

// heavy skips a test that takes minutes and rarely fails, unless CI or -nightly runs it.
func heavy(t testing.TB) {
	t.Helper()
	if (testing.Short() || os.Getenv("ANAMNESIS_CI") == "") && !*soakNightly {
		t.Skip("NOT RUN: heavy; .ci/run runs it, or ANAMNESIS_CI=1")
	}
}

// TestSoak runs a long task, whose cost must not grow with its length. It asserts
// on counts and bytes and only reports times. The nightly run is longer, and there
// the task takes one more tenth, in turns with the first tenth of a new task, so
// that the reported times compare.
func TestSoak(t *testing.T) {
	heavy(t)
	old := &soakTask{steps: soakSteps, until: soakSteps}
	if !*soakNightly {
		old.create(t.Context(), t)
		old.run(t.Context(), t)
		old.check(t)
		return
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	old.steps = soakStepsNightly
	old.until = old.steps + old.steps/10
	young := &soakTask{steps: old.steps, until: old.steps / 10}
	old.create(ctx, t)
	young.create(ctx, t)
	turns, met := [2]chan struct{}{make(chan struct{}), make(chan struct{})}, make(chan struct{})
	old.turns = &soakTurns{from: old.steps, mine: turns[0], theirs: turns[1], met: func() { close(met) }}
	young.turns = &soakTurns{mine: turns[1], theirs: turns[0]}
	done := make(chan struct{})
	go func() {
		defer close(done)
		select { // what it holds must not count among what the old one holds
		case <-met:
			if !young.run(ctx, t) {
				cancel() // nobody returns the old one its turn
			}
		case <-ctx.Done():
		}
	}()
	if !old.run(ctx, t) {
		cancel()
	}
	<-done
	old.check(t)
	old.besides(t, young)
}

// create makes the task, which has done nothing yet.
func (m *soakTask) create(ctx context.Context, t *testing.T) {
	t.Helper()
	tools, err := tool.NewRegistry(builtin.Tools(builtin.Options{})...)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	h := taskdir.Home{
		User: filepath.Join(root, "user"), State: filepath.Join(root, "s"), Data: filepath.Join(root, "s"),
		Config: filepath.Join(root, "s"),
	}
	dir := filepath.Join(root, "w")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	steps := 0
	task, err := Create(ctx, h, New{Request: "Go on for long.", TaskOpened: op.TaskOpened{
		Task: "t", Dir: dir, Model: m.Name(), EAS: 4000, Encoding: "r50k_base", Approval: "auto", System: "system",
	}}, Options{Model: m, Tools: tools, Limits: state.Limits{Limits: op.Limits{Steps: 2 * m.until}},
		Callbacks: Callbacks{Op: func(o op.Op) {
			if _, ok := o.Body.(*op.WorldSaved); ok {
				if steps++; steps%(m.steps/10) == 0 {
					m.disk = append(m.disk, treeBytes(h.State))
				}
			}
		}}})
	if err != nil {
		t.Fatal(err)
	}
	m.task, m.state = task, task.Ledger.State
}

// run is the task from its first step to its last, which it reports to have reached.
func (m *soakTask) run(ctx context.Context, t *testing.T) bool {
	defer m.task.Close()
	out, err := m.task.Run(ctx)
	if err != nil || out.Reason != "done" {
		t.Errorf("Run = %+v, %v", out, err)
		return false
	}
	m.tenths[len(m.tenths)-1].close()
	m.report(t)
	return true
}

func (m *soakTask) report(t *testing.T) {
	s, disk := m.state(), m.disk
	t.Logf("%d steps, %d jumps, %d passes, %d operations", m.asked, s.Totals.Jumps, s.Totals.Passes, s.Last)
	for i, x := range m.tenths {
		size := int64(0)
		if i < len(disk) {
			size = disk[i]
		}
		t.Logf("tenth %d: step %v (median %v), projection %v, context %d tokens, %d allocations a step, heap %d KiB, resident %d KiB, disk %d KiB", i+1, x.step,
			x.median, x.projection, x.context, x.mallocs/uint64(max(x.n, 1)), x.heap>>10, x.resident>>10, size>>10)
	}
}

// check holds the last tenth against the first. What the first has not yet is
// held against the second: the context fills in it, and with it what a step
// allocates and writes.
func (m *soakTask) check(t *testing.T) {
	if len(m.tenths) < 10 {
		return // run has said why
	}
	first, second, last, disk := m.tenths[0], m.tenths[1], m.tenths[9], m.disk
	grown := func(name string, a, b float64) { soakGrown(t, name, a, b) }
	perStep := func(x *soakTenth) float64 { return float64(x.mallocs) / float64(x.n) }
	if slope := (perStep(last) - perStep(second)) / (float64(m.steps) * 8 / 10); slope > soakAllocations {
		t.Errorf("a step costs %.1f allocations for each step before it, at most %d are accepted", slope,
			soakAllocations)
	}
	if n := len(disk); n >= 10 {
		grown("bytes on disk a tenth", float64(disk[2]-disk[1]), float64(disk[9]-disk[8]))
	}
	if !*soakNightly {
		return
	}
	grown("allocations a step", perStep(second), perStep(last))
	grown("bytes of the process", float64(first.resident), float64(last.resident))
	grown("heap bytes", float64(first.heap), float64(last.heap))
	grown("heap bytes after the first tenth", float64(second.heap), float64(last.heap))
	if slope := (float64(last.heap) - float64(second.heap)) / (float64(m.steps) * 8 / 10); slope > soakHeapBytes {
		t.Errorf("a step leaves %.0f bytes in memory, at most %d are accepted", slope, soakHeapBytes)
	}
}

// besides reports the times of the steps after the last tenth beside those of the
// first tenth of a young task, taken in turns with them.
func (m *soakTask) besides(t *testing.T, young *soakTask) {
	if len(young.tenths) == 0 || len(m.tenths) < 11 {
		return // run has said why
	}
	first, last := young.tenths[0], m.tenths[10]
	ratio := func(a, b time.Duration) float64 { return float64(b) / float64(a) }
	t.Logf("a step: %v early, %v late: %.2f times", first.step, last.step, ratio(first.step, last.step))
	t.Logf("a projection: %v early, %v late: %.2f times", first.projection, last.projection,
		ratio(first.projection, last.projection))
}

func soakGrown(t *testing.T, name string, a, b float64) {
	t.Helper()
	t.Logf("%s: %.0f early, %.0f late: %.2f times", name, a, b, b/a)
	if b > a*soakGrowth {
		t.Errorf("%s: %.0f early, %.0f in the last tenth: %.2f times, at most %.1f are wanted", name, a, b,
			b/a, soakGrowth)
	}
}

func treeBytes(dir string) int64 {
	n := int64(0)
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}

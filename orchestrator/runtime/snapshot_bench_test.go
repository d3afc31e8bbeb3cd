package runtime

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
)

var benchOps = flag.Int("bench-ops", 20_000, "operations of the task that BenchmarkResume reads")

// BenchmarkResume reads the state of a long task with and without its
// snapshot, in turn: the ratio is what the snapshot leaves of the work. The
// task jumps back to its first step every 20 steps and the span is compacted, so
// that its context stays as small as a real one's.
func BenchmarkResume(b *testing.B) {
	h, folded := longTask(b, *benchOps)
	var with, without time.Duration
	for b.Loop() {
		start := time.Now()
		st, err := taskdir.ReadState(h, "t")
		with += time.Since(start)
		if err != nil || st.Last < folded {
			b.Fatal(st.Last, err)
		}
		start = time.Now()
		whole := new(state.State)
		if err := taskdir.EachOp(h, "t", func(o op.Op) error { return state.Fold(whole, o) }); err != nil ||
			whole.Last != st.Last {
			b.Fatal(whole.Last, err)
		}
		without += time.Since(start)
	}
	b.ReportMetric(float64(with.Microseconds())/float64(b.N)/1e3, "ms/snapshot")
	b.ReportMetric(float64(without.Microseconds())/float64(b.N)/1e3, "ms/whole")
	b.ReportMetric(float64(with)/float64(without), "ratio")
}

// longTask writes the stream of a task of n operations and its snapshot.
func longTask(b *testing.B, n int) (taskdir.Home, uint64) {
	b.Helper()
	root := b.TempDir()
	h := taskdir.Home{User: root, State: root, Data: root, Config: root}
	log, err := opstream.Open(h.Task("t"), &opstream.Options{SealAfter: -1})
	if err != nil {
		b.Fatal(err)
	}
	s := new(state.State)
	var batch []opstream.Entry
	write := func() {
		if len(batch) == 0 {
			return
		}
		if _, err := log.Append(b.Context(), batch...); err != nil {
			b.Fatal(err)
		}
		batch = batch[:0]
	}
	add := func(body op.Body) {
		data, err := op.Encode(body)
		if err != nil {
			b.Fatal(err)
		}
		batch = append(batch, opstream.Entry{Kind: string(body.Kind()), Step: s.Steps.Next(), Tok: 200, Body: data})
		if err := state.Fold(s, op.Op{Seq: s.Last + 1, Step: s.Steps.Next(), Tok: 200, Body: body}); err != nil {
			b.Fatal(err)
		}
		if len(batch) == 1000 {
			write()
		}
	}
	add(&op.TaskOpened{Task: "t", Dir: "/w", EAS: 4000, System: "system"})
	add(&op.UserSaid{Text: "go", Source: op.SourceRequest})
	add(&op.WorldSaved{Commit: strings.Repeat("0", 40)})
	output := strings.Repeat("ok  \tledger/internal/rounding\t0.004s\n", 110)
	for s.Last < uint64(n) {
		id := s.Steps.Next()
		call := op.Call{ID: fmt.Sprint("c", id), Name: "Bash", Args: `{"command":"go test ./..."}`}
		add(&op.ModelAsked{LastSeq: s.Last})
		add(&op.ModelReplied{Text: "I run the tests.", Calls: []op.Call{call}, Finish: "tool_calls"})
		add(&op.ToolCalled{Call: call.ID, Name: call.Name, Args: call.Args})
		add(&op.ToolReturned{Call: call.ID, Name: call.Name, Text: output})
		add(&op.WorldSaved{
			Parent: s.Current, Commit: fmt.Sprintf("%040x", id), Tree: fmt.Sprintf("%040x", id%7),
			Mark: fmt.Sprintf("[step %d]", id),
		})
		if id%20 == 0 {
			compactBack(s, 1, add)
		}
	}
	write()
	data, err := state.Marshal(s)
	if err != nil {
		b.Fatal(err)
	}
	if err := log.WriteSnapshot(state.FoldVersion, data, s.Last); err != nil {
		b.Fatal(err)
	}
	if err := log.Close(); err != nil {
		b.Fatal(err)
	}
	return h, s.Last
}

func compactBack(s *state.State, to int, add func(op.Body)) {
	ranges := s.Steps.Ranges(s.Discarded(to))
	add(&op.JumpRequested{To: to, By: op.ByUser})
	add(&op.PassDone{Ranges: ranges, Block: "[ANAMNESIS_BLOCK] what was learned", Trigger: "jump"})
	add(&op.JumpIntended{From: s.Current, To: to, Discarded: ranges, Backward: true})
	add(&op.JumpDone{From: s.Current, To: to, Discarded: ranges, Backward: true, Words: "words", Notice: "notice"})
}

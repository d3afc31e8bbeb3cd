package journal_test

import (
	"errors"
	"testing"
	"time"

	"anamnesis/anamnesis/tokens"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
)

// grown is a task's stream that grows, and its snapshot.
type grown struct {
	*testing.T
	h     taskdir.Home
	every uint64
	l     *journal.Ledger
}

func newGrown(t *testing.T, every uint64) *grown {
	root := t.TempDir()
	g := &grown{T: t, h: taskdir.Home{User: root, State: root, Data: root, Config: root}, every: every}
	g.open()
	return g
}

func (g *grown) open() {
	g.Helper()
	count, err := tokens.ForEncoding("r50k_base")
	if err != nil {
		g.Fatal(err)
	}
	o := journal.Options{Count: count.Count, Learned: new(redact.Learned)}
	o.Stream.Now, o.Stream.Snapshot = time.Now, state.FoldVersion
	if g.l, err = journal.OpenLedger(g.h, "t", count, g.every, o); err != nil {
		g.Fatal(err)
	}
}

// grow lets the stream have so many operations.
func (g *grown) grow(ops int) {
	g.Helper()
	var bodies []op.Body
	if g.l.State().Last == 0 {
		bodies = append(bodies, &op.TaskOpened{Task: "t"})
	}
	for int(g.l.State().Last)+len(bodies) < ops {
		bodies = append(bodies, &op.UserSaid{Text: "go", Source: op.SourceRequest})
	}
	if err := g.l.Record(g.Context(), bodies...); err != nil {
		g.Fatal(err)
	}
}

// snapshot opens the stream again, and returns how many operations its snapshot holds.
func (g *grown) snapshot() int {
	g.Helper()
	err := g.l.Journal.Close()
	g.open()
	last := state.FromSnapshot(g.l.Journal.Log()).Last
	if err := errors.Join(err, g.l.Journal.Close()); err != nil {
		g.Fatal(err)
	}
	return int(last)
}

// TestSnapshotDue: a snapshot of the fold is written as soon as the stream has grown by the number
// of operations that is set.
func TestSnapshotDue(t *testing.T) {
	const usual = journal.DefaultSnapshotEvery
	for _, tt := range []struct {
		every     uint64
		ops, want int
	}{{5, 4, 0}, {5, 5, 5}, {5, 6, 6}, {0, usual - 1, 0}, {0, usual, usual}} {
		for when, write := range map[string]func(*journal.Ledger){"at a step": (*journal.Ledger).SnapshotStep, "at the end": (*journal.Ledger).SnapshotClose} {
			g := newGrown(t, tt.every)
			g.grow(tt.ops)
			write(g.l)
			if got := g.snapshot(); got != tt.want {
				t.Errorf("%s, every %d: the snapshot holds %d of %d operations, want %d", when, tt.every, got,
					tt.ops, tt.want)
			}
		}
	}
}

// TestSnapshotShare: while a task runs, a long stream has to grow by a sixteenth, but not at its end.
func TestSnapshotShare(t *testing.T) {
	for _, tt := range []struct {
		ops       int
		step, end int // what the snapshot holds then
	}{{104, 100, 100}, {105, 100, 105}, {106, 106, 106}} {
		for _, closing := range []bool{false, true} {
			g := newGrown(t, 5)
			g.grow(100)
			g.l.SnapshotStep()
			g.grow(tt.ops)
			want := tt.step
			if g.l.SnapshotStep(); closing {
				g.l.SnapshotClose()
				want = tt.end
			}
			if got := g.snapshot(); got != want {
				t.Errorf("%d operations, closing %v: the snapshot holds %d, want %d", tt.ops, closing, got, want)
			}
		}
	}
}

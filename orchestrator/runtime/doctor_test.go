package runtime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"anamnesis/opstream"
	"anamnesis/orchestrator/inspect"
	"anamnesis/orchestrator/taskdir"
)

const doctorScript = `turns:
  - calls:
      - {name: WriteFile, arguments: {path: a, content: one}}
  - reply: Done.
`

// doneTask runs a task to its end and closes it.
func doneTask(t *testing.T, o Options) taskdir.Home {
	t.Helper()
	task, h := newTask(t, doctorScript, o)
	_, err := task.Run(t.Context())
	if err = errors.Join(err, task.Close()); err != nil {
		t.Fatal(err)
	}
	return h
}

// TestExamineForeignStream: a stream of the same operations whose lines are
// not the ones the snapshots were made after is found out by their hashes.
func TestExamineForeignStream(t *testing.T) {
	h := doneTask(t, Options{})
	if d, err := inspect.Examine(t.Context(), h, "t"); err != nil || len(d.Findings) > 0 || d.Commits != 2 {
		t.Fatalf("a whole task: %+v, %v", d, err)
	}
	again := filepath.Join(t.TempDir(), "again")
	rewrite(t, h.Task("t"), again, 0)
	replaceOps(t, h, again)
	d, err := inspect.Examine(t.Context(), h, "t")
	if err != nil || !d.Has(opstream.SeverityCorrupt) ||
		!strings.Contains(d.Findings[0].String(), "it is not the operation commit") {
		t.Errorf("diagnosis %+v, %v", d, err)
	}
	// A task that was begun later under the same name is not blamed for the
	// snapshots of the one before.
	later := filepath.Join(t.TempDir(), "later")
	rewrite(t, h.Task("t"), later, time.Hour)
	replaceOps(t, h, later)
	if d, err := inspect.Examine(t.Context(), h, "t"); err != nil || len(d.Findings) > 0 {
		t.Errorf("diagnosis %+v, %v", d, err)
	}
}

// rewrite appends the operations of a stream to a new one, a little later.
func rewrite(t *testing.T, from, to string, by time.Duration) {
	t.Helper()
	r, err := opstream.OpenReader(from, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var now time.Time
	log, err := opstream.Open(to,
		&opstream.Options{SealAfter: -1, Now: func() time.Time { return now.Add(by + time.Microsecond) }})
	if err != nil {
		t.Fatal(err)
	}
	for rec, err := range r.Since(0) {
		if err != nil {
			t.Fatal(err)
		}
		if rec.Kind == "log.sealed" {
			break
		}
		now = rec.Time
		if _, err := log.Append(t.Context(), opstream.Entry{Kind: rec.Kind, Step: rec.Step, Tok: rec.Tok, Body: rec.Body}); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
}

func replaceOps(t *testing.T, h taskdir.Home, from string) {
	t.Helper()
	ops := filepath.Join(h.Task("t"), "ops")
	if err := os.RemoveAll(ops); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(from, "ops"), ops); err != nil {
		t.Fatal(err)
	}
}

// TestExamineFinds: what cannot be folded, and what is wrong with the vault.
func TestExamineFinds(t *testing.T) {
	h := doneTask(t, Options{})
	log, err := opstream.Open(h.Task("t"), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = log.Append(t.Context(), opstream.Entry{Kind: "user.said", Body: []byte(`{"text":7}`)})
	if err == nil {
		_, err = log.Append(t.Context(),
			opstream.Entry{Kind: "user.said", Body: []byte(`{"text":"[redacted:x:abcdef]"}`)})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	check := func(want string) {
		t.Helper()
		d, err := inspect.Examine(t.Context(), h, "t")
		text := ""
		for _, f := range d.Findings {
			text += f.String() + "\n"
		}
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("findings\n%s, %v; want %q", text, err, want)
		}
	}
	check("corrupt: op ")
	if err := os.WriteFile(h.Vault("t"), []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	check("vault.jsonl: its first line has no key")
	if err := os.Remove(h.Vault("t")); err != nil {
		t.Fatal(err)
	}
	check("notice: " + h.Vault("t") + ": the vault is missing")
}

// TestExamineAfterAClockJump: the clock goes back a day after the task began. A
// lost end is seen all the same, by what the snapshots stand on.
func TestExamineAfterAClockJump(t *testing.T) {
	var jumped atomic.Bool
	h := doneTask(t, Options{
		Now: func() time.Time {
			if jumped.Load() {
				return time.Now()
			}
			return time.Now().Add(24 * time.Hour)
		},
		Store: Store{Stream: opstream.Options{AfterAppend: func(seq uint64) { jumped.Store(seq > 1) }}},
	})
	if d, err := inspect.Examine(t.Context(), h, "t"); err != nil || len(d.Findings) > 0 {
		t.Fatalf("a whole task: %+v, %v", d, err)
	}
	segments, err := filepath.Glob(filepath.Join(h.Task("t"), "ops", "*.jsonl"))
	if err != nil || len(segments) != 1 {
		t.Fatal(segments, err)
	}
	data, err := os.ReadFile(segments[0])
	if err != nil {
		t.Fatal(err)
	}
	kept, _, _ := strings.Cut(string(data), `"kind":"model.asked"`)
	if err := os.WriteFile(segments[0], []byte(kept[:strings.LastIndexByte(kept, '\n')+1]), 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := inspect.Examine(t.Context(), h, "t")
	if err != nil || !d.Has(opstream.SeverityCorrupt) ||
		!strings.Contains(fmt.Sprint(d.Findings), "the end of the stream is lost") {
		t.Errorf("without its end: %+v, %v", d, err)
	}
}

// TestExplainAt: the context after an operation is the one its explanation
// tells of.
func TestExplainAt(t *testing.T) {
	h := doneTask(t, Options{})
	st, err := taskdir.ReadState(h, "t")
	if err != nil {
		t.Fatal(err)
	}
	sizes := make([]int, 0, st.Last)
	for seq := range st.Last {
		x, messages, err := inspect.ExplainAt(h, "t", seq+1)
		if err != nil || x.Op != seq+1 || len(x.Messages) != len(messages) {
			t.Fatalf("op %d: explained up to op %d, %d messages of %d, %v", seq+1, x.Op, len(x.Messages),
				len(messages), err)
		}
		sizes = append(sizes, len(messages))
	}
	if !slices.IsSorted(sizes) || sizes[0] == sizes[len(sizes)-1] {
		t.Errorf("a task without a jump has contexts of %d messages", sizes)
	}
	if _, _, err := inspect.ExplainAt(h, "t", st.Last+1); !errors.Is(err, taskdir.ErrNoOp) {
		t.Errorf("past the end: %v", err)
	}
}

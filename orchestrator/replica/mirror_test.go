package replica

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/replica/bucket"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
)

// TestMirror: all tasks are copied without their snapshots, a named one with them. What the bucket removes is removed,
// and another task of the same name is copied in its place.
func TestMirror(t *testing.T) {
	ctx, b := context.Background(), shared(t, nil)
	one, reader := newMachine(t), newMachine(t)
	os.RemoveAll(reader.home.Task(testTask))
	h := MirrorHome(b, reader.home)
	reader.home = h
	one.open(b, Cursor{Task: testTask})
	one.append("task.opened", map[string]string{"task": testTask})
	one.save("a.txt", "one\n")
	one.bundle("1.bundle", "commits")
	one.safe()
	mirror := func(task string) {
		t.Helper()
		if failed, err := Mirror(ctx, b, h, task); err != nil || len(failed) > 0 {
			t.Fatalf("%v, %v", failed, err)
		}
	}
	mirror("")
	if _, err := os.Stat(reader.store()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the list has snapshots: %v", err)
	}
	if _, has := reader.files()["bundles/1.bundle"]; has {
		t.Error("the list has commits")
	}
	mirror(strings.TrimSuffix(testTask, "test"))
	one.same(reader)
	one.save("b.txt", "two\n")
	one.safe()
	mirror("")
	one.same(reader)

	if err := one.holder.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := Remove(ctx, b, testTask, func(string) {}); err != nil {
		t.Fatal(err)
	}
	two := newMachine(t)
	two.open(b, Cursor{Task: testTask})
	two.append("task.opened", map[string]string{"task": testTask, "again": "yes"})
	two.safe()
	mirror("")
	if text := reader.files()["ops/0000000000000001.jsonl"]; !strings.Contains(text, "again") ||
		strings.Contains(text, "world.saved") {
		t.Errorf("the copy is %q", text)
	}
	before := reader.files()
	name := logName(testTask, 1)
	first, err := b.Get(ctx, name)
	if err := errors.Join(err, b.Put(ctx, name, []byte("no object"))); err != nil {
		t.Fatal(err)
	}
	if _, err := Mirror(ctx, b, h, testTask); !errors.Is(err, ErrDamaged) || !maps.Equal(before, reader.files()) {
		t.Errorf("a damaged log takes the copy along: %v", err)
	}
	if err := b.Put(ctx, name, first); err != nil {
		t.Fatal(err)
	}
	if _, err := Remove(ctx, b, testTask, func(string) {}); !errors.Is(err, ErrHeld) {
		t.Errorf("a task that a process works on is removed: %v", err)
	}
	if err := two.holder.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := Remove(ctx, b, testTask, func(string) {}); err != nil {
		t.Fatal(err)
	}
	mirror("")
	if h.HasTask(testTask) {
		t.Error("the copy stays")
	}
}

// TestStray: what is no object of ours is passed over, and goes with the task.
func TestStray(t *testing.T) {
	ctx, b := context.Background(), shared(t, nil)
	one, two, reader := newMachine(t), newMachine(t), newMachine(t)
	os.RemoveAll(two.home.Task(testTask))
	os.RemoveAll(reader.home.Task(testTask))
	one.open(b, Cursor{Task: testTask})
	one.append("task.opened", map[string]string{"task": testTask})
	one.save("a.txt", "one\n")
	one.safe()
	for _, name := range []string{logName(testTask, 1) + "~", logPrefix(testTask) + "foo", logPrefix(testTask) + "7", logPrefix(testTask) + "a/b",
		logPrefix(testTask) + ".swp", indexPrefix + testTask + "~", indexPrefix + ".swp", indexPrefix + "none"} {
		if err := b.Put(ctx, name, []byte("stray")); err != nil {
			t.Fatal(err)
		}
	}
	if p, err := Pull(ctx, b, two.home, testTask); err != nil || len(p.Aside) > 0 {
		t.Fatalf("%+v, %v", p, err)
	}
	one.save("b.txt", "two\n")
	one.safe()
	if _, err := Pull(ctx, b, two.home, testTask); err != nil {
		t.Fatal(err)
	}
	one.same(two)
	reader.home = MirrorHome(b, reader.home)
	if failed, err := Mirror(ctx, b, reader.home, ""); err != nil || len(failed) > 0 || !reader.home.HasTask(testTask) {
		t.Errorf("%v, %v", failed, err)
	}
	if _, err := Remove(ctx, b, testTask, func(string) {}); !errors.Is(err, ErrHeld) {
		t.Errorf("a task that a process works on is removed: %v", err)
	}
	if err := one.holder.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := Remove(ctx, b, testTask, func(string) {}); err != nil {
		t.Fatal(err)
	}
	if names, err := b.List(ctx, tasksPrefix, ""); err != nil || len(names) > 0 {
		t.Errorf("left: %q, %v", names, err)
	}
}

// TestRemoveHeld: the lease is the holder's, if it is longer than usual.
func TestRemoveHeld(t *testing.T) {
	ctx, b := context.Background(), shared(t, nil)
	for lease, held := range map[time.Duration]bool{time.Minute: false, time.Hour: true} {
		wrote := About{
			V: version, Task: testTask, N: 1, Holder: "h", Time: time.Now().Add(-DefaultLease - time.Second),
			Lease: lease,
		}
		data, err := encode(wrote, nil)
		if err = errors.Join(err, b.Put(ctx, logName(testTask, 1), data)); err != nil {
			t.Fatal(err)
		}
		if _, err := Remove(ctx, b, testTask, func(string) {}); errors.Is(err, ErrHeld) != held {
			t.Errorf("a lease of %v: %v", lease, err)
		}
	}
}

// TestStanding: how a task stands that may run elsewhere.
func TestStanding(t *testing.T) {
	ended := func(reason string) *state.State {
		s := new(state.State)
		s.Turn.End = &op.TurnEnded{Reason: reason}
		return s
	}
	working, asking, outage := new(state.State), new(state.State), new(state.State)
	working.Turn.Open, asking.Turn.Open, outage.Turn.Open = true, true, true
	asking.Questions = state.Questions{{}}
	outage.Outage = new(state.Outage)
	long := About{Time: time.Now().Add(-DefaultLease - time.Second), Lease: time.Hour}
	now, old := About{Time: time.Now()}, About{Time: time.Now().Add(-DefaultLease - time.Second)}
	released := About{Time: old.Time, Released: true}
	for name, c := range map[string]struct {
		last About
		st   *state.State
		want string
	}{
		"works":                    {now, working, "running"},
		"waits for the provider":   {now, outage, "waiting"},
		"asks":                     {now, asking, "asking"},
		"works, with a long lease": {long, working, "running"},
		"asks, nobody works":       {released, asking, "asking"},
		"asked, and died":          {old, asking, "abandoned"},
		"died":                     {old, working, "abandoned"},
		"ended by a signal":        {released, working, "waiting"},
		"ended by a limit":         {released, ended("limit"), "waiting"},
		"done":                     {released, ended("done"), "done"},
		"done, its terminal is up": {old, ended("done"), "done"},
	} {
		h := taskdir.Home{State: t.TempDir()}
		for _, task := range []string{"t", "t.1"} {
			if err := os.MkdirAll(h.Task(task), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		cursor := &Cursor{Task: "t", Last: c.last}
		if err := cursor.write(h); err != nil {
			t.Fatal(err)
		}
		for _, task := range []string{"t", "t.1"} {
			if got := standing(h, task, c.st); got != c.want {
				t.Errorf("%s, %s: %s, want %s", name, task, got, c.want)
			}
		}
	}
}

// cutOff is a bucket whose first reads fail.
type cutOff struct {
	bucket.Bucket
	fails int
}

func (c *cutOff) Get(ctx context.Context, name string) ([]byte, error) {
	if c.fails--; c.fails >= 0 {
		return nil, bucket.ErrRefused
	}
	return c.Bucket.Get(ctx, name)
}

// TestPullAgain: a pull that was cut off is repeated.
func TestPullAgain(t *testing.T) {
	one, two := newMachine(t), newMachine(t)
	os.RemoveAll(filepath.Dir(two.home.Task(testTask)))
	b := &cutOff{Bucket: shared(t, nil), fails: 1}
	one.open(b, Cursor{Task: testTask})
	one.append("task.opened", map[string]string{"task": testTask})
	one.save("a.txt", "one\n")
	one.safe()
	if _, err := Pull(context.Background(), b, two.home, testTask); err == nil {
		t.Fatal("the pull was not cut off")
	}
	if _, err := Pull(context.Background(), b, two.home, testTask); err != nil {
		t.Fatal(err)
	}
	one.same(two)
}

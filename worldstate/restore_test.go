package worldstate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/gitfmt"
)

// TestUntouchedStay: restoring one file leaves every other mtime and inode.
func TestUntouchedStay(t *testing.T) {
	b := newBench(t, nil)
	for i := range 20 {
		b.write(fmt.Sprintf("d/%d", i), "x")
	}
	first := b.save()
	b.write("d/7", "changed")
	b.must(os.Chmod(b.path("d/8"), 0o600))
	stamps := func() map[string]string {
		m := map[string]string{}
		for i := range 20 {
			var st unix.Stat_t
			b.must(unix.Lstat(b.path(fmt.Sprintf("d/%d", i)), &st))
			m[fmt.Sprint(i)] = fmt.Sprint(st.Ino, st.Mtim)
		}
		return m
	}
	before := stamps()
	res := b.jump(first.ID)
	after := stamps()
	delete(before, "7")
	delete(after, "7") // 8 changed its mode only: the same inode and mtime
	if fmt.Sprint(before) != fmt.Sprint(after) || len(res.Written) != 2 {
		t.Errorf("before %v\nafter %v\n%v", before, after, res.Written)
	}
	if again := b.jump(first.ID); len(again.Written)+len(again.Deleted) != 0 || !again.Exact {
		t.Errorf("a second jump moved %+v", again)
	}
}

// TestPersonsEdits: found, kept by default, saved in any case.
func TestPersonsEdits(t *testing.T) {
	ctx := context.Background()
	b := newBench(t, nil)
	b.write("a", "1")
	b.write("b", "1")
	b.write("gone", "1")
	first := b.save()
	b.write("a", "2")
	b.write("b", "2")
	b.save()
	b.write("b", "by hand")
	b.write("new", "by hand")
	b.must(os.Remove(b.path("gone")))
	plan, err := b.w.Plan(ctx, first.ID, nil)
	b.must(err)
	if fmt.Sprint(plan.Write, plan.Delete) != "[a] []" ||
		fmt.Sprint(plan.Keep) != fmt.Sprint([]Skip{
			{Path: "b", Reason: gitfmt.KeepEdited}, {Path: "gone", Reason: gitfmt.KeepDeleted},
			{Path: "new", Reason: gitfmt.KeepCreated},
		}) {
		t.Fatalf("%+v", plan)
	}
	res, err := b.w.RestoreTo(ctx, first.ID, RestoreOptions{PlanHash: plan.Hash})
	b.must(err)
	if data, _ := os.ReadFile(b.path("b")); string(data) != "by hand" {
		t.Errorf("b is %q", data)
	}
	if got := lookAtSnapshot(t, b.w, res.Source); got["new"] == "" {
		t.Error("the edit was not saved before")
	}
	// still edits the second time
	res, err = b.w.RestoreTo(ctx, first.ID, RestoreOptions{})
	b.must(err)
	if len(res.Written) != 0 || len(res.Kept) != 3 {
		t.Errorf("second time: %+v", res)
	}
	res, err = b.w.RestoreTo(ctx, first.ID, RestoreOptions{PlanOptions: PlanOptions{OverwriteEdits: true}})
	b.must(err)
	if !res.Exact || res.Tree != first.Tree {
		t.Errorf("overwrite: %+v", res)
	}
	// an edit between a task's save and its plan is kept, too
	b.write("a", "agent")
	b.save()
	b.write("b", "by hand again")
	plan, err = b.w.Plan(ctx, first.ID, nil)
	b.must(err)
	if fmt.Sprint(plan.Write) != "[a]" || len(plan.Keep) != 1 {
		t.Errorf("%+v", plan)
	}
}

// TestSubset restores some paths; what was edited elsewhere stays an edit,
// what was restored does not become one.
func TestSubset(t *testing.T) {
	ctx := context.Background()
	b := newBench(t, nil)
	b.write("d/a", "1")
	b.write("e", "1")
	first := b.save()
	b.must(os.RemoveAll(b.path("d")))
	b.write("e", "2")
	b.save()
	b.write("e", "by hand")
	res, err := b.w.RestoreTo(ctx, first.ID, RestoreOptions{PlanOptions: PlanOptions{Paths: []string{"d/a"}}})
	b.must(err)
	if fmt.Sprint(res.Written) != "[d/ d/a]" {
		t.Fatalf("%+v", res)
	}
	if data, _ := os.ReadFile(b.path("e")); string(data) != "by hand" {
		t.Errorf("e is %q", data)
	}
	p, err := b.w.Plan(ctx, first.ID, nil)
	b.must(err)
	if fmt.Sprint(p.Keep) != fmt.Sprint([]Skip{{Path: "e", Reason: gitfmt.KeepEdited}}) || !p.Empty() {
		t.Errorf("%+v", p)
	}
	if _, err := b.w.Plan(ctx, first.ID, &PlanOptions{Paths: []string{"../x"}}); !errors.Is(err, ErrRefused) {
		t.Errorf("a path outside: %v", err)
	}
	b.fsck()
}

// TestStalePlan: a plan that no longer holds moves nothing.
func TestStalePlan(t *testing.T) {
	ctx := context.Background()
	b := newBench(t, nil)
	b.write("a", "1")
	first := b.save()
	b.write("a", "2")
	b.save()
	p, err := b.w.Plan(ctx, first.ID, nil)
	b.must(err)
	b.write("a", "3")
	before := look(t, b.dir)
	if _, err := b.w.Restore(ctx, p); !errors.Is(err, ErrStale) {
		t.Fatalf("got %v", err)
	}
	if _, err := b.w.Restore(ctx, Plan{Target: first.ID}); !errors.Is(err, ErrStale) {
		t.Fatalf("a plan of nobody's: %v", err)
	}
	sameWorld(t, look(t, b.dir), before, "a refused restore")
	if p, err := b.w.Plan(ctx, first.ID, nil); err != nil || len(p.Keep) != 1 {
		t.Errorf("a refused restore made the edit a base: %+v %v", p, err)
	}
}

// TestTwoWorlds: snapshots of one directory are not restored into another
// that holds something.
func TestTwoWorlds(t *testing.T) {
	ctx := context.Background()
	b := newBench(t, nil)
	b.write("a", "1")
	first := b.save()
	other := filepath.Join(t.TempDir(), "other")
	b.must(os.Mkdir(other, 0o755))
	w, err := Open(other, b.store, nil)
	b.must(err)
	defer w.Close()
	if _, err := w.RestoreTo(ctx, first.ID, RestoreOptions{}); err != nil {
		t.Errorf("into an empty directory: %v", err)
	}
	b.must(os.WriteFile(filepath.Join(other, "mine"), nil, 0o644))
	if _, err := w.RestoreTo(ctx, first.ID, RestoreOptions{}); !errors.Is(err, ErrRefused) {
		t.Errorf("into another world: %v", err)
	}
}

// TestModes: modes and read-only directories come back, setuid is said.
func TestModes(t *testing.T) {
	b := newBench(t, nil)
	b.write("ro/f", "1")
	b.write("s", "1")
	b.must(os.Chmod(b.path("ro/f"), 0o400))
	b.must(os.Chmod(b.path("ro"), 0o555))
	b.must(os.Chmod(b.path("s"), 0o755|fs.ModeSetuid))
	t.Cleanup(func() { os.Chmod(b.path("ro"), 0o755) })
	first := b.save()
	if len(first.Notes) != 1 || first.Notes[0].Path != "s" {
		t.Errorf("notes %v", first.Notes)
	}
	want := look(t, b.dir)
	b.must(os.Chmod(b.path("ro"), 0o755))
	b.must(os.RemoveAll(b.path("ro")))
	b.jump(first.ID)
	sameWorld(t, look(t, b.dir), want, "modes")
}

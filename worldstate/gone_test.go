package worldstate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"anamnesis/worldstate/internal/gitfmt"
)

// TestRemovedAmidRestore kills a restore at its crash points and removes the
// directory before anybody recovers it: what comes back is the whole of either
// snapshot, without a file being called deleted by the user.
func TestRemovedAmidRestore(t *testing.T) {
	ctx := context.Background()
	b, first, second, one, two := messy(t)
	dropped := 0
	for n := 0; b.killed("restore", first, n); n += 5 {
		b.must(os.RemoveAll(b.dir))
		b.must(os.Mkdir(b.dir, 0o755))
		r, err := b.w.Recover(ctx)
		b.must(err)
		if r != nil {
			dropped++
			if !r.Dropped || r.Finished || len(r.Kept) != 0 {
				t.Fatalf("killed at point %d: %+v", n, r)
			}
		}
		id, want := first, one
		if n%2 == 0 {
			id, want = second, two
		}
		plan, err := b.w.Plan(ctx, id, nil)
		b.must(err)
		if !plan.Lost || len(plan.Keep) != 0 {
			t.Fatalf("killed at point %d: planned %+v", n, plan)
		}
		res, err := b.w.Restore(ctx, plan)
		if err != nil || !res.Exact {
			t.Fatalf("killed at point %d: %+v %v", n, res, err)
		}
		b.write("keep.log", "precious") // no snapshot holds these
		b.write("node_modules/m/index.js", "precious")
		sameWorld(t, look(t, b.dir), want, fmt.Sprintf("removed after a kill at point %d", n))
		b.jump(second)
	}
	if dropped < 10 {
		t.Errorf("only %d restores were under way", dropped)
	}
}

// TestReplacedIsNotRemoved: a restore that takes away every file before it
// writes others has a moment without any. Killed there it is finished, as
// anywhere.
func TestReplacedIsNotRemoved(t *testing.T) {
	b := newBench(t, nil)
	b.write("d/old", "1")
	one := look(t, b.dir)
	first := b.save().ID
	b.must(os.RemoveAll(b.path("d")))
	b.write("new", "2")
	second, two := b.save().ID, look(t, b.dir)
	none := false
	for n := 0; b.killed("restore", first, n); n++ {
		none = none || len(look(t, b.dir)) == 0
		b.settled(one, two, fmt.Sprintf("killed at point %d", n))
		b.jump(second)
	}
	if !none {
		t.Error("no kill fell where the world was empty")
	}
}

// TestPartlyRemovedIsFinished: where one file of either end still is the
// directory is not gone, and what was removed is what somebody changed.
func TestPartlyRemovedIsFinished(t *testing.T) {
	for _, stands := range []string{"same", "fresh"} {
		b := newBench(t, nil)
		b.write("same", "1")
		b.write("changed", "1")
		b.write("fresh", "1")
		first := b.save().ID
		b.write("changed", "2")
		b.must(os.Remove(b.path("fresh")))
		b.save()
		for n := 0; ; n++ { // until what the target adds is there
			if !b.killed("restore", first, n) {
				t.Fatal("no kill fell behind the writing of the fresh file")
			}
			if _, err := os.Lstat(b.path("fresh")); err == nil {
				break
			}
			_, err := b.w.Recover(context.Background())
			b.must(err)
			b.must(os.RemoveAll(b.path("fresh")))
			b.write("changed", "2")
			b.save()
		}
		for _, p := range []string{"same", "changed", "fresh"} {
			if p != stands {
				b.must(os.Remove(b.path(p)))
			}
		}
		r, err := b.w.Recover(context.Background())
		if err != nil || r == nil || r.Dropped || !r.Finished {
			t.Errorf("%s stands: %+v %v", stands, r, err)
		}
	}
}

// TestSubsetOfLost: a part of a directory that is gone comes back, and the rest
// is still nobody's deletion; what the user does afterwards is theirs.
func TestSubsetOfLost(t *testing.T) {
	ctx := context.Background()
	b := newBench(t, nil)
	for _, p := range []string{"a", "d/b", "d/c", "e"} {
		b.write(p, "1")
	}
	first := b.save().ID
	b.write("a", "2")
	b.save()
	b.must(os.RemoveAll(b.dir))
	b.must(os.Mkdir(b.dir, 0o755))
	res, err := b.w.RestoreTo(ctx, first, RestoreOptions{PlanOptions: PlanOptions{Paths: []string{"a", "d/b"}}})
	if err != nil || fmt.Sprint(res.Written) != "[a d/ d/b]" || len(res.Kept) != 0 {
		t.Fatalf("%+v %v", res, err)
	}
	b.write("a", "by hand")
	plan, err := b.w.Plan(ctx, first, nil)
	b.must(err)
	if plan.Lost || fmt.Sprint(plan.Write) != "[d/c e]" ||
		fmt.Sprint(plan.Keep) != fmt.Sprint([]Skip{{Path: "a", Reason: gitfmt.KeepEdited}}) {
		t.Errorf("%+v", plan)
	}
}

// TestStoreOnly: a store is read for a directory that is not there, under the
// name the directory has when it is, also where a link leads to it.
func TestStoreOnly(t *testing.T) {
	ctx := context.Background()
	b := newBench(t, nil)
	b.write("a", "1")
	saved := b.save()
	link := b.dir + "-link"
	b.must(os.Symlink(filepath.Dir(b.dir), link))
	b.must(os.RemoveAll(b.dir))
	w, err := Open(filepath.Join(link, filepath.Base(b.dir)), b.store, &Options{StoreOnly: true})
	b.must(err)
	defer w.Close()
	last, err := w.Last(ctx)
	if err != nil || last != saved.ID || w.Dir() != b.w.Dir() {
		t.Errorf("%s was last known at %q, %v; want %s at %s", w.Dir(), last, err, b.w.Dir(), saved.ID)
	}
	b.must(w.Has(ctx, saved.ID))
	if _, err := w.Plan(ctx, saved.ID, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a plan without a directory: %v", err)
	}
	none := filepath.Join(t.TempDir(), "none")
	if _, err := Open(b.dir, none, &Options{StoreOnly: true}); !errors.Is(err, gitfmt.ErrCorrupt) {
		t.Errorf("a store that is not there: %v", err)
	}
	if _, err := os.Lstat(none); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a store was made by looking for one: %v", err)
	}
}

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
	if plan.Lost || fmt.Sprint(plan.Write) != "[d/c e]" || fmt.Sprint(plan.Keep) != fmt.Sprint([]Skip{{Path: "a", Reason: gitfmt.KeepEdited}}) {
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

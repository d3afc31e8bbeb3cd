package worldstate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/refs"
)

// packsOf returns the files of the packs that do writes.
func (b *bench) packsOf(do func()) []string {
	b.Helper()
	packs := func() []string {
		names, err := filepath.Glob(filepath.Join(b.packDir(), "pack-*"))
		b.must(err)
		return names
	}
	before := packs()
	do()
	wrote := slices.DeleteFunc(packs(), func(name string) bool { return slices.Contains(before, name) })
	if len(wrote) == 0 {
		b.Fatal("nothing was written: nothing was tested")
	}
	return wrote
}

// lose removes packs and leaves the refs.
func (b *bench) lose(files []string) {
	b.Helper()
	for _, name := range files {
		b.must(os.Remove(name))
	}
}

// TestSnapshotLost: a save whose parent is lost holds all that is in the
// directory, has no parent and says so once. The log and a plan name what is lost.
func TestSnapshotLost(t *testing.T) {
	for _, same := range []bool{true, false} {
		t.Run(fmt.Sprint("same World ", same), func(t *testing.T) {
			b := newBench(t, nil)
			ids := b.steps(2)
			var lost ID
			b.lose(b.packsOf(func() {
				b.write("only/here", "held by what is lost")
				lost = b.save().ID
			}))
			if !same {
				b.must(b.w.Close())
				b.open(nil)
			}
			if _, err := b.w.Plan(b.Context(), lost, nil); !errors.Is(err, gitfmt.ErrCorrupt) ||
				!strings.Contains(err.Error(), "restore that snapshot from a backup") {
				t.Errorf("a plan to what is lost: %v", err)
			}
			s := b.save()
			b.must(b.w.Has(b.Context(), s.ID))
			if want := fmt.Sprintf("snapshot %s is missing or damaged: not in the store; only a backup can bring it back", lost[:12]); s.ParentLost != want {
				t.Errorf("the save says %q, want %q", s.ParentLost, want)
			}
			if c, err := b.w.Describe(b.Context(), s.ID); err != nil || len(c.Parents) != 0 {
				t.Errorf("it follows %v, %v", c.Parents, err)
			}
			if again := b.save(); again.ID != s.ID || again.ParentLost != "" {
				t.Errorf("the next save: %+v", again)
			}
			b.hasAll(ids)
			log, err := b.w.Log(b.Context())
			b.must(err)
			if i := slices.IndexFunc(log, func(c Commit) bool { return c.ID == lost }); len(log) != 4 || i < 0 ||
				log[i].Missing != "not in the store" {
				t.Errorf("the log: %+v", log)
			}
		})
	}
}

// TestPartLost: the newest snapshot is there, and what it shares with the one before
// is not. The next save holds all of it again, whether anything has changed or not.
func TestPartLost(t *testing.T) {
	for _, what := range []string{"a file", "a folder"} {
		for _, changed := range []bool{true, false} {
			t.Run(fmt.Sprint(what, " changed ", changed), func(t *testing.T) {
				b := newBench(t, nil)
				b.write("dir/deep/file", "1")
				b.steps(2)
				files := b.packsOf(func() {
					if what == "a file" {
						b.write("dir/deep/file", "2")
					} else {
						b.must(os.Rename(b.path("dir/deep"), b.path("dir/flat")))
					}
					b.save()
				})
				b.write("f", "more")
				part := b.save().ID
				b.lose(files)
				reader, err := Open(b.dir, b.store, nil)
				b.must(err)
				defer reader.Close()
				if err := reader.Has(b.Context(), part); !errors.Is(err, gitfmt.ErrCorrupt) {
					t.Fatalf("nothing is lost: %v", err)
				}
				if changed {
					b.write("f", "still more")
				}
				b.must(b.w.Has(b.Context(), b.save().ID))
			})
		}
	}
}

// TestRestoreAfterLoss: where the base is lost, a restore keeps every path that
// differs from the target and names the base; asked to overwrite, it restores them.
// The present is in the snapshot taken before.
func TestRestoreAfterLoss(t *testing.T) {
	for _, planned := range []bool{true, false} {
		b := newBench(t, nil)
		b.write("f", "1")
		b.write("old", "1")
		first := b.save().ID
		b.lose(b.packsOf(func() {
			b.write("f", "2")
			b.save()
		}))
		plan, err := b.w.Plan(b.Context(), first, nil)
		b.must(err)
		if plan.Base != first || !strings.Contains(plan.BaseLost, "not in the store; only a backup") {
			t.Errorf("the plan's base is %s, lost %q", plan.Base, plan.BaseLost)
		}
		var res Result
		if planned {
			res, err = b.w.Restore(b.Context(), plan)
		} else {
			res, err = b.w.RestoreTo(b.Context(), first, RestoreOptions{})
			if res.BaseLost != plan.BaseLost {
				t.Errorf("the restore says %q, the plan %q", res.BaseLost, plan.BaseLost)
			}
		}
		b.must(err)
		if got := look(t, b.dir); len(res.Kept) != 1 || res.Kept[0] != (Skip{Path: "f", Reason: gitfmt.KeepEdited}) ||
			len(res.Written) != 0 {
			t.Errorf("planned %v: %+v, and there stands %v", planned, res, got)
		}
		b.must(b.w.Has(b.Context(), res.Source))
		res, err = b.w.RestoreTo(b.Context(), first, RestoreOptions{PlanOptions: PlanOptions{OverwriteEdits: true}})
		b.must(err)
		b.must(b.w.Sync())
		if fmt.Sprint(res.Written) != "[f]" {
			t.Errorf("overwriting: %+v", res)
		}
	}
}

// TestGCAfterLoss: a collection that meets a lost snapshot removes nothing, and says
// which ref names it and what helps. Saves and restores go on.
func TestGCAfterLoss(t *testing.T) {
	b := newBench(t, nil)
	ids := b.steps(2)
	b.lose(b.packsOf(func() {
		b.write("f", "lost")
		b.save()
	}))
	ids = append(ids, b.save().ID)
	before := b.packs()
	for _, o := range []*GCOptions{nil, {DryRun: true}} {
		_, err := GC(b.Context(), b.store, o)
		want := fmt.Sprintf("%scli/3 names it; restore it from a backup of %s; nothing is collected until then",
			refs.TaskPrefix, b.store)
		if !errors.Is(err, gitfmt.ErrCorrupt) || !strings.HasSuffix(err.Error(), want) || b.packs() != before {
			t.Fatalf("a collection: %v, want %q; %d packs, were %d", err, want, b.packs(), before)
		}
	}
	b.hasAll(append(ids, b.save().ID))
}

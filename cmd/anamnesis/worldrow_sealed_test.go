//go:build unix

package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"anamnesis/cmd/internal/exit"
	"anamnesis/worldstate"
)

// sealedWorld is the world of a user who is not root, in three snapshots: before
// there was a directory, with it, and with it changed; now its mode is 000.
func sealedWorld(t *testing.T) (w *rowWorld, before, first, second worldstate.Snapshot) {
	w = strangersWorld(t)
	put := func(rel, content string) {
		w.write(rel, content)
		for _, p := range []string{rel, "a/sealed/deep", "a/sealed", "a"} {
			if exists(w.path(p)) {
				w.must(os.Chown(w.path(p), stranger, stranger))
			}
		}
	}
	put("other", "1")
	before = w.saved()
	put("a/open", "1")
	put("a/sealed/in", "1")
	put("a/sealed/deep/x", "1")
	first = w.saved()
	put("other", "2")
	put("a/open", "2")
	put("a/sealed/in", "2")
	put("a/sealed/new", "2")
	second = w.saved()
	if !first.Complete || !second.Complete {
		t.Fatalf("%+v, %+v", first, second)
	}
	w.must(os.Chmod(w.path("a/sealed"), 0))
	return w, before, first, second
}

// sealedStands checks that nothing at the directory or beneath was moved.
func (w *rowWorld) sealedStands(when string) {
	w.Helper()
	for rel, want := range map[string]string{"a/sealed/in": "2", "a/sealed/new": "2", "a/sealed/deep/x": "1"} {
		w.holds(rel, want)
	}
	if info, err := os.Stat(w.path("a/sealed")); err != nil || info.Mode().Perm() != 0 {
		w.Errorf("%s: the directory's mode is %v, %v", when, info.Mode(), err)
	}
	if w.Failed() {
		w.Fatal(when)
	}
}

// TestRow06Sealed: a directory of mode 000 beneath a path of the plan, met by its
// owner: it is listed, the snapshot is partial, and a restore of everything, of
// what is around it, or of it alone, changes nothing at it or beneath.
func TestRow06Sealed(t *testing.T) {
	t.Parallel()
	w, before, first, second := sealedWorld(t)
	sealed := func(list []worldstate.Skip) bool {
		return slices.ContainsFunc(list, func(s worldstate.Skip) bool {
			return strings.TrimSuffix(s.Path, "/") == "a/sealed" && strings.Contains(s.Reason, "permission denied")
		})
	}
	third := w.saved()
	if third.Complete || len(third.Skipped) != 1 || !sealed(third.Skipped) {
		t.Fatalf("the snapshot is %+v", third)
	}
	restores := []struct {
		when   string
		target worldstate.Snapshot
		paths  []string
		other  string
	}{
		{"everything, to when it could be read", first, nil, "1"},
		{"everything, to its last readable state", second, nil, "2"},
		{"what is around it", first, []string{"a"}, "2"},
		{"it alone", first, []string{"a/sealed"}, "2"},
		{"everything, to before it was made", before, nil, "1"},
		{"everything, to the snapshot that is partial", third, nil, "2"},
	}
	for _, r := range restores {
		w.saved()
		res := w.restored(r.target,
			worldstate.RestoreOptions{PlanOptions: worldstate.PlanOptions{Paths: r.paths, OverwriteEdits: true}})
		w.sealedStands(r.when)
		w.holds("other", r.other)
		if r.target.ID != third.ID && (res.Exact || !sealed(res.Kept)) {
			t.Errorf("%s: exact %v, kept %+v", r.when, res.Exact, res.Kept)
		}
	}
	w.must(os.Chmod(w.path("a/sealed"), 0o755))
	w.back(first)
	w.holds("a/sealed/in", "1")
	w.whole()
}

// TestRow06SealedSincePlan: a plan that was shown while the directory could be
// read does not hold any more.
func TestRow06SealedSincePlan(t *testing.T) {
	t.Parallel()
	heavy(t)
	w, _, first, _ := sealedWorld(t)
	w.must(os.Chmod(w.path("a/sealed"), 0o755))
	w.saved()
	plan, err := w.plan(first.ID, worldstate.PlanOptions{})
	w.must(err)
	w.must(os.Chmod(w.path("a/sealed"), 0))
	_, err = w.restore(first.ID, worldstate.RestoreOptions{PlanHash: plan.Hash})
	w.refused(err, exit.Refused, "the plan is stale")
	w.sealedStands("a stale plan")
	w.holds("other", "2")
}

package worldstate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/refs"
	"anamnesis/worldstate/worldtest"
)

// TestPackedTag: a user's tag in the store leads to its snapshot after saves have
// rewritten packed-refs, in which git had put it.
func TestPackedTag(t *testing.T) {
	b := newBench(t, nil)
	b.write("a", "1")
	first := b.save()
	worldtest.Git(t, b.dir, "--git-dir="+b.store, "tag", "-a", "-m", "this one", "mine", string(first.ID))
	want := string(first.ID) + " refs/tags/mine^{}\n"
	for _, by := range []string{"nobody", "git"} {
		b.steps(2)
		if got := worldtest.Git(t, b.dir, "--git-dir="+b.store, "show-ref", "-d", "--tags"); !strings.HasSuffix(got, want) {
			t.Errorf("packed by %s: git shows %q, want at the end %q", by, got, want)
		}
		worldtest.Git(t, b.dir, "--git-dir="+b.store, "pack-refs", "--all")
	}
}

// TestGCKeepsRootsUnread: a collection that cannot read all refs ends, and
// removes nothing.
func TestGCKeepsRootsUnread(t *testing.T) {
	b := newBench(t, nil)
	ids := b.steps(4)
	path := filepath.Join(b.store, "packed-refs")
	whole, err := os.ReadFile(path)
	b.must(err)
	packs := b.packs()
	for n, cut := range [][]byte{whole[:len(whole)-1], whole[:len(whole)-30], nil, append(slices.Clone(whole), "x\n"...)} {
		b.must(os.WriteFile(path, cut, 0o600))
		if _, err := GC(b.Context(), b.store, nil); !errors.Is(err, gitfmt.ErrCorrupt) {
			t.Errorf("%d: %v", n, err)
		}
	}
	b.must(os.WriteFile(path, whole, 0o600))
	if b.packs() != packs {
		t.Errorf("%d packs, were %d", b.packs(), packs)
	}
	b.gc(nil)
	b.hasAll(ids)
	b.fsck()
}

// Last returns the snapshot that this world was last known at: that of the last save, or the
// last restore's target. "" if there is none.
func (w *World) Last(ctx context.Context) (ID, error) {
	end, err := w.begin(ctx, reading)
	if err != nil {
		return "", err
	}
	defer end()
	h, err := w.head()
	if err != nil || h.IsZero() {
		return "", err
	}
	return ID(h.String()), nil
}

// head returns the snapshot the world was last known at.
func (b *bench) head() ID {
	b.Helper()
	id, err := b.w.Last(b.Context())
	b.must(err)
	return id
}

// TestTips: refs name only the snapshots from which none was saved, and every other is
// reachable from them. A step is found by the name that its snapshot carries, also on a
// branch that was left; one that changed nothing has no snapshot of its own.
func TestTips(t *testing.T) {
	b := newBench(t, &Options{Task: "t"})
	ids := make(map[string]ID)
	save := func(step string, parent ID) {
		s, err := b.w.Save(b.Context(), SaveOptions{Parent: parent, Ref: step})
		b.must(err)
		ids[step] = s.ID
	}
	for i, step := range []string{"0", "1", "changed-7", "2"} {
		b.write("a", fmt.Sprint(i))
		save(step, b.head())
	}
	save("3", ids["2"]) // unchanged
	b.jump(ids["1"])
	b.write("a", "another way")
	save("4", ids["1"])
	b.must(os.RemoveAll(filepath.Join(b.store, "refs", "anamnesis"))) // an empty directory
	byName, err := b.w.refs.All()
	b.must(err)
	var tips []string
	for name := range byName {
		if step := refs.Step(name); step != "" {
			tips = append(tips, step)
		}
	}
	slices.Sort(tips)
	if want := []string{"t@2", "t@4"}; !slices.Equal(tips, want) {
		t.Errorf("tips %q, want %q", tips, want)
	}
	for _, task := range []string{"t", "another"} {
		b.open(&Options{Task: task})
		for step, id := range ids {
			got, err := b.w.Resolve(b.Context(), "t@"+step)
			if step == "3" {
				if !errors.Is(err, ErrUnknown) {
					t.Errorf("a step that changed nothing: %s, %v", got, err)
				}
			} else if err != nil || got != id {
				t.Errorf("step %s from %s: %s, %v; want %s", step, task, got, err, id)
			}
		}
	}
	b.gc(nil)
	for _, id := range ids {
		b.must(b.w.Has(b.Context(), id))
	}
	b.fsck()
}

// TestReusedStep: where a stream was lost and its steps are made again, a step that
// changes nothing takes its name from the snapshot that had it.
func TestReusedStep(t *testing.T) {
	b := newBench(t, &Options{Task: "t"})
	ids := b.steps(3) // 1, 2, 3
	b.jump(ids[0])
	if _, err := b.w.Save(b.Context(), SaveOptions{Parent: ids[0], Ref: "3"}); err != nil {
		t.Fatal(err)
	}
	list, err := b.w.Log(b.Context())
	b.must(err)
	if id, err := b.w.Resolve(b.Context(), "3"); err != nil || id != ids[0] || len(list) != 1 {
		t.Errorf("step 3 is %s, %v; %d snapshots", id, err, len(list))
	}
}

// TestNumbersRise: a number that a save has used is not used again, also where the
// snapshot of that number is not named by a ref any more.
func TestNumbersRise(t *testing.T) {
	b := newBench(t, &Options{Task: "t"})
	b.steps(2)
	head := b.head()
	b.write("a", "changed")
	s, err := b.w.Save(b.Context(), SaveOptions{Parent: head, Ref: "changed-7"})
	b.must(err)
	b.write("a", "saved")
	next, err := b.w.SaveNext(b.Context(), "")
	b.must(err)
	c, err := b.w.Describe(b.Context(), next.ID)
	if b.must(err); !slices.Equal(c.Steps, []string{"3"}) || !slices.Equal(c.Parents, []ID{s.ID}) {
		t.Errorf("%+v", c)
	}
}

// TestOldStore: a store that an older program has written (testdata/v2) is read as it
// is, and every step of it after the first save has brought it over.
func TestOldStore(t *testing.T) {
	b := newBench(t, nil)
	b.must(os.RemoveAll(b.store))
	b.must(os.CopyFS(b.store, os.DirFS("testdata/v2/store")))
	b.open(nil)
	const second = ID("93c1b5cca4571a06faca2b3dd85d7064d89bb74a")
	look := func(want int) {
		t.Helper()
		list, err := b.w.Log(b.Context())
		b.must(err)
		if id, err := b.w.Resolve(b.Context(), "2"); id != second || err != nil || len(list) != want {
			t.Errorf("step 2 is %s, %v; %d snapshots, want %d", id, err, len(list), want)
		}
	}
	before := worldtest.Snapshot(t, b.store)
	look(5)
	worldtest.Untouched(t, before, worldtest.Snapshot(t, b.store), nil, "reading")
	b.write("file", "new")
	s, err := b.w.Save(b.Context(), SaveOptions{Parent: second, Ref: "6"})
	b.must(err)
	look(6)
	if n, err := fsys.ReadFormat(b.store); n != fsys.Format || err != nil {
		t.Errorf("format %d, %v", n, err)
	}
	if list, err := os.ReadDir(filepath.Join(b.store, "refs", "heads")); err != nil || len(list) > 0 {
		t.Errorf("loose: %v, %v", list, err)
	}
	names := worldtest.Git(t, b.dir, "--git-dir="+b.store, "for-each-ref", "--format=%(refname)")
	for _, step := range []string{"1", "2", "3", "4", "5", "6"} { // no trailer names the old ones
		if !strings.Contains(names, refs.TaskPrefix+"cli/"+step+"\n") {
			t.Errorf("git shows no step %s: %s", step, names)
		}
	}
	b.gc(nil)
	b.hasAll([]ID{second, s.ID})
	b.fsck()
}

package worldstate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/worldtest"
)

// packs counts the packs of the store on disk, and fails on one without an
// index or the other way round, and on a .keep without a pack.
func (b *bench) packs() int {
	b.Helper()
	list, err := os.ReadDir(b.packDir())
	b.must(err)
	ext := map[string]int{}
	for _, e := range list {
		ext[filepath.Ext(e.Name())]++
	}
	if ext[".pack"] != ext[".idx"] || ext[objects.KeepExt] > ext[".pack"] ||
		len(list) != 2*ext[".pack"]+ext[objects.KeepExt] {
		b.Fatalf("debris among the packs: %v", list)
	}
	return ext[".pack"]
}

// steps saves n snapshots of a growing world.
func (b *bench) steps(n int) []ID {
	var ids []ID
	before, _ := os.ReadDir(b.path("d"))
	for i := len(before); i < len(before)+n; i++ {
		b.write("f", fmt.Sprint("step ", i))
		b.write(fmt.Sprint("d/", i), strings.Repeat("x", i))
		ids = append(ids, b.save().ID)
	}
	return ids
}

func (b *bench) hasAll(ids []ID) {
	b.Helper()
	for i, id := range ids {
		if err := b.w.Has(context.Background(), id); err != nil {
			b.Fatalf("step %d: %v", i, err)
		}
	}
}

func TestSmallPacks(t *testing.T) {
	for _, c := range []struct {
		sizes []int64
		want  int
	}{
		{[]int64{1, 1, 1}, 3},
		{[]int64{1, 1, 1, 100}, 3},
		{[]int64{1, 2, 6, 18}, 0},
		{[]int64{1, 1, 1, 100, 150}, 5},
		{[]int64{5, 5, 20, 100}, 2},
	} {
		if got := objects.SmallPacks(c.sizes); got != c.want {
			t.Errorf("%v: %d, want %d", c.sizes, got, c.want)
		}
	}
}

// TestConsolidate: the packs of many saves become few; every step is there,
// for this process, for one that had the store open all the time, and for git;
// and the stat cache survives.
func TestConsolidate(t *testing.T) {
	b := newBench(t, nil)
	b.w.objects.MaxPacks = testPacks
	reader, err := Open(b.dir, b.store, nil)
	b.must(err)
	defer reader.Close()
	ids := b.steps(2)
	if err := reader.Has(context.Background(), ids[0]); err != nil {
		t.Fatal(err)
	}
	most := 0
	for range 3 * testPacks {
		ids = append(ids, b.steps(1)...)
		most = max(most, b.packs())
	}
	if n := b.packs(); most > testPacks || n > testPacks {
		t.Errorf("%d packs, and %d at most", n, most)
	}
	b.hasAll(ids)
	for _, id := range ids {
		if err := reader.Has(context.Background(), id); err != nil {
			t.Fatalf("a reader from before: %v", err)
		}
	}
	b.fsck()
}

// TestConsolidateReader: the packs go while another process is in the middle
// of reading: it finds the objects again.
func TestConsolidateReader(t *testing.T) {
	b := newBench(t, nil)
	ids := b.steps(3)
	reader, err := Open(b.dir, b.store, nil)
	b.must(err)
	defer reader.Close()
	b.must(reader.objects.Refresh()) // knows the packs, has none open
	packs, err := b.w.objects.OurPacks()
	b.must(err)
	b.must(b.w.objects.Merge(context.Background(), packs, &objects.Pool{}, func(string) {}))
	c, ok := gitfmt.ParseHash(string(ids[0]))
	if _, err := reader.objects.Read(c, gitfmt.CommitObject, "snapshot"); !ok || err != nil {
		t.Fatal(err)
	}
}

// TestConsolidateKilled kills a save that puts packs together at points, at every one in the
// nightly run: all steps are there, the next process goes on, and removes what is left lying about.
func TestConsolidateKilled(t *testing.T) {
	worldtest.Heavy(t)
	b := newBench(t, nil)
	b.w.objects.MaxPacks = testPacks
	ids := b.steps(2)
	kills := 0
	for n := 0; ; n += killEvery() {
		for b.packs() < testPacks {
			ids = append(ids, b.steps(1)...)
		}
		b.write("f", fmt.Sprint("killed at ", n))
		if !b.killed("save", "", n) {
			break
		}
		kills++
		b.hasAll(ids)
		b.open(nil) // another process removes what the killed one left
		b.w.objects.MaxPacks = testPacks
		ids = append(ids, b.save().ID)
		b.packs()
	}
	if kills < 15/killEvery() {
		t.Errorf("only %d kills: the crash points are gone", kills)
	}
	b.hasAll(ids)
	b.fsck()
}

// TestConsolidateRot: a pack whose bytes have changed is left as it is, so
// that a new index does not vouch for them.
func TestConsolidateRot(t *testing.T) {
	b := newBench(t, nil)
	b.steps(4)
	packs, err := b.w.objects.OurPacks()
	b.must(err)
	rotten := packs[2]
	data, err := os.ReadFile(rotten.Path)
	b.must(err)
	data[objects.PackHeaderBytes+3] ^= 1
	b.must(os.Chmod(rotten.Path, 0o600))
	b.must(os.WriteFile(rotten.Path, data, 0o600))
	err = b.w.objects.Merge(context.Background(), packs, &objects.Pool{}, func(string) {})
	if err == nil || !strings.Contains(err.Error(), rotten.Path) {
		t.Errorf("got %v", err)
	}
	if b.packs() != 4 {
		t.Error("packs went")
	}
}

// unkept takes away what says that packs are ours.
func (b *bench) unkept() {
	b.Helper()
	keeps, err := filepath.Glob(filepath.Join(b.packDir(), "*"+objects.KeepExt))
	b.must(err)
	b.lose(keeps)
}

// TestConsolidateGitPacks: a pack that git made stays as it is, and with a .keep of
// ours, too, where it holds differences to earlier places in itself: these cannot be
// copied one by one.
func TestConsolidateGitPacks(t *testing.T) {
	b := newBench(t, nil)
	ids := b.history(6, rand.New(rand.NewPCG(9, 10)))
	b.unkept()
	worldtest.Git(t, b.store, "-c", "repack.writeBitmaps=false", "repack", "-adfq")
	b.must(b.w.objects.Refresh())
	theirs, err := filepath.Glob(filepath.Join(b.packDir(), "*.pack"))
	b.must(err)
	for _, keep := range []string{"", objects.KeepWord} {
		if keep != "" {
			b.must(os.WriteFile(strings.TrimSuffix(theirs[0], ".pack")+objects.KeepExt, []byte(keep), 0o600))
		}
		ids = append(ids, b.steps(6)...)
		packs, err := b.w.objects.OurPacks()
		b.must(err)
		b.must(b.w.objects.Merge(context.Background(), packs, &objects.Pool{}, func(string) {}))
		if n := b.packs(); n != 2 {
			t.Errorf("%d packs, want git's and ours", n)
		}
		if _, err := os.Stat(theirs[0]); err != nil {
			t.Error(err)
		}
		b.hasAll(ids)
		b.fsck()
	}
}

// TestSweepKept: of packs without an index, and of what is beside no pack, only
// what is ours goes.
func TestSweepKept(t *testing.T) {
	s := objects.New(t.TempDir())
	at := func(name string) string { return filepath.Join(s.PackDir(), name) }
	if err := os.MkdirAll(s.PackDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"pack-1.pack": "", "pack-1.keep": objects.KeepWord + "\n", "pack-2.keep": objects.KeepWord,
		"pack-3.pack": "", "pack-4.pack": "", "pack-4.keep": "", "pack-5.pack": "", "pack-5.keep": "receive-pack 7 on host",
		"pack-6.pack": "", "pack-6.idx": "", "pack-6.keep": objects.KeepWord + "\n",
	}
	for name, text := range files {
		if err := os.WriteFile(at(name), []byte(text), 0o400); err != nil {
			t.Fatal(err)
		}
	}
	s.Sweep()
	for name := range files {
		gone := strings.HasPrefix(name, "pack-1.") || strings.HasPrefix(name, "pack-2.")
		if _, err := os.Lstat(at(name)); errors.Is(err, os.ErrNotExist) != gone {
			t.Errorf("%s: %v, want that it goes: %v", name, err, gone)
		}
	}
}

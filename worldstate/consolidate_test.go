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
)

// packs counts the packs of the store on disk, and fails on one without an
// index or the other way round.
func (b *bench) packs() int {
	b.Helper()
	list, err := os.ReadDir(b.w.objects.packDir())
	b.must(err)
	ext := map[string]int{}
	for _, e := range list {
		ext[filepath.Ext(e.Name())]++
	}
	if ext[".pack"] != ext[".idx"] || len(list) != 2*ext[".pack"] {
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
		if got := smallPacks(c.sizes); got != c.want {
			t.Errorf("%v: %d, want %d", c.sizes, got, c.want)
		}
	}
}

// TestConsolidate: the packs of many saves become few; every step is there,
// for this process, for one that had the store open all the time, and for git;
// and the stat cache survives.
func TestConsolidate(t *testing.T) {
	b := newBench(t, nil)
	b.w.objects.maxPacks = testPacks
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
	b.must(reader.objects.refresh()) // knows the packs, has none open
	packs, err := b.w.objects.bySize()
	b.must(err)
	b.must(b.w.objects.merge(context.Background(), packs, &packPool{}, func(string) {}))
	c, ok := parseHash(string(ids[0]))
	if _, err := reader.objects.read(c, commitObject, "snapshot"); !ok || err != nil {
		t.Fatal(err)
	}
}

// TestConsolidateKilled kills a save that puts packs together at every point:
// all steps are there, the next save goes on, and nothing is left lying about.
func TestConsolidateKilled(t *testing.T) {
	heavy(t)
	b := newBench(t, nil)
	b.w.objects.maxPacks = testPacks
	ids := b.steps(2)
	kills := 0
	for n := 0; ; n++ {
		for b.packs() < testPacks {
			ids = append(ids, b.steps(1)...)
		}
		b.write("f", fmt.Sprint("killed at ", n))
		if !b.killed("save", "", n) {
			break
		}
		kills++
		b.hasAll(ids)
		ids = append(ids, b.save().ID)
		b.packs()
	}
	if kills < 15 {
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
	packs, err := b.w.objects.bySize()
	b.must(err)
	rotten := packs[2]
	data, err := os.ReadFile(rotten.path)
	b.must(err)
	data[packHeaderBytes+3] ^= 1
	b.must(os.Chmod(rotten.path, 0o600))
	b.must(os.WriteFile(rotten.path, data, 0o600))
	err = b.w.objects.merge(context.Background(), packs, &packPool{}, func(string) {})
	if err == nil || !strings.Contains(err.Error(), rotten.path) {
		t.Errorf("got %v", err)
	}
	if b.packs() != 4 {
		t.Error("packs went")
	}
}

// TestConsolidateGitPacks: a pack that git made holds differences to earlier
// places in itself, which cannot be copied one by one; it stays as it is.
func TestConsolidateGitPacks(t *testing.T) {
	b := newBench(t, nil)
	ids := b.history(6, rand.New(rand.NewPCG(9, 10)))
	git(t, b.store, "-c", "repack.writeBitmaps=false", "repack", "-adfq")
	b.must(b.w.objects.refresh())
	ids = append(ids, b.steps(6)...)
	packs, err := b.w.objects.bySize()
	b.must(err)
	b.must(b.w.objects.merge(context.Background(), packs, &packPool{}, func(string) {}))
	if n := b.packs(); n != 2 {
		t.Errorf("%d packs, want git's and ours", n)
	}
	b.hasAll(ids)
	b.fsck()
}

// A pack without an index is git's, as long as the index waits beside it.
func TestSweepLeavesPacksOfGit(t *testing.T) {
	for _, waiting := range []string{".tmp-77-pack-1.idx", "tmp_idx_Ab12Cd"} {
		s := refStore(t)
		pack, idx := filepath.Join(s.packDir(), "pack-1.pack"), filepath.Join(s.packDir(), waiting)
		if err := errors.Join(os.MkdirAll(s.packDir(), 0o700), os.WriteFile(pack, nil, 0o400), os.WriteFile(idx, nil, 0o400)); err != nil {
			t.Fatal(err)
		}
		s.sweep()
		if _, err := os.Stat(pack); err != nil {
			t.Errorf("git's pack is gone: %v", err)
		}
		if err := os.Remove(idx); err != nil {
			t.Fatal(err)
		}
		s.sweep()
		if _, err := os.Stat(pack); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a pack that nobody will give an index is there still: %v", err)
		}
	}
}

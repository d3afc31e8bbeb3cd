package worldstate

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/worldstate/worldtest"
)

// multiIndexes lists what git keeps over several packs of the store.
func (b *bench) multiIndexes() string {
	b.Helper()
	list, err := os.ReadDir(b.packDir())
	b.must(err)
	var names []string
	for _, e := range list {
		if strings.HasPrefix(e.Name(), "multi-pack-index") {
			names = append(names, e.Name())
		}
	}
	return strings.Join(names, " ")
}

// TestMultiPackIndex: an index over several packs that a user's git wrote does
// not outlive one of the packs it names, whether a consolidation or a collection
// takes them away, and however often either is killed: git reads the store.
func TestMultiPackIndex(t *testing.T) {
	worldtest.Heavy(t)
	for _, op := range []string{"save", "gc"} {
		t.Run(op, func(t *testing.T) {
			between := false
			for n := 0; ; n++ {
				b := newBench(t, nil)
				b.w.objects.MaxPacks = testPacks
				ids := b.history(testPacks, rand.New(rand.NewPCG(5, 6)))
				worldtest.Git(b, b.dir, "--git-dir="+b.store, "multi-pack-index", "write", "--bitmap")
				if have := b.multiIndexes(); !strings.Contains(have, ".bitmap") {
					t.Fatalf("git wrote %q", have)
				}
				b.write("more", "1")
				killed := b.killed(op, "", n)
				left := b.multiIndexes()
				b.fsck()
				b.hasAll(ids)
				between = between || killed && left != "" && !strings.HasPrefix(left, "multi-pack-index ")
				if !killed {
					if left != "" || b.packs() != 1 {
						t.Errorf("%d packs, and %q stands", b.packs(), left)
					}
					break
				}
			}
			if !between {
				t.Error("no kill fell between the removals")
			}
		})
	}
}

// TestMultiPackIndexStays: where no pack goes, the user's index stays.
func TestMultiPackIndexStays(t *testing.T) {
	b := newBench(t, nil)
	ids := b.steps(3)
	worldtest.Git(b, b.dir, "--git-dir="+b.store, "multi-pack-index", "write")
	ids = append(ids, b.steps(1)...)
	if b.multiIndexes() != "multi-pack-index" {
		t.Errorf("there stands %q", b.multiIndexes())
	}
	b.must(b.w.Has(context.Background(), ids[3]))
	b.fsck()
}

// TestMultiPackIndexLock: the lock of a git that is writing one is its own, and what git
// wrote in parts goes as well.
func TestMultiPackIndexLock(t *testing.T) {
	b := newBench(t, nil)
	b.w.objects.MaxPacks = testPacks
	b.history(testPacks, rand.New(rand.NewPCG(5, 6)))
	for _, name := range []string{"multi-pack-index", "multi-pack-index.lock", "multi-pack-index.d/multi-pack-index-chain"} {
		path := filepath.Join(b.packDir(), name)
		b.must(os.MkdirAll(filepath.Dir(path), 0o755))
		b.must(os.WriteFile(path, []byte("pack-1.idx\x00"), 0o644))
	}
	b.write("more", "1")
	b.save()
	if left := b.multiIndexes(); left != "multi-pack-index.lock" {
		t.Errorf("there stands %q", left)
	}
}

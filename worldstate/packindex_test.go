package worldstate

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// drawItems draws the objects of a pack, ids that begin alike and places beyond
// two and four gigabytes among them.
func drawItems(t *rapid.T) []packItem {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	alike := rapid.IntRange(0, 20).Draw(t, "bytes alike")
	items := make([]packItem, rapid.IntRange(0, 300).Draw(t, "objects"))
	off := int64(packHeaderBytes)
	for i := range items {
		it := packItem{off: off, crc: rng.Uint32()}
		for b := alike; b < len(it.hash); b++ {
			it.hash[b] = byte(rng.Uint32())
		}
		items[i] = it
		off += 1 + rng.Int64N(1<<rapid.IntRange(1, 26).Draw(t, "bits"))
	}
	slices.SortFunc(items, func(a, b packItem) int { return bytes.Compare(a.hash[:], b.hash[:]) })
	return slices.CompactFunc(items, func(a, b packItem) bool { return a.hash == b.hash })
}

// TestPackIndex: what an index was made of comes back from its file, object by
// object and whole, and what is not in it is not found.
func TestPackIndex(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pack-x.idx")
	rapid.Check(t, func(t *rapid.T) {
		items := drawItems(t)
		if err := os.WriteFile(path, encodeIndex(slices.Clone(items), hash{1}), 0o600); err != nil {
			t.Fatal(err)
		}
		x, err := openPackIndex(path, rapid.IntRange(-1, 300).Draw(t, "held"))
		if err != nil {
			t.Fatal(err)
		}
		defer x.close()
		if got, err := x.items(); err != nil || !slices.Equal(got, items) || x.pack != (hash{1}) {
			t.Fatalf("items = %v, %v, want %v", got, err, items)
		}
		var ends packEnds
		starts, err := x.starts()
		if err != nil || len(starts) != len(items) || !slices.IsSorted(starts) {
			t.Fatalf("starts = %v, %v", starts, err)
		}
		for _, s := range starts {
			ends.add(s)
		}
		for _, it := range items {
			if off, ok := x.find(it.hash); !ok || off != it.off {
				t.Fatalf("find %s = %d, %t, want %d", it.hash, off, ok, it.off)
			}
			if got, ok := x.entry(it.hash); !ok || got != it {
				t.Fatalf("entry %s = %v, %t, want %v", it.hash, got, ok, it)
			}
			i, _ := slices.BinarySearch(starts, it.off)
			end, ok := ends.after(it.off)
			if ok != (i+1 < len(starts)) || ok && end != starts[i+1] {
				t.Fatalf("after %d = %d, %t", it.off, end, ok)
			}
			other := it.hash
			other[19]++
			if _, there := slices.BinarySearchFunc(items, other, func(it packItem, h hash) int { return bytes.Compare(it.hash[:], h[:]) }); !there {
				if off, ok := x.find(other); ok {
					t.Fatalf("find %s = %d, it is not there", other, off)
				}
			}
		}
	})
}

// TestPackIndexCutLater: an index that is cut off while it is open has lost
// what stood behind; the program goes on.
func TestPackIndexCutLater(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pack-x.idx")
	it := packItem{hash: hash{7, 8, 9}, off: packHeaderBytes}
	if err := os.WriteFile(path, encodeIndex([]packItem{it}, hash{1}), 0o600); err != nil {
		t.Fatal(err)
	}
	x, err := openPackIndex(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer x.close()
	if err := os.Truncate(path, indexEntries); err != nil {
		t.Fatal(err)
	}
	if off, ok := x.find(it.hash); ok {
		t.Errorf("found at %d in a file without it", off)
	}
	if _, err := x.items(); err == nil {
		t.Error("the objects of a file without them were read")
	}
	if starts, err := x.starts(); err != nil || !slices.Equal(starts, []int64{packHeaderBytes}) {
		t.Errorf("starts = %v, %v: places are held in memory", starts, err)
	}
}

// packOf writes a pack of n objects of one kind of text and gives its index.
func (b *bench) packOf(what string, n int) string {
	b.Helper()
	out := newPackWriter(b.w.objects.packDir(), func(string) {}, &packPool{})
	for i := range n {
		text := []byte(fmt.Sprint(what, i))
		b.must(out.add(hashObject(blobObject, text), blobObject, text))
	}
	idx, err := out.finish()
	b.must(err)
	b.must(b.w.objects.published(idx))
	return idx
}

// TestMergeAfterRot: an id that rots in the index of an open pack is not
// written into another pack as the object's, whose only copy then goes.
func TestMergeAfterRot(t *testing.T) {
	for _, n := range []int{10, smallPack + 1} {
		b := newBench(t, nil)
		s := b.w.objects
		idx := b.packOf("of one pack ", n)
		b.packOf("of another ", 3)
		data, err := os.ReadFile(idx)
		b.must(err)
		h := hash(data[indexEntries:][:20])
		b.must(os.Chmod(idx, 0o600))
		f, err := os.OpenFile(idx, os.O_WRONLY, 0)
		b.must(err)
		_, err = f.WriteAt([]byte{h[19] ^ 1}, indexEntries+19)
		b.must(errors.Join(err, f.Close()))
		packs, err := s.bySize()
		b.must(err)
		err = s.merge(t.Context(), packs, &packPool{}, func(string) {})
		if n > smallPack {
			if err == nil {
				t.Error("packs were put together by an index that is not what it was")
			}
			continue
		}
		if _, rerr := s.read(h, blobObject, "object"); err != nil || rerr != nil {
			t.Errorf("merged: %v, and its object read: %v", err, rerr)
		}
	}
}

// TestSmallPacksHoldNoFile: the indexes of small packs, of which there are up to
// fifty in a store, are not open files.
func TestSmallPacksHoldNoFile(t *testing.T) {
	b := newBench(t, nil)
	b.steps(5)
	b.packOf("large ", smallPack+1)
	open := 0
	for name, p := range b.w.objects.packs {
		_, held := p.src.(heldIndex)
		if held != (p.n <= smallPack) {
			t.Errorf("%s with %d objects: held in memory %t", name, p.n, held)
		}
		if !held {
			open++
		}
	}
	if open != 1 {
		t.Errorf("%d indexes are open files, want 1", open)
	}
}

package objects_test

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
)

// drawItems draws the objects of a pack, ids that begin alike and places beyond
// two and four gigabytes among them.
func drawItems(t *rapid.T) []gitfmt.PackItem {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	alike := rapid.IntRange(0, 20).Draw(t, "bytes alike")
	items := make([]gitfmt.PackItem, rapid.IntRange(0, 300).Draw(t, "objects"))
	off := int64(objects.PackHeaderBytes)
	for i := range items {
		it := gitfmt.PackItem{Off: off, Crc: rng.Uint32()}
		for b := alike; b < len(it.Hash); b++ {
			it.Hash[b] = byte(rng.Uint32())
		}
		items[i] = it
		off += 1 + rng.Int64N(1<<rapid.IntRange(1, 26).Draw(t, "bits"))
	}
	slices.SortFunc(items, func(a, b gitfmt.PackItem) int { return bytes.Compare(a.Hash[:], b.Hash[:]) })
	return slices.CompactFunc(items, func(a, b gitfmt.PackItem) bool { return a.Hash == b.Hash })
}

// TestPackIndex: what an index was made of comes back from its file, object by
// object and whole, and what is not in it is not found.
func TestPackIndex(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "pack-x.idx")
	rapid.Check(t, func(t *rapid.T) {
		items := drawItems(t)
		if err := os.WriteFile(path, gitfmt.EncodePackIndex(slices.Clone(items), gitfmt.Hash{1}), 0o600); err != nil {
			t.Fatal(err)
		}
		end := int64(objects.PackHeaderBytes)
		for _, it := range items {
			end = max(end, it.Off+1+rapid.Int64Range(0, 1<<17).Draw(t, "last length"))
		}
		pack, err := os.Create(filepath.Join(dir, "pack-x.pack"))
		if err != nil {
			t.Fatal(err)
		}
		sum := gitfmt.Hash{1}
		_, err = pack.WriteAt(sum[:], end)
		if err := errors.Join(err, pack.Close()); err != nil {
			t.Fatal(err)
		}
		x, err := objects.OpenPack(path)
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		if n := len(x.Entries()); n != len(items) {
			t.Fatalf("%d entries, want %d", n, len(items))
		}
		for _, it := range items {
			if off, ok := x.Find(it.Hash); !ok || off != it.Off {
				t.Fatalf("find %s = %d, %t, want %d", it.Hash, off, ok, it.Off)
			}
			next := end
			for _, o := range items {
				if o.Off > it.Off {
					next = min(next, o.Off)
				}
			}
			if e, ok := x.Entry(it.Hash); !ok || e.PackItem != it || e.Size != next-it.Off {
				t.Fatalf("entry of %s = %v, %t, want %v of %d bytes", it.Hash, e, ok, it, next-it.Off)
			}
			other := it.Hash
			other[19]++
			if _, there := slices.BinarySearchFunc(items, other, func(it gitfmt.PackItem, h gitfmt.Hash) int { return bytes.Compare(it.Hash[:], h[:]) }); !there {
				if off, ok := x.Find(other); ok {
					t.Fatalf("find %s = %d, it is not there", other, off)
				}
			}
		}
	})
}

// TestPackIndexDamaged: an index that is cut off, or leads beyond its end, is refused.
func TestPackIndexDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pack-x.idx")
	items := []gitfmt.PackItem{{Hash: gitfmt.Hash{7, 8, 9}, Off: 1 << 40}, {Hash: gitfmt.Hash{8}, Off: 12}}
	whole := gitfmt.EncodePackIndex(items, gitfmt.Hash{1})
	summed := func(body []byte) []byte {
		sum := sha1.Sum(body)
		return append(slices.Clone(body), sum[:]...)
	}
	body := whole[:len(whole)-sha1.Size]
	beyond := slices.Clone(body)
	beyond[objects.IndexEntries+48+3] = 1 // the second of one far offset
	unsorted := slices.Clone(body)
	unsorted[objects.IndexEntries] = 9
	for want, data := range map[string][]byte{
		"not a version 2 index": body[:100], "wrong checksum": whole[:len(whole)-1], "cut short": summed(body[:objects.IndexEntries+2*sha1.Size]),
		"beyond its table": summed(beyond), "unsorted": summed(unsorted),
	} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := objects.ReadPackIndex(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// newStore returns an empty store.
func newStore(t *testing.T) *objects.Store {
	t.Helper()
	s := objects.New(t.TempDir())
	if err := os.MkdirAll(s.PackDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// addPack writes a pack of n objects of one kind of text and returns its index.
func addPack(t *testing.T, s *objects.Store, what string, n int) string {
	t.Helper()
	out := objects.NewWriter(s.PackDir(), func(string) {}, &objects.Pool{})
	for i := range n {
		text := []byte(fmt.Sprint(what, i))
		if err := out.Add(gitfmt.HashObject(gitfmt.BlobObject, text), gitfmt.BlobObject, text); err != nil {
			t.Fatal(err)
		}
	}
	idx, err := out.Finish()
	if err == nil {
		err = s.Published(idx)
	}
	if err != nil {
		t.Fatal(err)
	}
	return idx
}

// TestMergeAfterRot: an id that rots in the index of an open pack is not
// written into another pack as the object's, whose only copy then goes.
func TestMergeAfterRot(t *testing.T) {
	s := newStore(t)
	idx := addPack(t, s, "of one pack ", 600)
	addPack(t, s, "of another ", 3)
	data, err := os.ReadFile(idx)
	if err != nil {
		t.Fatal(err)
	}
	h := gitfmt.Hash(data[objects.IndexEntries:][:20])
	data[objects.IndexEntries+19] ^= 1
	if err := os.Remove(idx); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(idx, data, 0o600); err != nil {
		t.Fatal(err)
	}
	packs, err := s.OurPacks()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Merge(t.Context(), packs, &objects.Pool{}, func(string) {}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(h, gitfmt.BlobObject, "object"); err != nil || len(s.PackNames()) != 1 {
		t.Errorf("%d packs, and its object read: %v", len(s.PackNames()), err)
	}
}

// TestPackIndexOddPlaces: what an index puts where no object can be is not
// intact, whatever checksum it says.
func TestPackIndexOddPlaces(t *testing.T) {
	s := newStore(t)
	idx := addPack(t, s, "of one pack ", 3)
	data, err := os.ReadFile(idx)
	if err != nil {
		t.Fatal(err)
	}
	items := []gitfmt.PackItem{
		{Hash: gitfmt.Hash{1}, Off: objects.PackHeaderBytes}, {Hash: gitfmt.Hash{2}, Off: objects.PackHeaderBytes},
		{Hash: gitfmt.Hash{3}, Off: 1 << 20},
	}
	if err := os.Remove(idx); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(idx, gitfmt.EncodePackIndex(slices.Clone(items), gitfmt.Hash(data[len(data)-objects.IndexEnd:][:sha1.Size])), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := objects.OpenPack(idx)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	listed := p.Entries()
	for _, it := range items {
		found, ok := p.Entry(it.Hash)
		if !ok {
			t.Errorf("%s: not listed", it.Hash)
		}
		for _, it := range append(listed, found) {
			if kind, err := p.Intact(it, nil, make([]byte, 100)); err == nil {
				t.Errorf("%s at %d, %d bytes: an intact %s", it.Hash, it.Off, it.Size, kind)
			}
		}
	}
}

// TestLevels: a collection compresses better than a save, and recognises what it has compressed.
func TestLevels(t *testing.T) {
	dir := t.TempDir()
	data := bytes.Repeat([]byte("the same\n"), 200)
	id := gitfmt.HashObject(gitfmt.BlobObject, data)
	const best = 9 // a collection's
	size := func(level int) int64 {
		p := objects.NewWriter(dir, func(string) {}, &objects.Pool{})
		p.Level = level
		defer p.Abort()
		if err := p.Add(id, gitfmt.BlobObject, data); err != nil {
			t.Fatal(err)
		}
		s := storeOf(t, p, dir)
		if err := s.Check(id, gitfmt.BlobObject, "it"); err != nil {
			t.Fatal(err)
		}
		_, off := s.Lookup(id)
		tight, err := s.Packs[s.PackNames()[0]].Tight(off)
		if want := level > 0; err != nil || tight != want {
			t.Errorf("level %d: compressed well: %t, want %t: %v", level, tight, want, err)
		}
		return p.Off
	}
	if fast, tight := size(0), size(best); fast > int64(len(data)) || tight > fast {
		t.Errorf("a save's pack has %d bytes, a collection's %d, of %d", fast, tight, len(data))
	}
}

// finished ends a pack and returns a store that consists of it.
func storeOf(t *testing.T, p *objects.Writer, dir string) *objects.Store {
	t.Helper()
	idx, err := p.Finish()
	if err != nil {
		t.Fatal(err)
	}
	s := objects.New(dir)
	t.Cleanup(s.Close)
	if err := s.Published(idx); err != nil {
		t.Fatal(err)
	}
	return s
}

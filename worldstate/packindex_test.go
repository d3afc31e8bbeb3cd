package worldstate

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"anamnesis/worldstate/internal/gc"
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
		x, err := objects.OpenPackIndex(path, rapid.IntRange(-1, 300).Draw(t, "held"))
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		if got, err := x.Items(); err != nil || !slices.Equal(got, items) || x.Pack != (gitfmt.Hash{1}) {
			t.Fatalf("items = %v, %v, want %v", got, err, items)
		}
		end := int64(objects.PackHeaderBytes)
		for _, it := range items {
			end = max(end, it.Off+1+rapid.Int64Range(0, 1<<17).Draw(t, "last length"))
		}
		lengths, err := x.Lengths(end + sha1.Size)
		if err != nil {
			t.Fatal(err)
		}
		for i, it := range items {
			if off, ok := x.Find(it.Hash); !ok || off != it.Off {
				t.Fatalf("find %s = %d, %t, want %d", it.Hash, off, ok, it.Off)
			}
			if at, ok := x.Position(it.Hash); !ok || at != i {
				t.Fatalf("position %s = %d, %t, want %d", it.Hash, at, ok, i)
			}
			if crc, err := x.Crc(i); err != nil || crc != it.Crc {
				t.Fatalf("crc %s = %d, %v, want %d", it.Hash, crc, err, it.Crc)
			}
			next := end
			for _, o := range items {
				if o.Off > it.Off {
					next = min(next, o.Off)
				}
			}
			if n := lengths.Of(i); n != next-it.Off {
				t.Fatalf("length at %d = %d, want %d", it.Off, n, next-it.Off)
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

// TestPackIndexCutLater: an index that is cut off while it is open has lost
// what was behind; the program goes on.
func TestPackIndexCutLater(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pack-x.idx")
	it := gitfmt.PackItem{Hash: gitfmt.Hash{7, 8, 9}, Off: objects.PackHeaderBytes}
	if err := os.WriteFile(path, gitfmt.EncodePackIndex([]gitfmt.PackItem{it}, gitfmt.Hash{1}), 0o600); err != nil {
		t.Fatal(err)
	}
	x, err := objects.OpenPackIndex(path, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if err := os.Truncate(path, objects.IndexEntries); err != nil {
		t.Fatal(err)
	}
	if off, ok := x.Find(it.Hash); ok {
		t.Errorf("found at %d in a file without it", off)
	}
	if _, err := x.Items(); err == nil {
		t.Error("the objects of a file without them were read")
	}
	if crc, err := x.Crc(0); err == nil {
		t.Errorf("the checksum %d was read of a file without it", crc)
	}
	if off, err := x.Offset(0); err != nil || off != objects.PackHeaderBytes {
		t.Errorf("offset %d, %v: places are held in memory", off, err)
	}
}

// packOf writes a pack of n objects of one kind of text and returns its index.
func (b *bench) packOf(what string, n int) string {
	b.Helper()
	out := objects.NewWriter(b.w.objects.PackDir(), func(string) {}, &objects.Pool{})
	for i := range n {
		text := []byte(fmt.Sprint(what, i))
		b.must(out.Add(gitfmt.HashObject(gitfmt.BlobObject, text), gitfmt.BlobObject, text))
	}
	idx, err := out.Finish()
	b.must(err)
	b.must(b.w.objects.Published(idx))
	return idx
}

// TestMergeAfterRot: an id that rots in the index of an open pack is not
// written into another pack as the object's, whose only copy then goes.
func TestMergeAfterRot(t *testing.T) {
	for _, n := range []int{10, objects.SmallPack + 1} {
		b := newBench(t, nil)
		s := b.w.objects
		idx := b.packOf("of one pack ", n)
		b.packOf("of another ", 3)
		data, err := os.ReadFile(idx)
		b.must(err)
		h := gitfmt.Hash(data[objects.IndexEntries:][:20])
		b.must(os.Chmod(idx, 0o600))
		f, err := os.OpenFile(idx, os.O_WRONLY, 0)
		b.must(err)
		_, err = f.WriteAt([]byte{h[19] ^ 1}, objects.IndexEntries+19)
		b.must(errors.Join(err, f.Close()))
		packs, err := s.OurPacks()
		b.must(err)
		err = s.Merge(t.Context(), packs, &objects.Pool{}, func(string) {})
		if n > objects.SmallPack {
			if err == nil {
				t.Error("packs were put together by an index that is not what it was")
			}
			continue
		}
		if _, rerr := s.Read(h, gitfmt.BlobObject, "object"); err != nil || rerr != nil {
			t.Errorf("merged: %v, and its object read: %v", err, rerr)
		}
	}
}

// TestSmallPacksHoldNoFile: the indexes of small packs, of which there are up to
// fifty in a store, are not open files.
func TestSmallPacksHoldNoFile(t *testing.T) {
	b := newBench(t, nil)
	b.steps(5)
	b.packOf("large ", objects.SmallPack+1)
	open := 0
	for name, p := range b.w.objects.Packs {
		_, held := p.Src.(objects.HeldIndex)
		if held != (p.N <= objects.SmallPack) {
			t.Errorf("%s with %d objects: held in memory %t", name, p.N, held)
		}
		if !held {
			open++
		}
	}
	if open != 1 {
		t.Errorf("%d indexes are open files, want 1", open)
	}
}

// TestIndexRotsOpen: a checksum that rots in the index of an open pack makes no
// object that is whole a damaged one, and vouches for none: a save writes it
// anew.
func TestIndexRotsOpen(t *testing.T) {
	b := newBench(t, nil)
	s := b.w.objects
	idx := b.packOf("large ", objects.SmallPack+1)
	text := []byte("large 7")
	h := gitfmt.HashObject(gitfmt.BlobObject, text)
	p, it := s.Locate(h)
	if p == nil || !s.HasIntact(h) {
		t.Fatal("it is not there")
	}
	at, _ := p.Position(h)
	b.must(os.Chmod(idx, 0o600))
	f, err := os.OpenFile(idx, os.O_WRONLY, 0)
	b.must(err)
	_, err = f.WriteAt([]byte{byte(it.Crc>>24) ^ 1}, p.CrcAt(at))
	b.must(errors.Join(err, f.Close()))
	if err := s.Probe(h, gitfmt.BlobObject, "f"); err != nil {
		t.Errorf("it is whole, and called damaged: %v", err)
	}
	if s.HasIntact(h) {
		t.Error("a save takes it for intact by a checksum that is not its own")
	}
	b.write("f", string(text))
	snap := b.save()
	again, err := Open(b.dir, b.store, nil) // to whom all of that pack counts as absent
	b.must(err)
	defer again.Close()
	b.must(again.Has(b.Context(), snap.ID))
}

// TestGCKeepsWhatIsNamed: where an index cannot be read, what a stream names is
// not taken for lost: a collection ends and removes nothing.
func TestGCKeepsWhatIsNamed(t *testing.T) {
	b := newBench(t, nil)
	b.packOf("large ", objects.SmallPack+1)
	h := gitfmt.HashObject(gitfmt.BlobObject, []byte("large 7"))
	keep := []ID{ID(gitfmt.Hash{1}.String()), ID(h.String())}
	if roots, err := gc.KeptRoots(b.w.objects, keep); err != nil || !slices.Equal(roots, []gitfmt.Hash{h}) {
		t.Fatalf("roots = %v, %v", roots, err)
	}
	for _, p := range b.w.objects.Packs {
		p.Src = failingSource{p.Src}
	}
	if roots, err := gc.KeptRoots(b.w.objects, keep); !errors.Is(err, gitfmt.ErrCorrupt) {
		t.Errorf("roots = %v, %v", roots, err)
	}
}

// TestPackIndexOddPlaces: what an index puts where no object can be is not
// intact, whatever checksum it says.
func TestPackIndexOddPlaces(t *testing.T) {
	b := newBench(t, nil)
	idx := b.packOf("of one pack ", 3)
	data, err := os.ReadFile(idx)
	b.must(err)
	items := []gitfmt.PackItem{{Hash: gitfmt.Hash{1}, Off: objects.PackHeaderBytes}, {Hash: gitfmt.Hash{2}, Off: objects.PackHeaderBytes}, {Hash: gitfmt.Hash{3}, Off: 1 << 20}}
	b.must(os.Remove(idx))
	b.must(os.WriteFile(idx, gitfmt.EncodePackIndex(slices.Clone(items), gitfmt.Hash(data[len(data)-objects.IndexEnd:][:sha1.Size])), 0o600))
	p, err := objects.OpenPack(idx)
	b.must(err)
	defer p.Close()
	listed, err := p.Entries()
	b.must(err)
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

// TestPackLengths: a length comes back as it was given, also what only a damaged
// index returns: two objects at one place, or one behind the pack's end.
func TestPackLengths(t *testing.T) {
	given := []int64{1, 65535, 65536, 1 << 40, 0, -1, -65535, -1 << 40, 7}
	l := objects.PackLengths{Short: make([]uint16, len(given))}
	for i, n := range given {
		l.Set(uint32(i), n)
	}
	for i, n := range given {
		if got := l.Of(i); got != n {
			t.Errorf("of %d came back %d", n, got)
		}
	}
}

// failingSource is a file that cannot be read any more.
type failingSource struct{ objects.IndexSource }

func (failingSource) ReadAt([]byte, int64) (int, error) { return 0, unix.EIO }

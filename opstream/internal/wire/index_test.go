package wire

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestIndexAgainstList: whatever is added and taken back, the index says what a
// plain list says, and so does a snapshot of it taken before.
func TestIndexAgainstList(t *testing.T) {
	type shot struct {
		x    Index
		list []Entry
	}
	rapid.Check(t, func(rt *rapid.T) {
		var x Index
		var list []Entry
		var shots []shot
		for range rapid.IntRange(1, 12).Draw(rt, "rounds") {
			if n := rapid.IntRange(-900, 900).Draw(rt, "lines"); n < 0 {
				keep := max(len(list)+n, 0)
				x.Truncate(uint64(keep))
				list = slices.Clone(list[:keep])
			} else {
				for range n {
					e := nextEntry(rt, list)
					x.Add(e)
					list = append(list, e)
				}
			}
			last := rapid.IntRange(0, len(list)).Draw(rt, "snapshot")
			shots = append(shots, shot{x.Snapshot(uint64(last)), list[:last]})
			sameIndex(rt, &x, list)
		}
		for i := range shots {
			sameIndex(rt, &shots[i].x, shots[i].list)
		}
	})
}

// nextEntry draws what the line after a list's may be.
func nextEntry(rt *rapid.T, list []Entry) Entry {
	var was Entry
	if len(list) > 0 {
		was = list[len(list)-1]
	}
	bits := rapid.Uint32().Draw(rt, "line")
	e := Entry{Off: was.End(), Size: 1 + bits&0xff}
	if bits>>28 == 0 || len(list) == 0 {
		e.Off = 0
	}
	return e
}

func sameIndex(rt *rapid.T, x *Index, list []Entry) {
	if x.Last() != uint64(len(list)) {
		rt.Fatalf("%d lines, want %d", x.Last(), len(list))
	}
	for i, e := range list {
		if x.At(uint64(i+1)) != e {
			rt.Fatalf("record %d is %+v, want %+v", i+1, x.At(uint64(i+1)), e)
		}
	}
}

// TestIndexParts: where a line ends, which segment holds it, and its size as a varint.
func TestIndexParts(t *testing.T) {
	if e := (Entry{Off: 10, Size: 5}); e.End() != 16 {
		t.Errorf("ends at %d", e.End())
	}
	for seq, want := range map[uint64]uint64{1: 1, 4: 1, 5: 5, 8: 5, 9: 9, 100: 9} {
		if got := SegmentOf([]uint64{1, 5, 9}, seq); got != want {
			t.Errorf("%d is in segment %d, want %d", seq, got, want)
		}
	}
	sizes := []uint32{1, 127, 128, MaxLineBytes}
	var x, y Index
	for _, n := range sizes {
		x.Add(Entry{Size: n})
		y.Add(Entry{Size: n})
	}
	buf := x.Encoded()
	for _, want := range sizes {
		size, n, ok := DecodeSize(buf)
		if size != want || !ok {
			t.Fatalf("%d, %v, want %d", size, ok, want)
		}
		buf = buf[n:]
	}
	over := Index{list: []Entry{{Size: MaxLineBytes + 1}}}
	for _, bad := range [][]byte{nil, {0}, {0x80}, over.Encoded(), slices.Repeat([]byte{0xff}, 12)} {
		if size, _, ok := DecodeSize(bad); ok {
			t.Errorf("%x is %d", bad, size)
		}
	}
	y.Add(Entry{Size: 3})
	if err := x.Differs(&y); err != nil {
		t.Errorf("a longer one: %v", err)
	}
	y.list[3].Off = 1
	if err := x.Differs(&y); err == nil || !strings.Contains(err.Error(), "record 4") {
		t.Errorf("another offset: %v", err)
	}
}

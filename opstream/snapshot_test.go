package opstream

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"anamnesis/opstream/internal/segments"
	"anamnesis/opstream/internal/wire"
)

const testFold = "test/1"

var snapshotPath = filepath.Join("/log", segments.SnapshotName)

// mustResume opens the stream on a disk with its snapshot.
func mustResume(t *testing.T, d *simDisk) *Log {
	t.Helper()
	o := diskOptions(d)
	o.Snapshot = testFold
	return opened(t)(openLocked("/log", o, nil))
}

// reading is everything a log says of its stream, for comparing.
func reading(l *Log) string {
	var out strings.Builder
	seq, hash := l.Last()
	fmt.Fprintf(&out, "%d %x %v %v\n", seq, hash, l.Recovered(), l.scan.Cur)
	for rec, err := range l.Since(0) {
		fmt.Fprintf(&out, "%d %d %s %s %d %d %s %x %v\n", rec.Seq, rec.Ack, rec.Time, rec.Kind, rec.Step, rec.Tok,
			rec.Body, rec.Prev, err)
	}
	return out.String()
}

// clone copies what is on a disk.
func (d *simDisk) clone() *simDisk {
	out := newDisk()
	for path, n := range d.names {
		m := &node{dir: n.dir, data: slices.Clone(n.data), durable: slices.Clone(n.data)}
		out.names[path], out.durable[path] = m, m
	}
	return out
}

// TestSnapshot closes, and resumes at any earlier record: the stream reads
// the same as when all of it was verified, and continues the same.
func TestSnapshot(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d := newDiskWithDir()
		o := diskOptions(d)
		o.SegmentSizeBytes = rapid.Int64Range(1, 5000).Draw(rt, "segment")
		l, err := openLocked("/log", o, nil)
		if err != nil {
			rt.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 2))
		serial := 0
		for range rapid.IntRange(1, 20).Draw(rt, "appends") {
			if _, err := l.Append(context.Background(), randomEntries(rng, &serial)...); err != nil {
				rt.Fatal(err)
			}
		}
		last, _ := l.Last()
		seq := rapid.Uint64Range(1, last).Draw(rt, "seq")
		if err := l.WriteSnapshot(testFold, []byte("the fold"), seq); err != nil {
			rt.Fatal(err)
		}
		if rapid.Bool().Draw(rt, "close") {
			if err := l.Close(); err != nil {
				rt.Fatal(err)
			}
		}
		whole, err := openLocked("/log", diskOptions(d.clone()), nil)
		if err != nil {
			rt.Fatal(err)
		}
		resumed := mustResume(t, d)
		if fold, at, ok := resumed.Folded(); string(fold) != "the fold" || at != seq || !ok ||
			resumed.SnapshotRefused() != nil {
			rt.Fatalf("Folded = %q, %d, %v; refused: %v", fold, at, ok, resumed.SnapshotRefused())
		}
		if got, want := reading(resumed), reading(whole); got != want {
			rt.Fatalf("resumed:\n%s\nwhole:\n%s", got, want)
		}
		if err := resumed.scan.Idx.Differs(&whole.scan.Idx); err != nil {
			rt.Fatal(err)
		}
		readerResumes(t, rt, d, seq, resumed.scan.Cur.Seq)
		for _, log := range []*Log{resumed, whole} {
			if _, err := log.Append(context.Background(), Entry{Kind: "more", Step: 1}); err != nil {
				rt.Fatal(err)
			}
		}
		if got, want := len(bodies(t, resumed)), len(bodies(t, whole)); got != want {
			rt.Fatalf("%d records after going on, want %d", got, want)
		}
		if err := resumed.Close(); err != nil {
			rt.Fatal(err)
		}
		if rep, err := verify(context.Background(), d, "/log"); err != nil || rep.Has(SeverityCorrupt) ||
			noted(&rep, segments.SnapshotName) {
			rt.Fatalf("Verify = %+v, %v", rep, err)
		}
	})
}

// noted reports whether a report has a finding of a file.
func noted(rep *Report, name string) bool {
	return slices.ContainsFunc(rep.Findings, func(f Finding) bool { return filepath.Base(f.File) == name })
}

// snapshotDisk is a closed stream of some segments with a snapshot at a
// record in the middle.
func snapshotDisk(t *testing.T, records int, seq uint64) *simDisk {
	t.Helper()
	d := newDiskWithDir()
	o := diskOptions(d)
	o.SegmentSizeBytes = 1200
	l, err := openLocked("/log", o, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range records {
		mustAppend(t, l, Entry{Kind: "k", Step: i / 3, Tok: i, Body: fmt.Appendf(nil, `{"n":%d}`, i+1)})
	}
	if err := l.WriteSnapshot(testFold, []byte("fold"), seq); err != nil {
		t.Fatal(err)
	}
	mustClose(t, l)
	return d
}

// TestSnapshotBitRot flips every byte of a snapshot, and cuts it at every
// length: it is not used, and nothing else changes.
func TestSnapshotBitRot(t *testing.T) {
	d := snapshotDisk(t, 12, 10)
	want := reading(mustResume(t, d.clone()))
	good := d.names[snapshotPath].data
	try := func(what string, data []byte) {
		c := d.clone()
		c.names[snapshotPath].data = data
		l := mustResume(t, c)
		if _, _, ok := l.Folded(); ok || l.SnapshotRefused() == nil {
			t.Errorf("%s: the snapshot was used", what)
		}
		if got := reading(l); got != want {
			t.Errorf("%s: reads\n%s\nwant\n%s", what, got, want)
		}
		if rep, err := verify(t.Context(), c, "/log"); err != nil || !noted(&rep, segments.SnapshotName) {
			t.Errorf("%s: Verify says nothing: %+v, %v", what, rep, err)
		}
	}
	for i := range good {
		bad := slices.Clone(good)
		bad[i] ^= 1 << (i % 8)
		try(fmt.Sprintf("byte %d", i), bad)
		try(fmt.Sprintf("length %d", i), good[:i])
	}
	try("one more byte", append(slices.Clone(good), 0))
	earlier := bytes.Replace(good[:len(good)-sha256.Size], []byte(`{"v":3,`), []byte(`{"v":2,`), 1)
	sum := sha256.Sum256(earlier)
	try("an earlier version", append(earlier, sum[:]...))
}

// TestSnapshotOfAnother holds that a snapshot is used for the stream it was
// made of, only: not for another, an earlier state, or one with other segments.
func TestSnapshotOfAnother(t *testing.T) {
	whole := snapshotDisk(t, 30, 20)
	segs := whole.segments()
	tests := []struct {
		name   string
		change func(d *simDisk)
		opens  bool
	}{
		{"another stream", func(d *simDisk) {
			other := newDiskWithDir()
			o := diskOptions(other)
			o.SegmentSizeBytes = 1200
			l, err := openLocked("/log", o, nil)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 30 { // one digit is another one
				mustAppend(t, l, Entry{Kind: "k", Step: i / 3, Tok: i, Body: fmt.Appendf(nil, `{"n":%d}`, (i+1)^1)})
			}
			mustClose(t, l)
			other.names[snapshotPath] = d.names[snapshotPath]
			d.names = other.names
		}, true},
		{"an earlier state", func(d *simDisk) {
			for _, path := range segs[2:] {
				delete(d.names, path)
			}
		}, true},
		{"the segment ends early", func(d *simDisk) {
			last := d.names[segs[len(segs)-1]]
			last.data = last.data[:0]
			for _, path := range segs[3:] {
				delete(d.names, path)
			}
			n := d.names[segs[2]]
			n.data = n.data[:bytes.IndexByte(n.data, '\n')+1]
		}, true},
		{"a segment is missing", func(d *simDisk) { delete(d.names, segs[1]) }, false},
		{"a segment is shorter", func(d *simDisk) {
			n := d.names[segs[1]]
			n.data = n.data[:len(n.data)-1]
		}, false},
		{"a segment is longer", func(d *simDisk) {
			n := d.names[segs[1]]
			n.data = append(n.data, 'x')
		}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := whole.clone()
			tt.change(d)
			_, plain := openLocked("/log", diskOptions(d.clone()), nil)
			o := diskOptions(d)
			o.Snapshot = testFold
			l, err := openLocked("/log", o, nil)
			if (err == nil) != tt.opens || errors.Is(err, wire.ErrCorrupt) != errors.Is(plain, wire.ErrCorrupt) {
				t.Fatalf("Open = %v, without a snapshot %v", err, plain)
			}
			if err != nil {
				return
			}
			if _, _, ok := l.Folded(); ok || l.SnapshotRefused() == nil {
				t.Error("the snapshot was used")
			}
		})
	}
}

// TestSnapshotPrefixRot flips bytes of lines before the snapshot, which
// Open does not read: each is found when it is read, and by Verify.
func TestSnapshotPrefixRot(t *testing.T) {
	whole := snapshotDisk(t, 30, 20)
	wrong, refused := 0, 0
	for n := 1; n <= 20; n++ {
		for _, at := range []int{0, 1, 3} {
			d := whole.clone()
			found := false
			for _, path := range d.segments() {
				data := d.names[path].data
				if i := bytes.Index(data, fmt.Appendf(nil, `"body":{"n":%d}`, n)); i > 0 {
					data[i+len(`"body":{"n"`)+at] ^= 1
					found = true
				}
			}
			if !found {
				t.Fatalf("no record %d", n)
			}
			if rep, err := verify(t.Context(), d, "/log"); err != nil || !rep.Has(SeverityCorrupt) {
				t.Errorf("Verify = %+v, %v", rep, err)
			}
			o := diskOptions(d)
			o.Snapshot = testFold
			l, err := openLocked("/log", o, nil)
			if errors.Is(err, wire.ErrCorrupt) { // the snapshot's last line itself
				refused++
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			var c *wire.CorruptError
			if rec, err := l.Get(uint64(n)); !errors.As(err, &c) || c.Seq != uint64(n) {
				t.Errorf("Get(%d) = %s, %v", n, rec.Body, err)
				wrong++
			}
			var last error
			for _, err := range l.Since(0) {
				last = err
			}
			if !errors.As(last, &c) || c.Seq != uint64(n) {
				t.Errorf("Since ended with %v, want record %d", last, n)
				wrong++
			}
		}
	}
	if wrong > 0 || refused == 0 || refused > 3 {
		t.Errorf("%d silently wrong, %d refused", wrong, refused)
	}
}

// TestSnapshotChain returns a line before the snapshot another body with a
// right checksum: reading on from it finds that it is not the line that was.
func TestSnapshotChain(t *testing.T) {
	d := snapshotDisk(t, 30, 20)
	for _, path := range d.segments() {
		data := d.names[path].data
		i := bytes.Index(data, []byte(`"body":{"n":9}`))
		if i < 0 {
			continue
		}
		from := bytes.LastIndexByte(data[:i], '\n') + 1
		end := i + bytes.IndexByte(data[i:], '\n')
		data[i+len(`"body":{"n":`)] = '8'
		copy(data[from:end], resum(data[from:end]))
	}
	l := mustResume(t, d)
	if _, _, ok := l.Folded(); !ok {
		t.Fatal(l.SnapshotRefused())
	}
	var c *wire.CorruptError
	var last error
	for _, err := range l.Since(0) {
		last = err
	}
	if !errors.As(last, &c) || c.Seq != 10 {
		t.Errorf("Since ended with %v, want record 10", last)
	}
}

// TestSnapshotBatch damages lines of the batch that a snapshot ends in: a
// scan calls that a torn tail, and so must a resume.
func TestSnapshotBatch(t *testing.T) {
	whole := newDiskWithDir()
	l := mustOpenDisk(t, whole)
	mustAppend(t, l, Entry{Kind: "a"}, Entry{Kind: "b"})
	mustAppend(t, l, Entry{Kind: "c"}, Entry{Kind: "d"}, Entry{Kind: "e"})
	for _, seq := range []uint64{4, 5} {
		if err := l.WriteSnapshot(testFold, nil, seq); err != nil {
			t.Fatal(err)
		}
		d := whole.clone()
		data := d.names[d.segments()[0]].data
		data[bytes.Index(data, []byte(`"kind":"c"`))+8] = 'X'
		resumed := mustResume(t, d)
		if resumed.SnapshotRefused() == nil || resumed.Recovered() == nil {
			t.Errorf("at %d: refused %v, recovered %v", seq, resumed.SnapshotRefused(), resumed.Recovered())
		}
		if last, _ := resumed.Last(); last != 3 {
			t.Errorf("at %d: the last record is %d, want the note of the recovery at 3", seq, last)
		}
	}
}

// TestSnapshotLargeFold: a fold grows with its stream, so that a limit would end the snapshots of
// just those streams that need them most. A task's passes 64 MiB at about 1.4 million operations.
func TestSnapshotLargeFold(t *testing.T) {
	d := newDiskWithDir()
	l := mustOpenDisk(t, d)
	mustAppend(t, l, Entry{Kind: "a"})
	fold := make([]byte, 65<<20)
	if err := l.WriteSnapshot(testFold, fold, 1); err != nil {
		t.Fatal(err)
	}
	mustClose(t, l)
	r := mustResume(t, d)
	if got, seq, ok := r.Folded(); !ok || seq != 1 || len(got) != len(fold) {
		t.Errorf("Folded = %d bytes at %d, %v: %v", len(got), seq, ok, r.SnapshotRefused())
	}
}

// TestSnapshotRefusals lists what WriteSnapshot and Open do not take.
func TestSnapshotRefusals(t *testing.T) {
	d := newDiskWithDir()
	l := mustOpenDisk(t, d)
	mustAppend(t, l, Entry{Kind: "a"})
	for _, tt := range []struct {
		version string
		fold    []byte
		seq     uint64
		want    error
	}{
		{"", nil, 1, wire.ErrInvalid},
		{strings.Repeat("v", segments.MaxFoldVersionBytes+1), nil, 1, wire.ErrInvalid},
		{"v", nil, 0, ErrNoRecord},
		{"v", nil, 2, ErrNoRecord},
	} {
		if err := l.WriteSnapshot(tt.version, tt.fold, tt.seq); !errors.Is(err, tt.want) {
			t.Errorf("WriteSnapshot(%.10q, %d bytes, %d) = %v, want %v", tt.version, len(tt.fold), tt.seq, err, tt.want)
		}
	}
	d.hook = func(op, path string, size int) (int, error) {
		if strings.HasPrefix(path, snapshotPath) && op == "sync" {
			return 0, errInjected
		}
		return size, nil
	}
	if err := l.WriteSnapshot(testFold, nil, 1); !errors.Is(err, errInjected) {
		t.Errorf("Snapshot = %v", err)
	}
	mustAppend(t, l, Entry{Kind: "still.writing"})
	d.hook = nil
	if r := mustResume(t, d.clone()); r.SnapshotRefused() != nil {
		t.Errorf("no snapshot: %v", r.SnapshotRefused())
	}
	if err := l.WriteSnapshot("other/1", nil, 1); err != nil {
		t.Fatal(err)
	}
	if r := mustResume(t, d.clone()); r.SnapshotRefused() == nil {
		t.Error("a snapshot of another version was used")
	}
	mustClose(t, l)
	if err := l.WriteSnapshot(testFold, nil, 1); !errors.Is(err, ErrClosed) {
		t.Errorf("Snapshot after Close = %v", err)
	}
}

// TestSnapshotPowerCut cuts the power among appends and snapshots: an open
// that uses the snapshot and one that does not come to the same.
func TestSnapshotPowerCut(t *testing.T) {
	used := 0
	runs := count(300, 3000)
	for seed := range uint64(runs) {
		rng := rand.New(rand.NewPCG(seed, 3))
		d := newDiskWithDir()
		serial := 0
		for range 2 + rng.IntN(3) {
			cutAfter(d, 1+rng.IntN(60), rng)
			o := diskOptions(d)
			o.Snapshot = testFold
			l, err := openLocked("/log", o, nil)
			for err == nil {
				if _, err = l.Append(t.Context(), randomEntries(rng, &serial)...); err == nil && rng.IntN(4) == 0 {
					last, _ := l.Last()
					_ = l.WriteSnapshot(testFold, []byte("fold"), 1+rng.Uint64N(last)) // the power may be cut
				}
			}
			if !errors.Is(err, errCut) {
				t.Fatalf("seed %d: %v", seed, err)
			}
			d = d.powerCut(rng)
		}
		whole, err := openLocked("/log", diskOptions(d.clone()), nil)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		o := diskOptions(d)
		o.Snapshot = testFold
		resumed, err := openLocked("/log", o, nil)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if _, _, ok := resumed.Folded(); ok {
			used++
		}
		if got, want := bodies(t, resumed), bodies(t, whole); !slices.Equal(got, want) {
			t.Fatalf("seed %d: %d records, without a snapshot %d", seed, len(got), len(want))
		}
		if a, b := resumed.Recovered(), whole.Recovered(); (a == nil) != (b == nil) || (a != nil && *a != *b) {
			t.Fatalf("seed %d: recovered %+v, without a snapshot %+v", seed, a, b)
		}
	}
	t.Logf("%d of %d opens used a snapshot", used, runs)
	if used < runs/10 {
		t.Errorf("only %d of %d opens used a snapshot", used, runs)
	}
}

// FuzzSnapshot decodes any bytes; what decodes comes back the same.
func FuzzSnapshot(f *testing.F) {
	d := newDiskWithDir()
	l, err := openLocked("/log", diskOptions(d), nil)
	if err != nil {
		f.Fatal(err)
	}
	for i := range 5 {
		if _, err := l.Append(f.Context(), Entry{Kind: fmt.Sprint("k", i%2), Step: i, Tok: 1 << i}); err != nil {
			f.Fatal(err)
		}
	}
	if err := l.WriteSnapshot(testFold, []byte("fold"), 4); err != nil {
		f.Fatal(err)
	}
	// The checksum is the test's to add, so that what is behind it is reached.
	f.Add(d.names[snapshotPath].data[:len(d.names[snapshotPath].data)-32])
	f.Fuzz(func(t *testing.T, data []byte) {
		data = sealed(data)
		c, err := segments.DecodeSnapshot(data)
		if err != nil {
			return
		}
		again, err := segments.EncodeSnapshot(c)
		if err != nil {
			t.Fatal(err)
		}
		c2, err := segments.DecodeSnapshot(again)
		if err != nil {
			t.Fatalf("what was decoded does not decode: %v", err)
		}
		if err := c2.Idx.Differs(&c.Idx); err != nil || !bytes.Equal(c.Fold, c2.Fold) || c.Version != c2.Version ||
			c.Cur.Off != c2.Cur.Off {
			t.Fatalf("%v: %+v, then %+v", err, c, c2)
		}
	})
}

// sealed appends the checksum that a snapshot ends with.
func sealed(data []byte) []byte {
	sum := sha256.Sum256(data)
	return append(slices.Clone(data), sum[:]...)
}

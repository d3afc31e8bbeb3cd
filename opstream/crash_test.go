package opstream

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

var nightly = flag.Bool("nightly", false, "run the fault tests with their full counts")

// count picks a fault test's number of rounds.
func count(ci, full int) int {
	if *nightly {
		return full
	}
	return ci
}

// errCut is what a disk answers once its power is cut.
var errCut = errors.New("power cut")

// cutAfter makes a disk lose its power at its n-th changing operation, within
// which any part of a write may have been done.
func cutAfter(d *disk, n int, rng *rand.Rand) {
	d.hook = func(op, _ string, size int) (int, error) {
		if n--; n > 0 {
			return size, nil
		}
		if n == 0 && op == "write" {
			return rng.IntN(size + 1), errCut
		}
		return 0, errCut
	}
}

// life is what a crash run knows: what was acknowledged, and what is in doubt.
type life struct {
	acked, doubt []string
}

// open opens the stream and compares it with what must be there.
func (f *life) open(d *disk) (*Log, error) {
	l, err := openLocked("/log", diskOptions(d), nil)
	if err != nil {
		return nil, err
	}
	var got []string
	for rec, err := range l.Since(0) {
		if err != nil {
			return nil, fmt.Errorf("read back: %w", err)
		}
		if !strings.HasPrefix(rec.Kind, "log.") {
			got = append(got, string(rec.Body))
		}
	}
	want := append(f.acked[:len(f.acked):len(f.acked)], f.doubt...)
	if len(got) < len(f.acked) {
		return nil, fmt.Errorf("LOST: %d records, %d were acknowledged", len(got), len(f.acked))
	}
	if len(got) > len(want) {
		return nil, fmt.Errorf("WRONG: %d records, only %d were written", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			return nil, fmt.Errorf("WRONG: record %d is %.60s, want %.60s", i, got[i], want[i])
		}
	}
	f.acked, f.doubt = got, nil
	return l, nil
}

func diskOptions(d *disk) Options {
	return (&Options{FS: d, SegmentSizeBytes: 8 << 10, SealAfter: -1}).withDefaults()
}

// randomEntries makes one call's entries: mostly small, some that span
// sectors, some that become blobs.
func randomEntries(rng *rand.Rand, serial *int) []Entry {
	entries := make([]Entry, 1+rng.IntN(3))
	for i := range entries {
		*serial++
		body := fmt.Sprintf(`{"n":%d,"pad":"%s"}`, *serial, strings.Repeat("x", rng.IntN(1+rng.IntN(1600))))
		if rng.IntN(12) == 0 {
			body = `{"$blob":` + body + `}`
		}
		entries[i] = Entry{Kind: "test.op", Step: *serial, Tok: 1, Body: []byte(body)}
	}
	return entries
}

// crashRun lives through some power cuts and gives the first thing that is
// wrong.
func crashRun(seed uint64, lies bool) error {
	rng := rand.New(rand.NewPCG(seed, 1))
	d := newDisk()
	d.names["/log"] = &node{dir: true}
	d.durable["/log"] = d.names["/log"]
	var f life
	serial := 0
	for range 2 + rng.IntN(4) {
		d.lies = lies
		cutAfter(d, 1+rng.IntN(60), rng)
		l, err := f.open(d)
		for err == nil {
			entries := randomEntries(rng, &serial)
			if _, err = l.Append(context.Background(), entries...); err == nil {
				for _, e := range entries {
					f.acked = append(f.acked, string(e.Body))
				}
				if rng.IntN(8) == 0 {
					if err = l.Close(); err == nil {
						l, err = f.open(d)
					}
				}
				continue
			}
			for _, e := range entries {
				f.doubt = append(f.doubt, string(e.Body))
			}
		}
		if !errors.Is(err, errCut) {
			return err
		}
		d = d.powerCut(rng)
	}
	d.lies = lies
	_, err := f.open(d)
	return err
}

// TestPowerCut cuts the power at random moments, in the middle of recoveries,
// too, with sectors torn, reordered and zeroed: nothing acknowledged is lost,
// and no honest crash is called corruption.
func TestPowerCut(t *testing.T) {
	runs := count(1000, 5000)
	for seed := range runs {
		if err := crashRun(uint64(seed), false); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	t.Logf("%d runs, 0 lost, 0 called corrupt", runs)
}

// TestPowerCutControl runs the same on a disk that ignores syncs. It must
// lose, else the model proves nothing.
func TestPowerCutControl(t *testing.T) {
	lost := 0
	for seed := range 200 {
		if crashRun(uint64(seed), true) != nil {
			lost++
		}
	}
	if lost < 50 {
		t.Fatalf("a disk that ignores syncs lost in only %d of 200 runs", lost)
	}
}

// TestTornAtEveryByte cuts a stream at every byte of its last batch: all
// before that batch stays, whole lines of it stay, the rest is set aside and
// reported.
func TestTornAtEveryByte(t *testing.T) {
	base := newDisk()
	base.names["/log"] = &node{dir: true}
	l := mustOpenDisk(t, base)
	mustAppend(t, l, Entry{Kind: "a", Body: []byte(`{"n":1}`)})
	_, size := tail(base)
	mustAppend(t, l, Entry{Kind: "b", Body: []byte(`{"n":2}`)}, Entry{Kind: "c", Body: []byte(`{"n":3}`)})
	path, end := tail(base)
	whole := base.names[path].data[:end]
	for cut := size; cut <= end; cut++ {
		d := newDisk()
		d.names["/log"], d.names["/log/ops"] = &node{dir: true}, &node{dir: true}
		d.names[path] = &node{data: bytes.Clone(whole[:cut])}
		l := mustOpenDisk(t, d)
		rest := bytes.LastIndexByte(whole[:cut], '\n') + 1
		r := l.Recovered()
		if (r != nil) != (cut > rest) {
			t.Fatalf("cut at %d: Recovered() = %+v", cut, r)
		}
		want := uint64(bytes.Count(whole[:cut], []byte("\n")))
		if r != nil {
			if r.Offset != int64(rest) || r.Bytes != int64(cut-rest) || r.Rewritten != int(want)-1+b2i(want == 1) {
				t.Fatalf("cut at %d: Recovered() = %+v", cut, r)
			}
			if got := d.names["/log/"+r.SavedAs]; got == nil || !bytes.Equal(got.data, whole[rest:cut]) {
				t.Fatalf("cut at %d: %s does not hold the torn bytes", cut, r.SavedAs)
			}
			want++ // log.recovered
		}
		if seq, _ := l.Last(); seq != want {
			t.Fatalf("cut at %d: last seq %d, want %d", cut, seq, want)
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// tail gives the last segment and its size.
func tail(d *disk) (string, int) {
	segs := d.segments()
	path := segs[len(segs)-1]
	return path, len(d.names[path].data)
}

// TestBitRot flips single bits in every byte of a stream of one segment, where
// acks vouch, and of several, where names do, too: no reader gives a wrong record, and damage to what is vouched for
// is called corruption by reader, writer and Verify.
func TestBitRot(t *testing.T) {
	t.Run("one segment", func(t *testing.T) { bitRot(t, 1<<20, 1) })
	t.Run("several", func(t *testing.T) { bitRot(t, 900, 3) })
}

func bitRot(t *testing.T, segmentBytes int64, minSegments int) {
	base := newDisk()
	base.names["/log"] = &node{dir: true}
	o := diskOptions(base)
	o.SegmentSizeBytes = segmentBytes
	l, err := openLocked("/log", o, nil)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range 12 {
		body := fmt.Sprintf(`{"n":%d,"text":"some words of a body"}`, i)
		if i == 5 {
			body = `{"$blob":` + body + `}`
		}
		want = append(want, body)
		mustAppend(t, l, Entry{Kind: "test.op", Step: i, Tok: i, Body: []byte(body)})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(base.segments()); n < minSegments {
		t.Fatalf("only %d segments", n)
	}
	lastPath, _ := tail(base)
	lastLine := bytes.LastIndexByte(bytes.TrimSuffix(base.names[lastPath].data, []byte("\n")), '\n') + 1
	flips := 0
	for path, n := range base.names {
		if n.dir {
			continue
		}
		for at := 0; at < len(n.data); at++ {
			bit := byte(1) << (at % 8)
			n.data[at] ^= bit
			err := readsRight(base, want)
			acked := path != lastPath || at < lastLine
			rep, verr := verify(context.Background(), base, "/log")
			if verr != nil {
				t.Fatal(verr)
			}
			if acked && !errors.Is(err, ErrCorrupt) {
				t.Fatalf("%s byte %d bit %x: reader says %v", path, at, bit, err)
			}
			if acked && !rep.Has(SeverityCorrupt) {
				t.Fatalf("%s byte %d bit %x: Verify finds %v", path, at, bit, rep.Findings)
			}
			if !acked && (!errors.Is(err, errTornEnd) || !rep.Has(SeverityTorn)) {
				t.Fatalf("%s byte %d bit %x: reader says %v, Verify %v", path, at, bit, err, rep.Findings)
			}
			n.data[at] ^= bit
			flips++
		}
	}
	if err := readsRight(base, want); err != nil {
		t.Fatalf("the unharmed stream: %v", err)
	}
	t.Logf("%d flips, 0 silently wrong", flips)
}

var errTornEnd = errors.New("torn end")

// readsRight reads all and compares; a wrong record is an error of its own
// kind, damage the reader's error.
func readsRight(d *disk, want []string) error {
	r, err := OpenReader("/log", &Options{FS: d})
	if err != nil {
		return err
	}
	defer r.Close()
	n := 0
	for rec, err := range r.Since(0) {
		if err != nil {
			return err
		}
		if strings.HasPrefix(rec.Kind, "log.") {
			continue
		}
		if n >= len(want) || string(rec.Body) != want[n] || rec.Step != n || rec.Tok != n {
			return fmt.Errorf("WRONG record %d: %+v", n, rec)
		}
		n++
	}
	if r.Torn() != nil {
		return errTornEnd
	}
	if n != len(want) {
		return fmt.Errorf("%d records of %d", n, len(want))
	}
	return nil
}

func mustOpenDisk(t *testing.T, d *disk) *Log {
	t.Helper()
	l, err := openLocked("/log", diskOptions(d), nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func mustAppend(t *testing.T, l *Log, entries ...Entry) uint64 {
	t.Helper()
	first, err := l.Append(context.Background(), entries...)
	if err != nil {
		t.Fatal(err)
	}
	return first
}

// listedDisk counts how often a directory is listed.
type listedDisk struct {
	*disk
	listings int
}

func (d *listedDisk) ReadDir(path string) ([]string, error) {
	d.listings++
	return d.disk.ReadDir(path)
}

// TestOpenListings: opening lists the directory a few times, however many
// segments there are; once for each would make a long stream's open quadratic.
func TestOpenListings(t *testing.T) {
	d := &listedDisk{disk: newDisk()}
	opts := diskOptions(d.disk)
	opts.FS, opts.SegmentSizeBytes = d, 1
	open := func() *Log {
		t.Helper()
		l, err := openLocked("/log", opts, nil)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	if err := createDirs(d, "/log"); err != nil {
		t.Fatal(err)
	}
	l := open()
	for range 50 {
		if _, err := l.Append(t.Context(), Entry{Kind: "k", Body: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, l)
	d.listings = 0
	mustClose(t, open())
	if segs, _, err := listSegments(d.disk, "/log"); err != nil || len(segs) < 50 || d.listings > 5 {
		t.Errorf("%d segments (%v): %d listings, want at most 5", len(segs), err, d.listings)
	}
}

package opstream

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"anamnesis/opstream/internal/segments"
)

var nightly = flag.Bool("nightly", false, "run the fault tests with their full counts")

// count returns a fault test's number of rounds: all of them in the nightly run, and
// outside CI a tenth of CI's.
func count(ci, full int) int {
	switch {
	case *nightly:
		return full
	case testing.Short(), os.Getenv("ANAMNESIS_CI") == "":
		return ci / 10
	}
	return ci
}

// errCut is what a disk answers once its power is cut.
var errCut = errors.New("power cut")

// cutAfter makes a disk lose its power at its n-th changing operation, within
// which any part of a write may have been done.
func cutAfter(d *simDisk, n int, rng *rand.Rand) {
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

// failSync makes a disk fail its n-th sync of a segment, unless it fails before.
func failSync(d *simDisk, n int) {
	before := d.hook
	d.hook = func(op, path string, size int) (int, error) {
		if op == "sync" && strings.HasSuffix(path, segments.Suffix) {
			if n--; n == 0 {
				return 0, errInjected
			}
		}
		return before(op, path, size)
	}
}

// life is what a crash run knows: what was acknowledged, and what is in doubt.
type life struct {
	acked, doubt []string
}

// open opens the stream, by its snapshot or not, and compares it with what
// must be there.
func (f *life) open(d *simDisk, rng *rand.Rand) (*Log, error) {
	o := diskOptions(d)
	if rng.IntN(2) == 0 {
		o.Snapshot = testFold
	}
	l, err := openLocked("/log", o, nil)
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

func diskOptions(d *simDisk) Options {
	return (&Options{FS: d, SegmentSizeBytes: 8 << 10, SealAfter: -1}).withDefaults()
}

// randomEntries makes one call's entries: mostly small, some that span
// sectors, some that become blobs.
func randomEntries(rng *rand.Rand, serial *int) []Entry {
	entries := make([]Entry, 1+rng.IntN(3))
	for i := range entries {
		*serial++
		body := fmt.Sprintf(`{"n":%d,"pad":"%s"}`, *serial, strings.Repeat("x", rng.IntN(1+rng.IntN(6000))))
		if rng.IntN(12) == 0 {
			body = `{"$blob":` + body + `}`
		}
		entries[i] = Entry{Kind: "test.op", Step: *serial, Tok: 1, Body: []byte(body)}
	}
	return entries
}

// crashRun lives through some power cuts, kills and failed syncs, and returns the
// disk as it is then and the first thing that is wrong.
func crashRun(seed uint64, lies bool) (*simDisk, error) {
	rng := rand.New(rand.NewPCG(seed, 1))
	d := newDiskWithDir()
	var f life
	serial := 0
	for range 2 + rng.IntN(4) {
		d.lies = lies
		cutAfter(d, 1+rng.IntN(60), rng)
		if rng.IntN(4) == 0 {
			failSync(d, 1+rng.IntN(8))
		}
		err := f.live(d, rng, &serial)
		switch {
		case errors.Is(err, errInjected), errors.Is(err, errCut) && rng.IntN(4) == 0:
			// Only the process ends: the next one sees what it wrote, and how much of
			// that is durable is not to be seen.
			d.hook = nil
		case errors.Is(err, errCut):
			d = d.powerCut(rng)
		default:
			return d, err
		}
	}
	d.lies, d.hook = lies, nil
	_, err := f.open(d, rng)
	return d, err
}

// live appends until something fails.
func (f *life) live(d *simDisk, rng *rand.Rand, serial *int) error {
	l, err := f.open(d, rng)
	for err == nil {
		entries := randomEntries(rng, serial)
		if _, err = l.Append(context.Background(), entries...); err == nil {
			for _, e := range entries {
				f.acked = append(f.acked, string(e.Body))
			}
			if rng.IntN(8) == 0 {
				last, _ := l.Last()
				_ = l.WriteSnapshot(testFold, []byte("fold"), last) // the power may be cut
			}
			if rng.IntN(8) == 0 {
				if err = l.Close(); err == nil {
					l, err = f.open(d, rng)
				}
			}
			continue
		}
		for _, e := range entries {
			f.doubt = append(f.doubt, string(e.Body))
		}
	}
	return err
}

// TestPowerCut cuts the power at random moments, in the middle of recoveries,
// too, after kills and failed syncs, with sectors torn, reordered and zeroed:
// nothing acknowledged is lost, and no honest crash is called corruption.
func TestPowerCut(t *testing.T) {
	states := count(1500, 50_000)
	var sum tally
	runs := 0
	for ; sum.cuts < states; runs++ {
		d, err := crashRun(uint64(runs), false)
		if err != nil {
			t.Fatalf("seed %d: %v", runs, err)
		}
		sum.cuts += d.tally.cuts
		sum.torn += d.tally.torn
		sum.reordered += d.tally.reordered
		sum.zeroed += d.tally.zeroed
	}
	if least := states / 50; sum.torn < least || sum.reordered < least || sum.zeroed < least {
		t.Errorf("the model hardly tears: %+v", sum)
	}
	t.Logf("%d states after a power cut in %d runs (files torn %d, reordered %d, with zeroed sectors %d): 0 lost, 0 called corrupt",
		sum.cuts, runs, sum.torn, sum.reordered, sum.zeroed)
}

// TestPowerCutControl runs the same on a disk that ignores syncs. It must
// lose, else the model proves nothing.
func TestPowerCutControl(t *testing.T) {
	lost := 0
	for seed := range 200 {
		if _, err := crashRun(uint64(seed), true); err != nil {
			lost++
		}
	}
	if lost < 50 {
		t.Fatalf("a disk that ignores syncs lost in only %d of 200 runs", lost)
	}
	t.Logf("a disk that ignores syncs lost in %d of 200 runs", lost)
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

// tail returns the last segment and its size.
func tail(d *simDisk) (string, int) {
	segs := d.segments()
	path := segs[len(segs)-1]
	return path, len(d.names[path].data)
}

func mustOpenDisk(t *testing.T, d *simDisk) *Log {
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

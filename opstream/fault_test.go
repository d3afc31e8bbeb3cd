package opstream

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"anamnesis/opstream/internal/segments"
)

// TestDiskFull fails writes part-way, as a full disk does: nothing of them
// stays, the caller gets an error, and the log continues when there is room.
func TestDiskFull(t *testing.T) {
	for part := range 120 {
		d := newDiskWithDir()
		l := mustOpenDisk(t, d)
		if part%2 == 0 { // otherwise the very first batch of a segment fails
			mustAppend(t, l, Entry{Kind: "a", Body: []byte(`{"n":1}`)})
		}
		want := bodies(t, l)
		d.hook = func(op, _ string, size int) (int, error) {
			if op == "write" {
				return min(part*4, size), syscall.ENOSPC
			}
			return size, nil
		}
		_, err := l.Append(t.Context(), Entry{Kind: "b", Body: []byte(`{"n":2}`)},
			Entry{Kind: "c", Body: []byte(`{"n":3}`)})
		if !errors.Is(err, syscall.ENOSPC) || errors.Is(err, ErrPoisoned) {
			t.Fatalf("part %d: Append = %v", part, err)
		}
		d.hook = nil
		if _, size := tail(d); part%2 == 1 && size != 0 {
			t.Fatalf("part %d: %d bytes of the failed write stayed", part, size)
		}
		mustAppend(t, l, Entry{Kind: "d", Body: []byte(`{"n":4}`)})
		mustClose(t, l)
		l = mustOpenDisk(t, d)
		if got := bodies(t, l); !slices.Equal(got, append(want, `{"n":4}`)) || l.Recovered() != nil {
			t.Fatalf("part %d: read %v, recovered %v", part, got, l.Recovered())
		}
	}
}

// TestFailedSync fails each kind of sync: the writer stops for good, what was
// acknowledged can be read, and opening again continues.
func TestFailedSync(t *testing.T) {
	tests := []struct {
		name string
		fail func(op, path string) bool
	}{
		{"fdatasync", func(op, path string) bool { return op == "sync" && strings.HasSuffix(path, segments.Suffix) }},
		{"directory of a new segment", func(op, path string) bool { return op == "syncdir" && path == "/log/ops" }},
		{"sync of the cut after a short write", func(op, _ string) bool { return op == "write" || op == "sync" }},
		{"the cut after a short write", func(op, _ string) bool { return op == "write" || op == "truncate" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newDiskWithDir()
			o := diskOptions(d)
			o.SegmentSizeBytes = 1
			l := opened(t)(openLocked("/log", o, nil))
			mustAppend(t, l, Entry{Kind: "a", Body: []byte(`{"n":1}`)})
			d.hook = func(op, path string, size int) (int, error) {
				if tt.fail(op, path) {
					return size / 2, errInjected
				}
				return size, nil
			}
			for range 2 {
				if _, err := l.Append(t.Context(), Entry{Kind: "b", Body: []byte(`{"n":2}`)}); !errors.Is(err, ErrPoisoned) || !errors.Is(err, errInjected) {
					t.Fatalf("Append = %v, want poisoned by the injected fault", err)
				}
				d.hook = nil // the fault goes away, the poison stays
			}
			if got := bodies(t, l); !slices.Equal(got, []string{`{"n":1}`}) {
				t.Fatalf("read %v", got)
			}
			if err := l.Close(); !errors.Is(err, ErrPoisoned) {
				t.Fatalf("Close = %v", err)
			}
			l = mustOpenDisk(t, d)
			mustAppend(t, l, Entry{Kind: "c", Body: []byte(`{"n":3}`)})
			if got := bodies(t, l); got[0] != `{"n":1}` || got[len(got)-1] != `{"n":3}` {
				t.Fatalf("after reopening: %v", got)
			}
		})
	}
}

// TestClockBack sets the clock back a day before each append, in one writer and
// across several: seqs, the order of Since and of Follow, and the chain are what
// they are with any clock.
func TestClockBack(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.FixedZone("east", 3600))
	o := &Options{Now: func() time.Time { return now }, SegmentSizeBytes: 1000, SealAfter: -1}
	const n = 30
	for i := range n {
		l := mustOpen(t, dir, o)
		mustAppend(t, l, Entry{Kind: "a", Body: fmt.Appendf(nil, `{"n":%d}`, 2*i)})
		now = now.AddDate(0, 0, -1)
		mustAppend(t, l, Entry{Kind: "b", Body: fmt.Appendf(nil, `{"n":%d}`, 2*i+1)})
		mustClose(t, l)
	}
	r := mustReader(t, dir, nil)
	for name, records := range map[string]iter.Seq2[Record, error]{"Since": r.Since(0), "Follow": r.Follow(t.Context(), 0)} {
		seen, seq := 0, uint64(0)
		last := now.AddDate(9, 0, 0)
		for rec, err := range records {
			if seq++; err != nil || rec.Seq != seq {
				t.Fatalf("%s: record %d is %+v, %v", name, seq, rec, err)
			}
			if rec.Time.After(last) {
				t.Fatalf("%s: record %d: the clock did not go back", name, seq)
			}
			last = rec.Time
			if rec.Kind != kindSealed {
				if want := fmt.Sprintf(`{"n":%d}`, seen); string(rec.Body) != want {
					t.Fatalf("%s: record %d is %s, want %s", name, seq, rec.Body, want)
				}
				seen++
			}
			if seq == 3*n {
				break
			}
		}
		if seen != 2*n {
			t.Errorf("%s gave %d records, want %d", name, seen, 2*n)
		}
	}
	rep, err := Verify(t.Context(), dir)
	if err != nil || len(rep.Findings) != 0 || rep.Records != 3*n {
		t.Errorf("Verify = %+v, %v", rep, err)
	}
	t.Logf("the clock went back %d times, %d records in order", n, rep.Records)
}

// TestClockForms: a time is kept to the microsecond and in UTC, and one the
// format cannot hold is no reason to lose a line.
func TestClockForms(t *testing.T) {
	var now time.Time
	l := mustOpen(t, t.TempDir(), &Options{Now: func() time.Time { return now }})
	for i, tt := range []struct{ clock, want time.Time }{
		{time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.FixedZone("east", 3600)), time.Date(2026, 3, 1, 11, 0, 0, 123456000, time.UTC)},
		{time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC), time.Time{}},
		{time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC), time.Time{}},
	} {
		now = tt.clock
		seq := mustAppend(t, l, Entry{Kind: "k"})
		if rec, err := l.Get(seq); err != nil || !rec.Time.Equal(tt.want) {
			t.Errorf("%d: time %v, %v; want %v", i, rec.Time, err, tt.want)
		}
	}
}

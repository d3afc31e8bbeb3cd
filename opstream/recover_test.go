package opstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"anamnesis/opstream/internal/wire"
)

// TestRewrite holds that opening writes the unacknowledged lines again, and
// syncs them, before any line that vouches for them: a kernel that dropped a page
// after a failed sync shows it clean all the same.
func TestRewrite(t *testing.T) {
	d := newDiskWithDir()
	l := mustOpenDisk(t, d)
	mustAppend(t, l, Entry{Kind: "a"})
	mustAppend(t, l, Entry{Kind: "b"}, Entry{Kind: "c"})
	path, end := tail(d)
	first := bytes.IndexByte(d.names[path].data, '\n') + 1
	d.names[path].data = append(d.names[path].data, "torn"...)
	var did []string
	d.hook = func(op, p string, size int) (int, error) {
		if p == path && op != "create" {
			did = append(did, fmt.Sprint(op, " ", size))
		}
		return size, nil
	}
	mustOpenDisk(t, d)
	note := len(d.names[path].data) - end
	want := []string{fmt.Sprint("truncate ", end), fmt.Sprint("write ", end-first), "sync 0",
		fmt.Sprint("write ", note), "sync 0"}
	if !slices.Equal(did, want) {
		t.Errorf("opening did %q to the segment, want %q: cut, the last batch, sync, the note, sync", did, want)
	}
}

// TestMissingSegments removes each segment in turn: a missing one before the
// last is corruption, with anything in the others.
func TestMissingSegments(t *testing.T) {
	for gone := range 4 {
		d := newDiskWithDir()
		o := diskOptions(d)
		o.SegmentSizeBytes = 1
		l := opened(t)(openLocked("/log", o, nil))
		for range 5 {
			mustAppend(t, l, Entry{Kind: "a"})
		}
		delete(d.names, d.segments()[gone])
		_, err := openLocked("/log", o, nil)
		var c *wire.CorruptError
		if !errors.As(err, &c) || c.Seq != uint64(gone+1) {
			t.Errorf("without segment %d: Open = %v", gone+1, err)
		}
		rep, err := verify(t.Context(), d, "/log")
		if err != nil || !rep.Has(SeverityCorrupt) || rep.Records != uint64(gone) {
			t.Errorf("without segment %d: Verify = %+v, %v", gone+1, rep, err)
		}
	}
}

// TestRecoveryNoted crashes a recovery after it set the torn bytes aside and
// before it said so: the next one says it.
func TestRecoveryNoted(t *testing.T) {
	d := newDiskWithDir()
	l := mustOpenDisk(t, d)
	mustAppend(t, l, Entry{Kind: "a"})
	path, end := tail(d)
	d.names[path].data = append(d.names[path].data, "torn"...)
	cuts := 0
	d.hook = func(op, p string, size int) (int, error) {
		if cuts > 0 && op == "write" && p == path {
			if cuts++; cuts > 2 { // the first is the rewrite, the second the note
				return 0, errInjected
			}
		}
		if op == "truncate" {
			cuts++
		}
		return size, nil
	}
	if _, err := openLocked("/log", diskOptions(d), nil); !errors.Is(err, errInjected) {
		t.Fatalf("Open = %v", err)
	}
	d.hook = nil
	l = mustOpenDisk(t, d)
	r := l.Recovered()
	if r == nil || r.Offset != int64(end) || r.Bytes != 4 {
		t.Fatalf("Recovered() = %+v", r)
	}
	rec, err := l.Get(2)
	var noted Recovery
	if err != nil || rec.Kind != kindRecovered || json.Unmarshal(rec.Body, &noted) != nil || noted != *r {
		t.Fatalf("record 2 = %+v, %v", rec, err)
	}
	if l = mustOpenDisk(t, d); l.Recovered() != nil {
		t.Fatalf("the same recovery was reported again: %+v", l.Recovered())
	}
}

// FuzzSegment puts any bytes behind a good line, and opens: damage is set aside
// or called corruption, never anything else; the first line is read either way,
// and what a writer leaves opens clean.
func FuzzSegment(f *testing.F) {
	base := newDiskWithDir()
	o := diskOptions(base)
	l, err := openLocked("/log", o, nil)
	if err != nil {
		f.Fatal(err)
	}
	for i := range 4 {
		if _, err := l.Append(f.Context(), Entry{Kind: "k", Body: fmt.Appendf(nil, `{"n":%d}`, i)}); err != nil {
			f.Fatal(err)
		}
	}
	path, _ := tail(base)
	whole := base.names[path].data
	first := bytes.IndexByte(whole, '\n') + 1
	f.Add(whole[first:])
	f.Add(whole[first : len(whole)-7])
	f.Add(bytes.Repeat([]byte{0}, 700))
	f.Add(append([]byte("\n"), whole[first:]...))
	f.Add(whole[2*first:])
	f.Fuzz(func(t *testing.T, rest []byte) {
		d := newDiskWithDir()
		d.names["/log/ops"] = &node{dir: true}
		d.names[path] = &node{data: append(bytes.Clone(whole[:first]), rest...)}
		before := bytes.Clone(d.names[path].data)
		if _, err := verify(t.Context(), d, "/log"); err != nil && !errors.Is(err, wire.ErrVersion) {
			t.Fatal(err)
		}
		l, err := openLocked("/log", diskOptions(d), nil)
		if err != nil {
			if !errors.Is(err, wire.ErrCorrupt) && !errors.Is(err, wire.ErrVersion) {
				t.Fatal(err)
			}
			if !bytes.Equal(d.names[path].data, before) {
				t.Fatal("a refused stream was changed")
			}
			return
		}
		if rec, err := l.Get(1); err != nil || string(rec.Body) != `{"n":0}` {
			t.Fatalf("record 1 = %+v, %v", rec, err)
		}
		mustAppend(t, l, Entry{Kind: "after"})
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if l, err = openLocked("/log", diskOptions(d), nil); err != nil || l.Recovered() != nil {
			t.Fatalf("opening again: recovered %v, %v", l.Recovered(), err)
		}
		for name := range d.names { // what was cut off is kept
			if torn, ok := parseTornName(strings.TrimPrefix(name, "/log/")); ok &&
				!bytes.Equal(before[torn.Offset:], d.names[name].data) {
				t.Fatalf("%s does not hold what was cut off", name)
			}
		}
	})
}

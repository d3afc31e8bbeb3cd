package opstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"anamnesis/opstream/durable"
	"anamnesis/opstream/internal/wire"
)

func mustReader(t *testing.T, dir string, o *Options) *Reader {
	t.Helper()
	r, err := OpenReader(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func TestReaderNotFound(t *testing.T) {
	for _, dir := range []string{t.TempDir(), t.TempDir() + "/nowhere"} {
		if _, err := OpenReader(dir, nil); !errors.Is(err, ErrNotFound) {
			t.Errorf("OpenReader = %v", err)
		}
		if _, err := Verify(t.Context(), dir); !errors.Is(err, ErrNotFound) {
			t.Errorf("Verify = %v", err)
		}
	}
}

// TestDurableMark holds that a reader calls durable only what later lines
// vouch for, and that reading starts where it is told to.
func TestDurableMark(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, &Options{SegmentSizeBytes: 400})
	mustAppend(t, l, Entry{Kind: "a"})
	mustAppend(t, l, Entry{Kind: "b"}, Entry{Kind: "c"})
	r := mustReader(t, dir, nil)
	read := func(after uint64) (out []string) {
		for rec, err := range r.Since(after) {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, fmt.Sprintf("%d%s%v", rec.Seq, rec.Kind, rec.Durable))
		}
		return out
	}
	if got := read(0); !slices.Equal(got, []string{"1atrue", "2bfalse", "3cfalse"}) {
		t.Errorf("Since(0) = %v", got)
	}
	mustClose(t, l)
	if got := read(2); !slices.Equal(got, []string{"3ctrue", "4log.sealedfalse"}) {
		t.Errorf("Since(2) = %v", got)
	}
	if got := read(4); len(got) != 0 {
		t.Errorf("Since(4) = %v", got)
	}
	wantSeq, wantHash := l.Last()
	if seq, hash, err := r.Last(); seq != wantSeq || hash != wantHash || err != nil {
		t.Errorf("Last = %d %x %v, want %d %x", seq, hash, err, wantSeq, wantHash)
	}
	for _, seq := range []uint64{0, 5, 1 << 62} {
		if _, err := r.Get(seq); !errors.Is(err, ErrNoRecord) {
			t.Errorf("Get(%d) = %v", seq, err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Get(1); !errors.Is(err, ErrClosed) {
		t.Errorf("Get after Close = %v", err)
	}
}

// TestReaderDuringWrites reads in loops, by fresh and by long-lived readers and
// by one that follows, while segments are written: no bad read, no gap.
func TestReaderDuringWrites(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, &Options{SegmentSizeBytes: 16 << 10})
	total := uint64(count(400, 5000))
	check := tailCheck{t: t, dir: dir, total: total}
	var done atomic.Bool
	var wg sync.WaitGroup
	wg.Go(check.longLived)
	wg.Go(check.fresh)
	wg.Go(check.follower)
	wg.Go(func() {
		for more := true; more; more = !done.Load() {
			rep, err := Verify(context.Background(), dir)
			if err != nil || rep.Has(SeverityCorrupt) || rep.Has(SeverityTorn) {
				t.Errorf("Verify of a live stream: %v, %v", rep.Findings, err)
				return
			}
		}
	})
	for seq := uint64(1); seq <= total; seq++ {
		mustAppend(t, l, Entry{Kind: "k", Body: []byte(tailBody(seq))})
	}
	done.Store(true)
	wg.Wait()
	t.Logf("%d records read beside a writer of %d, 0 bad", check.reads.Load(), total)
}

func tailBody(seq uint64) string { return fmt.Sprintf(`{"pad":"%0*d"}`, seq*37%900, seq) }

// tailCheck reads a stream that is being written, up to a total.
type tailCheck struct {
	t     *testing.T
	dir   string
	total uint64
	reads atomic.Int64
}

// good reports whether a record is what follows the last one.
func (c *tailCheck) good(last uint64, rec Record, err error) bool {
	if err != nil || rec.Seq != last+1 || string(rec.Body) != tailBody(rec.Seq) {
		c.t.Errorf("after %d: %+v, %v", last, rec, err)
		return false
	}
	c.reads.Add(1)
	return true
}

func (c *tailCheck) longLived() {
	r := mustReader(c.t, c.dir, nil)
	for last := uint64(0); last < c.total; {
		for rec, err := range r.Since(last) {
			if !c.good(last, rec, err) {
				return
			}
			last = rec.Seq
		}
	}
}

// fresh opens anew each time.
func (c *tailCheck) fresh() {
	for last := uint64(0); last < c.total; {
		last = 0
		for rec, err := range mustReader(c.t, c.dir, nil).Since(0) {
			if !c.good(last, rec, err) {
				return
			}
			last = rec.Seq
		}
	}
}

func (c *tailCheck) follower() {
	last := uint64(0)
	r := mustReader(c.t, c.dir, &Options{PollInterval: time.Millisecond})
	for rec, err := range r.Follow(c.t.Context(), 0) {
		if !c.good(last, rec, err) {
			return
		}
		if last = rec.Seq; last == c.total {
			return
		}
	}
}

// TestFollow follows a stream across segments; it ends with its context, with
// its reader, and with its consumer.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiskWithDir()
		o := diskOptions(d)
		o.SegmentSizeBytes = 300
		l, err := openLocked("/log", o, nil)
		if err != nil {
			t.Fatal(err)
		}
		mustAppend(t, l, Entry{Kind: "early"})
		r := mustReader(t, "/log", &o)
		ctx, cancel := context.WithCancel(t.Context())
		var got []string
		ended := make(chan bool)
		go func() {
			for rec, err := range r.Follow(ctx, 0) {
				if err != nil {
					t.Error(err)
				}
				got = append(got, fmt.Sprintf("%d%s%v", rec.Seq, rec.Kind, rec.Durable))
			}
			close(ended)
		}()
		time.Sleep(time.Second)
		for range 2 {
			mustAppend(t, l, Entry{Kind: "x"}, Entry{Kind: "y"})
			time.Sleep(time.Second)
		}
		cancel()
		synctest.Wait()
		select {
		case <-ended:
		default:
			t.Fatal("Follow did not end with its context")
		}
		want := []string{"1earlyfalse", "2xfalse", "3yfalse", "4xfalse", "5yfalse"}
		if !slices.Equal(got, want) {
			t.Errorf("followed %v, want %v", got, want)
		}
		for rec, err := range r.Follow(t.Context(), 0) {
			if err != nil || rec.Seq != 1 || !rec.Durable {
				t.Errorf("first record %+v, %v", rec, err)
			}
			break
		}
		closed := make(chan bool)
		go func() {
			for range r.Follow(t.Context(), 5) {
				t.Error("a record after the last")
			}
			close(closed)
		}()
		synctest.Wait()
		r.Close()
		<-closed
	})
}

// TestWithdrawn shows a reader lines of a write that then fails and is cut
// back: the reader sees what takes their place, and never an error.
func TestWithdrawn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiskWithDir()
		o := diskOptions(d)
		l, err := openLocked("/log", o, nil)
		if err != nil {
			t.Fatal(err)
		}
		mustAppend(t, l, Entry{Kind: "a"})
		r := mustReader(t, "/log", &o)
		ctx, cancel := context.WithCancel(t.Context())
		var got []string
		go func() {
			for rec, err := range r.Follow(ctx, 0) {
				if err != nil {
					t.Error(err)
				}
				got = append(got, fmt.Sprintf("%d%s", rec.Seq, rec.Kind))
			}
		}()
		synctest.Wait()
		pause := make(chan bool)
		fs := pausingFS{d, pause}
		l.opts.FS = fs
		l.file = pausingFile{l.file, pause}
		d.hook = func(op, _ string, size int) (int, error) {
			if op == "write" {
				return size - 5, syscall.ENOSPC
			}
			return size, nil
		}
		failed := make(chan error)
		go func() {
			_, err := l.Append(t.Context(), Entry{Kind: "b"}, Entry{Kind: "c"})
			failed <- err
		}()
		time.Sleep(time.Second) // the reader sees b and a part of c
		pause <- true
		if err := <-failed; !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("Append = %v", err)
		}
		d.hook = nil
		mustAppend(t, l, Entry{Kind: "longer.kind"}, Entry{Kind: "e"})
		time.Sleep(time.Second)
		mustAppend(t, l, Entry{Kind: "f"})
		time.Sleep(time.Second)
		cancel()
		synctest.Wait()
		want := []string{"1a", "2b", "2longer.kind", "3e", "4f"}
		if !slices.Equal(got, want) {
			t.Errorf("followed %v, want %v", got, want)
		}
	})
}

// pausingFS and pausingFile wait before a file is cut.
type pausingFS struct {
	*simDisk
	pause chan bool
}

type pausingFile struct {
	durable.File
	pause chan bool
}

func (f pausingFile) Truncate(size int64) error {
	<-f.pause
	return f.File.Truncate(size)
}

// TestCorruptPrefix holds that readers give what precedes the damage,
// and that Verify continues behind it.
func TestCorruptPrefix(t *testing.T) {
	d := newDiskWithDir()
	o := diskOptions(d)
	o.SegmentSizeBytes = 500
	l, err := openLocked("/log", o, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		mustAppend(t, l, Entry{Kind: "k", Body: []byte(fmt.Sprintf(`{"n":%d}`, i+1))})
	}
	mustClose(t, l)
	for _, path := range d.segments() {
		data := d.names[path].data
		if i := bytes.Index(data, []byte(`{"n":4}`)); i > 0 {
			data[i+5] = '5'
		}
		if i := bytes.Index(data, []byte(`{"n":8}`)); i > 0 {
			data[i+5] = '5'
		}
	}
	r := mustReader(t, "/log", &o)
	var n uint64
	var last error
	for rec, err := range r.Since(0) {
		if last = err; err == nil {
			n = rec.Seq
		}
	}
	var c *wire.CorruptError
	if n != 3 || !errors.As(last, &c) || c.Seq != 4 || !errors.Is(last, wire.ErrCorrupt) {
		t.Errorf("read up to %d, then %v", n, last)
	}
	if rec, err := r.Get(3); err != nil || string(rec.Body) != `{"n":3}` {
		t.Errorf("Get(3) = %+v, %v", rec, err)
	}
	if _, err := r.Get(5); !errors.Is(err, wire.ErrCorrupt) {
		t.Errorf("Get(5) = %v", err)
	}
	if _, err := openLocked("/log", o, nil); !errors.Is(err, wire.ErrCorrupt) {
		t.Errorf("Open = %v", err)
	}
	rep, err := verify(t.Context(), d, "/log")
	if err != nil || len(rep.Findings) != 1 || rep.Findings[0].Seq != 4 || rep.Records != 3 {
		t.Errorf("Verify = %+v, %v", rep, err)
	}
}

// TestBlobDamage loses and rots blobs: each costs its own record only.
func TestBlobDamage(t *testing.T) {
	d := newDiskWithDir()
	l := mustOpenDisk(t, d)
	big := func(c string) []byte { return []byte(`{"a":"` + strings.Repeat(c, wire.MaxInlineBytes) + `"}`) }
	mustAppend(t, l, Entry{Kind: "gone", Body: big("x")}, Entry{Kind: "rotten", Body: big("y")},
		Entry{Kind: "short", Body: big("z")}, Entry{Kind: "whole", Body: big("w")},
		Entry{Kind: "again", Body: big("w")})
	blobs := 0
	for path, n := range d.names {
		if n.dir || !strings.HasPrefix(path, "/log/blobs/sha256/") {
			continue
		}
		blobs++
		switch n.data[6] {
		case 'x':
			delete(d.names, path)
		case 'y':
			n.data[len(n.data)/2] ^= 1
		case 'z':
			n.data = n.data[:100]
		}
	}
	if blobs != 4 {
		t.Errorf("%d blobs, want 4: equal bodies share one", blobs)
	}
	var got []string
	o := diskOptions(d)
	for rec, err := range mustReader(t, "/log", &o).Since(0) {
		if c, ok := errors.AsType[*wire.CorruptError](err); ok && (c.Seq != rec.Seq || !strings.HasPrefix(c.File, "/log/blobs/")) {
			t.Errorf("record %d: error of %+v", rec.Seq, c)
		}
		got = append(got, fmt.Sprintf("%s %d %v", rec.Kind, len(rec.Body), errors.Is(err, wire.ErrCorrupt)))
	}
	n := len(big("w"))
	want := []string{
		"gone 0 true", "rotten 0 true", "short 0 true", fmt.Sprintf("whole %d false", n),
		fmt.Sprintf("again %d false", n),
	}
	if !slices.Equal(got, want) {
		t.Errorf("read %v, want %v", got, want)
	}
	// Writing the same body again heals the blob.
	mustAppend(t, l, Entry{Kind: "rotten", Body: big("y")})
	if rec, err := l.Get(2); err != nil || !bytes.Equal(rec.Body, big("y")) {
		t.Errorf("after writing it again: %v", err)
	}
	rep, err := verify(t.Context(), d, "/log")
	if err != nil || len(rep.Findings) != 2 || rep.Blobs != 4 {
		t.Errorf("Verify = %+v, %v", rep, err)
	}
}

// readerResumes checks that a reader gives every record, those before the
// snapshot at seq included.
func readerResumes(t *testing.T, rt *rapid.T, d *simDisk, seq, last uint64) {
	o := diskOptions(d)
	o.Snapshot = testFold
	reader := mustReader(t, "/log", &o)
	if fold, at, ok := reader.Folded(); string(fold) != "the fold" || at != seq || !ok {
		rt.Fatalf("the reader's Folded = %q, %d, %v", fold, at, ok)
	}
	read := uint64(0)
	for rec, err := range reader.Since(0) {
		if read++; err != nil || rec.Seq != read {
			rt.Fatalf("read %+v, %v; want record %d", rec, err, read)
		}
	}
	if read != last {
		rt.Fatalf("the reader gave %d records of %d", read, last)
	}
}

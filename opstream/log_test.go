package opstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func mustOpen(t *testing.T, dir string, o *Options) *Log {
	t.Helper()
	if o == nil {
		o = &Options{}
	}
	l, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func mustClose(t *testing.T, l *Log) {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// bodies lists what Since gives, without the log's own records.
func bodies(t *testing.T, l *Log) []string {
	t.Helper()
	var out []string
	for rec, err := range l.Since(0) {
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(rec.Kind, "log.") {
			out = append(out, string(rec.Body))
		}
	}
	return out
}

// newDiskWithDir is an empty disk on which /log is there for good.
func newDiskWithDir() *disk {
	d := newDisk()
	d.names["/log"] = &node{dir: true}
	d.durable["/log"] = d.names["/log"]
	return d
}

// TestModel appends random entries, closes and reopens at random, and
// compares everything with a slice.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := newDiskWithDir()
		o := diskOptions(d)
		o.SegmentSizeBytes = rapid.Int64Range(1, 5000).Draw(t, "segment")
		l, err := openLocked("/log", o, nil)
		if err != nil {
			t.Fatal(err)
		}
		type rec struct {
			kind, body string
			step, tok  int
		}
		var want []rec
		t.Repeat(map[string]func(*rapid.T){
			"append": func(t *rapid.T) {
				var entries []Entry
				for range rapid.IntRange(1, 4).Draw(t, "entries") {
					e := Entry{
						Kind: rapid.StringMatching(`[a-z]{1,8}(\.[a-z]{1,8})?`).Draw(t, "kind"),
						Step: rapid.IntRange(0, MaxNumber).Draw(t, "step"),
						Tok:  rapid.IntRange(0, MaxNumber).Draw(t, "tok"),
					}
					body, err := json.Marshal(map[string]string{rapid.String().Draw(t, "key"): rapid.String().Draw(t, "value")})
					if err != nil {
						t.Fatal(err)
					}
					e.Body = body
					entries = append(entries, e)
				}
				first, err := l.Append(context.Background(), entries...)
				if err != nil || first != uint64(len(want)+1) {
					t.Fatalf("Append = %d, %v; want %d", first, err, len(want)+1)
				}
				for _, e := range entries {
					want = append(want, rec{e.Kind, string(e.Body), e.Step, e.Tok})
				}
			},
			"reopen": func(t *rapid.T) {
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
				if n := len(want); n > 0 && want[n-1].kind != kindSealed {
					want = append(want, rec{kind: kindSealed, body: "{}", step: want[n-1].step})
				}
				if l, err = openLocked("/log", o, nil); err != nil {
					t.Fatal(err)
				}
			},
			"": func(t *rapid.T) {
				n, tokens := uint64(0), int64(0)
				for r, err := range l.Since(0) {
					if err != nil {
						t.Fatal(err)
					}
					w := want[n]
					n++
					if r.Seq != n || !r.Durable || r.Ack >= n || (rec{r.Kind, string(r.Body), r.Step, r.Tok}) != w {
						t.Fatalf("record %d is %+v, want %+v", n, r, w)
					}
					tokens += int64(r.Tok)
				}
				if last, _ := l.Last(); last != n || n != uint64(len(want)) || l.Tokens(0, n) != tokens {
					t.Fatalf("last %d, read %d, want %d; tokens %d, want %d", last, n, len(want), l.Tokens(0, n), tokens)
				}
			},
		})
	})
}

func TestBadInput(t *testing.T) {
	deep := func(n int) []byte {
		return []byte(`{"a":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`)
	}
	tests := []struct {
		name  string
		entry Entry
		want  error // nil: comes back byte for byte
	}{
		{"escaped NUL", Entry{Kind: "k", Body: []byte(`{"a":"\u0000"}`)}, nil},
		{"raw NUL", Entry{Kind: "k", Body: []byte("{\"a\":\"\x00\"}")}, ErrInvalid},
		{"U+2028", Entry{Kind: "k", Body: []byte("{\"a\":\"\u2028\"}")}, nil},
		{"lone surrogate", Entry{Kind: "k", Body: []byte(`{"a":"\ud800"}`)}, nil},
		{"not UTF-8", Entry{Kind: "k", Body: []byte("{\"a\":\"\xff\xfe\"}")}, nil},
		{"5 MiB", Entry{Kind: "k", Body: []byte(`{"a":"` + strings.Repeat("x", 5<<20) + `"}`)}, nil},
		{"at the inline limit", Entry{Kind: "k", Body: []byte(`{"a":"` + strings.Repeat("x", MaxInlineBytes-8) + `"}`)}, nil},
		{"past the inline limit", Entry{Kind: "k", Body: []byte(`{"a":"` + strings.Repeat("x", MaxInlineBytes-7) + `"}`)}, nil},
		{"9,000 deep", Entry{Kind: "k", Body: deep(9000)}, nil},
		{"10,001 deep", Entry{Kind: "k", Body: deep(10001)}, ErrInvalid},
		{"duplicate keys", Entry{Kind: "k", Body: []byte(`{"a":1,"a":2}`)}, nil},
		{"looks like a blob", Entry{Kind: "k", Body: []byte(`{"$blob":{"sha256":"00","bytes":1,"mime":"x"}}`)}, nil},
		{"looks like an envelope", Entry{Kind: "k", Body: []byte(`{"a":"\",\"prev\":\"","prev":"0","crc":"00000000"}`)}, nil},
		{"an array", Entry{Kind: "k", Body: []byte(`[]`)}, ErrInvalid},
		{"empty", Entry{Kind: "k", Body: []byte{}}, ErrInvalid},
		{"two values", Entry{Kind: "k", Body: []byte(`{}{}`)}, ErrInvalid},
		{"no kind", Entry{Body: []byte(`{}`)}, ErrInvalid},
		{"a quote in the kind", Entry{Kind: `a"b`, Body: []byte(`{}`)}, ErrInvalid},
		{"a long kind", Entry{Kind: strings.Repeat("k", MaxKindBytes+1)}, ErrInvalid},
		{"a negative step", Entry{Kind: "k", Step: -1}, ErrInvalid},
		{"a large tok", Entry{Kind: "k", Tok: MaxNumber + 1}, ErrInvalid},
	}
	dir := t.TempDir()
	l := mustOpen(t, dir, nil)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			before, _ := l.Last()
			seq, err := l.Append(context.Background(), tt.entry)
			if !errors.Is(err, tt.want) {
				t.Fatalf("Append = %v, want %v", err, tt.want)
			}
			if tt.want != nil {
				if after, _ := l.Last(); after != before {
					t.Fatalf("a refused entry was appended")
				}
				return
			}
			rec, err := l.Get(seq)
			if err != nil || !bytes.Equal(rec.Body, tt.entry.Body) {
				t.Fatalf("Get = %.80q, %v; want %.80q", rec.Body, err, tt.entry.Body)
			}
		})
	}
	if _, err := l.Append(context.Background()); !errors.Is(err, ErrInvalid) {
		t.Errorf("Append of nothing = %v", err)
	}
	many := slices.Repeat([]Entry{{Kind: "k"}}, MaxBatchBytes/200)
	if _, err := l.Append(context.Background(), many...); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Append of too much = %v", err)
	}
	mustClose(t, l)
	rep, err := Verify(context.Background(), dir)
	if err != nil || len(rep.Findings) != 0 {
		t.Errorf("Verify = %v, %v", rep.Findings, err)
	}
}

// TestOneWrite holds that a call's entries are consecutive and reach the file
// in one write, whoever else appends.
func TestOneWrite(t *testing.T) {
	d := newDiskWithDir()
	l := mustOpenDisk(t, d)
	writes := 0
	d.hook = func(op, _ string, size int) (int, error) {
		if op == "write" {
			writes++
		}
		return size, nil
	}
	mustAppend(t, l, Entry{Kind: "a"}, Entry{Kind: "b"}, Entry{Kind: "c"})
	if writes != 1 {
		t.Errorf("three entries took %d writes", writes)
	}
	d.hook = nil
	const callers, calls = 8, 40
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range calls {
				body := []byte(fmt.Sprintf(`{"c":%d,"i":%d}`, c, i))
				first, err := l.Append(context.Background(), Entry{Kind: "x", Body: body}, Entry{Kind: "y", Body: body})
				if err != nil {
					t.Error(err)
					return
				}
				for n, kind := range []string{"x", "y"} {
					rec, err := l.Get(first + uint64(n))
					if err != nil || rec.Kind != kind || !bytes.Equal(rec.Body, body) {
						t.Errorf("record %d = %+v, %v", first+uint64(n), rec, err)
					}
				}
			}
		})
	}
	wg.Wait()
	if last, _ := l.Last(); last != 3+2*callers*calls {
		t.Errorf("last = %d", last)
	}
}

// TestSharedSync holds callers in a sync and counts the syncs of those that
// arrive meanwhile: one.
func TestSharedSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiskWithDir()
		slow := slowSync{disk: d, entered: make(chan bool, 10), leave: make(chan bool)}
		o := diskOptions(d)
		o.FS = slow
		l, err := openLocked("/log", o, nil)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 65 {
			wg.Go(func() {
				if _, err := l.Append(t.Context(), Entry{Kind: "k"}); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		wg.Go(func() {
			if _, err := l.Append(ctx, Entry{Kind: "cancelled"}); !errors.Is(err, context.Canceled) {
				t.Errorf("a cancelled caller got %v", err)
			}
		})
		synctest.Wait()
		cancel()
		synctest.Wait()
		slow.leave <- true
		slow.leave <- true
		wg.Wait()
		if n := len(slow.entered); n != 2 {
			t.Errorf("65 callers took %d syncs, want 2", n)
		}
		if last, _ := l.Last(); last != 65 {
			t.Errorf("last = %d, want 65: the cancelled one must not be there", last)
		}
	})
}

// slowSync is a disk whose file syncs wait to be let go.
type slowSync struct {
	*disk
	entered, leave chan bool
}

func (s slowSync) Open(path string, flag int) (File, error) {
	f, err := s.disk.Open(path, flag)
	return slowFile{f, s}, err
}

type slowFile struct {
	File
	s slowSync
}

func (f slowFile) Sync() error {
	f.s.entered <- true
	<-f.s.leave
	return f.File.Sync()
}

// TestDiskFull fails writes part-way, as a full disk does: nothing of them
// stays, the caller is told, and the log goes on when there is room.
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
		_, err := l.Append(t.Context(), Entry{Kind: "b", Body: []byte(`{"n":2}`)}, Entry{Kind: "c", Body: []byte(`{"n":3}`)})
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
// acknowledged can be read, and opening again goes on.
func TestFailedSync(t *testing.T) {
	tests := []struct {
		name string
		fail func(op, path string) bool
	}{
		{"fdatasync", func(op, path string) bool { return op == "sync" && strings.HasSuffix(path, segmentSuffix) }},
		{"directory of a new segment", func(op, path string) bool { return op == "syncdir" && path == "/log/ops" }},
		{"sync of the cut after a short write", func(op, _ string) bool { return op == "write" || op == "sync" }},
		{"the cut after a short write", func(op, _ string) bool { return op == "write" || op == "truncate" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := newDiskWithDir()
			o := diskOptions(d)
			o.SegmentSizeBytes = 1
			l, err := openLocked("/log", o, nil)
			if err != nil {
				t.Fatal(err)
			}
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
	want := []string{fmt.Sprint("truncate ", end), fmt.Sprint("write ", end-first), "sync 0", fmt.Sprint("write ", note), "sync 0"}
	if !slices.Equal(did, want) {
		t.Errorf("opening did %q to the segment, want %q: cut, the last batch, sync, the note, sync", did, want)
	}
}

// TestMissingSegments removes each segment in turn: a missing one before the
// last is corruption, whatever stands in the others.
func TestMissingSegments(t *testing.T) {
	for gone := range 4 {
		d := newDiskWithDir()
		o := diskOptions(d)
		o.SegmentSizeBytes = 1
		l, err := openLocked("/log", o, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			mustAppend(t, l, Entry{Kind: "a"})
		}
		delete(d.names, d.segments()[gone])
		_, err = openLocked("/log", o, nil)
		var c *CorruptError
		if !errors.As(err, &c) || c.Seq != uint64(gone+1) {
			t.Errorf("without segment %d: Open = %v", gone+1, err)
		}
		rep, err := verify(t.Context(), d, "/log")
		if err != nil || !rep.Has(SeverityCorrupt) || rep.Records != 4 {
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

// TestClockBack sets the clock back a day: order and reading do not change.
func TestClockBack(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.FixedZone("east", 3600))
	l := mustOpen(t, t.TempDir(), &Options{Now: func() time.Time { return now }})
	mustAppend(t, l, Entry{Kind: "a"})
	now = now.AddDate(0, 0, -1)
	mustAppend(t, l, Entry{Kind: "b"})
	now = time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)
	mustAppend(t, l, Entry{Kind: "c"})
	want := []time.Time{
		time.Date(2026, 3, 1, 11, 0, 0, 123456000, time.UTC),
		time.Date(2026, 2, 28, 11, 0, 0, 123456000, time.UTC),
		{},
	}
	for rec, err := range l.Since(0) {
		if err != nil || !rec.Time.Equal(want[rec.Seq-1]) {
			t.Errorf("record %d: time %v, %v", rec.Seq, rec.Time, err)
		}
	}
}

// TestSeals holds that an idle writer seals once, that Close does not seal
// again, and that the hook sees every durable batch.
func TestSeals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDiskWithDir()
		o := diskOptions(d)
		o.SealAfter = time.Minute
		var hooked []uint64
		o.AfterAppend = func(last uint64) { hooked = append(hooked, last) }
		l, err := openLocked("/log", o, nil)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour) // nothing to seal
		mustAppend(t, l, Entry{Kind: "a", Step: 7})
		time.Sleep(59 * time.Second)
		mustAppend(t, l, Entry{Kind: "b", Step: 8})
		time.Sleep(59 * time.Second)
		if last, _ := l.Last(); last != 2 {
			t.Fatalf("sealed before it was idle for a minute: last %d", last)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if rec, err := l.Get(3); err != nil || rec.Kind != kindSealed || rec.Step != 8 {
			t.Fatalf("record 3 = %+v, %v", rec, err)
		}
		mustClose(t, l)
		if last, _ := l.Last(); last != 3 || !slices.Equal(hooked, []uint64{1, 2, 3}) {
			t.Errorf("last = %d, hook saw %v", last, hooked)
		}
		if _, err := l.Append(t.Context(), Entry{Kind: "c"}); !errors.Is(err, ErrClosed) {
			t.Errorf("Append after Close = %v", err)
		}
	})
}

func TestLockSameProcess(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, dir, nil)
	start := time.Now()
	_, err := Open(dir, nil)
	var locked *LockedError
	if !errors.As(err, &locked) || locked.PID != os.Getpid() || !errors.Is(err, ErrLocked) {
		t.Fatalf("second Open = %v", err)
	}
	if took := time.Since(start); took > 100*time.Millisecond {
		t.Errorf("the refusal took %v", took)
	}
	mustClose(t, l)
	l = mustOpen(t, dir, nil)
	// A waiting writer gets the lock when its holder closes.
	got := make(chan error)
	go func() {
		second, err := Open(dir, &Options{Wait: time.Minute})
		if err == nil {
			err = second.Close()
		}
		got <- err
	}()
	mustClose(t, l)
	if err := <-got; err != nil {
		t.Errorf("waiting Open = %v", err)
	}
}

func TestModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	l := mustOpen(t, dir, nil)
	mustAppend(t, l, Entry{Kind: "k", Body: []byte("{\"a\":\"\xff\"}")})
	mustClose(t, l)
	err := filepath.WalkDir(filepath.Dir(dir), func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		want := os.FileMode(0o600)
		if e.IsDir() {
			want = 0o700
		}
		if err == nil && info.Mode().Perm() != want {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestVersion holds that a newer program's stream is not taken for damage.
func TestVersion(t *testing.T) {
	d := newDiskWithDir()
	l := mustOpenDisk(t, d)
	mustAppend(t, l, Entry{Kind: "a"})
	path, _ := tail(d)
	line := bytes.Replace(bytes.TrimSpace(d.names[path].data), []byte(`"v":1`), []byte(`"v":2`), 1)
	d.names[path].data = append(resum(line), '\n')
	size := len(d.names[path].data)
	if _, err := openLocked("/log", diskOptions(d), nil); !errors.Is(err, ErrVersion) {
		t.Fatalf("Open = %v", err)
	}
	if _, after := tail(d); after != size {
		t.Fatal("Open changed a stream of another version")
	}
}

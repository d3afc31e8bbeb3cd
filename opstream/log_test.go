package opstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"anamnesis/opstream/durable"
	"anamnesis/opstream/internal/segments"
	"anamnesis/opstream/internal/wire"
)

func mustOpen(t *testing.T, dir string, o *Options) *Log {
	t.Helper()
	if o == nil {
		o = &Options{}
	}
	return opened(t)(Open(dir, o))
}

// opened takes what an opening gave: a log, which the test's end closes.
func opened(t *testing.T) func(*Log, error) *Log {
	return func(l *Log, err error) *Log {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
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
func newDiskWithDir() *simDisk {
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
						Step: rapid.IntRange(0, wire.MaxNumber).Draw(t, "step"),
						Tok:  rapid.IntRange(0, wire.MaxNumber).Draw(t, "tok"),
					}
					body, err := json.Marshal(
						map[string]string{rapid.String().Draw(t, "key"): rapid.String().Draw(t, "value")})
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
				n := uint64(0)
				for r, err := range l.Since(0) {
					if err != nil {
						t.Fatal(err)
					}
					w := want[n]
					n++
					if r.Seq != n || !r.Durable || r.Ack >= n || (rec{r.Kind, string(r.Body), r.Step, r.Tok}) != w {
						t.Fatalf("record %d is %+v, want %+v", n, r, w)
					}
				}
				if last, _ := l.Last(); last != n || n != uint64(len(want)) {
					t.Fatalf("last %d, read %d, want %d", last, n, len(want))
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
		{"raw NUL", Entry{Kind: "k", Body: []byte("{\"a\":\"\x00\"}")}, wire.ErrInvalid},
		{"U+2028", Entry{Kind: "k", Body: []byte("{\"a\":\"\u2028\"}")}, nil},
		{"lone surrogate", Entry{Kind: "k", Body: []byte(`{"a":"\ud800"}`)}, nil},
		{"not UTF-8", Entry{Kind: "k", Body: []byte("{\"a\":\"\xff\xfe\"}")}, nil},
		{"5 MiB", Entry{Kind: "k", Body: []byte(`{"a":"` + strings.Repeat("x", 5<<20) + `"}`)}, nil},
		{"at the inline limit", Entry{Kind: "k", Body: []byte(`{"a":"` + strings.Repeat("x", wire.MaxInlineBytes-8) + `"}`)}, nil},
		{"past the inline limit", Entry{Kind: "k", Body: []byte(`{"a":"` + strings.Repeat("x", wire.MaxInlineBytes-7) + `"}`)}, nil},
		{"9,000 deep", Entry{Kind: "k", Body: deep(9000)}, nil},
		{"10,001 deep", Entry{Kind: "k", Body: deep(10001)}, wire.ErrInvalid},
		{"duplicate keys", Entry{Kind: "k", Body: []byte(`{"a":1,"a":2}`)}, nil},
		{"looks like a blob", Entry{Kind: "k", Body: []byte(`{"$blob":{"sha256":"00","bytes":1,"mime":"x"}}`)}, nil},
		{"looks like an envelope", Entry{Kind: "k", Body: []byte(`{"a":"\",\"prev\":\"","prev":"0","crc":"00000000"}`)}, nil},
		{"an array", Entry{Kind: "k", Body: []byte(`[]`)}, wire.ErrInvalid},
		{"empty", Entry{Kind: "k", Body: []byte{}}, wire.ErrInvalid},
		{"two values", Entry{Kind: "k", Body: []byte(`{}{}`)}, wire.ErrInvalid},
		{"no kind", Entry{Body: []byte(`{}`)}, wire.ErrInvalid},
		{"a quote in the kind", Entry{Kind: `a"b`, Body: []byte(`{}`)}, wire.ErrInvalid},
		{"a long kind", Entry{Kind: strings.Repeat("k", wire.MaxKindBytes+1)}, wire.ErrInvalid},
		{"a negative step", Entry{Kind: "k", Step: -1}, wire.ErrInvalid},
		{"a large tok", Entry{Kind: "k", Tok: wire.MaxNumber + 1}, wire.ErrInvalid},
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
	if _, err := l.Append(context.Background()); !errors.Is(err, wire.ErrInvalid) {
		t.Errorf("Append of nothing = %v", err)
	}
	many := slices.Repeat([]Entry{{Kind: "k"}}, MaxBatchBytes/200)
	if _, err := l.Append(context.Background(), many...); !errors.Is(err, wire.ErrTooLarge) {
		t.Errorf("Append of too much = %v", err)
	}
	mustClose(t, l)
	rep, err := Verify(context.Background(), dir)
	if err != nil || len(rep.Findings) != 0 {
		t.Errorf("Verify = %v, %v", rep.Findings, err)
	}
	for path, data := range tree(t, filepath.Join(dir, segments.OpsDirName)) {
		if !utf8.ValidString(data) {
			t.Errorf("%s is not UTF-8", path)
		}
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
		slow := slowSync{simDisk: d, entered: make(chan bool, 10), leave: make(chan bool)}
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
	*simDisk
	entered, leave chan bool
}

func (s slowSync) Open(path string, flag int) (durable.File, error) {
	f, err := s.simDisk.Open(path, flag)
	return slowFile{f, s}, err
}

type slowFile struct {
	durable.File
	s slowSync
}

func (f slowFile) Sync() error {
	f.s.entered <- true
	<-f.s.leave
	return f.File.Sync()
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
	if _, err := openLocked("/log", diskOptions(d), nil); !errors.Is(err, wire.ErrVersion) {
		t.Fatalf("Open = %v", err)
	}
	if _, after := tail(d); after != size {
		t.Fatal("Open changed a stream of another version")
	}
}

// resum returns a line with the checksum of its bytes.
func resum(line []byte) []byte {
	n := len(line) - len(`,"crc":"01234567"}`)
	return fmt.Appendf(bytes.Clone(line[:n]), `,"crc":"%08x"}`, crc32.Checksum(line[:n], wire.CRCTable()))
}

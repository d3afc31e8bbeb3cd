package opstream

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"anamnesis/opstream/redact"
)

func benchBody() []byte { return []byte(`{"text":"` + strings.Repeat("x", 1013) + `"}`) }

func benchEntry(body []byte) Entry {
	return Entry{Kind: "tool.returned", Step: 1, Tok: 256, Body: body}
}

// benchLineBytes is the size of the line that holds benchBody, with its newline.
const benchLineBytes = 1207

// bareFile is what durable appending cannot beat: a write and an fdatasync of
// as many bytes.
type bareFile struct {
	f   File
	off int64
}

func newBareFile(b *testing.B, dir string) *bareFile {
	b.Helper()
	f, err := osFS{}.Open(filepath.Join(dir, "bare"), os.O_RDWR|os.O_CREATE)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { f.Close() })
	return &bareFile{f: f}
}

func (a *bareFile) append(b *testing.B, line []byte) {
	if _, err := a.f.WriteAt(line, a.off); err != nil {
		b.Fatal(err)
	}
	if err := a.f.Sync(); err != nil {
		b.Fatal(err)
	}
	a.off += int64(len(line))
}

func benchLog(b *testing.B, dir string, o *Options) *Log {
	b.Helper()
	l, err := Open(dir, o)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	return l
}

func benchAppend(b *testing.B, l *Log, body []byte) {
	if _, err := l.Append(b.Context(), benchEntry(body)); err != nil {
		b.Error(err)
	}
}

// BenchmarkAppend appends 1 KiB bodies durably: the bare write and fdatasync,
// one caller, one caller with redaction, and 64 callers, in turns of a few
// milliseconds, so that the ratios hold on a disk of any mood. Rates:
//
//	append/bare     bar 0.85
//	redacted/bare   bar 0.7
//	64/1            of 64 callers by that of one; bar 15
func BenchmarkAppend(b *testing.B) {
	const each, callers = 16, 64
	dir := b.TempDir()
	bare := newBareFile(b, dir)
	l := benchLog(b, filepath.Join(dir, "log"), nil)
	r := redact.New([]byte(strings.Repeat("k", redact.KeyBytes)), nil)
	body, line := benchBody(), make([]byte, benchLineBytes)
	turn := func(spent *time.Duration, n int, do func()) {
		start := time.Now()
		for range n {
			do()
		}
		*spent += time.Since(start)
	}
	var bareTime, oneTime, redactTime, manyTime time.Duration
	for b.Loop() {
		turn(&bareTime, each, func() { bare.append(b, line) })
		turn(&oneTime, each, func() { benchAppend(b, l, body) })
		turn(&redactTime, each, func() {
			clean, _, err := r.JSON(body, nil)
			if err != nil {
				b.Fatal(err)
			}
			benchAppend(b, l, clean)
		})
		turn(&manyTime, 1, func() {
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for range each {
						benchAppend(b, l, body)
					}
				})
			}
			wg.Wait()
		})
	}
	n := float64(b.N * each)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(bareTime.Microseconds())/n, "bare-µs")
	b.ReportMetric(float64(oneTime.Microseconds())/n, "append-µs")
	b.ReportMetric(float64(bareTime)/float64(oneTime), "append/bare")
	b.ReportMetric(float64(bareTime)/float64(redactTime), "redacted/bare")
	b.ReportMetric(callers*float64(oneTime)/float64(manyTime), "64/1")
}

// BenchmarkOneMore appends to a stream of 10 records and to one of many, in
// turns: one more op costs the same. The ratios' bar is 1, within noise.
func BenchmarkOneMore(b *testing.B) {
	const each = 16
	many := benchRecords()
	dir := b.TempDir()
	type stream struct {
		log           *Log
		time          time.Duration
		bytes, allocs uint64
	}
	streams := make([]stream, 2)
	for i, records := range []int{10, many} {
		at := filepath.Join(dir, []string{"short", "long"}[i])
		longStream(b, at, records)
		streams[i].log = benchLog(b, at, nil)
	}
	body := benchBody()
	var before, after runtime.MemStats
	for b.Loop() {
		for i := range streams {
			s := &streams[i]
			runtime.ReadMemStats(&before)
			start := time.Now()
			for range each {
				benchAppend(b, s.log, body)
			}
			s.time += time.Since(start)
			runtime.ReadMemStats(&after)
			s.bytes += after.TotalAlloc - before.TotalAlloc
			s.allocs += after.Mallocs - before.Mallocs
		}
	}
	short, long := &streams[0], &streams[1]
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(many), "records")
	b.ReportMetric(float64(long.time)/float64(short.time), "long/short-time")
	b.ReportMetric(float64(long.bytes)/float64(short.bytes), "long/short-bytes")
	b.ReportMetric(float64(long.allocs)/float64(short.allocs), "long/short-allocs")
}

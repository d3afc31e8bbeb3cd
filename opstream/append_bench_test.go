package opstream

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"anamnesis/opstream/durable"
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
	f   durable.File
	off int64
}

func newBareFile(b *testing.B, dir string) *bareFile {
	b.Helper()
	f, err := durable.OS{}.Open(filepath.Join(dir, "bare"), os.O_RDWR|os.O_CREATE)
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
	if _, err := l.Append(context.WithoutCancel(b.Context()), benchEntry(body)); err != nil {
		b.Error(err)
	}
}

// BenchmarkAppend appends 1 KiB bodies durably: the bare write and fdatasync,
// one caller and 64 callers, in turns of a few
// milliseconds, so that the ratios hold on a disk of any mood; the figures are
// medians of the turns. Rates:
//
//	append/bare     bar 0.85
//	64/1            of 64 callers by that of one, at least 8
func BenchmarkAppend(b *testing.B) {
	const each, callers = 16, 64
	dir := b.TempDir()
	bare := newBareFile(b, dir)
	l := benchLog(b, filepath.Join(dir, "log"), nil)
	body, line := benchBody(), make([]byte, benchLineBytes)
	const bareLane, oneLane = 0, 1
	lanes := [...]func(){
		bareLane: func() { bare.append(b, line) },
		oneLane:  func() { benchAppend(b, l, body) },
	}
	var spent [len(lanes)][]time.Duration
	var many []time.Duration
	for round := 0; b.Loop(); round++ {
		for i := range lanes { // another one is the first each time
			lane := (i + round) % len(lanes)
			start := time.Now()
			for range each {
				lanes[lane]()
			}
			spent[lane] = append(spent[lane], time.Since(start))
		}
		start := time.Now()
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				for range each {
					benchAppend(b, l, body)
				}
			})
		}
		wg.Wait()
		many = append(many, time.Since(start))
		bare.append(b, line) // what that left to the journal is nobody's turn
	}
	bareTurn, oneTurn := median(spent[bareLane]), median(spent[oneLane])
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(bareTurn/each, "bare-µs")
	b.ReportMetric(oneTurn/each, "append-µs")
	b.ReportMetric(bareTurn/oneTurn, "append/bare")
	b.ReportMetric(callers*oneTurn/median(many), "64/1")
}

// median is that of the turns, in microseconds: a sync that waited for somebody
// else's writes counts as one.
func median(turns []time.Duration) float64 {
	slices.Sort(turns)
	return float64(turns[len(turns)/2].Nanoseconds()) / 1000
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

package opstream

import (
	"crypto/sha256"
	"hash/crc32"
	"io"
	"os"
	"testing"
	"time"

	"anamnesis/opstream/durable"
	"anamnesis/opstream/internal/segments"
	"anamnesis/opstream/internal/wire"
)

// benchRecords is how long a long stream is.
func benchRecords() int { return count(50_000, 1_000_000) }

// longStream makes a closed stream of that many records of 1 KiB with a
// snapshot near its end.
func longStream(tb testing.TB, dir string, records int) {
	tb.Helper()
	l, err := Open(dir, nil)
	if err != nil {
		tb.Fatal(err)
	}
	entries := make([]Entry, 1000)
	for left := records; left > 0; left -= len(entries) {
		entries = entries[:min(len(entries), left)]
		for i := range entries {
			entries[i] = benchEntry(benchBody())
			entries[i].Step = (records - left + i) / 4
		}
		if _, err := l.Append(tb.Context(), entries...); err != nil {
			tb.Fatal(err)
		}
	}
	if err := l.WriteSnapshot(testFold, make([]byte, 1<<20), uint64(max(1, records-100))); err != nil {
		tb.Fatal(err)
	}
	if err := l.Close(); err != nil {
		tb.Fatal(err)
	}
}

// bareScan reads a stream's segments and hashes their bytes, as one thread:
// what verifying cannot beat as one thread.
func bareScan(b *testing.B, dir string) {
	segs, _, err := segments.List(durable.OS{}, dir)
	if err != nil {
		b.Fatal(err)
	}
	sums := io.MultiWriter(crc32.New(wire.CRCTable()), sha256.New())
	buf := make([]byte, segments.ScanBufferBytes)
	for _, seg := range segs {
		f, err := os.Open(segments.Path(dir, seg))
		if err != nil {
			b.Fatal(err)
		}
		_, err = io.CopyBuffer(sums, struct{ io.Reader }{f}, buf)
		if f.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpen opens a stream of 1 KiB records, in turns with a bare read of
// its bytes with CRC32C and SHA-256, and with its snapshot. All of it is one
// thread. Ratios of times:
//
//	open/bare     bar 1.5
//	resume/open   bar 0.1, at 1,000,000 records (-nightly)
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	records := benchRecords()
	longStream(b, dir, records)
	timed := func(spent *time.Duration, do func()) {
		start := time.Now()
		do()
		*spent += time.Since(start)
	}
	open := func(o *Options) {
		l, err := Open(dir, o)
		if err != nil {
			b.Fatal(err)
		}
		if _, _, ok := l.Folded(); ok != (o != nil) {
			b.Fatal(l.SnapshotRefused())
		}
		if err := l.Close(); err != nil {
			b.Fatal(err)
		}
	}
	bareScan(b, dir) // the pages are in memory from here on
	var bareTime, openTime, resumeTime time.Duration
	for b.Loop() {
		timed(&bareTime, func() { bareScan(b, dir) })
		timed(&openTime, func() { open(nil) })
		timed(&resumeTime, func() { open(&Options{Snapshot: testFold}) })
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(records), "records")
	b.ReportMetric(openTime.Seconds()*1000/float64(b.N), "open-ms")
	b.ReportMetric(resumeTime.Seconds()*1000/float64(b.N), "resume-ms")
	b.ReportMetric(float64(openTime)/float64(bareTime), "open/bare")
	b.ReportMetric(float64(resumeTime)/float64(openTime), "resume/open")
}

package counterparts

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// BenchmarkAppend appends bodies of 1 KiB durably, one a call and 64 a call, to
// each store in turns of some milliseconds, so that the ratios hold on a disk of
// any mood. It reports microseconds a call, the median of the turns, and how many
// times as fast as each other store opstream is; beside the bare write and
// fdatasync that is below 1.
func BenchmarkAppend(b *testing.B) {
	for _, batch := range []int{1, 64} {
		b.Run(fmt.Sprintf("records=%d", batch), func(b *testing.B) { benchmarkAppend(b, batch) })
	}
}

func benchmarkAppend(b *testing.B, batch int) {
	const each = 16
	dir := b.TempDir()
	type lane struct {
		name   string
		append func([][]byte) error
		turns  []time.Duration
	}
	var lanes []lane
	for _, m := range makers() {
		at := filepath.Join(dir, m.name)
		if err := os.Mkdir(at, 0o700); err != nil {
			b.Fatal(err)
		}
		s, err := m.open(at)
		if err != nil {
			b.Fatal(err)
		}
		defer s.close()
		lanes = append(lanes, lane{name: m.name, append: s.append})
	}
	floor, err := openBare(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer floor.f.Close()
	lanes = append(lanes, lane{name: "bare", append: floor.append})

	bodies := make([][]byte, batch)
	for i := range bodies {
		bodies[i] = benchBody(i)
	}
	for round := 0; b.Loop(); round++ {
		for i := range lanes { // another one is the first each time
			l := &lanes[(i+round)%len(lanes)]
			start := time.Now()
			for range each {
				if err := l.append(bodies); err != nil {
					b.Fatalf("%s: %v", l.name, err)
				}
			}
			l.turns = append(l.turns, time.Since(start))
		}
	}
	b.ReportMetric(0, "ns/op")
	median := func(l lane) float64 { // in microseconds a call
		slices.Sort(l.turns)
		return float64(l.turns[len(l.turns)/2].Nanoseconds()) / 1000 / each
	}
	for _, l := range lanes {
		b.ReportMetric(median(l), l.name+"-µs")
		if l.name != lanes[0].name {
			b.ReportMetric(median(l)/median(lanes[0]), "opstream/"+l.name)
		}
	}
}

package counterparts

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkAppend appends bodies of 1 KiB durably, one a call and 64 a call, to
// each store in turns of some milliseconds, so that the ratios hold on a disk of
// any mood. It reports microseconds a call, and how many times as fast as each
// other store opstream is; beside the bare write and fdatasync that is below 1.
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
		time   time.Duration
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
	for b.Loop() {
		for i := range lanes {
			start := time.Now()
			for range each {
				if err := lanes[i].append(bodies); err != nil {
					b.Fatalf("%s: %v", lanes[i].name, err)
				}
			}
			lanes[i].time += time.Since(start)
		}
	}
	b.ReportMetric(0, "ns/op")
	for _, l := range lanes {
		b.ReportMetric(float64(l.time.Microseconds())/float64(b.N*each), l.name+"-µs")
		if l.name != lanes[0].name {
			b.ReportMetric(float64(l.time)/float64(lanes[0].time), "opstream/"+l.name)
		}
	}
}

package counterparts

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/philippgille/chromem-go"

	"anamnesis/knowledge_base/retrieval"
)

var large = flag.Bool("large", false, "measure 100,000 cards beside chromem-go, too: minutes, and 2 GB")

// many returns n documents made from a labelled set by repetition, each a little
// different, and the set's queries.
func many(b *testing.B, n int) (docs []retrieval.Document, queries []string) {
	b.Helper()
	dir, ok := dataSets(b)["cosqa"]
	if !ok {
		b.Skip("SKIPPED: no data")
	}
	set := readSet(b, dir)
	for i := range n {
		docs = append(docs,
			document(fmt.Sprintf("d%06d", i), fmt.Sprintf("%d %s", i, set.docs[i%len(set.docs)].Text())))
	}
	return docs, slices.Sorted(maps.Values(set.queries))
}

// cpuTime is what the process has used so far, all of its threads.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// race asks the engines the same queries in turns and reports the median and
// the 99th percentile of each, in time and in time of processors, which a busy
// machine does not change, and how many times the first's median is the second's.
func race(b *testing.B, queries []string, engines ...engine) {
	b.Helper()
	took, used := make([][]time.Duration, len(engines)), make([][]time.Duration, len(engines))
	for i := 0; b.Loop(); i++ {
		for e := range engines {
			e = (e + i) % len(engines)
			begin, spent := time.Now(), cpuTime(b)
			if _, err := engines[e].find(b.Context(), queries[i%len(queries)]); err != nil {
				b.Fatal(err)
			}
			took[e] = append(took[e], time.Since(begin))
			used[e] = append(used[e], cpuTime(b)-spent)
		}
	}
	at := func(list []time.Duration, percent int) float64 {
		slices.Sort(list)
		return float64(list[len(list)*percent/100].Microseconds()) / 1000
	}
	for e, engine := range engines {
		for _, percent := range []int{50, 99} {
			b.ReportMetric(at(took[e], percent), fmt.Sprintf("%s-p%d-ms", engine.name, percent))
			b.ReportMetric(at(used[e], percent), fmt.Sprintf("%s-p%d-cpu-ms", engine.name, percent))
		}
	}
	b.ReportMetric(at(took[0], 50)/at(took[1], 50), "p50-ratio")
	b.ReportMetric(at(used[0], 50)/at(used[1], 50), "p50-cpu-ratio")
	b.ReportMetric(0, "ns/op") // of all engines together: means nothing
}

// BenchmarkTenThousand measures queries over 10,000 cards beside FTS5 and
// bleve.
func BenchmarkTenThousand(b *testing.B) {
	docs, queries := many(b, 10_000)
	engines := []engine{ours(b, docs), bleveEngine(b, docs), fts5(b, docs)}
	race(b, queries, engines...)
}

// BenchmarkHundredThousand measures queries over 100,000 cards beside chromem-go
// alone with as many vectors of the same size.
func BenchmarkHundredThousand(b *testing.B) {
	if !*large {
		b.Skip("not measured without -large")
	}
	docs, queries := many(b, 100_000)
	race(b, queries, ours(b, docs), vectorsAlone(b, len(docs)))
}

// vectorsAlone is chromem-go with n vectors of 256 dimensions.
func vectorsAlone(b *testing.B, n int) engine {
	b.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	vector := func() []float32 {
		v := make([]float32, 256)
		for i := range v {
			v[i] = float32(rng.NormFloat64())
		}
		return v
	}
	c, err := chromem.NewDB().CreateCollection("cards", nil,
		func(context.Context, string) ([]float32, error) { return vector(), nil })
	if err != nil {
		b.Fatal(err)
	}
	for i := range n {
		if err := c.AddDocument(b.Context(), chromem.Document{ID: fmt.Sprint(i), Embedding: vector()}); err != nil {
			b.Fatal(err)
		}
	}
	return engine{"chromem", func(ctx context.Context, _ string) ([]string, error) {
		found, err := c.QueryEmbedding(ctx, vector(), depth, nil, nil)
		ids := make([]string, len(found))
		for i, f := range found {
			ids[i] = f.ID
		}
		return ids, err
	}}
}

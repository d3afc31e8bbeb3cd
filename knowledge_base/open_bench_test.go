package knowledgebase

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/knowledge_base/internal/folder"
	"anamnesis/opstream/durable"
)

// cardFolder writes n cards made from the committed set by repetition, each a
// little different, as files of a knowledge base.
func cardFolder(b *testing.B, n int) (string, evalSet) {
	b.Helper()
	set := readSet(b, "retrieval/testdata/cards")
	dir := b.TempDir()
	month := filepath.Join(dir, day.Format("2006-01"))
	if err := os.Mkdir(month, durable.DirMode); err != nil {
		b.Fatal(err)
	}
	for i := range n {
		d := set.Docs[i%len(set.Docs)]
		c := newCard(fmt.Sprintf("c%06d", i), fmt.Sprintf("%s %d", d.Title, i), d.Text,
			set.Docs[(i*7+i/len(set.Docs))%len(set.Docs)].Title)
		c.Created = day.Add(time.Duration(i) * time.Second)
		if err := os.WriteFile(filepath.Join(month, folder.FileName(c.Topic, c.ID)), c.Markdown(), durable.FileMode); err != nil {
			b.Fatal(err)
		}
	}
	return dir, set
}

// cpuTime is what this process has computed so far, on all cores: beside other
// work the clock on the wall says little.
func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkFolder measures what a user waits for with 10,000 cards: opening
// the folder and the first answer, and a full rebuild; and the memory this takes.
func BenchmarkFolder(b *testing.B) {
	dir, set := cardFolder(b, 10_000)
	first := func(b *testing.B) *Store {
		s := openStore(b, dir)
		if _, err := s.Search(b.Context(), Query{Text: set.Queries[0].Text}); err != nil || s.VectorError() != nil {
			b.Fatal(err, s.VectorError())
		}
		return s
	}
	timed := func(b *testing.B, name string, do func(b *testing.B)) {
		b.Run(name, func(b *testing.B) {
			before := cpuTime(b)
			do(b)
			b.ReportMetric((cpuTime(b)-before).Seconds()/float64(b.N), "cpu-s/op")
		})
	}
	timed(b, "first", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			if err := os.RemoveAll(filepath.Join(dir, indexDir)); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			first(b).Close()
		}
	})
	first(b).Close()
	timed(b, "cached", func(b *testing.B) {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		for b.Loop() {
			s := first(b)
			b.StopTimer()
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/(1<<20), "heap-MiB")
			s.Close()
			b.StartTimer()
		}
	})
	timed(b, "rebuild", func(b *testing.B) {
		s := first(b)
		for b.Loop() {
			if err := s.Rebuild(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

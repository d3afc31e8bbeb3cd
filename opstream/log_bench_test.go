package opstream

import (
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func benchBody() []byte { return []byte(`{"text":"` + strings.Repeat("x", 1013) + `"}`) }

// BenchmarkBareAppend is what durable appending cannot beat: write and
// fdatasync of as many bytes as BenchmarkAppend's lines have.
func BenchmarkBareAppend(b *testing.B) {
	f, err := osFS{}.Open(filepath.Join(b.TempDir(), "bare"), os.O_RDWR|os.O_CREATE)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	line := make([]byte, 1024+170)
	var off int64
	for b.Loop() {
		if _, err := f.WriteAt(line, off); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
		off += int64(len(line))
	}
}

// BenchmarkAppend appends 1 KiB bodies durably, one after the other and from
// 64 goroutines.
func BenchmarkAppend(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			l, err := Open(b.TempDir(), nil)
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			body := benchBody()
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ResetTimer()
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						if _, err := l.Append(b.Context(), Entry{Kind: "tool.returned", Step: 1, Tok: 256, Body: body}); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

// BenchmarkOpen opens and verifies a stream of 100,000 records of 1 KiB,
// beside a bare read of the same bytes with CRC32C and SHA-256.
func BenchmarkOpen(b *testing.B) {
	dir := b.TempDir()
	l, err := Open(dir, nil)
	if err != nil {
		b.Fatal(err)
	}
	entries := make([]Entry, 1000)
	for i := range entries {
		entries[i] = Entry{Kind: "tool.returned", Step: 1, Tok: 256, Body: benchBody()}
	}
	for range 100 {
		if _, err := l.Append(b.Context(), entries...); err != nil {
			b.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			segs, _, err := listSegments(osFS{}, dir)
			if err != nil {
				b.Fatal(err)
			}
			for _, seg := range segs {
				f, err := os.Open(segmentPath(dir, seg))
				if err != nil {
					b.Fatal(err)
				}
				_, err = io.CopyBuffer(io.MultiWriter(crc32.New(crcTable()), sha256.New()), struct{ io.Reader }{f}, make([]byte, scanBufferBytes))
				if f.Close(); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			l, err := Open(dir, nil)
			if err != nil {
				b.Fatal(err)
			}
			if err := l.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

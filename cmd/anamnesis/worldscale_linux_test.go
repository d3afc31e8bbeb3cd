package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/worldstate"
)

// maxSaveMemory bounds the peak memory of a process that saves a world of the
// size of a Linux source tree for the first time.
const maxSaveMemory = 160 << 20

// TestWorldMemory saves a tree of the shape of Linux's sources (78,000 files of
// 17 KiB on the average, a few of megabytes) for the first time, without a change,
// and after a change of one file, and asks the kernel what each process took. CI
// saves one of 4,000 files. The kernel counts what a process held when it started
// another as that one's, so a small one stands between (peakMain): the figure is
// too large rather than too small.
func TestWorldMemory(t *testing.T) {
	t.Parallel()
	heavy(t)
	files := 4_000
	if *nightly {
		files = 78_000
	}
	f := programFace{t: t, dir: t.TempDir(), store: filepath.Join(t.TempDir(), "store")}
	bytes := makeSources(t, f.dir, files)
	for _, when := range []string{"first", "unchanged", "one file changed"} {
		if when == "one file changed" {
			if err := os.WriteFile(filepath.Join(f.dir, "new.c"), []byte("int x;\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			files++
		}
		out, peak := peakOf(t, f.command("save", "--json"))
		var snap worldstate.Snapshot
		if err := json.Unmarshal(out, &snap); err != nil || snap.Files != files {
			t.Fatalf("%s: %d files of %d: %v", when, snap.Files, files, err)
		}
		t.Logf("%s: %d files, %d MiB: peak %.1f MiB", when, files, bytes>>20, float64(peak)/(1<<20))
		if peak > maxSaveMemory {
			t.Errorf("%s: %d MiB of memory, at most %d", when, peak>>20, maxSaveMemory>>20)
		}
	}
}

// makeSources writes source files of words and numbers, the same ones every time,
// and gives the bytes they take: about 14 to a directory, three directories deep.
func makeSources(t *testing.T, top string, files int) (total int64) {
	const seed, perDir = 78, 14
	r := rand.New(rand.NewPCG(seed, seed))
	words := strings.Fields("static int struct void return if else for while unsigned long const char device driver buffer lock list queue page inode node entry flags state error init probe read write open release")
	var text strings.Builder
	for i := range files {
		dir := filepath.Join(top, fmt.Sprintf("d%02d/s%02d/m%d", i/perDir%24, i/perDir/24%20, i/perDir/480))
		if i%perDir == 0 {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		size := int(r.ExpFloat64() * 15_000)
		if i%2_000 == 7 {
			size = 4 << 20 // tables of registers
		}
		text.Reset()
		for text.Len() < size {
			fmt.Fprintf(&text, "\t%s %s_%d = %s(%d);\n", words[r.IntN(len(words))], words[r.IntN(len(words))],
				r.IntN(1000), words[r.IntN(len(words))], r.Uint32())
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d.c", i%perDir)), []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		total += int64(text.Len())
	}
	return total
}

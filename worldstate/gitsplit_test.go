package worldstate

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/usergit"
	"anamnesis/worldstate/worldtest"
)

// TestSplitIndex: what a split index tracks is what git says, after any changes.
func TestSplitIndex(t *testing.T) {
	worldtest.Heavy(t)
	for _, version := range []string{"2", "4"} {
		b := newBench(t, nil)
		worldtest.Git(b, b.dir, "init", "-q")
		worldtest.Git(b, b.dir, "config", "core.splitIndex", "true")
		worldtest.Git(b, b.dir, "config", "splitIndex.maxPercentChange", "100") // never whole again
		names := make([]string, 300)
		for i := range names {
			names[i] = fmt.Sprintf("dir%d/file%03d", i%7, i)
			b.write(names[i], fmt.Sprint(i))
		}
		worldtest.Git(b, b.dir, "add", "-A")
		worldtest.Git(b, b.dir, "update-index", "--index-version", version, "--split-index")
		rng := rand.New(rand.NewPCG(4, 2))
		for round := range 6 {
			var run []string
			for range 20 + 30*round {
				run = append(run, names[rng.IntN(len(names))])
			}
			switch round % 3 {
			case 0:
				worldtest.Git(b, b.dir, append([]string{"rm", "-q", "--cached", "--ignore-unmatch", "--"}, run...)...)
			case 1:
				for _, p := range run {
					b.write(p, fmt.Sprint(p, round))
				}
				worldtest.Git(b, b.dir, append([]string{"add", "--"}, run...)...)
			default: // a run of a bitmap: many neighbours at once
				worldtest.Git(b, b.dir, append([]string{"rm", "-q", "--cached", "--ignore-unmatch", "--"}, names[:210]...)...)
			}
			path := b.path(".git/index")
			data, err := os.ReadFile(path)
			b.must(err)
			var looked []string
			got, err := usergit.TrackedPaths(path, data, func(p string) { looked = append(looked, p) })
			b.must(err)
			slices.Sort(got)
			want := strings.Fields(worldtest.Git(b, b.dir, "ls-files"))
			if !slices.Equal(got, want) {
				t.Fatalf("version %s, round %d: %d paths, git has %d", version, round, len(got), len(want))
			}
			if len(looked) != 1 || !strings.HasPrefix(filepath.Base(looked[0]), "sharedindex.") {
				t.Fatalf("version %s, round %d: looked at %v; the index is not split", version, round, looked)
			}
		}
	}
}

// TestSplitIndexHeld: what it lists is held although it is ignored, and what was
// taken out of it is not.
func TestSplitIndexHeld(t *testing.T) {
	b := newBench(t, nil)
	worldtest.Git(b, b.dir, "init", "-q")
	for _, p := range []string{"in.log", "out.log", "new.log"} {
		b.write(p, p)
	}
	worldtest.Git(b, b.dir, "add", "in.log", "out.log")
	worldtest.Git(b, b.dir, "update-index", "--split-index")
	worldtest.Git(b, b.dir, "rm", "-q", "--cached", "out.log")
	b.write(".gitignore", "*.log\n")
	b.holdsPaths("a split index", b.save().ID, map[string]bool{"in.log": true, "out.log": false, "new.log": false})
	worldtest.Git(b, b.dir, "add", "-f", "new.log")
	b.holdsPaths("added to it", b.save().ID, map[string]bool{"in.log": true, "out.log": false, "new.log": true})
}

func FuzzEWAH(f *testing.F) {
	bitmap := func(n uint32, words ...uint64) []byte {
		out := binary.BigEndian.AppendUint32(nil, n)
		out = binary.BigEndian.AppendUint32(out, uint32(len(words)))
		for _, w := range words {
			out = binary.BigEndian.AppendUint64(out, w)
		}
		return binary.BigEndian.AppendUint32(out, 0)
	}
	f.Add(bitmap(70, 1|1<<1|1<<33, 0b101010), uint16(70))
	f.Add(bitmap(200, 2<<1|1<<33, 1<<5), uint16(200))
	f.Add(bitmap(64, 1<<40|1, 7), uint16(64))
	f.Fuzz(func(t *testing.T, b []byte, n uint16) {
		if bits, ok := gitfmt.EwahBits(b, int(n)); ok && len(bits) != int(n) {
			t.Fatalf("%d bits of %d", len(bits), n)
		}
	})
}

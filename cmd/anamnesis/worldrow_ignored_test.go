//go:build unix

package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"testing"

	"anamnesis/worldstate/worldtest"
)

// TestRow01IgnoredSurvive: what is ignored at either end stays, whether the
// rule stood at the snapshot or came after it, in whatever file rules stand.
func TestRow01IgnoredSurvive(t *testing.T) {
	eachFace(t, func(w *rowWorld) {
		git(w, w.dir, "init", "-q")
		w.write(".git/info/exclude", "excluded\n")
		w.write(".gitignore", "node_modules/\n.env\n")
		w.write("sub/.gitignore", "/build\n!keep\n")
		for _, p := range []string{".env", "node_modules/m/index.js", "sub/build/out.o", "excluded"} {
			w.write(p, "precious "+p)
		}
		w.write("main", "1")
		first := w.saved()
		w.write("main", "2")
		w.write(".gitignore", "node_modules/\n.env\n*.log\nlate/\n")
		for _, p := range []string{"run.log", "late/x", "sub/deep/run.log"} {
			w.write(p, "precious "+p)
		}
		w.write("sub/deep/code", "2")
		second := w.saved()
		ignored := []string{".env", "node_modules/m/index.js", "sub/build/out.o", "excluded", "run.log", "late/x", "sub/deep/run.log"}
		for round := range 5 {
			target, main := first, "1"
			if round%2 == 1 {
				target, main = second, "2"
			}
			w.back(target)
			w.holds("main", main)
			for _, p := range ignored {
				w.holds(p, "precious "+p)
			}
			if w.Failed() {
				w.Fatalf("after jump %d", round)
			}
		}
		// At the first snapshot no rule hides the log, so a save there holds it:
		// it is an ordinary file now, and comes back like one.
		res := w.back(first)
		if _, err := os.Stat(w.path("run.log")); !os.IsNotExist(err) {
			w.Errorf("a file that no rule hides and a snapshot holds is still there: %v", err)
		}
		_, err := w.restore(res.Source, noOptions)
		w.must(err)
		w.holds("run.log", "precious run.log")
		w.holds("late/x", "precious late/x")
		w.holds(".env", "precious .env")
		w.whole()
	})
}

// TestRow02UntrackedOutput: what a script wrote and nobody tracked is gone
// after a jump and comes back, to the byte. 1 GB in the nightly run.
func TestRow02UntrackedOutput(t *testing.T) {
	size := int64(64 << 20)
	if *nightly {
		size = 1 << 30
	}
	eachFace(t, func(w *rowWorld) {
		w.write("main", "1")
		first := w.saved()
		parts := []int64{size / 2, size / 4, 5 << 20}
		for left := size/4 - 5<<20; left > 0; left -= size / 256 {
			parts = append(parts, size/256)
		}
		random := rand.NewChaCha8(sha256.Sum256([]byte("row 2")))
		w.must(os.MkdirAll(w.path("out/deep"), 0o755))
		for i, n := range parts {
			f, err := os.Create(w.path(fmt.Sprintf("out/deep/%d", i)))
			w.must(err)
			_, err = io.CopyN(f, random, n)
			w.must(err)
			w.must(f.Close())
		}
		want := w.look().Whats()
		res := w.back(first)
		if _, err := os.Stat(w.path("out")); !os.IsNotExist(err) {
			w.Fatalf("the output is still there: %v, kept %v", err, res.Kept)
		}
		forward, err := w.restore(res.Source, noOptions)
		w.must(err)
		worldtest.Same(w, w.look().Whats(), want, "the output brought back")
		w.Logf("%d MiB in %d files, %d paths written", size>>20, len(parts), len(forward.Written))
	})
}

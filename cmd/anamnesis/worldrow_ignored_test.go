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
	t.Parallel()
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
		ignored := []string{".env", "node_modules/m/index.js", "sub/build/out.o", "excluded", "run.log", "late/x",
			"sub/deep/run.log"}
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

// modes checks directories' permissions.
func (w *rowWorld) modes(when string, want map[string]os.FileMode) {
	w.Helper()
	for rel, mode := range want {
		if info, err := os.Stat(w.path(rel)); err != nil || info.Mode().Perm() != mode {
			w.Errorf("%s: %s has mode %v (%v), want %v", when, rel, info.Mode().Perm(), err, mode)
		}
	}
}

// TestRow01IgnoredModes: of an ignored directory no snapshot holds the mode. A
// change of it is none, and no restore takes it back, whether the directory was
// ignored at both ends or at one. What the user tracks in one is held, and the
// mode of its directory with it.
func TestRow01IgnoredModes(t *testing.T) {
	t.Parallel()
	eachFace(t, func(w *rowWorld) {
		git(w, w.dir, "init", "-q")
		w.write(".gitignore", "build/\ntracked/\n")
		for _, p := range []string{"build/out", "tracked/f", "late/x"} {
			w.write(p, "1")
		}
		git(w, w.dir, "add", "-f", "tracked/f")
		first := w.saved()
		w.must(os.Chmod(w.path("build"), 0o700))
		if again := w.saved(); again.ID != first.ID {
			w.Errorf("the mode of an ignored directory made a snapshot: %+v", again)
		}
		w.must(os.Chmod(w.path("tracked"), 0o700))
		w.must(os.Chmod(w.path("late"), 0o711))
		w.write(".gitignore", "build/\ntracked/\nlate/\n")
		second := w.saved()
		res := w.back(first)
		w.modes("back", map[string]os.FileMode{"build": 0o700, "tracked": 0o755, "late": 0o711})
		if len(res.Kept) != 1 || res.Kept[0].Path != "late/" || res.Exact {
			w.Errorf("exact %v, kept %+v", res.Exact, res.Kept)
		}
		w.back(second)
		w.modes("forward", map[string]os.FileMode{"build": 0o700, "tracked": 0o700, "late": 0o711})
		for _, p := range []string{"build/out", "tracked/f", "late/x"} {
			w.holds(p, "1")
		}
		w.whole()
	})
}

// TestRow02UntrackedOutput: what a script wrote and nobody tracked is gone
// after a jump and comes back, to the byte. 1 GB in the nightly run.
func TestRow02UntrackedOutput(t *testing.T) {
	t.Parallel()
	heavy(t)
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
		worldtest.RequireEqual(w, w.look().Whats(), want, "the output brought back")
		w.Logf("%d MiB in %d files, %d paths written", size>>20, len(parts), len(forward.Written))
	})
}

package worldstate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/scan"
	"anamnesis/worldstate/internal/tree"
	"anamnesis/worldstate/worldtest"
)

// fresh looks at the world without anything known of it.
func (b *bench) fresh() *scan.Scanned {
	b.Helper()
	w, err := Open(b.dir, b.store+"-fresh", nil)
	b.must(err)
	defer w.Close()
	root, err := fsys.OpenRoot(w.dir)
	b.must(err)
	defer root.Close()
	sc, err := w.track.Scan(context.Background(), root, nil, nil)
	b.must(err)
	return sc
}

// agrees saves and compares with a fresh look.
func (b *bench) agrees(when string) Snapshot {
	b.Helper()
	s := b.save()
	sc := b.fresh()
	if got, want := s.Tree, tree.ID(sc.Listing).String(); got != want {
		for e := range sc.All() {
			if got := b.w.track.LastListing().At(e.Path); got != e.State {
				b.Errorf("%q: held as %v, is %v", e.Path, got, e.State)
			}
		}
		b.Fatalf("%s: saved tree %s, the world is %s", when, got, want)
	}
	if got, want := fmt.Sprintf("%q", s.Skipped), fmt.Sprintf("%q", slices.Concat([]Skip{}, sc.Skips)); got != want {
		b.Fatalf("%s: skipped %s, want %s", when, got, want)
	}
	if got, want := fmt.Sprintf("%+v", ignoredPaths(b.w.track.LastListing())), fmt.Sprintf("%+v", ignoredPaths(sc.Listing)); got != want {
		b.Fatalf("%s: ignored %s, want %s", when, got, want)
	}
	return s
}

func ignoredPaths(l *tree.Listing) []scan.IgnoredRoot { return (&scan.Scanned{Listing: l}).Ignored() }

// TestScanRandom compares every save with a fresh look, through thousands of random changes.
func TestScanRandom(t *testing.T) {
	worldtest.Heavy(t)
	seed := randomSeed(t)
	r := rand.New(rand.NewPCG(seed, 5))
	b := newBench(t, nil)
	c := &changer{TB: t, r: r, root: b.dir, ignoring: true}
	var points []ID
	checked := 0
	for i := range 2 * randomOps() {
		when := fmt.Sprintf("-seed=%d, operation %d", seed, i)
		switch k := r.IntN(24); {
		case k < 12:
			c.change()
		case k < 18:
			randomTreeChange(r, b.dir)
		case k < 19 && len(points) > 0:
			if _, err := b.w.RestoreTo(context.Background(), points[r.IntN(len(points))], RestoreOptions{PlanOptions: PlanOptions{OverwriteEdits: true}}); err != nil {
				t.Fatalf("%s: %v", when, err)
			}
		default:
			points = append(points, b.agrees(when).ID)
			checked++
		}
	}
	b.agrees("at the end")
	t.Logf("%d saves compared", checked)
	b.fsck()
}

// randomTreeChange moves, copies, removes and replaces whole directories.
func randomTreeChange(r *rand.Rand, root string) {
	names := []string{"d", "e", "g", "d/e", "d/d", "e/d", "g/d/e", "d/e/d"}
	from, to := filepath.Join(root, names[r.IntN(len(names))]), filepath.Join(root, names[r.IntN(len(names))])
	switch r.IntN(9) {
	case 0, 1:
		os.Rename(from, to)
	case 2:
		os.RemoveAll(to)
		os.Rename(from, to)
	case 3: // out of the world, changed there, and back
		away := root + "-away"
		os.RemoveAll(away)
		if os.Rename(from, away) == nil {
			os.MkdirAll(filepath.Join(away, "e"), 0o755)
			os.WriteFile(filepath.Join(away, "e", "b"), []byte("away"), 0o644)
			os.Rename(away, to)
		}
	case 4: // swapped
		unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_EXCHANGE)
	case 5:
		os.MkdirAll(filepath.Join(to, "e/d/f"), 0o755)
		os.WriteFile(filepath.Join(to, "e/d/f/deep"), []byte(to), 0o644)
	case 6:
		os.RemoveAll(from)
		os.MkdirAll(from, 0o755)
		os.WriteFile(filepath.Join(from, "a"), []byte("again"), 0o644)
	case 7: // a second name, written through
		if os.Link(filepath.Join(from, "a"), filepath.Join(to, "b")) == nil {
			os.WriteFile(filepath.Join(from, "a"), []byte(strings.Repeat("l", r.IntN(4))), 0o644)
		}
	case 8: // the same length and the same times
		p := filepath.Join(from, "a")
		if info, err := os.Lstat(p); err == nil && info.Mode().IsRegular() {
			os.WriteFile(p, []byte(strings.Repeat(fmt.Sprint(r.IntN(10)), int(info.Size()))), 0o644)
			os.Chtimes(p, info.ModTime(), info.ModTime())
		}
	}
}

// TestRootReplaced: another directory at the world's path is scanned once it is accepted.
func TestRootReplaced(t *testing.T) {
	b := newBench(t, nil)
	b.write("a", "1")
	b.agrees("before")
	b.must(os.Rename(b.dir, b.dir+"-old"))
	b.must(os.Mkdir(b.dir, 0o755))
	b.write("a", "2")
	b.write("n/b", "2")
	if _, err := b.w.Save(t.Context(), SaveOptions{Message: "replaced"}); !errors.Is(err, ErrReplaced) {
		t.Errorf("%v, want ErrReplaced", err)
	}
	b.w.Accept()
	b.agrees("replaced")
	b.write("n/b", "3")
	b.agrees("and changed")
}

// TestLinkInside: a file that got a second name inside the world is
// looked at under its first one, too, when it is written under the second.
func TestLinkInside(t *testing.T) {
	b := newBench(t, nil)
	b.write("d/first", "1")
	b.agrees("before")
	b.must(os.MkdirAll(b.path("e/f"), 0o755))
	b.must(os.Link(b.path("d/first"), b.path("e/f/second")))
	b.must(os.WriteFile(b.path("e/f/second"), []byte("2"), 0o644))
	b.agrees("written under the second name")
	b.must(os.WriteFile(b.path("e/f/second"), []byte("3"), 0o644))
	b.agrees("written again")
}

// TestLinkIgnored: the same where the second name is ignored.
func TestLinkIgnored(t *testing.T) {
	b := newBench(t, nil)
	b.write(".gitignore", "second\n")
	b.write("first", "1")
	b.write("another", "1")
	b.write("d/second", "ignored")
	b.agrees("before")
	b.must(os.Link(b.path("first"), b.path("second")))
	b.must(os.WriteFile(b.path("second"), []byte("2"), 0o644))
	b.agrees("written under a new ignored name")
	b.must(os.Remove(b.path("d/second")))
	b.must(os.Link(b.path("another"), b.path("d/second")))
	b.must(os.WriteFile(b.path("d/second"), []byte("2"), 0o644))
	b.agrees("written under a name that was ignored before")
	b.must(os.WriteFile(b.path("d/second"), []byte("3"), 0o644))
	b.agrees("written again")
}

// TestClosedMap: a write through a map is seen once the file is closed.
func TestClosedMap(t *testing.T) {
	b := newBench(t, nil)
	b.write("mapped", "1111")
	b.agrees("before")
	f, err := os.OpenFile(b.path("mapped"), os.O_RDWR, 0)
	b.must(err)
	m, err := unix.Mmap(int(f.Fd()), 0, 4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	b.must(err)
	copy(m, "2222")
	b.must(unix.Munmap(m))
	f.Close()
	if s := b.agrees("after"); s.Changed != 1 {
		t.Errorf("%d paths changed", s.Changed)
	}
}

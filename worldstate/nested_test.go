package worldstate

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/worldtest"
)

// nestedBench is a world with a repository inside: of its files out.tmp is
// excluded by nobody but itself, kept.tmp is tracked all the same.
func nestedBench(t *testing.T, o *Options) *bench {
	b := newBench(t, o)
	b.write("in/er/code", "1")
	b.write("in/er/out.tmp", "precious")
	b.write("in/er/sub/kept.tmp", "1")
	b.write("in/out.tmp", "outside of it")
	worldtest.Git(t, b.path("in/er"), "init", "-q")
	b.write("in/er/.git/info/exclude", "*.tmp\n")
	worldtest.Git(t, b.path("in/er"), "add", "-f", "sub/kept.tmp")
	return b
}

// holdsPaths checks which paths a snapshot holds.
func (b *bench) holdsPaths(when string, id ID, want map[string]bool) {
	b.Helper()
	for path, held := range want {
		if _, err := b.w.Stat(context.Background(), id, path); (err == nil) != held {
			b.Errorf("%s: %s is held: %v (%v), want %v", when, path, err == nil, err, held)
		}
	}
}

// TestNestedExclude: inside a repository its own info/exclude and index count,
// there and nowhere else, before and after each of them changes, for a world that
// stays open and for one opened anew.
func TestNestedExclude(t *testing.T) {
	for name, o := range map[string]*Options{"open": nil, "anew": nil} {
		t.Run(name, func(t *testing.T) {
			b := nestedBench(t, o)
			check := func(when string, out, kept, log bool) Snapshot {
				t.Helper()
				if name == "anew" {
					b.w.Close()
					b.open(o)
				}
				s := b.agreesNested(when)
				b.holdsPaths(when, s.ID, map[string]bool{
					"in/er/code": true, "in/out.tmp": true, "in/er/out.tmp": out, "in/er/sub/kept.tmp": kept, "in/er/run.log": log,
				})
				return s
			}
			check("first", false, true, false)
			b.write("in/er/run.log", "a log")
			check("a new file", false, true, true)
			b.write("in/er/.git/info/exclude", "*.log\n")
			check("another exclude", true, true, false)
			b.write("in/er/.git/info/exclude", "*.tmp\n*.log\n")
			check("both", false, true, false)
			worldtest.Git(t, b.path("in/er"), "rm", "-q", "--cached", "sub/kept.tmp")
			check("not tracked any more", false, false, false)
			b.write("in/er/.gitignore", "!run.log\n")
			check("its own rules decide over the exclude", false, false, true)
			b.must(os.Rename(b.path("in/er/.git"), b.store+"-git"))
			check("no repository any more", true, true, true)
			b.must(os.Rename(b.store+"-git", b.path("in/er/.git")))
			check("again one", false, false, true)
			b.must(os.Rename(b.path("in/er"), b.path("in/moved")))
			s := b.agreesNested("moved")
			b.holdsPaths("moved", s.ID,
				map[string]bool{"in/moved/code": true, "in/moved/out.tmp": false, "in/moved/run.log": true})
			b.fsck()
		})
	}
}

// agreesNested saves and compares with a world that knows nothing.
func (b *bench) agreesNested(when string) Snapshot {
	b.Helper()
	s := b.save()
	w, err := Open(b.dir, b.store+"-fresh", nil)
	b.must(err)
	defer w.Close()
	fresh, err := w.SaveNext(context.Background(), when)
	b.must(err)
	b.must(os.RemoveAll(b.store + "-fresh"))
	if s.Tree != fresh.Tree {
		b.Errorf("%s: saved tree %s, the world is %s", when, s.Tree, fresh.Tree)
	}
	return s
}

// TestNestedRestore: what a repository inside excludes stays, whether its rule
// was at one end or at both; the frozen rules are the snapshot's.
func TestNestedRestore(t *testing.T) {
	b := nestedBench(t, nil)
	first := b.save()
	b.write("in/er/code", "2")
	b.write("in/er/sub/kept.tmp", "2")
	b.write("in/er/late.tmp", "precious")
	b.write("in/er/.gitignore", "*.none\n")
	second := b.save()
	b.write("in/er/.git/info/exclude", "")
	b.write("in/er/out.tmp", "precious still")
	for i, target := range []ID{first.ID, second.ID, first.ID} {
		p, err := b.w.Plan(context.Background(), target, &PlanOptions{OverwriteEdits: true})
		b.must(err)
		_, err = b.w.Restore(context.Background(), p)
		b.must(err)
		for path, want := range map[string]string{"in/er/out.tmp": "precious still", "in/er/late.tmp": "precious", "in/er/code": "121"[i : i+1], "in/er/sub/kept.tmp": "121"[i : i+1]} {
			if data, err := os.ReadFile(b.path(path)); err != nil || string(data) != want {
				t.Errorf("restore %d: %s holds %q (%v), want %q", i, path, data, err, want)
			}
		}
	}
	b.fsck()
}

// aged waits until a path is so old that its stamp is sure.
func (b *bench) aged(path string) {
	b.Helper()
	st, err := fsys.Lstatat(unix.AT_FDCWD, b.path(path))
	b.must(err)
	<-time.After(time.Until(time.Unix(0, st.Ctime).Add(2 * fsys.RacySlack)))
}

// TestNestedGone: what only a repository inside left out is held once it has
// gone, though the .gitignore beside it is known and as it was.
func TestNestedGone(t *testing.T) {
	for name, o := range map[string]*Options{"open": nil, "anew": nil} {
		t.Run(name, func(t *testing.T) {
			b := nestedBench(t, o)
			b.write("in/er/.gitignore", "*.none\n")
			b.aged("in/er/.gitignore")
			b.agreesNested("first")
			b.must(os.RemoveAll(b.path("in/er/.git")))
			if name == "anew" {
				b.w.Close()
				b.open(o)
			}
			s := b.agreesNested("no repository any more")
			b.holdsPaths("no repository any more", s.ID, map[string]bool{"in/er/out.tmp": true})
		})
	}
}

// TestNestedKnown: a world opened anew knows from its cache which repositories
// are inside, though it reads no directory whose names are those they were.
func TestNestedKnown(t *testing.T) {
	b := nestedBench(t, nil)
	b.write("in/er/.gitignore", "*.none\n")
	b.aged("in/er") // a young directory is read in any case
	first := b.save()
	for _, exclude := range []string{"", "*.tmp\n", "*.log\n"} {
		b.w.Close()
		b.open(nil)
		when := fmt.Sprintf("exclude %q", exclude)
		if s := b.agreesNested("opened anew, before " + when); s.Changed != 0 && exclude == "" {
			t.Errorf("nothing has changed since %s: %q", first.ID, s.ChangedPaths)
		}
		b.write("in/er/.git/info/exclude", exclude)
		s := b.agreesNested(when)
		b.holdsPaths(when, s.ID, map[string]bool{"in/er/out.tmp": exclude != "*.tmp\n", "in/er/sub/kept.tmp": true})
	}
}

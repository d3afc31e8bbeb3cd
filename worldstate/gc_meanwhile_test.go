package worldstate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/worldtest"
)

// during runs a collection and, each time it has let go of the store's lock and
// written its pack, do with the number of the time.
func (b *bench) during(o GCOptions, do func(time int)) GCReport {
	b.Helper()
	n := 0
	o.Hook = func(point string) {
		if point == "gathered" {
			n++
			do(n)
		}
	}
	r := b.gc(&o)
	if n == 0 {
		b.Fatal("nothing was done meanwhile: nothing was tested")
	}
	return r
}

// TestGCMeanwhile saves, restores and puts packs together while a collection
// runs. What nothing named when it began and a save took for stored is kept.
func TestGCMeanwhile(t *testing.T) {
	b := newBench(t, nil)
	b.w.objects.MaxPacks = testPacks
	r := rand.New(rand.NewPCG(11, 12))
	ids := b.history(4, r)
	b.write("orphan", "no ref names it")
	if !b.killed("save", "", 2) {
		t.Fatal("not killed")
	}
	b.must(os.Remove(b.path("orphan")))
	b.save()
	orphan := gitfmt.HashObject(gitfmt.BlobObject, []byte("no ref names it"))
	report := b.during(GCOptions{}, func(int) {
		if !b.w.objects.Owns(orphan) {
			t.Fatal("the killed save left nothing: nothing was tested")
		}
		b.write("orphan", "no ref names it")
		ids = append(ids, b.save().ID)
		ids = append(ids, b.history(2*testPacks, r)...)
		b.jump(ids[1])
		b.must(b.w.Sync())
		ids = append(ids, b.save().ID)
	})
	if b.packs() != 2 || report.Snapshots < len(ids)-1 {
		t.Errorf("%d packs, %+v", b.packs(), report)
	}
	b.hasAll(ids)
	b.fsck()
	for _, id := range []ID{ids[4], ids[0], ids[len(ids)-2]} {
		if res := b.jump(id); !res.Exact {
			t.Errorf("%+v", res)
		}
	}
	b.gc(nil)
	if b.packs() != 1 {
		t.Errorf("%d packs after a quiet collection", b.packs())
	}
	b.hasAll(ids)
	b.fsck()
}

// TestGCMovedRef: a task that was to go and is at work again keeps what it saved,
// and all that leads to it.
func TestGCMovedRef(t *testing.T) {
	b := newBench(t, nil)
	ids := b.history(1, rand.New(rand.NewPCG(15, 16)))
	b.taskOf("gone", 5)
	b.write("f", "of the task that is gone")
	s, err := b.w.Save(context.Background(), SaveOptions{Ref: "1", Parent: ids[0]})
	b.must(err)
	o := GCOptions{Live: func(task string) bool { return task != "gone" }, MaxBytes: 1}
	report := b.during(o, func(int) {
		b.write("f", "of the task that is back")
		again, err := b.w.Save(context.Background(), SaveOptions{Ref: "1", Parent: s.ID})
		b.must(err)
		ids = append(ids, s.ID, again.ID)
	})
	if fmt.Sprint(report.Dropped) != "[gone]" {
		t.Errorf("it was not to go: %+v", report)
	}
	if id, err := b.w.Resolve(context.Background(), "gone@1"); err != nil || id != ids[len(ids)-1] {
		t.Errorf("the ref that moved names %q: %v", id, err)
	}
	b.hasAll(ids)
	b.fsck()
}

// TestGCKilledMeanwhile: what a collection wrote that was killed without the
// store's lock goes with the next process's first save, and not while it runs.
func TestGCKilledMeanwhile(t *testing.T) {
	b := newBench(t, nil)
	ids := b.history(3, rand.New(rand.NewPCG(17, 18)))
	dir := filepath.Join(b.store, fsys.StateDir, "collecting")
	left := func() string {
		list, _ := filepath.Glob(dir + "/*")
		return strings.Join(list, " ")
	}
	b.during(GCOptions{}, func(int) {
		wrote := left()
		b.write("more", "1")
		b.save()
		if wrote == "" || left() != wrote {
			t.Errorf("a save removed what a collection writes: %q of %q", left(), wrote)
		}
	})
	killed := 0
	for n := 0; b.killed("gc", "", n); n++ {
		if left() == "" {
			continue
		}
		killed++
		reader, err := Open(b.dir, b.store, nil)
		b.must(err)
		b.must(reader.Has(context.Background(), ids[0]))
		b.must(reader.Close())
		b.open(nil) // another process
		b.write("more", fmt.Sprint("2", n))
		b.save()
		if _, err := os.Lstat(dir); err == nil {
			t.Errorf("killed at %d: a save leaves %q", n, left())
		}
	}
	if killed == 0 {
		t.Error("no kill left anything: nothing was tested")
	}
	b.hasAll(ids)
}

// TestGCOneAtATime: a second collection waits for the first.
func TestGCOneAtATime(t *testing.T) {
	b := newBench(t, nil)
	b.history(1, rand.New(rand.NewPCG(19, 20)))
	b.during(GCOptions{}, func(int) {
		_, err := GC(context.Background(), b.store, &GCOptions{LockWait: time.Millisecond})
		if !errors.Is(err, fsys.ErrLocked) {
			t.Errorf("a second collection: %v", err)
		}
	})
}

// TestGCBesideGits: a pack that a user's git gc removes first is as good as
// removed.
func TestGCBesideGits(t *testing.T) {
	b := newBench(t, nil)
	ids := b.steps(3)
	old, err := filepath.Glob(filepath.Join(b.store, "objects", "pack", "pack-*.[ip]*"))
	b.must(err)
	b.gc(&GCOptions{Hook: func(at string) {
		if at != "refs-written" {
			return
		}
		for _, file := range old[:2] { // all of it is in another pack as well
			b.must(os.Remove(file))
		}
	}})
	b.hasAll(ids)
	b.fsck()
}

// TestPushWhileCollecting: what a user pushes into a store is in a pack
// that git keeps until the ref names it. Pushed when the collection has read the
// refs for the last time, it is there all the same.
func TestPushWhileCollecting(t *testing.T) {
	b := newBench(t, nil)
	id := string(b.save().ID)
	clone := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		return strings.TrimSpace(worldtest.Git(t, clone, args...))
	}
	run("clone", "-q", b.store, ".")
	b.must(os.WriteFile(filepath.Join(clone, "own"), []byte("a user's"), 0o600))
	run("add", "own")
	run("commit", "-q", "-m", "own")
	own, pack := run("rev-parse", "HEAD"), filepath.Join(t.TempDir(), "pack")
	cmd := fmt.Sprintf("printf '%%s\n' HEAD ^%s | git pack-objects -q --revs --stdout > '%s'", id, pack)
	if out, err := exec.Command("sh", "-c", "cd '"+clone+"' && "+cmd).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	keep := ""
	b.gc(&GCOptions{Hook: func(at string) {
		switch {
		case at == "gathered" && keep == "":
			out, err := exec.Command("sh", "-c", fmt.Sprintf(
				"git --git-dir='%s' index-pack --keep=push --fix-thin --stdin < '%s'", b.store, pack)).Output()
			b.must(err)
			keep = strings.TrimPrefix(strings.TrimSpace(string(out)), "keep\t")
			b.write("news", "so that something is written with the lock held")
			b.save()
		case at == "pack-written" && keep != "":
			run("--git-dir="+b.store, "update-ref", "refs/heads/own", own)
			b.must(os.Remove(filepath.Join(b.store, "objects", "pack", "pack-"+keep+".keep")))
		}
	}})
	if got := run("--git-dir="+b.store, "show", "own:own"); got != "a user's" {
		t.Errorf("own says %q", got)
	}
	b.gc(nil)
	b.fsck()
}

// TestPruneWhileSaving: a user's git prune takes nothing away from under a save.
func TestPruneWhileSaving(t *testing.T) {
	var b *bench
	pruned := 0
	b = newBench(t, &Options{Hook: func(at string) {
		if at == "pack-written" {
			worldtest.Git(t, b.dir, "--git-dir="+b.store, "prune")
			pruned++
		}
	}})
	b.write("a", "1")
	first := b.save()
	b.write("a", "2")
	b.hasAll([]ID{first.ID, b.save().ID})
	b.fsck()
	if pruned != 2 {
		t.Errorf("pruned %d times, want 2", pruned)
	}
}

// TestGitRepackMeanwhile: packs that a git repack is about to put in their places
// are git's; neither a collection nor a save that puts packs together takes them.
func TestGitRepackMeanwhile(t *testing.T) {
	b := newBench(t, nil)
	b.w.objects.MaxPacks = testPacks
	r := rand.New(rand.NewPCG(17, 18))
	ids := b.history(2, r)
	names, err := filepath.Glob(filepath.Join(b.packDir(), "pack-*"))
	b.must(err)
	var temp []string
	for _, name := range names {
		to := filepath.Join(filepath.Dir(name), objects.GitTempPack+"1-"+filepath.Base(name))
		data, err := os.ReadFile(name)
		b.must(err)
		b.must(os.WriteFile(to, data, 0o600))
		temp = append(temp, to)
	}
	ids = append(ids, b.history(2*testPacks, r)...)
	b.gc(nil)
	for _, name := range temp {
		if _, err := os.Stat(name); err != nil {
			t.Error(err)
		}
		b.must(os.Remove(name))
	}
	b.hasAll(ids)
	b.fsck()
}

// TestGCBesideRepack: a git repack that began before a collection removes the pack
// there was, at last, and the collection the one that git has just written. The
// collection's own, of the same bytes as the first, is there all the same.
func TestGCBesideRepack(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the same bytes, as long as it is left alone
	b := newBench(t, nil)
	ids := b.history(2, rand.New(rand.NewPCG(21, 22)))
	b.gc(nil)
	old, err := filepath.Glob(filepath.Join(b.packDir(), "pack-*"))
	b.must(err)
	b.during(GCOptions{}, func(int) { worldtest.Git(t, b.store, "repack", "-afq") })
	for _, name := range old {
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	}
	b.hasAll(ids)
	b.fsck()
}

// TestGCTakesAFreedName: a git repack removes the pack there was when the collection
// has listed it, and has not shown its own of the same bytes, which takes the name.
// It is not removed in the other's stead.
func TestGCTakesAFreedName(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // the same bytes
	b := newBench(t, nil)
	ids := b.history(2, rand.New(rand.NewPCG(23, 24)))
	b.gc(nil)
	old, err := filepath.Glob(filepath.Join(b.packDir(), "pack-*"))
	b.must(err)
	written := 0
	b.gc(&GCOptions{Hook: func(at string) {
		switch at {
		case "gathered":
			worldtest.Git(t, b.store, "repack", "-afq")
			b.write("news", "so that something is written with the lock held")
			ids = append(ids, b.save().ID)
		case "pack-written":
			if written++; written == 2 {
				for _, name := range old {
					b.must(os.Remove(name))
				}
			}
		}
	}})
	if now, err := filepath.Glob(old[0]); err != nil || written != 2 || len(now) != 1 {
		t.Errorf("%d packs were written, and %s is not taken again: nothing was tested", written, old[0])
	}
	b.hasAll(ids)
	b.fsck()
}

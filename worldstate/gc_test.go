package worldstate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/restore"
	"anamnesis/worldstate/worldtest"
)

// taskOf opens the same world for another task, an hour later than the last.
func (b *bench) taskOf(name string, hour int) {
	b.Helper()
	b.w.Close()
	b.open(&Options{Task: name, Now: func() time.Time { return time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC) }})
}

func (b *bench) gc(o *GCOptions) GCReport {
	b.Helper()
	r, err := GC(context.Background(), b.store, o)
	b.must(err)
	return r
}

// history makes n snapshots of a few texts that change a little each time.
func (b *bench) history(n int, r *rand.Rand) []ID {
	b.Helper()
	var ids []ID
	for i := range n {
		for f := range 3 {
			name := fmt.Sprintf("src/p%d/file%d.go", f%2, f)
			data, _ := os.ReadFile(b.path(name))
			lines := strings.Split(string(data), "\n")
			for len(lines) < 400 {
				lines = append(lines,
					fmt.Sprintf("\tx%d := f(%d, %q)", r.IntN(1000), r.IntN(1e6), fmt.Sprint(r.Uint64())))
			}
			lines[r.IntN(len(lines))] = fmt.Sprintf("\t// step %d of %d", i, r.Uint64())
			b.write(name, strings.Join(lines, "\n"))
		}
		ids = append(ids, b.save().ID)
	}
	return ids
}

// TestGC: everything a ref names is there afterwards, in one pack, smaller, and
// in a form plain git reads; what no ref names is not.
func TestGC(t *testing.T) {
	b := newBench(t, nil)
	ids := b.history(40, rand.New(rand.NewPCG(1, 2)))
	b.write("orphan", "no ref names it")
	if !b.killed("save", "", 2) {
		t.Fatal("not killed")
	}
	b.must(os.Remove(b.path("orphan")))
	reader, err := Open(b.dir, b.store, nil)
	b.must(err)
	defer reader.Close()
	if err := reader.Has(context.Background(), ids[0]); err != nil {
		t.Fatal(err)
	}
	dry := b.gc(&GCOptions{DryRun: true})
	r := b.gc(nil)
	if b.packs() != 1 || r.BytesAfter >= r.BytesBefore/2 || r.BytesAfter > dry.BytesAfter ||
		dry.BytesBefore != r.BytesBefore {
		t.Errorf("dry %+v, then %+v", dry, r)
	}
	if b.w.objects.Refresh(); b.w.objects.Has(gitfmt.HashObject(gitfmt.BlobObject, []byte("no ref names it"))) {
		t.Error("what no ref names is still there")
	}
	b.hasAll(ids)
	if err := reader.Has(context.Background(), ids[3]); err != nil {
		t.Errorf("a reader from before: %v", err)
	}
	b.fsck()
	for i, id := range []ID{ids[0], ids[len(ids)-1], ids[17]} {
		if res := b.jump(id); !res.Exact {
			t.Errorf("jump %d: %+v", i, res)
		}
	}
	again := b.gc(nil)
	if d := again.BytesAfter - r.BytesAfter; d > r.BytesAfter/5 || b.packs() != 1 {
		t.Errorf("a second collection: %+v after %+v", again, r)
	}
}

// TestGCTasks: at the cap, tasks that are gone go, the oldest first; what a
// task that lives names stays, over the cap as well.
func TestGCTasks(t *testing.T) {
	b := newBench(t, nil)
	ids := map[string]ID{}
	for i, task := range []string{"old", "alive", "young"} {
		b.taskOf(task, i)
		data := make([]byte, 100<<10)
		rand.NewChaCha8([32]byte{byte(i)}).Read(data)
		b.write("f", string(data))
		s, err := b.w.Save(context.Background(), SaveOptions{Ref: "1"})
		b.must(err)
		ids[task] = s.ID
	}
	live := func(task string) bool { return task == "alive" }
	there := func(want ...string) {
		t.Helper()
		for task, id := range ids {
			err := b.w.Has(context.Background(), id)
			if kept := strings.Contains(fmt.Sprint(want), task); kept != (err == nil) {
				t.Errorf("%s: %v", task, err)
			}
		}
	}
	if r := b.gc(&GCOptions{Live: live}); len(r.Dropped) != 0 || fmt.Sprint(r.Kept) != "[old young]" {
		t.Errorf("without a cap: %+v", r)
	}
	there("old", "alive", "young")
	if r := b.gc(&GCOptions{Live: live, MaxBytes: 250 << 10}); fmt.Sprint(r.Dropped, r.Kept, r.Over) != "[old] [young] false" {
		t.Errorf("room for two: %+v", r)
	}
	there("alive", "young")
	if r := b.gc(&GCOptions{Live: live, MaxBytes: 1000}); fmt.Sprint(r.Dropped, r.Over) != "[young] true" {
		t.Errorf("room for none: %+v", r)
	}
	there("alive", "young") // the world is at young's: by it a user's edits are told
	if last, err := b.w.Last(context.Background()); err != nil || last != ids["young"] {
		t.Errorf("the world is known at %v %v", last, err)
	}
	b.gc(&GCOptions{Live: func(string) bool { return false }, MaxBytes: 1000})
	there()
	if last, err := b.w.Last(context.Background()); err != nil || last != "" {
		t.Errorf("the world is known at a snapshot that is gone: %v %v", last, err)
	}
	b.fsck()
	b.taskOf("next", 9)
	b.save()
	b.fsck()
}

// TestGCKeepsFirstFiles: what a directory held before the first restore into it stays, though the store, which another
// machine filled, had no snapshot of it.
func TestGCKeepsFirstFiles(t *testing.T) {
	b := newBench(t, nil)
	b.write("theirs", "1")
	first := b.save()
	b.must(b.w.Close())
	packs := t.TempDir()
	_, err := Export(context.Background(), b.store, first.ID, packs)
	b.must(err)
	moved := b.dir
	b.dir, b.store = filepath.Join(t.TempDir(), "other"), filepath.Join(t.TempDir(), "store")
	b.must(Import(context.Background(), b.store, "t", packs, []ID{first.ID}))
	b.must(os.Mkdir(b.dir, 0o755))
	b.write("mine", "2")
	b.open(&Options{Task: "t", Moved: []string{moved}})
	res, err := b.w.RestoreTo(context.Background(), first.ID,
		RestoreOptions{PlanOptions: PlanOptions{OverwriteEdits: true}})
	b.must(err)
	b.write("theirs", "3")
	_, err = b.w.Save(context.Background(), SaveOptions{Parent: first.ID, Ref: "2"})
	b.must(err)
	b.gc(nil)
	id, err := b.w.Resolve(context.Background(), string(res.Source)[:minPrefix])
	if err != nil || id != res.Source {
		t.Fatalf("Resolve = %s, %v; want %s", id, err, res.Source)
	}
	if got := lookAtSnapshot(t, b.w, id)["mine"]; !strings.Contains(got, "2") {
		t.Errorf("the snapshot has %q", got)
	}
}

// TestGCKilled kills a collection at points of it, at every one in the nightly run: all that is kept is there,
// and the next collection leaves one pack and nothing else.
func TestGCKilled(t *testing.T) {
	worldtest.Heavy(t)
	for n := 0; ; n += killEvery() {
		b := newBench(t, nil)
		ids := b.history(5, rand.New(rand.NewPCG(3, 4)))
		killed := b.killed("gc", "", n)
		b.hasAll(ids)
		b.fsck()
		b.gc(nil)
		if b.packs() != 1 {
			t.Errorf("killed at %d: %d packs", n, b.packs())
		}
		b.hasAll(ids)
		if !killed {
			if n < 10 {
				t.Errorf("only %d points", n)
			}
			return
		}
	}
}

// TestGCKeepsRestore: the ends of an interrupted restore are kept even where no
// ref names them any more.
func TestGCKeepsRestore(t *testing.T) {
	b, first, _, one, two := messy(t)
	if !b.killed("restore", first, 40) {
		t.Fatal("not killed")
	}
	b.w.Close()
	for _, where := range []string{"packed-refs", "refs", "anamnesis/refs.log"} {
		b.must(os.RemoveAll(filepath.Join(b.store, where)))
	}
	b.must(os.MkdirAll(filepath.Join(b.store, "refs", "heads"), 0o700))
	b.gc(nil)
	b.open(nil)
	b.settled(one, two, "after the collection")
}

// TestGCDamage: nothing is removed where something needed is missing.
func TestGCDamage(t *testing.T) {
	b := newBench(t, nil)
	b.history(4, rand.New(rand.NewPCG(5, 6)))
	packs, err := b.w.objects.OurPacks()
	b.must(err)
	data, err := os.ReadFile(packs[0].Path)
	b.must(err)
	for i := objects.PackHeaderBytes + 3; i < len(data)-20; i++ {
		data[i] ^= 0x55
	}
	b.must(os.Chmod(packs[0].Path, 0o600))
	b.must(os.WriteFile(packs[0].Path, data, 0o600))
	_, err = GC(context.Background(), b.store, nil)
	if !errors.Is(err, gitfmt.ErrCorrupt) || b.packs() != 4 {
		t.Errorf("%v, %d packs", err, b.packs())
	}
}

// TestGCSize: after many steps the store is at most 1.2 times what git makes of
// the same history.
func TestGCSize(t *testing.T) {
	b := newBench(t, nil)
	b.history(worldSteps(), rand.New(rand.NewPCG(7, 8)))
	r := b.gc(nil)
	bare := t.TempDir()
	worldtest.Git(t, bare, "clone", "-q", "--mirror", "--no-local", b.store, bare+"/clone")
	worldtest.Git(t, bare+"/clone", "gc", "-q")
	var theirs int64
	list, err := filepath.Glob(bare + "/clone/objects/pack/*.[pi][ad][cx]*")
	b.must(err)
	for _, p := range list {
		info, err := os.Stat(p)
		b.must(err)
		theirs += info.Size()
	}
	ratio := float64(r.BytesAfter) / float64(theirs)
	t.Logf("%d steps: ours %d bytes, git's %d: %.2f", worldSteps(), r.BytesAfter, theirs, ratio)
	if ratio > 1.2 {
		t.Errorf("%.2f times git's", ratio)
	}
}

// worldSteps: 500 in nightly runs.
func worldSteps() int {
	if *nightly {
		return 500
	}
	return 60
}

// TestGCJournalInOddPlace: a collection keeps what an interrupted restore needs
// also where the store's path holds what patterns mean something by.
func TestGCJournalInOddPlace(t *testing.T) {
	top := filepath.Join(t.TempDir(), "[a]*")
	b := &bench{TB: t, dir: filepath.Join(top, "world"), store: filepath.Join(top, "store")}
	b.must(os.MkdirAll(b.dir, 0o755))
	b.open(nil)
	b.write("a", "1")
	first := b.save().ID
	b.write("a", "2")
	second := b.save().ID
	for n := 0; ; n++ {
		if !b.killed("restore", first, n) {
			t.Fatal("no kill left a journal")
		}
		if j, err := b.w.journal.Read(); j != nil || err != nil {
			b.must(err)
			break
		}
	}
	roots, err := restore.JournalRoots(b.store)
	b.must(err)
	var got []string
	for _, h := range roots {
		got = append(got, h.String())
	}
	if want := fmt.Sprint([]ID{second, first, first}); fmt.Sprint(got) != want {
		t.Errorf("an interrupted restore needs %v, want %v", got, want)
	}
}

// TestGCCommitGraph: what git noted of the commits names none that a collection
// dropped: it goes with each.
func TestGCCommitGraph(t *testing.T) {
	for _, split := range []bool{false, true} {
		b := newBench(t, nil)
		id := b.save().ID
		b.taskOf("gone", 5)
		b.write("f", "of the task that is gone")
		gone, err := b.w.Save(b.Context(), SaveOptions{Ref: "1", Parent: id})
		b.must(err)
		b.taskOf("cli", 6)
		b.write("f", "later")
		_, err = b.w.Save(b.Context(), SaveOptions{Ref: "2", Parent: id})
		b.must(err)
		write, graph := []string{"commit-graph", "write", "--reachable"}, "commit-graph"
		if split {
			write, graph = append(write, "--split"), "commit-graphs/commit-graph-chain"
		}
		for _, dropped := range []bool{false, true} {
			worldtest.Git(t, b.dir, append([]string{"--git-dir=" + b.store}, write...)...)
			o := &GCOptions{Live: func(task string) bool { return task != "gone" }}
			if dropped {
				o.MaxBytes = 1
			}
			b.gc(o)
			if there, err := fsys.Exists(filepath.Join(b.store, "objects", "info", graph)); err != nil || there {
				t.Errorf("split %v, dropped %v: %s stands: %v, %v", split, dropped, graph, there, err)
			}
			b.fsck()
		}
		if h, _ := gitfmt.ParseHash(string(gone.ID)); b.w.objects.Has(h) {
			t.Error("nothing was dropped: nothing was tested")
		}
		worldtest.Git(t, b.store, "gc", "-q")
		b.must(b.w.Has(b.Context(), id))
	}
}

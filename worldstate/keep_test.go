package worldstate

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/worldtest"
)

// inStore runs git on the store.
func (b *bench) inStore(args ...string) string {
	b.Helper()
	return strings.TrimSpace(worldtest.Git(b, b.dir, append([]string{"--git-dir=" + b.store}, args...)...))
}

// pushed has a user clone the store, commit changes to the texts of history, and
// push: git sends differences to what the store has, and puts what they start from at
// the end of the pack. It returns the branch's commit and the pack, without its ending.
func (b *bench) pushed() (commit, pack string) {
	b.Helper()
	clone := b.TempDir()
	in := func(args ...string) string { return strings.TrimSpace(worldtest.Git(b, clone, args...)) }
	in("clone", "-q", b.store, ".")
	r := rand.New(rand.NewPCG(31, 32))
	for i := range 4 {
		for f := range 3 {
			path := filepath.Join(clone, fmt.Sprintf("src/p%d/file%d.go", f%2, f))
			data, err := os.ReadFile(path)
			b.must(err)
			lines := strings.Split(string(data), "\n")
			lines[r.IntN(len(lines))] = fmt.Sprintf("\t// by a user, %d: %d", i, r.Uint64())
			b.must(os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o644))
		}
		in("commit", "-qam", fmt.Sprint("a user's ", i))
	}
	b.inStore("config", "receive.unpackLimit", "1")
	files := b.packsOf(func() { in("push", "-q", "origin", "HEAD:refs/heads/own") })
	return in("rev-parse", "HEAD"), strings.TrimSuffix(files[0], filepath.Ext(files[0]))
}

// notOurs returns what is in the store's objects and is not ours, with its content.
func (b *bench) notOurs() map[string]string {
	b.Helper()
	out := make(map[string]string)
	b.must(filepath.WalkDir(filepath.Join(b.store, "objects"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if strings.HasPrefix(d.Name(), "pack-") {
			ours, err := objects.IsOurKeep(strings.TrimSuffix(path, filepath.Ext(path)) + objects.KeepExt)
			if ours || err != nil {
				return err
			}
		}
		data, err := os.ReadFile(path)
		out[path] = fmt.Sprintf("%x", sha256.Sum256(data))
		return err
	}))
	return out
}

// kinds counts the ways in which a pack's objects are stored, and reports whether a
// named difference is before one by offset.
func (b *bench) kinds(pack string) (count map[gitfmt.ObjectType]int, before bool) {
	b.Helper()
	p, err := objects.OpenPack(pack + ".idx")
	b.must(err)
	defer p.Close()
	items := p.Entries()
	count = make(map[gitfmt.ObjectType]int)
	for _, it := range items {
		kind, err := p.KindAt(it.Off)
		b.must(err)
		count[kind]++
		before = before || kind == gitfmt.OffsetDelta && count[gitfmt.RefDelta] > 0
	}
	return count, before
}

// TestPushedPack: what a user pushed into a store stays as it is, whatever differences
// its pack is made of, and however often packs are put together and collected.
func TestPushedPack(t *testing.T) {
	b := newBench(t, nil)
	b.w.objects.MaxPacks = testPacks
	ids := b.history(3, rand.New(rand.NewPCG(27, 28)))
	b.gc(nil)
	b.must(b.w.objects.Refresh())
	large := b.w.objects.PackNames()[0]
	commit, pack := b.pushed()
	if count, before := b.kinds(pack); !before {
		t.Fatalf("the pack holds %v, and no difference by name before one by offset: nothing is tested", count)
	}
	theirs := b.notOurs()
	ids = append(ids, b.steps(2)...)
	some, err := b.w.objects.OurPacks() // what the pushed differences start from is in none of them
	b.must(err)
	some = slices.DeleteFunc(some, func(p *objects.Pack) bool { return p.Name == large })
	b.must(b.w.objects.Merge(b.Context(), some, &objects.Pool{}, func(string) {}))
	b.fsck()
	ids = append(ids, b.steps(3*testPacks)...)
	b.fsck()
	for range 2 {
		b.gc(nil)
		if b.fsck(); b.packs() != 2 {
			t.Errorf("%d packs", b.packs())
		}
	}
	b.hasAll(ids)
	sameWorld(t, b.notOurs(), theirs, "what is not ours")
	if got := b.inStore("log", "-1", "--format=%H %s", "own"); got != commit+" a user's 3" {
		t.Errorf("own is %q", got)
	}
}

// TestOthersStay: packs that are not ours, what is beside them and loose objects
// stay byte for byte, though nothing leads to them; so does one of our packs that a user
// has kept for themselves.
func TestOthersStay(t *testing.T) {
	b := newBench(t, nil)
	b.w.objects.MaxPacks = testPacks
	b.history(3, rand.New(rand.NewPCG(27, 28)))
	_, pack := b.pushed()
	b.inStore("update-ref", "-d", "refs/heads/own")
	b.write("loose", "of nobody")
	b.inStore("hash-object", "-w", b.path("loose"))
	for _, ext := range []string{".rev", ".bitmap", ".mtimes", ".promisor"} {
		b.must(os.WriteFile(pack+ext, []byte("a user's git "+ext), 0o444))
	}
	ours, err := b.w.objects.OurPacks()
	b.must(err)
	for i, keep := range []string{"", "mine\n"} {
		b.must(os.WriteFile(ours[i].Beside(objects.KeepExt), []byte(keep), 0o600))
	}
	theirs := b.notOurs()
	if len(theirs) < 6+6+1 {
		t.Fatalf("only %d files", len(theirs))
	}
	b.steps(2 * testPacks)
	b.gc(nil)
	b.killed("gc", "", 5)
	b.steps(1)
	b.gc(nil)
	sameWorld(t, b.notOurs(), theirs, "what is not ours")
}

// TestVerifyThinDelta: a delta whose base is in another pack is a damaged copy to git and to
// Verify. A collection drops the pack if it is ours.
func TestVerifyThinDelta(t *testing.T) {
	b := newBench(t, nil)
	b.history(3, rand.New(rand.NewPCG(27, 28)))
	b.steps(1)
	_, pack := b.pushed()
	p, err := objects.OpenPack(pack + ".idx")
	b.must(err)
	defer p.Close()
	items := p.Entries()
	out := objects.NewWriter(b.packDir(), func(string) {}, &objects.Pool{})
	defer out.Abort()
	buf := make([]byte, 64<<10)
	for _, it := range items {
		if kind, err := p.KindAt(it.Off); err == nil && kind == gitfmt.RefDelta {
			b.must(out.CopyRaw(p, it, buf))
		}
	}
	idx, err := out.Finish()
	b.must(err)
	if idx == "" {
		t.Fatal("no difference by name: nothing is tested")
	}
	if out, err := exec.Command("git", "--git-dir="+b.store, "fsck").CombinedOutput(); err == nil {
		t.Fatalf("git takes the store for whole: %s", out)
	}
	r, err := b.w.Verify(b.Context())
	b.must(err)
	if !r.OK || len(r.DamagedCopies) != len(out.Items) || r.DamagedCopies[0].Path != fsys.Base(idx) {
		t.Errorf("verify: %+v; want %d damaged copies", r, len(out.Items))
	}
	ours, err := b.w.objects.OurPacks()
	b.must(err)
	b.must(b.w.objects.Merge(b.Context(), ours, &objects.Pool{}, func(string) {}))
	if there, err := fsys.Exists(idx); !there || err != nil {
		t.Errorf("what cannot be copied was: %v", err)
	}
	b.gc(nil)
	b.fsck()
}

// TestUnkept: a store whose packs have no .keep, as before format 2, is read and saved to, and
// only new packs count as ours.
func TestUnkept(t *testing.T) {
	b := newBench(t, nil)
	ids := b.steps(2)
	b.unkept()
	b.must(os.Remove(filepath.Join(b.store, fsys.StateDir, fsys.FormatName)))
	b.open(nil)
	ids = append(ids, b.steps(1)...)
	if ours, err := b.w.objects.OurPacks(); err != nil || len(ours) != 1 {
		t.Errorf("%d packs are ours, %v; want the new one", len(ours), err)
	}
	if n, err := fsys.ReadFormat(b.store); err != nil || n != fsys.Format {
		t.Errorf("the format is %d, %v", n, err)
	}
	b.hasAll(ids)
	b.fsck()
}

// TestDryRunWritesNothing: a collection that only finds out leaves every file of a store
// as it is, also where our packs have no .keep yet and a killed one left its own; it
// finds what the collection then does.
func TestDryRunWritesNothing(t *testing.T) {
	b := newBench(t, nil)
	b.history(3, rand.New(rand.NewPCG(27, 28)))
	b.pushed()
	b.steps(3)
	b.unkept()
	b.must(os.Remove(filepath.Join(b.store, fsys.StateDir, fsys.FormatName)))
	for _, killed := range []bool{false, true} {
		if killed && !b.killed("gc", "", 3) {
			t.Fatal("not killed")
		}
		before := worldtest.Snapshot(t, b.store)
		dry := b.gc(&GCOptions{DryRun: true})
		worldtest.Untouched(t, before, worldtest.Snapshot(t, b.store), nil, "a dry run")
		if dry.BytesBefore == 0 || dry.Snapshots == 0 {
			t.Errorf("%+v", dry)
		}
		if !killed {
			continue
		}
		if r := b.gc(nil); r.Snapshots != dry.Snapshots || r.Objects != dry.Objects ||
			r.BytesBefore != dry.BytesBefore {
			t.Errorf("found %+v, done %+v", dry, r)
		}
	}
	b.fsck()
}

// TestGitGCWhileSaving: a user's git gc --prune=now takes no pack of a save away, though
// no ref names what is in it yet.
func TestGitGCWhileSaving(t *testing.T) {
	var b *bench
	ran := 0
	b = newBench(t, &Options{Hook: func(at string) {
		if at == "pack-indexed" {
			ran++
			worldtest.Git(t, b.store, "gc", "-q", "--prune=now")
		}
	}})
	ids := b.steps(3)
	b.hasAll(ids)
	if b.fsck(); ran != 3 || b.packs() != 3 {
		t.Errorf("%d times, %d packs", ran, b.packs())
	}
}

// TestKeepBeforeIndex: at no moment is there one of our packs that git sees without its
// .keep, and what a kill leaves goes.
func TestKeepBeforeIndex(t *testing.T) {
	b := newBench(t, nil)
	b.steps(1)
	for n := 0; ; n++ {
		b.write("f", fmt.Sprint("killed at ", n))
		killed := b.killed("save", "", n)
		list, err := filepath.Glob(filepath.Join(b.packDir(), "*.idx"))
		b.must(err)
		for _, idx := range list {
			data, err := os.ReadFile(strings.TrimSuffix(idx, ".idx") + objects.KeepExt)
			if err != nil || string(data) != objects.KeepWord+"\n" {
				t.Errorf("killed at %d: %q, %v", n, data, err)
			}
		}
		b.open(nil) // another process
		b.write("f", fmt.Sprint("saved after ", n))
		b.save()
		b.packs()
		if !killed {
			break
		}
	}
	if _, err := os.Stat(filepath.Join(b.store, fsys.StateDir, fsys.FormatName)); errors.Is(err, os.ErrNotExist) {
		t.Error("no format")
	}
	b.fsck()
}

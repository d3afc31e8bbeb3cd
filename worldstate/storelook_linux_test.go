package worldstate

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/refs"
	"anamnesis/worldstate/worldtest"
)

// atRest makes a bench whose last save changed nothing.
func atRest(t *testing.T) (b *bench, last Snapshot) {
	b = newBench(t, nil)
	b.write("a", "1")
	last = b.save()
	if again := b.save(); again.ID != last.ID {
		t.Fatalf("snapshot %s, was %s", again.ID, last.ID)
	}
	return b, last
}

// TestStoreChanged: a World sees what others do in its store at its next operation.
func TestStoreChanged(t *testing.T) {
	for name, c := range map[string]func(b *bench, last Snapshot){
		"a ref by git":                            refByGit,
		"refs packed by git":                      refsPackedByGit,
		"another process saves":                   anotherSaves,
		"packs go":                                packsGo,
		"git packs anew":                          gitPacksAnew,
		"a restore was interrupted":               restoreInterrupted,
		"a file system is mounted over its packs": packsMountedOver,
		"another store stands there":              anotherStore,
	} {
		t.Run(name, func(t *testing.T) {
			b, last := atRest(t)
			c(b, last)
		})
	}
}

func refByGit(b *bench, last Snapshot) {
	path := filepath.Join(b.store, "refs/anamnesis/new/deep/7")
	b.must(os.MkdirAll(filepath.Dir(path), 0o700))
	b.must(os.WriteFile(path, []byte(string(last.ID)+"\n"), 0o600))
	refs, err := b.w.refs.All()
	if b.must(err); refs["refs/anamnesis/new/deep/7"].String() != string(last.ID) {
		b.Errorf("refs: %v", refs)
	}
	b.save()
	b.must(os.Remove(path))
	refs, err = b.w.refs.All()
	if _, still := refs["refs/anamnesis/new/deep/7"]; err != nil || still {
		b.Errorf("a ref that is gone: %v %v", refs, err)
	}
}

func refsPackedByGit(b *bench, last Snapshot) {
	worldtest.Git(b, b.dir, "--git-dir="+b.store, "update-ref", "refs/anamnesis/by/git", string(last.ID))
	worldtest.Git(b, b.dir, "--git-dir="+b.store, "pack-refs", "--all")
	if refs, err := b.w.refs.All(); err != nil || refs["refs/anamnesis/by/git"].IsZero() {
		b.Errorf("%v %v", refs, err)
	}
}

func anotherSaves(b *bench, _ Snapshot) {
	second, err := Open(b.dir, b.store, &Options{Task: "other"})
	b.must(err)
	defer second.Close()
	b.write("a", "2")
	s, err := second.SaveNext(b.Context(), "")
	b.must(err)
	if id, err := b.w.Last(b.Context()); err != nil || id != s.ID {
		b.Errorf("last %s %v, want %s", id, err, s.ID)
	}
	if err := b.w.Has(b.Context(), s.ID); err != nil {
		b.Error(err)
	}
}

func packsGo(b *bench, last Snapshot) {
	packs, _ := filepath.Glob(b.store + "/objects/pack/*")
	for _, p := range packs {
		b.must(os.Remove(p))
	}
	b.savesAnew(last.ID)
}

// savesAnew checks that a save sees that its parent is gone, and says so.
func (b *bench) savesAnew(gone ID) {
	b.Helper()
	s, err := b.w.Save(b.Context(), SaveOptions{Parent: gone})
	b.must(err)
	if s.ID == gone || !strings.Contains(s.ParentLost, gitfmt.Short(gone)) {
		b.Errorf("%+v", s)
	}
	b.must(b.w.Has(b.Context(), s.ID))
}

func gitPacksAnew(b *bench, last Snapshot) {
	worldtest.Git(b, b.dir, "--git-dir="+b.store, "gc", "--quiet", "--prune=now")
	b.write("a", "2")
	b.save()
	if err := b.w.Has(b.Context(), last.ID); err != nil {
		b.Error(err)
	}
}

func restoreInterrupted(b *bench, _ Snapshot) {
	b.must(os.WriteFile(b.journalPath(), []byte("journal"), 0o600))
	if _, err := b.w.SaveNext(b.Context(), ""); !errors.Is(err, ErrUnfinished) {
		b.Errorf("got %v", err)
	}
	b.must(os.Remove(b.journalPath()))
}

func packsMountedOver(b *bench, last Snapshot) {
	b.mount(b.packDir())
	b.savesAnew(last.ID)
}

func anotherStore(b *bench, _ Snapshot) {
	b.must(os.Rename(b.store, b.store+"-moved"))
	b.must(os.MkdirAll(filepath.Join(b.store, fsys.StateDir), 0o700))
	b.must(refs.Create(b.store))
	s := b.save()
	b.must(os.RemoveAll(b.store + "-moved"))
	if err := b.w.Has(b.Context(), s.ID); err != nil {
		b.Error(err)
	}
}

// maxRestAllocs bounds what a save that finds nothing changed allocates, also where
// the store's time stamps are still racy. The world has one file.
const maxRestAllocs = 200

// TestRestSave: where nothing has changed, a save changes nothing in the store,
// its lock included, and needs little memory.
func TestRestSave(t *testing.T) {
	b, last := atRest(t)
	before := b.storeStamps()
	save := func() {
		s, err := b.w.Save(context.Background(), SaveOptions{Parent: last.ID})
		if b.must(err); s.ID != last.ID || s.Changed != 0 {
			b.Fatalf("%+v", s)
		}
	}
	if n := testing.AllocsPerRun(100, save); n > maxRestAllocs {
		t.Errorf("%v allocations a save, at most %d", n, maxRestAllocs)
	}
	for path, st := range b.storeStamps() {
		if st != before[path] {
			t.Errorf("%s was changed: %+v, was %+v", path, st, before[path])
		}
	}
}

// storeStamps looks at every file and directory of the store.
func (b *bench) storeStamps() map[string]fsys.Stamp {
	b.Helper()
	all := make(map[string]fsys.Stamp)
	b.must(filepath.WalkDir(b.store, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		all[path], err = fsys.Lstatat(unix.AT_FDCWD, path)
		return err
	}))
	return all
}

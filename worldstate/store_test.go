package worldstate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/worldtest"
)

// TestMissingAndRotten: refused before the first byte moves, naming the object.
func TestMissingAndRotten(t *testing.T) {
	ctx := context.Background()
	for _, kind := range []string{"rotten", "missing"} {
		t.Run(kind, func(t *testing.T) {
			b := newBench(t, nil)
			b.write("a", strings.Repeat("1", 1000))
			first := b.save()
			pack, _ := filepath.Glob(b.store + "/objects/pack/*.pack")
			b.write("a", "2")
			b.save()
			before := look(t, b.dir)
			h := gitfmt.HashObject(gitfmt.BlobObject, []byte(strings.Repeat("1", 1000)))
			if kind == "rotten" {
				p, off := b.w.objects.Lookup(h)
				data, err := os.ReadFile(p.Path)
				b.must(err)
				data[off+8] ^= 0x55
				b.must(os.Chmod(p.Path, 0o600))
				b.must(os.WriteFile(p.Path, data, 0o600))
			} else {
				b.must(os.Remove(pack[0]))
				b.must(os.Remove(strings.TrimSuffix(pack[0], ".pack") + ".idx"))
			}
			_, err := b.w.Plan(ctx, first.ID, nil)
			var m *MissingObjectError
			if kind == "rotten" && (!errors.As(err, &m) || m.Object != h.String() || m.Path != "a") {
				t.Errorf("plan: %v", err)
			}
			if !errors.Is(err, gitfmt.ErrCorrupt) {
				t.Errorf("plan: %v", err)
			}
			if _, err := b.w.RestoreTo(ctx, first.ID, RestoreOptions{}); err == nil {
				t.Error("restore: no error")
			}
			sameWorld(t, look(t, b.dir), before, "refused")
			r, err := b.w.Verify(ctx)
			if err != nil || r.OK || len(r.Problems) == 0 {
				t.Errorf("verify: %+v %v", r, err)
			}
		})
	}
}

// TestAfterGitRepack: what git itself made of the store reads as before.
func TestAfterGitRepack(t *testing.T) {
	b := newBench(t, nil)
	b.write("big", strings.Repeat("line\n", 20000))
	first := b.save()
	b.write("big", strings.Repeat("line\n", 20000)+"more")
	b.save()
	worldtest.Git(t, b.dir, "--git-dir="+b.store, "gc", "--quiet", "--aggressive", "--prune=now")
	if err := b.w.Has(context.Background(), first.ID); err != nil {
		t.Fatal(err)
	}
	if res := b.jump(first.ID); !res.Exact {
		t.Errorf("%+v", res)
	}
	b.fsck()
}

// TestRefused: directories and stores nobody should open.
func TestRefused(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "w")
	if err := os.MkdirAll(filepath.Join(dir, "in"), 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(top, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, dir, store string
		want             error
	}{
		{"root", "/", top + "/s", ErrRefused},
		{"home", dir, top + "/s", ErrRefused},
		{"home by a link", link, top + "/s", ErrRefused},
		{"inside its store", dir + "/in", dir, ErrRefused},
		{"absent", top + "/absent", top + "/s", ErrNoDirectory},
		{"store holds other things", dir + "/in", top, ErrRefused},
	} {
		if _, err := Open(c.dir, c.store, &Options{Home: dir}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestStoreInside: a store in its own world is not part of it.
func TestStoreInside(t *testing.T) {
	b := newBench(t, nil)
	w, err := Open(b.dir, b.path("state/store"), &Options{Exclude: []string{b.path("mine")}})
	b.must(err)
	defer w.Close()
	b.write("a", "1")
	b.write("mine/x", "1")
	s, err := w.SaveNext(context.Background(), "")
	b.must(err)
	if s.Files != 1 {
		t.Errorf("%d files", s.Files)
	}
}

// TestLimit: at the cap nothing is saved, and the store is as it was.
func TestLimit(t *testing.T) {
	b := newBench(t, nil)
	b.write("a", "1")
	first := b.save()
	data := make([]byte, 20000)
	for i := range data {
		data[i] = byte(i * i >> 3 * 7)
	}
	b.must(os.WriteFile(b.path("big"), append(data, fmt.Sprint(time.Now())...), 0o644))
	b.open(&Options{SizeLimitBytes: 1000})
	var le *LimitError
	if _, err := b.w.SaveNext(context.Background(), ""); !errors.As(err, &le) {
		t.Fatalf("got %v", err)
	}
	if last, err := b.w.Last(context.Background()); err != nil || last != first.ID {
		t.Errorf("last is %s, %v", last, err)
	}
	b.fsck()
}

// TestLimitCountsOnce: a save is refused where the store would be larger than the
// cap with it, and only there: its pack is counted once while it is being written.
func TestLimitCountsOnce(t *testing.T) {
	b := newBench(t, nil)
	noise := func(name string, bytes int) {
		data := make([]byte, bytes)
		rand.NewChaCha8([32]byte{byte(bytes)}).Read(data)
		b.write(name, string(data))
	}
	b.open(&Options{SizeLimitBytes: 15 << 20})
	noise("large", 10<<20)
	b.save()
	noise("more", 6<<20)
	var full *LimitError
	if _, err := b.w.SaveNext(context.Background(), ""); !errors.As(err, &full) {
		t.Fatalf("16 MiB under a cap of 15: %v", err)
	}
	const about = 64 // compressing the same bytes again may take a few bytes more or less
	b.open(&Options{SizeLimitBytes: full.NeedBytes - about})
	if _, err := b.w.SaveNext(context.Background(), ""); !errors.As(err, &full) {
		t.Fatalf("%d bytes too many: %v", about, err)
	}
	b.open(&Options{SizeLimitBytes: full.NeedBytes + about})
	b.save()
	if have, err := b.w.objects.SizeBytes(); err != nil || have < full.NeedBytes-about || have > full.NeedBytes+about {
		t.Errorf("the store has %d bytes, %v; it was to have %d", have, err, full.NeedBytes)
	}
	b.fsck()
}

// TestManySavers: eight worlds and one world, at once, in one store.
func TestManySavers(t *testing.T) {
	ctx := context.Background()
	b := newBench(t, nil)
	b.write("shared", "x")
	var wg sync.WaitGroup
	ids := make([]ID, 8)
	for i := range ids {
		wg.Go(func() {
			dir := b.dir
			if i%2 == 0 {
				dir = filepath.Join(t.TempDir(), "w")
				if err := os.Mkdir(dir, 0o755); err != nil {
					t.Error(err)
					return
				}
			}
			w, err := Open(dir, b.store, &Options{Task: fmt.Sprintf("t%d", i), LockWait: time.Minute})
			if err != nil {
				t.Error(err)
				return
			}
			defer w.Close()
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d", i)), []byte(fmt.Sprint(i)), 0o644); err != nil {
				t.Error(err)
				return
			}
			s, err := w.Save(ctx, SaveOptions{Ref: "1", Trailers: [][2]string{{"Seq", "1"}}})
			if err != nil {
				t.Error(err)
			}
			ids[i] = s.ID
		})
	}
	wg.Wait()
	for i, id := range ids {
		if err := b.w.Has(ctx, id); err != nil {
			t.Errorf("snapshot %d: %v", i, err)
		}
	}
	b.fsck()
}

// TestLocked: the loser is told who holds the store.
func TestLocked(t *testing.T) {
	b := newBench(t, &Options{LockWait: time.Millisecond})
	lock, err := fsys.AcquireLock(context.Background(), b.store, fsys.WriterLock, time.Second)
	b.must(err)
	_, err = b.w.SaveNext(context.Background(), "")
	var le *fsys.LockedError
	if !errors.As(err, &le) || !strings.Contains(le.Holder, fmt.Sprint(os.Getpid())) {
		t.Fatalf("got %v", err)
	}
	lock.Release()
	b.save()
}

// TestStoreNotLookedAt: what cannot be looked at is not said to be absent, nor made anew.
func TestStoreNotLookedAt(t *testing.T) {
	top := t.TempDir()
	long := filepath.Join(top, strings.Repeat("n", 256)) // of no file, but not because there is none
	for what, err := range map[string]error{
		"a directory": func() error { _, err := Open(filepath.Join(long, "dir"), filepath.Join(top, "store"), nil); return err }(),
		"a store":     func() error { _, err := Open(t.TempDir(), filepath.Join(long, "store"), nil); return err }(),
		"only a store": func() error {
			_, err := Open(t.TempDir(), filepath.Join(long, "store"), &Options{StoreOnly: true})
			return err
		}(),
		"a collection": func() error { _, err := GC(context.Background(), filepath.Join(long, "store"), nil); return err }(),
	} {
		if !errors.Is(err, unix.ENAMETOOLONG) || errors.Is(err, ErrNoDirectory) || errors.Is(err, ErrRefused) ||
			errors.Is(err, gitfmt.ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
	b := newBench(t, nil)
	b.must(
		os.WriteFile(filepath.Join(b.store, "config"), []byte("[core]\n\tbare = true\n[user]\n\tname = mine\n"), 0o600))
	head := filepath.Join(b.store, "HEAD")
	b.must(os.Remove(head))
	b.must(os.Symlink("HEAD", head))
	if _, err := Open(b.dir, b.store, nil); !errors.Is(err, unix.ELOOP) {
		t.Errorf("a HEAD that cannot be read: %v", err)
	}
	if data, err := os.ReadFile(filepath.Join(b.store, "config")); err != nil ||
		!strings.Contains(string(data), "mine") {
		t.Errorf("the configuration was written over: %q, %v", data, err)
	}
}

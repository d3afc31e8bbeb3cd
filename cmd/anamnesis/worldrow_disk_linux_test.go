package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"anamnesis/cmd/internal/exit"
	"anamnesis/worldstate"
	"anamnesis/worldstate/worldtest"
)

// smallDisk mounts a file system of its own on a new directory.
func smallDisk(t *testing.T, options string) string {
	t.Helper()
	need(t, os.Geteuid() == 0, "root, to mount a small disk")
	dir := t.TempDir()
	err := unix.Mount("tmpfs", dir, "tmpfs", 0, options)
	need(t, err == nil, fmt.Sprintf("a mount (%v)", err))
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

// pressed makes a world with two snapshots, the present one small and the
// first one large, so that going back needs room, inodes or a writable place.
func pressed(t *testing.T, world, store string) (w *rowWorld, first worldstate.Snapshot) {
	w = &rowWorld{T: t, top: t.TempDir(), dir: filepath.Join(world, "world"), store: filepath.Join(store, "store")}
	w.face = programFace{t: t, dir: w.dir, store: w.store}
	w.must(os.Mkdir(w.dir, 0o755))
	for i := range 40 {
		w.write(fmt.Sprintf("d%d/%d", i%4, i), strings.Repeat(fmt.Sprint(i, " "), 6000))
	}
	w.write("edited", "short")
	w.write("small", strings.Repeat("x", 60<<10))
	first = w.saved()
	w.remove("d0", "d1", "d2", "d3")
	w.write("edited", strings.Repeat("long ", 100))
	w.write("small", "x")
	w.saved()
	return w, first
}

// refusedWhole tries to go back: it must fail, leave the tree as it was and
// say so, and succeed once the cause is gone.
func (w *rowWorld) refusedWhole(first worldstate.Snapshot, words []string, release func()) {
	w.Helper()
	before := w.look()
	_, err := w.restore(first.ID, noOptions)
	if err == nil {
		w.Fatal("the restore succeeded: nothing was tested")
	}
	w.refused(err, exit.Failed, words...)
	worldtest.RequireEqual(w, w.look().Whats(), before.Whats(), "a refused restore")
	release()
	w.restored(first, noOptions)
	w.whole()
}

// TestRow14DiskFull: the world's disk is full before a restore begins, and at
// one place after the other in its middle; so is the store's.
func TestRow14DiskFull(t *testing.T) {
	t.Parallel()
	heavy(t)
	for _, left := range []int64{0, 40 << 10, 200 << 10, 500 << 10} {
		t.Run(fmt.Sprintf("world/%d KiB left", left>>10), func(t *testing.T) {
			disk := smallDisk(t, "size=4m")
			w, first := pressed(t, disk, t.TempDir())
			fillTo(t, disk, left)
			w.refusedWhole(first, []string{"no space left", "the world was rolled back"},
				func() { w.must(os.Remove(disk + "/filler")) })
		})
	}
	t.Run("store", func(t *testing.T) {
		disk := smallDisk(t, "size=8m")
		w, first := pressed(t, t.TempDir(), disk)
		for _, left := range []int64{0, 4 << 10, 16 << 10, 64 << 10} {
			w.write("new", strings.Repeat(fmt.Sprint("unsaved ", left), 200<<10))
			w.must(os.WriteFile(w.path("noise"), noise(left, 1<<20), 0o644))
			fillTo(t, disk, left)
			before := w.look()
			_, err := w.save()
			w.refused(err, exit.Failed, "no space left")
			_, err = w.restore(first.ID, noOptions)
			w.refused(err, exit.Failed, "no space left")
			worldtest.Untouched(t, before, w.look(), nil, "a full store")
			w.must(os.Remove(disk + "/filler"))
			w.saved()
			if left := w.debris(); len(left) > 0 {
				t.Errorf("left %q", left)
			}
		}
		w.restored(first, noOptions)
		w.whole()
	})
}

// noise is bytes that do not compress, the same for the same seed.
func noise(seed int64, n int) []byte {
	out := make([]byte, n)
	x := uint64(seed)*2862933555777941757 + 3037000493
	for i := range out {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		out[i] = byte(x)
	}
	return out
}

// TestRow14OutOfInodes: there is room for the bytes and none for the files.
func TestRow14OutOfInodes(t *testing.T) {
	t.Parallel()
	heavy(t)
	disk := smallDisk(t, "size=16m,nr_inodes=80")
	w, first := pressed(t, disk, t.TempDir())
	for _, spare := range []int{0, 10, 30} {
		t.Run(fmt.Sprint(spare, " left"), func(t *testing.T) {
			w := &rowWorld{T: t, face: programFace{t: t, dir: w.dir, store: w.store}, top: w.top, dir: w.dir,
				store: w.store}
			var fill []string
			for i := 0; ; i++ {
				path := filepath.Join(disk, fmt.Sprint("inode", i))
				if err := os.WriteFile(path, nil, 0o600); err != nil {
					break
				}
				fill = append(fill, path)
			}
			free := func(n int) {
				for range min(n, len(fill)) {
					w.must(os.Remove(fill[0]))
					fill = fill[1:]
				}
			}
			free(spare)
			back, err := w.save()
			w.must(err)
			w.refusedWhole(first, []string{"no space left", "the world was rolled back"}, func() { free(len(fill)) })
			w.restored(back, noOptions)
		})
	}
}

// TestRow14ReadOnly: nothing can be written where the world is, or where the
// store is.
func TestRow14ReadOnly(t *testing.T) {
	t.Parallel()
	remount := func(t *testing.T, dir string, flags uintptr) {
		t.Helper()
		if err := unix.Mount("", dir, "", unix.MS_REMOUNT|flags, ""); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("world", func(t *testing.T) {
		disk := smallDisk(t, "size=8m")
		w, first := pressed(t, disk, t.TempDir())
		remount(t, disk, unix.MS_RDONLY)
		w.refusedWhole(first, []string{"read-only file system"}, func() { remount(t, disk, 0) })
	})
	t.Run("store", func(t *testing.T) {
		disk := smallDisk(t, "size=8m")
		w, first := pressed(t, t.TempDir(), disk)
		remount(t, disk, unix.MS_RDONLY)
		w.write("edited", "by hand")
		before := w.look()
		for name, try := range map[string]func() error{
			"save":    func() error { _, err := w.save(); return err },
			"restore": func() error { _, err := w.restore(first.ID, noOptions); return err },
		} {
			if err := try(); err == nil || exit.Code(err) != exit.Failed ||
				!strings.Contains(err.Error(), "read-only file system") {
				t.Errorf("%s: %v", name, err)
			}
		}
		worldtest.Untouched(t, before, w.look(), nil, "a read-only store")
		remount(t, disk, 0)
		w.back(first)
		w.whole()
	})
}

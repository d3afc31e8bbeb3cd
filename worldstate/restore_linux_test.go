package worldstate

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestRestoreReadsBeforeItWrites: bytes written through a memory map after the
// restore's own scan, which no time stamp tells of, are kept and listed.
func TestRestoreReadsBeforeItWrites(t *testing.T) {
	var late func(point string)
	b := newBench(t, &Options{Hook: func(point string) {
		if late != nil {
			late(point)
		}
	}})
	b.write("mapped", "1111")
	first := b.save().ID
	b.must(os.WriteFile(b.path("mapped"), []byte("2222"), 0o644))
	f, err := os.OpenFile(b.path("mapped"), os.O_RDWR, 0)
	b.must(err)
	defer f.Close()
	m, err := unix.Mmap(int(f.Fd()), 0, 4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	b.must(err)
	defer unix.Munmap(m)
	copy(m, "3333") // the page is dirty from here on: the stamp stays
	second := b.save().ID
	plan, err := b.w.Plan(t.Context(), first, &PlanOptions{Base: second})
	b.must(err)
	late = func(point string) {
		if point == "journal after" { // the last scan is over
			copy(m, "mine")
		}
	}
	res, err := b.w.Restore(t.Context(), plan)
	b.must(err)
	if string(m) != "mine" || res.Exact || len(res.Kept) != 1 || res.Kept[0].Path != "mapped" {
		t.Errorf("the map holds %q: %+v", m, res)
	}
}

// TestEmptyPath: a path that is empty is refused, and not the whole world.
func TestEmptyPath(t *testing.T) {
	b := newBench(t, nil)
	b.write("a", "1")
	first := b.save().ID
	if _, err := b.w.Plan(t.Context(), first, &PlanOptions{Paths: []string{""}}); !errors.Is(err, ErrRefused) {
		t.Errorf("Plan: %v, want ErrRefused", err)
	}
}

package worldstate

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/scan"
	"anamnesis/worldstate/internal/tree"
	"anamnesis/worldstate/worldtest"
)

// mkdirs makes nested directories, step by step, and returns the last one, which
// the caller closes.
func (b *bench) mkdirs(names ...string) int {
	b.Helper()
	fd, err := unix.Open(b.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	b.must(err)
	for _, name := range names {
		if err := unix.Mkdirat(fd, name, 0o755); err != nil && err != unix.EEXIST {
			b.Fatal(err)
		}
		next, err := unix.Openat(fd, name, fsys.DirFlags, 0)
		b.must(err)
		unix.Close(fd)
		fd = next
	}
	return fd
}

// writeIn writes a file into a directory and closes that.
func (b *bench) writeIn(dirfd int, name, text string) {
	b.Helper()
	defer unix.Close(dirfd)
	fd, err := unix.Openat(dirfd, name, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC, 0o644)
	b.must(err)
	_, err = unix.Write(fd, []byte(text))
	b.must(err)
	b.must(unix.Close(fd))
}

// readDeep reads a file of any path in a directory; "" where there is none.
func (b *bench) readDeep(top, path string) string {
	b.Helper()
	root, err := os.OpenRoot(top)
	b.must(err)
	defer root.Close()
	data, err := root.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		b.Fatal(err)
	}
	return string(data)
}

func repeated(name string, n int) []string { return slices.Repeat([]string{name}, n) }

// TestTooDeep: what is nested more deeply than a snapshot holds is left out and
// listed, bars no operation, and is deleted by none.
func TestTooDeep(t *testing.T) {
	worldtest.Heavy(t)
	for name, names := range map[string][]string{"levels": repeated("d", 1300), "bytes": repeated(strings.Repeat("x", 250), 30)} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			b.write("a", "1")
			empty := b.save()
			b.writeIn(b.mkdirs(names[:10]...), "f", "1")
			b.writeIn(b.mkdirs(names...), "f", "precious")
			b.write("a", "2")
			deep := b.save()
			if deep.Complete || len(deep.Skipped) != 1 || deep.Skipped[0].Reason != scan.ReasonTooDeep {
				t.Fatalf("complete %v, skipped %d", deep.Complete, len(deep.Skipped))
			}
			left := deep.Skipped[0].Path
			if n := strings.Count(left, "/") + 1; len(left) > MaxPathBytes || n > MaxDepth ||
				n != MaxDepth && len(left) < MaxPathBytes-2*tree.MaxNameBytes-2 {
				t.Errorf("left out at %d levels and %d bytes", n, len(left))
			}
			held := strings.Join(names[:10], "/") + "/f"
			b.jump(empty.ID)
			if got := b.readDeep(b.dir, held); got != "" {
				t.Errorf("a file that is held stays: %q", got)
			}
			unix.Close(b.mkdirs(names...)) // all are there still
			if st, err := os.Lstat(b.path("a")); err != nil || st.Size() != 1 {
				t.Fatal(err)
			}
			b.jump(deep.ID)
			if got := b.readDeep(b.dir, held); got != "1" {
				t.Errorf("the file came back as %q", got)
			}
			fd := b.mkdirs(names...)
			defer unix.Close(fd)
			if _, err := fsys.Lstatat(fd, "f"); err != nil {
				t.Errorf("what no snapshot holds: %v", err)
			}
			b.must(os.RemoveAll(b.path(names[0])))
			if s := b.save(); !s.Complete {
				t.Errorf("after the tree was removed: %+v", s.Skipped)
			}
			b.fsck()
		})
	}
}

package worldstate

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/scan"
)

// blocks is what a file takes on its disk, in bytes.
func (b *bench) blocks(path string) int64 {
	b.Helper()
	var st unix.Stat_t
	b.must(unix.Stat(b.path(path), &st))
	return st.Blocks * 512
}

// sparse makes a file with data at some places, and holes elsewhere.
func (b *bench) sparse(path string, size int64, data ...int64) {
	b.Helper()
	f, err := os.Create(b.path(path))
	b.must(err)
	b.must(f.Truncate(size))
	for _, at := range data {
		_, err := f.WriteAt([]byte("data"), at)
		b.must(err)
	}
	b.must(f.Close())
}

// TestHoles: a file with holes is the same file for git, and comes back with them.
func TestHoles(t *testing.T) {
	b := newBench(t, nil)
	const size = 24<<20 + 123
	b.sparse("inside", size, 0, 9<<20, 20<<20)
	b.sparse("end", size, 5)
	b.sparse("begin", size, size-4)
	b.sparse("all", size)
	b.sparse("small", 300<<10, 4)
	names := []string{"inside", "end", "begin", "all", "small"}
	if b.blocks("all") > 1<<20 {
		t.Skip("the file system has no holes")
	}
	first := b.save()
	sums := make(map[string][]byte)
	for _, name := range names {
		data, err := os.ReadFile(b.path(name))
		b.must(err)
		sums[name] = data
		st, err := b.w.Stat(context.Background(), first.ID, name)
		b.must(err)
		if want := gitfmt.HashObject(gitfmt.BlobObject, data); st.Blob != want.String() {
			t.Errorf("%s: blob %s, want %s", name, st.Blob, want)
		}
	}
	b.sparse("small", 300<<10, 4, 8)
	for _, name := range names[:4] {
		b.must(os.Remove(b.path(name)))
	}
	b.save()
	b.jump(first.ID)
	for _, name := range names {
		data, err := os.ReadFile(b.path(name))
		b.must(err)
		if !bytes.Equal(data, sums[name]) {
			t.Errorf("%s came back with other bytes", name)
		}
		if n := b.blocks(name); n > 256<<10 && name != "small" { // which is written in place
			t.Errorf("%s takes %d bytes of the disk", name, n)
		}
	}
	b.fsck()
}

// TestFileLimit: a file over the limit is left out and listed, and no restore
// writes or removes it, on whichever side of the limit it is at the other end.
func TestFileLimit(t *testing.T) {
	o := &Options{FileLimitBytes: 10}
	b := newBench(t, o)
	small, large := "small", strings.Repeat("large ", 5)
	for name, text := range map[string]string{"grows": small, "shrinks": large, "new": "", "gone": large, "stays": large, "other": "1"} {
		if text != "" {
			b.write(name, text)
		}
	}
	first := b.save()
	if first.Complete ||
		fmt.Sprint(first.Skipped) != fmt.Sprint([]Skip{
			{Path: "gone", Reason: scan.ReasonTooLarge + "10 bytes"},
			{Path: "shrinks", Reason: scan.ReasonTooLarge + "10 bytes"},
			{Path: "stays", Reason: scan.ReasonTooLarge + "10 bytes"},
		}) {
		t.Fatalf("%+v", first)
	}
	b.write("grows", large)
	b.write("shrinks", small)
	b.write("new", large)
	b.must(os.Remove(b.path("gone")))
	b.write("other", "2")
	second := b.save()
	holds := func(when string, want map[string]string) {
		t.Helper()
		for name, text := range want {
			if data, _ := os.ReadFile(b.path(name)); string(data) != text {
				t.Errorf("%s: %s holds %q, want %q", when, name, data, text)
			}
		}
	}
	res := b.jump(first.ID)
	want := map[string]string{"grows": large, "shrinks": small, "new": large, "stays": large, "gone": ""}
	holds("back", want)
	holds("back", map[string]string{"other": "1"})
	if len(res.Kept) < 2 || res.Exact {
		t.Errorf("%+v", res)
	}
	b.jump(second.ID)
	holds("forward", want)
	// Under another limit the same files are held, and the snapshots of before keep theirs.
	b.w.Close()
	b.open(&Options{FileLimitBytes: -1})
	third := b.save()
	if !third.Complete {
		t.Fatalf("%+v", third.Skipped)
	}
	b.jump(first.ID)
	holds("back without a limit",
		map[string]string{"grows": small, "shrinks": small, "new": "", "stays": large, "other": "1"})
	b.must(b.w.Sync())
	b.w.Close()
	b.open(o)
	if s := b.save(); s.Complete {
		t.Error("the limit is back, and nothing is left out")
	}
	b.jump(third.ID)
	holds("to what holds all", want)
}

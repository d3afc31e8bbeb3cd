package opstream

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestMergedLongLines: a damaged newline makes one line of two, and the second
// still vouches for the first, also when both together are longer than a line
// may be.
func TestMergedLongLines(t *testing.T) {
	for _, size := range []int{100, maxLineBytes/2 - 300, maxLineBytes / 2, 40_000, MaxInlineBytes - 10} {
		l := mustOpen(t, filepath.Join(t.TempDir(), "whole"), &Options{SealAfter: -1})
		for range 3 {
			body := []byte(`{"t":"` + string(bytes.Repeat([]byte("x"), size)) + `"}`)
			if _, err := l.Append(t.Context(), Entry{Kind: "k", Body: body}); err != nil {
				t.Fatal(err)
			}
		}
		data, err := os.ReadFile(segmentPath(l.dir, 1)) // as a crash leaves it: not sealed
		if err != nil {
			t.Fatal(err)
		}
		mustClose(t, l)
		second := bytes.IndexByte(data, '\n') + 1
		data[second+bytes.IndexByte(data[second:], '\n')] ^= 1
		dir := t.TempDir()
		if err := errors.Join(os.Mkdir(filepath.Join(dir, opsDirName), 0o700), os.WriteFile(segmentPath(dir, 1), data, 0o600)); err != nil {
			t.Fatal(err)
		}
		report, err := Verify(t.Context(), dir)
		if err != nil || !report.Has(SeverityCorrupt) {
			t.Errorf("bodies of %d bytes: findings %v (%v), want corruption", size, report.Findings, err)
		}
		if l, err := Open(dir, nil); !errors.Is(err, ErrCorrupt) {
			if err == nil {
				mustClose(t, l)
			}
			t.Errorf("bodies of %d bytes: open: %v, want ErrCorrupt", size, err)
		}
	}
}

// listedDisk counts how often a directory is listed.
type listedDisk struct {
	*disk
	listings int
}

func (d *listedDisk) ReadDir(path string) ([]string, error) {
	d.listings++
	return d.disk.ReadDir(path)
}

// TestOpenListings: opening lists the directory a few times, however many
// segments there are; once for each would make a long stream's open quadratic.
func TestOpenListings(t *testing.T) {
	d := &listedDisk{disk: newDisk()}
	opts := diskOptions(d.disk)
	opts.FS, opts.SegmentSizeBytes = d, 1
	open := func() *Log {
		t.Helper()
		l, err := openLocked("/log", opts, nil)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	if err := createDirs(d, "/log"); err != nil {
		t.Fatal(err)
	}
	l := open()
	for range 50 {
		if _, err := l.Append(t.Context(), Entry{Kind: "k", Body: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, l)
	d.listings = 0
	mustClose(t, open())
	if segs, _, err := listSegments(d.disk, "/log"); err != nil || len(segs) < 50 || d.listings > 5 {
		t.Errorf("%d segments (%v): %d listings, want at most 5", len(segs), err, d.listings)
	}
}

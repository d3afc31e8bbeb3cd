package opstream

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"anamnesis/opstream/durable"
	"anamnesis/opstream/internal/segments"
	"anamnesis/opstream/internal/wire"
)

// TestMergedLongLines: a damaged newline makes one line of two, and the second
// still vouches for the first, also when both together are longer than a line
// may be.
func TestMergedLongLines(t *testing.T) {
	for _, size := range []int{100, wire.MaxLineBytes/2 - 300, wire.MaxLineBytes / 2, 40_000, wire.MaxInlineBytes - 10} {
		l := mustOpen(t, filepath.Join(t.TempDir(), "whole"), &Options{SealAfter: -1})
		for range 3 {
			body := []byte(`{"t":"` + string(bytes.Repeat([]byte("x"), size)) + `"}`)
			if _, err := l.Append(t.Context(), Entry{Kind: "k", Body: body}); err != nil {
				t.Fatal(err)
			}
		}
		data, err := os.ReadFile(segments.Path(l.dir, 1)) // as a crash leaves it: not sealed
		if err != nil {
			t.Fatal(err)
		}
		mustClose(t, l)
		second := bytes.IndexByte(data, '\n') + 1
		data[second+bytes.IndexByte(data[second:], '\n')] ^= 1
		dir := t.TempDir()
		if err := errors.Join(os.Mkdir(filepath.Join(dir, segments.OpsDirName), 0o700), os.WriteFile(segments.Path(dir, 1), data, 0o600)); err != nil {
			t.Fatal(err)
		}
		report, err := Verify(t.Context(), dir)
		if err != nil || !report.Has(SeverityCorrupt) {
			t.Errorf("bodies of %d bytes: findings %v (%v), want corruption", size, report.Findings, err)
		}
		if l, err := Open(dir, nil); !errors.Is(err, wire.ErrCorrupt) {
			if err == nil {
				mustClose(t, l)
			}
			t.Errorf("bodies of %d bytes: open: %v, want ErrCorrupt", size, err)
		}
	}
}

// listedDisk counts how often a directory is listed.
type listedDisk struct {
	*simDisk
	listings int
}

func (d *listedDisk) ReadDir(path string) ([]string, error) {
	d.listings++
	return d.simDisk.ReadDir(path)
}

// TestOpenListings: opening lists the directory a few times, however many
// segments there are; once for each would make a long stream's open quadratic.
func TestOpenListings(t *testing.T) {
	d := &listedDisk{simDisk: newDisk()}
	opts := diskOptions(d.simDisk)
	opts.FS, opts.SegmentSizeBytes = d, 1
	open := func() *Log {
		t.Helper()
		l, err := openLocked("/log", opts, nil)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	if err := durable.MakeDir(d, "/log"); err != nil {
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
	if segs, _, err := segments.List(d.simDisk, "/log"); err != nil || len(segs) < 50 || d.listings > 5 {
		t.Errorf("%d segments (%v): %d listings, want at most 5", len(segs), err, d.listings)
	}
}

package opstream

import "testing"

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

package refs

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

// logLine is a line of the log that saves wrote before format 3.
func logLine(words ...string) string {
	rest := strings.Join(words, " ")
	return fmt.Sprintf("%08x %s\n", crc32.Checksum([]byte(rest), crc32.MakeTable(crc32.Castagnoli)), rest)
}

// oldStore makes a store of format 2.
func oldStore(t *testing.T, log, packed string, loose map[string]string) *Store {
	t.Helper()
	s := emptyStore(t)
	err := errors.Join(os.WriteFile(s.oldLogPath(), []byte(log), 0o600), fsys.WriteFormat(s.Dir, 2))
	if packed != "" {
		err = errors.Join(err, os.WriteFile(s.PackedPath(), []byte(packedHeader+packed), 0o600))
	}
	for name, value := range loose {
		path := filepath.Join(s.Dir, name)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(value), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestOldRefs: of an older store the log counts over files that a power cut left
// behind it, and a value that it does not know was set by git and counts over the log.
func TestOldRefs(t *testing.T) {
	const ref = TaskPrefix + "t/1"
	id := func(n int) string { return refID(n).String() }
	zero := gitfmt.Hash{}.String()
	one, two := logLine(ref, id(1)), logLine(ref, id(2))
	first := logLine(ref, zero, ref, id(1)) // it was not there
	for n, c := range []struct {
		log, packed, loose string
		want               int // 0: the ref is not there
	}{
		{one + two, "", "", 2},
		{one + two, "", id(1) + "\n", 2},                               // left by a power cut
		{one + two, "", "", 2},                                         // likewise
		{one + two, id(1) + " " + ref + "\n", "", 2},                   // packed before
		{one, id(5) + " " + ref + "\n", "", 1},                         // a line without what was packed counts
		{first, id(5) + " " + ref + "\n", "", 5},                       // packed by git
		{first, id(5) + " " + ref + "\n", id(5) + "\n", 5},             // packed by git and not pruned
		{first + two, "", id(7) + "\n", 7},                             // set by git
		{logLine(ref, id(4), ref, id(1)), "", "", 0},                   // packed once, removed by git
		{first + logLine(ref, zero), "", id(1) + "\n", 0},              // removed by us
		{first + two[:len(two)-3], "", "", 1},                          // cut short by a crash
		{first + "0 rubbish\n", "", "", 1},                             // likewise
		{notice, id(3) + " " + ref + "\n", "", 3},                      // killed while it was raised
		{"", id(3) + " " + ref + "\n", "", 3},                          // no update since
		{"", "", id(3) + "\n", 3},                                      // a loose one
		{one + two, id(3) + " refs/tags/x\n", "ref: refs/tags/x\n", 2}, // a symbolic ref is not ours
	} {
		loose := map[string]string{}
		if c.loose != "" {
			loose[ref] = c.loose
		}
		s := oldStore(t, c.log, c.packed, loose)
		for _, when := range []string{"read", "brought over"} {
			all, err := (&Store{Dir: s.Dir}).All()
			got := all[ref]
			if want := refID(c.want); err != nil || c.want > 0 && got != want || c.want == 0 && !got.IsZero() {
				t.Errorf("%d %s: %s, %v; want %d", n, when, got, err, c.want)
			}
			s.must(t, map[string]gitfmt.Hash{Latest: refID(9)})
		}
		if format, err := fsys.ReadFormat(s.Dir); format != fsys.Format || err != nil {
			t.Errorf("%d: format %d, %v", n, format, err)
		}
		if data, err := os.ReadFile(s.oldLogPath()); err != nil || string(data) != notice {
			t.Errorf("%d: the log is %q, %v", n, data, err)
		}
	}
	s := oldStore(t, "0 rubbish\n"+one, "", nil)
	if _, err := s.All(); !errors.Is(err, gitfmt.ErrCorrupt) {
		t.Errorf("damage before the last line: %v", err)
	}
}

// TestNoticeIsNoLog: a program that reads no later format than 2 takes the notice for
// damage and prints it.
func TestNoticeIsNoLog(t *testing.T) {
	l := oldLog{values: map[string][]gitfmt.Hash{}, based: map[string]bool{}}
	line, rest, _ := strings.Cut(notice, "\n")
	if l.add(line) || rest == "" {
		t.Errorf("%q is a line of a log, or the last one", line)
	}
}

// TestLaterFormat: a store of a later format is refused, by both numbers.
func TestLaterFormat(t *testing.T) {
	s := emptyStore(t)
	if err := fsys.WriteFormat(s.Dir, fsys.Format+1); err != nil {
		t.Fatal(err)
	}
	_, err := s.All()
	if want := fmt.Sprintf("has format %d, and this program reads formats up to %d; use a newer version of anamnesis", fsys.Format+1, fsys.Format); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

package worldstate

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"anamnesis/worldstate/worldtest"
)

// sequence returns the numbers from first to last, one a line.
func sequence(first, last int) string {
	var b strings.Builder
	for n := first; n <= last; n++ {
		b.WriteString(strconv.Itoa(n) + "\n")
	}
	return b.String()
}

// TestOldPacks: a store in the present format whose packs an older program wrote (testdata/v3: two
// saves, a collection, which stored deltas, and two saves, which stored small objects without
// compression) is read, restored and collected.
func TestOldPacks(t *testing.T) {
	b := newBench(t, nil)
	b.must(os.RemoveAll(b.store))
	b.must(os.CopyFS(b.store, os.DirFS("testdata/v3/store")))
	b.must(os.MkdirAll(filepath.Join(b.store, "refs", "heads"), 0o700)) // git keeps no empty directory
	b.must(os.MkdirAll(filepath.Join(b.store, "objects", "info"), 0o700))
	b.open(nil)
	steps := []struct {
		id, text, long string
		later          bool // run.sh was removed and new/n added
	}{
		{"b0110b84fb560d2483def9cce976d39a9de69b66", "one\n", sequence(1, 400), false},
		{"aa6eb05f9dbc92cc4e9eb7e1f3093459a75367b3", "two\n", sequence(1, 401), false},
		{"cf0898f974183e5d6c8e4bfd6391bd57ac95d1fe", "two\n", sequence(1, 401), true},
		{"a406de20517bc381212c4d6bd15a8bb1646ed0b9", "two\n", sequence(2, 401), true},
	}
	restoreAll := func(when string) {
		t.Helper()
		for _, s := range steps {
			r, err := b.w.RestoreTo(b.Context(), ID(s.id),
				RestoreOptions{PlanOptions: PlanOptions{OtherWorld: true, OverwriteEdits: true}})
			if b.must(err); !r.Exact {
				t.Errorf("%s: %s is not exact: %+v", when, s.id, r.Kept)
			}
			want := t.TempDir()
			files := map[string]string{"a.txt": s.text, "sub/long.txt": s.long, "git~1": "x",
				".gitignore": "*.log\n.env\n"}
			if s.later {
				files["new/n"] = "n\n"
			} else {
				files["run.sh"] = "#!/bin/sh\necho hi\n"
			}
			for name, text := range files {
				b.must(os.MkdirAll(filepath.Join(want, filepath.Dir(name)), 0o755))
				b.must(os.WriteFile(filepath.Join(want, name), []byte(text), 0o644))
			}
			b.must(os.Mkdir(filepath.Join(want, "empty"), 0o755))
			b.must(os.Symlink("a.txt", filepath.Join(want, "link")))
			b.must(os.Chmod(filepath.Join(want, "sub/long.txt"), 0o600))
			if !s.later {
				b.must(os.Chmod(filepath.Join(want, "run.sh"), 0o755))
			}
			worldtest.RequireEqual(t, worldtest.Snapshot(t, b.dir).Whats(), worldtest.Snapshot(t, want).Whats(),
				when+", "+s.id)
		}
	}
	restoreAll("as it was written")
	b.fsck()
	b.gc(nil)
	for _, s := range steps {
		b.must(b.w.Has(b.Context(), ID(s.id)))
	}
	restoreAll("after a collection")
	b.fsck()
}

package file

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/orchestrator/tool"
)

// A write that fails takes back those before it: here the last file was changed
// between the look at it and the write.
func TestPatchTakenBack(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	env := &tool.Env{Call: "c", Root: root, Dir: dir}
	before := map[string]string{"a": "one\n", "gone": "two\n", "moves": "three\n", "last": "four\n", "later": "five\n"}
	for name, text := range before {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	changes,
		err := parsePatch("*** Begin Patch\n*** Update File: a\n-one\n+1\n*** Delete File: gone\n*** Update File: moves\n*** Move to: moved\n-three\n+3\n" +
		"*** Add File: new\n+new\n*** Update File: last\n-four\n+4\n*** Update File: later\n-five\n+5\n*** End Patch")
	if err != nil {
		t.Fatal(err)
	}
	var all []*planned
	for _, c := range changes {
		p, err := patchFile{}.plan(env, c)
		if err != nil {
			t.Fatal(err)
		}
		defer p.close()
		all = append(all, p)
	}
	for _, name := range []string{"last", "later"} {
		before[name] = "changed meanwhile\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(before[name]), 0o750); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range all[:4] {
		if err := p.write(); err != nil {
			t.Fatal(err)
		}
	}
	if err := all[4].write(); err == nil {
		t.Fatal("a file that was changed meanwhile was written over")
	}
	// The last one is somebody else's now; the others are taken back all the same. The one after it was never begun.
	if said := undo(env, all); !strings.Contains(said, "last: was changed by something else") || strings.Contains(said, "later") {
		t.Errorf("said %q", said)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != len(before) {
		t.Errorf("files %v, %v", entries, err)
	}
	for name, text := range before {
		data, _ := os.ReadFile(filepath.Join(dir, name))
		info, err := os.Stat(filepath.Join(dir, name))
		if string(data) != text || err != nil || info.Mode().Perm() != 0o750 {
			t.Errorf("%s holds %q, %v, %v", name, data, info, err)
		}
	}
}

func FuzzParsePatch(f *testing.F) {
	f.Add("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n\\ No newline at end of file\n", "a\nb\n")
	f.Add("*** Begin Patch\n*** Update File: f\n@@ x\n-b\n+c\n*** End of File\n*** End Patch", "x\nb")
	f.Fuzz(func(t *testing.T, patch, text string) {
		changes, err := parsePatch(patch)
		if err != nil {
			return
		}
		for _, c := range changes {
			d, err := readDocument(text).patch(c.hunks)
			if err == nil && len(c.hunks) == 0 && d.text() != text {
				t.Errorf("no hunk changed %q to %q", text, d.text())
			}
		}
	})
}

package file_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/orchestrator/tool/file"
)

// patchCase is a world, a patch, and what the world is afterwards; a file that is
// not there is "-". want is part of the answer, a failure where files is nil.
type patchCase struct {
	name, before, patch, after, want string
}

const begun = "*** Begin Patch\n*** Update File: f\n"

var patchCases = []patchCase{
	{"a line", "a\nb\nc\n", begun + "-b\n+B\n*** End Patch", "a\nB\nc\n", "patched f; hunks: 1"},
	{"text around it", "a\n", "Here it is:\n```\n" + begun + "-a\n+b\n*** End Patch\n```\n", "b\n", "patched"},
	{"ambiguous", "x\na\nx\na\n", begun + "@@\n x\n-a\n+b\n*** End Patch", "", "occur 2 times, at lines 1, 3"},
	{"ambiguous, before the hunk before", "x\na\nq\nx\na\n", begun + "-q\n+Q\n@@\n x\n-a\n+b\n*** End Patch", "", "occur 2 times, at lines 1, 4"},
	{"heading", "f:\n a\ng:\n a\n", begun + "@@ g:\n- a\n+ b\n*** End Patch", "f:\n a\ng:\n b\n", "patched"},
	{"heading twice", "g:\n a\ng:\n a\n", begun + "@@ g:\n- a\n+ b\n*** End Patch", "", "occurs 2 times"},
	{"no heading there", "a\n", begun + "@@ h:\n-a\n+b\n*** End Patch", "", `"h:" of its heading does not occur`},
	{"end of file", "a\nb\na\n", begun + "-a\n+c\n*** End of File\n*** End Patch", "a\nb\nc\n", "patched"},
	{"added at the end", "a\n", begun + "+z\n*** End of File\n*** End Patch\n", "a\nz\n", "patched"},
	{"two hunks", "a\nb\nc\nd\n", begun + "-a\n+A\n@@\n-d\n+D\n*** End Patch", "A\nb\nc\nD\n", "hunks: 2"},
	{"hunks out of order", "a\nb\nc\nd\n", begun + "-d\n+D\n@@\n-a\n+A\n*** End Patch", "", "put the hunks in the file's order"},
	{"not there", "a\nb\n", begun + " a\n-x\n+y\n*** End Patch", "", `line 2 the file has "b" where the patch expects "x"`},
	{"CRLF", "a\r\nb\r\nc\r\n", begun + " a\n-b\n+B\n+BB\n*** End Patch", "a\r\nB\r\nBB\r\nc\r\n", "patched"},
	{"other bytes", "a\xff\nb\n\xfe", begun + "-b\n+B\n*** End Patch", "a\xff\nB\n\xfe", "patched"},
	{"no newline, kept", "a\nb", begun + "-b\n+B\n*** End Patch", "a\nB", "patched"},
	{"empty context line", "a\n\nb\n", begun + " a\n\n-b\n+B\n\n*** End Patch", "a\n\nB\n", "patched"},
	{"minus minus", "-- a\nb\n", begun + "--- a\n b\n*** End Patch", "b\n", "patched"},
	{"only put in", "a\nb\n", begun + "+x\n*** End Patch", "", "add lines that are kept"},
	{"into an empty file", "", begun + "+x\n*** End Patch", "x\n", "patched"},
	{"deleted", "a\n", "*** Begin Patch\n*** Delete File: f\n*** End Patch", "-", "deleted f"},
	{"created over", "a\n", "*** Begin Patch\n*** Add File: f\n+x\n*** End Patch", "", "exists already"},
	{"outside", "a\n", "*** Begin Patch\n*** Update File: ../f\n-a\n+b\n*** End Patch", "", "out of the world"},
	{"protected", "a\n", "*** Begin Patch\n*** Add File: .git/hooks/pre-commit\n+x\n*** End Patch", "", ".git"},
	{"unified", "a\n", "--- f\n+++ f\n@@ -1 +1 @@\n-a\n+b\n", "", "no line *** Begin Patch"},
	{"no end", "a\n", begun + "-a\n+b", "", "End Patch is missing"},
	{"odd line", "a\n", begun + "@@\nnonsense\n*** End Patch", "", "begins with a space"},
	{"odd line after a change", "a\n", begun + "-a\nnonsense\n*** End Patch", "", "begins with a space"},
	{"no lines but empty ones", "a\n", begun + "@@\n\n\n*** End Patch", "", "has no change"},
	{"no line of a heading", "a\n", begun + "@@ a\n*** End Patch", "", "has no change"},
	{"empty lines after a change", "a\n\n", begun + "-a\n+A\n\n\n*** End Patch", "A\n\n", "patched"},
	{"changes nothing", "a\n", "*** Begin Patch\n*** End Patch", "", "changes no file"},
	{"a file without its name", "a\n", "*** Begin Patch\n*** Update File: \n-a\n*** End Patch", "", "want *** Add File"},
	{"a new file's odd line", "a\n", "*** Begin Patch\n*** Add File: g\nx\n*** End Patch", "", "begins with +"},
	{"twice", "a\nb\n", begun + "-a\n+A\n*** Update File: ./f\n-b\n+B\n*** End Patch", "", "named twice"},
	{"moved over a file", "a\n", begun + "*** Move to: other\n-a\n+b\n*** End Patch", "", "other: exists already"},
	{"moved to its own name", "a\n", begun + "*** Move to: f\n-a\n+b\n*** End Patch", "", "f: exists already"},
	{"a change of no file", "a\n", "*** Begin Patch\n*** Update File: gone\n-a\n+b\n*** End Patch", "", "gone: does not exist"},
}

func TestPatchFile(t *testing.T) {
	for _, tc := range patchCases {
		t.Run(tc.name, func(t *testing.T) {
			w := plain(t)
			put(t, w, "f", tc.before)
			put(t, w, "other", "other\n")
			r := call(t, w, file.PatchFile(nil), map[string]any{"patch": tc.patch})
			if !strings.Contains(r.Text, tc.want) {
				t.Errorf("answer %q, want %q", r.Text, tc.want)
			}
			failed := tc.after == "" && tc.before != ""
			if r.IsError != failed {
				t.Errorf("error %v, want %v: %s", r.IsError, failed, r.Text)
			}
			want := tc.after
			if failed {
				want = tc.before
			}
			data, err := os.ReadFile(filepath.Join(w.Dir, "f"))
			if os.IsNotExist(err) {
				data = []byte("-")
			}
			if string(data) != want {
				t.Errorf("the file holds %q, want %q", data, want)
			}
			if data, err := os.ReadFile(filepath.Join(w.Dir, "other")); string(data) != "other\n" {
				t.Errorf("the other file holds %q: %v", data, err)
			}
		})
	}
}

// Several files, all or none; a mode stays, also when a file moves.
func TestPatchSeveral(t *testing.T) {
	w := plain(t)
	put(t, w, "a.sh", "one\n")
	put(t, w, "b", "two\n")
	if err := os.Chmod(filepath.Join(w.Dir, "a.sh"), 0o750); err != nil {
		t.Fatal(err)
	}
	const good = "*** Begin Patch\n*** Update File: a.sh\n*** Move to: bin/c.sh\n@@\n-one\n+1\n*** Add File: new/d\n+d\n*** Update File: b\n-%s\n+2\n*** End Patch\n"
	r := call(t, w, file.PatchFile(nil), map[string]any{"patch": strings.Replace(good, "%s", "three", 1)})
	if !r.IsError || !strings.Contains(r.Text, "Nothing was written") {
		t.Errorf("%+v", r)
	}
	for _, gone := range []string{"bin/c.sh", "new/d"} {
		if _, err := os.Stat(filepath.Join(w.Dir, gone)); err == nil {
			t.Errorf("%s was written", gone)
		}
	}
	r = call(t, w, file.PatchFile(nil), map[string]any{"patch": strings.Replace(good, "%s", "two", 1)})
	if r.IsError || strings.Join(r.Writes, " ") != "bin/c.sh a.sh new/d b" {
		t.Fatalf("%+v", r)
	}
	info, err := os.Stat(filepath.Join(w.Dir, "bin/c.sh"))
	if err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("moved: %v, %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(w.Dir, "a.sh")); err == nil {
		t.Error("the old name is still there")
	}
}

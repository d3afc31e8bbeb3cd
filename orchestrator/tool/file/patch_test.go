package file_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"anamnesis/orchestrator/tool/file"
)

// patchCase is a world, a patch, and what the world is afterwards; a file that is
// not there is "-". want is part of the answer, a failure where files is nil.
type patchCase struct {
	name, before, patch, after, want string
}

const begun = "*** Begin Patch\n*** Update File: f\n"

var patchCases = []patchCase{
	{"unified", "a\nb\nc\n", "--- a/f\n+++ b/f\n@@ -2,1 +2,1 @@\n-b\n+B\n", "a\nB\nc\n", "patched f; hunks: 1"},
	{"wrong number and count", "a\nb\nc\n", "--- f\n+++ f\n@@ -40,7 +99 @@ func x\n a\n-b\n+B\n", "a\nB\nc\n", "patched"},
	{"text around it", "a\n", "Here it is:\n```diff\n--- f\n+++ f\n@@ -1 +1 @@\n-a\n+b\n```\n", "b\n", "patched"},
	{"ambiguous, number right", "x\na\nx\na\n", "--- f\n+++ f\n@@ -3,2 +3,2 @@\n x\n-a\n+b\n", "x\na\nx\nb\n", "patched"},
	{"ambiguous, number wrong", "x\na\nx\na\n", "--- f\n+++ f\n@@ -2,2 +2,2 @@\n x\n-a\n+b\n", "", "occur 2 times, at lines 1, 3"},
	{"ambiguous, no number", "x\na\nx\na\n", begun + "@@\n x\n-a\n+b\n*** End Patch", "", "occur 2 times"},
	{"ambiguous, before the hunk before", "x\na\nq\nx\na\n", "--- f\n+++ f\n@@ -3 +3 @@\n-q\n+Q\n@@ -1,2 +1,2 @@\n x\n-a\n+b\n", "", "occur 2 times, at lines 1, 4"},
	{"ambiguous, before, number right", "x\na\nq\nx\na\n", "--- f\n+++ f\n@@ -3 +3 @@\n-q\n+Q\n@@ -4,2 +4,2 @@\n x\n-a\n+b\n", "x\na\nQ\nx\nb\n", "hunks: 2"},
	{"heading", "f:\n a\ng:\n a\n", begun + "@@ g:\n- a\n+ b\n*** End Patch", "f:\n a\ng:\n b\n", "patched"},
	{"heading twice", "g:\n a\ng:\n a\n", begun + "@@ g:\n- a\n+ b\n*** End Patch", "", "occurs 2 times"},
	{"no heading there", "a\n", begun + "@@ h:\n-a\n+b\n*** End Patch", "", `"h:" of its heading does not occur`},
	{"end of file", "a\nb\na\n", begun + "-a\n+c\n*** End of File\n*** End Patch", "a\nb\nc\n", "patched"},
	{"added at the end", "a\n", begun + "+z\n*** End of File\n*** End Patch\n", "a\nz\n", "patched"},
	{"two hunks", "a\nb\nc\nd\n", "--- f\n+++ f\n@@ -1 +1 @@\n-a\n+A\n@@ -9 +9 @@\n-d\n+D\n", "A\nb\nc\nD\n", "hunks: 2"},
	{"hunks out of order", "a\nb\nc\nd\n", "--- f\n+++ f\n@@ -4 +4 @@\n-d\n+D\n@@ -1 +1 @@\n-a\n+A\n", "", "put the hunks in the file's order"},
	{"not there", "a\nb\n", "--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-x\n+y\n", "", `line 2 the file has "b" where the patch expects "x"`},
	{"CRLF", "a\r\nb\r\nc\r\n", "--- f\n+++ f\n@@ -2 +2,2 @@\n a\n-b\n+B\n+BB\n", "a\r\nB\r\nBB\r\nc\r\n", "patched"},
	{"other bytes", "a\xff\nb\n\xfe", "--- f\n+++ f\n@@ -2 +2 @@\n-b\n+B\n", "a\xff\nB\n\xfe", "patched"},
	{"no newline before", "a", "--- f\n+++ f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n", "b\n", "patched"},
	{"no newline after", "a\n", "--- f\n+++ f\n@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n", "b", "patched"},
	{"no newline, kept", "a\nb", begun + "-a\n+A\n*** End Patch", "A\nb", "patched"},
	{"newline not as said", "a\n", "--- f\n+++ f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n", "", "does not occur"},
	{"empty context line", "a\n\nb\n", "--- f\n+++ f\n@@ -1,3 +1,3 @@\n a\n\n-b\n+B\n", "a\n\nB\n", "patched"},
	{"minus minus", "-- a\nb\n", "--- f\n+++ f\n@@ -1,2 +1,1 @@\n--- a\n b\n", "b\n", "patched"},
	{"only put in", "a\nb\n", "--- f\n+++ f\n@@ -1,0 +2 @@\n+x\n", "", "add lines that are kept"},
	{"into an empty file", "", "--- f\n+++ f\n@@ -0,0 +1 @@\n+x\n", "x\n", "patched"},
	{"deleted", "a\nb\n", "--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n", "-", "deleted f"},
	{"deleted in part", "a\nb\n", "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", "", "not all of its lines"},
	{"deleted, begun", "a\n", "*** Begin Patch\n*** Delete File: f\n*** End Patch", "-", "deleted f"},
	{"created over", "a\n", "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n", "", "exists already"},
	{"outside", "a\n", "--- ../f\n+++ ../f\n@@ -1 +1 @@\n-a\n+b\n", "", "out of the world"},
	{"protected", "a\n", "*** Begin Patch\n*** Add File: .git/hooks/pre-commit\n+x\n*** End Patch", "", ".git"},
	{"binary", "a\n", "diff --git a/f b/f\nGIT binary patch\n", "", "binary"},
	{"no patch", "a\n", "replace a by b", "", "neither"},
	{"no end", "a\n", begun + "-a\n+b", "", "End Patch is missing"},
	{"odd line", "a\n", begun + "@@\nnonsense\n*** End Patch", "", "begins with a space"},
	{"bad heading", "a\n", "--- f\n+++ f\n@@ one @@\n-a\n", "", "not a heading of a hunk"},
	{"no lines", "a\n", "--- f\n+++ f\n@@ -1 +1 @@\n", "", "a hunk without lines"},
	{"no lines but empty ones", "a\n", "--- f\n+++ f\n@@ -0,0 +0,0 @@\n\n\n", "", "a hunk without lines"},
	{"no line of a heading", "a\n", begun + "@@ a\n*** End Patch", "", "has no change"},
	{"empty lines after a hunk", "a\n\n", "--- f\n+++ f\n@@ -1 +1 @@\n-a\n+A\n\n\n", "A\n\n", "patched"},
	{"an empty line that is counted", "a\n\n", "--- f\n+++ f\n@@ -1,2 +1,2 @@\n-a\n+A\n\n\n", "A\n\n", "patched"},
	{"no hunk", "a\n", "--- f\n+++ f\n", "", "f has no hunk"},
	{"a hunk of no file", "a\n", "diff --git a/f b/f\n@@ -1 +1 @@\n-a\n+b\n", "", "without the lines --- and +++"},
	{"both names are none", "a\n", "--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n", "", "both names are /dev/null"},
	{"a quoted name and a time", "a\n", "--- \"f\"\t2026-01-01\n+++ \"f\"\t2026-01-02\n@@ -1 +1 @@\n-a\n+b\n", "b\n", "patched"},
	{"changes nothing", "a\n", "*** Begin Patch\n*** End Patch", "", "changes no file"},
	{"a file without its name", "a\n", "*** Begin Patch\n*** Update File: \n-a\n*** End Patch", "", "want *** Add File"},
	{"a new file's odd line", "a\n", "*** Begin Patch\n*** Add File: g\nx\n*** End Patch", "", "begins with +"},
	{"twice", "a\nb\n", begun + "-a\n+A\n*** Update File: ./f\n-b\n+B\n*** End Patch", "", "named twice"},
}

func TestPatchFile(t *testing.T) {
	for _, tc := range patchCases {
		t.Run(tc.name, func(t *testing.T) {
			w := plain(t)
			put(t, w, "f", tc.before)
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

// What git says lies between two texts turns one into the other.
func TestPatchAsGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Fatal("git is needed")
	}
	rapid.Check(t, func(rt *rapid.T) {
		texts := rapid.Custom(func(rt *rapid.T) string {
			lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "", "-- a", "+b", "c\r", "@@", " x"}), 0, 12).Draw(rt, "lines")
			text := strings.Join(lines, "\n")
			if text != "" && rapid.Bool().Draw(rt, "newline") {
				text += "\n"
			}
			return text
		})
		before, after := texts.Draw(rt, "before"), texts.Draw(rt, "after")
		w := plain(t)
		put(t, w, "f", before)
		put(t, w, "g", after)
		cmd := exec.Command("git", "-c", "core.autocrlf=false", "diff", "--no-index", "--no-color", "f", "g")
		cmd.Dir = w.Dir
		diff, _ := cmd.Output() // exit code 1 says that there are differences
		if len(diff) == 0 {
			return
		}
		patch := strings.ReplaceAll(string(diff), "b/g", "b/f")
		r := call(t, w, file.PatchFile(nil), map[string]any{"patch": patch})
		got, _ := os.ReadFile(filepath.Join(w.Dir, "f"))
		if r.IsError || string(got) != after {
			rt.Fatalf("%q to %q gave %q: %s\n%s", before, after, got, r.Text, patch)
		}
	})
}

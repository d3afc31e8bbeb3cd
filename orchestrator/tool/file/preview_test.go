package file_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/file"
)

// TestPreview: what is foreseen is what the call then does, and foreseeing does nothing.
func TestPreview(t *testing.T) {
	for _, c := range []struct {
		tool tool.Tool
		args map[string]any
		path string
		new  bool
	}{
		{file.WriteFile(), map[string]any{"path": "sub/new", "content": "x\n"}, "sub/new", true},
		{file.WriteFile(), map[string]any{"path": "f", "content": "x\n"}, "f", false},
		{file.WriteFile(), map[string]any{"path": "f", "content": "x\n", "mode": "append"}, "f", false},
		{file.StrReplaceFile(), map[string]any{"path": "f", "old": "b", "new": "B"}, "f", false},
		{file.PatchFile(nil), map[string]any{"patch": "*** Begin Patch\n*** Update File: f\n a\n-b\n+B\n*** End Patch"}, "f", false},
		{file.PatchFile(nil), map[string]any{"patch": "*** Begin Patch\n*** Add File: sub/new\n+x\n*** End Patch"}, "sub/new", true},
	} {
		env := plain(t)
		put(t, env, "f", "a\nb\n")
		args, err := json.Marshal(c.args)
		if err != nil {
			t.Fatal(err)
		}
		changes, err := file.Preview(env, c.tool.Spec().Name, args)
		if err != nil || len(changes) != 1 || changes[0].Path != c.path || changes[0].New != c.new {
			t.Errorf("%s %s: %+v, %v", c.tool.Spec().Name, args, changes, err)
			continue
		}
		if _, err := os.Stat(filepath.Join(env.Dir, "sub")); err == nil {
			t.Errorf("%s: the preview made a directory", args)
		}
		if before, _ := os.ReadFile(filepath.Join(env.Dir, c.path)); string(before) != changes[0].Before {
			t.Errorf("%s: before is %q, want %q", args, changes[0].Before, before)
		}
		call(t, env, c.tool, c.args)
		if after, err := os.ReadFile(filepath.Join(env.Dir, c.path)); err != nil || string(after) != changes[0].After {
			t.Errorf("%s: foresaw %q, became %q (%v)", args, changes[0].After, after, err)
		}
	}
}

// TestPreviewFails: a preview fails exactly where the call does, and says why.
func TestPreviewFails(t *testing.T) {
	for _, c := range []struct {
		tool tool.Tool
		args map[string]any
		want string
	}{
		{file.StrReplaceFile(), map[string]any{"path": "gone", "old": "a", "new": "b"}, "gone: does not exist"},
		{file.StrReplaceFile(), map[string]any{"path": "f", "old": "z", "new": "b"}, "f: old does not occur"},
		{file.StrReplaceFile(), map[string]any{"path": "../f", "old": "z", "new": "b"}, "../f"},
		{file.WriteFile(), map[string]any{"path": ".", "content": "b"}, "is a directory"},
		{file.WriteFile(), map[string]any{"path": "large", "content": "b", "mode": "append"}, "large: is "},
		{file.WriteFile(), map[string]any{"path": "large", "content": "b"}, ""},
		{file.PatchFile(nil), map[string]any{"patch": "*** Begin Patch\n*** Update File: f\n a\n-z\n+B\n*** End Patch"}, "f: hunk 1"},
		{file.PatchFile(nil), map[string]any{"patch": "*** Begin Patch\n*** Add File: f\n+x\n*** End Patch"}, "f: exists already"},
		{file.PatchFile(nil), map[string]any{"patch": "*** Begin Patch\n*** Update File: .env\n KEY=secret\n-z\n+B\n*** End Patch"}, ".env: the patch does not fit"},
	} {
		env := plain(t)
		put(t, env, "f", "a\nb\n")
		put(t, env, ".env", "KEY=secret\nb\n")
		put(t, env, "large", strings.Repeat("0123456789abcdef", file.MaxEditBytes/16+1))
		args, err := json.Marshal(c.args)
		if err != nil {
			t.Fatal(err)
		}
		changes, err := file.Preview(env, c.tool.Spec().Name, args)
		if (err == nil) != (c.want == "") || err != nil &&
			(!strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "KEY")) || len(changes) > 0 {
			t.Errorf("%s %s: %v, %v; want %q", c.tool.Spec().Name, args, changes, err, c.want)
		}
		if res := call(t, env, c.tool, c.args); res.IsError != (c.want != "") {
			t.Errorf("%s %s: the call says %q", c.tool.Spec().Name, args, res.Text)
		}
	}
}

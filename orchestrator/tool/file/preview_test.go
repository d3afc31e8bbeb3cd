package file_test

import (
	"encoding/json"
	"os"
	"path/filepath"
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
		{file.WriteFile(nil), map[string]any{"path": "sub/new", "content": "x\n"}, "sub/new", true},
		{file.WriteFile(nil), map[string]any{"path": "f", "content": "x\n"}, "f", false},
		{file.WriteFile(nil), map[string]any{"path": "f", "content": "x\n", "mode": "append"}, "f", false},
		{file.StrReplaceFile(nil), map[string]any{"path": "f", "old": "b", "new": "B"}, "f", false},
		{file.PatchFile(nil), map[string]any{"patch": "--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n"}, "f", false},
		{file.PatchFile(nil), map[string]any{"patch": "*** Begin Patch\n*** Add File: sub/new\n+x\n*** End Patch"}, "sub/new", true},
	} {
		env := plain(t)
		put(t, env, "f", "a\nb\n")
		args, err := json.Marshal(c.args)
		if err != nil {
			t.Fatal(err)
		}
		changes, ok := file.Preview(env, c.tool.Spec().Name, args)
		if !ok || len(changes) != 1 || changes[0].Path != c.path || changes[0].New != c.new {
			t.Errorf("%s %s: %+v, %v", c.tool.Spec().Name, args, changes, ok)
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
	env := plain(t)
	if changes, ok := file.Preview(env, "StrReplaceFile", json.RawMessage(`{"path":"gone","old":"a","new":"b"}`)); ok {
		t.Errorf("a call that fails has a preview: %+v", changes)
	}
}

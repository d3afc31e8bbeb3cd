package file_test

import (
	"os"
	"path/filepath"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/tool/file"
)

// TestRemoveLeftover: a killed write's own file goes, everything else stays,
// and nothing outside the world is looked at.
func TestRemoveLeftover(t *testing.T) {
	dir := t.TempDir()
	world := filepath.Join(dir, "w")
	for _, f := range []string{"w/sub/.anamnesis-tmp-01", "w/sub/a.txt", "w/abs/.anamnesis-tmp-04", "w/patched/.anamnesis-tmp-05", "w/moved/.anamnesis-tmp-06", "w/linked/.anamnesis-tmp-07", "w/.anamnesis-tmp-02", ".anamnesis-tmp-03"} {
		path := filepath.Join(dir, f)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("linked/a.txt", filepath.Join(world, "link")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(world)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, c := range []op.Call{
		{Name: "WriteFile", Args: `{"path":"sub/a.txt","content":"y"}`},
		{Name: "WriteFile", Args: `{"path":"../a.txt","content":"y"}`},
		{Name: "WriteFile", Args: `{"path":"none/a.txt"}`},
		{Name: "WriteFile", Args: `{"path":"` + world + `/abs/a.txt"}`},
		{Name: "StrReplaceFile", Args: `{"path":"link"}`},
		{Name: "PatchFile", Args: `{"patch":"*** Begin Patch\n*** Update File: patched/a.txt\n*** Move to: moved/a.txt\n-a\n+b\n*** End Patch"}`},
		{Name: "PatchFile", Args: `{"patch":"x"}`},
		{Name: "StrReplaceFile", Args: `{"path`},
		{Name: "Bash", Args: `{"command":"ls"}`},
	} {
		if err := file.RemoveLeftover(root, c); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for f, want := range map[string]bool{"w/sub/.anamnesis-tmp-01": false, "w/sub/a.txt": true, "w/abs/.anamnesis-tmp-04": false,
		"w/patched/.anamnesis-tmp-05": false, "w/moved/.anamnesis-tmp-06": false, "w/linked/.anamnesis-tmp-07": false, "w/.anamnesis-tmp-02": true, ".anamnesis-tmp-03": true} {
		if _, err := os.Stat(filepath.Join(dir, f)); (err == nil) != want {
			t.Errorf("%s: there %v, want %v", f, err == nil, want)
		}
	}
}

package tool_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/orchestrator/tool"
	"anamnesis/worldstate"
)

// pathWorld is a world that is named through a symbolic link. It holds dir/file and links into
// and out of it.
func pathWorld(t *testing.T) *tool.Env {
	t.Helper()
	top := t.TempDir()
	real := filepath.Join(top, "real")
	if err := os.MkdirAll(filepath.Join(real, "dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(real, "dir", "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"named": "real", "real/in": "dir", "real/dir/up": "../dir/file", "real/abs": filepath.Join(real, "dir"),
		"real/out": "../other", "real/dir/far": "../../other", "real/absout": top, "real/loop": "loop", "real/dangling": "no/where",
	} {
		if err := os.Symlink(target, filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
	}
	env := &tool.Env{Dir: filepath.Join(top, "named")}
	root, err := os.OpenRoot(env.Dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	env.Root = root
	return env
}

// checkPath compares the answer about a path with the one wanted: a path, or "! " and a part of
// the reason of a refusal.
func checkPath(t *testing.T, name, got string, err error, want string) {
	t.Helper()
	reason, refused := strings.CutPrefix(want, "! ")
	var p *tool.PathError
	if refused && (got != "" || !errors.As(err, &p) || p.Path != name || !strings.Contains(p.Reason, reason)) ||
		!refused && (got != want || err != nil) {
		t.Errorf("%.60q: %.60q, %v; want %.60q", name, got, err, want)
	}
}

func TestRel(t *testing.T) {
	env := pathWorld(t)
	top := filepath.Dir(env.Dir)
	parts := func(n int) string { return strings.TrimSuffix(strings.Repeat("d/", n), "/") }
	for name, want := range map[string]string{
		"":                              "! is empty",
		"a\x00b":                        "! NUL",
		"a":                             "a",
		".":                             ".",
		"./a//b/.":                      "a/b",
		"a/../b":                        "b",
		"..a":                           "..a",
		"..":                            "! leads out",
		"../a":                          "! leads out",
		"a/../..":                       "! leads out",
		"out/x":                         "out/x", // the text alone
		env.Dir:                         ".",
		filepath.Join(env.Dir, "a"):     "a",
		filepath.Join(top, "real/a"):    "a",
		filepath.Join(top, "real"):      ".",
		filepath.Join(top, "named-too"): "! is outside the world",
		top:                             "! is outside the world",
		parts(worldstate.MaxDepth):      parts(worldstate.MaxDepth),
		parts(worldstate.MaxDepth + 1):  "! nested too deeply",
	} {
		got, err := env.Rel(name)
		checkPath(t, name, got, err, want)
	}
}

func TestResolve(t *testing.T) {
	env := pathWorld(t)
	for name, want := range map[string]string{
		"dir/file":     "dir/file",
		"in/file":      "dir/file",
		"in/up":        "dir/file",
		"abs/file":     "dir/file",
		"in/../x":      "x", // cleaned as text before any link is followed
		"no/such/file": "no/such/file",
		"in/new":       "dir/new",
		"dangling/new": "no/where/new",
		".":            ".",
		"../dir":       "! leads out",
		"out":          "! leads out",
		"in/far":       "! leads out",
		"absout/x":     "! symbolic link that leads out",
		"loop":         "! too many symbolic links",
	} {
		got, err := env.Resolve(name)
		checkPath(t, name, got, err, want)
	}
}

// TestManyLinks: as many links are followed as the bound says, and not one more.
func TestManyLinks(t *testing.T) {
	const most = 40
	env := pathWorld(t)
	before := "dir/file"
	for i := range most + 1 {
		name := "l" + strings.Repeat("x", i)
		if err := env.Root.Symlink(before, name); err != nil {
			t.Fatal(err)
		}
		want := "dir/file"
		if i == most {
			want = "! too many symbolic links"
		}
		got, err := env.Resolve(name)
		checkPath(t, name, got, err, want)
		before = name
	}
}

func TestProtected(t *testing.T) {
	for rel, use := range map[string]string{
		"a/b": "", "git": "", ".gitignore": "", "a.git": "", ".anamnesis-x": "",
		".git": "git through Bash", "a/.GIT/config": "git through Bash", ".hg/x": "hg or jj", "a/.Jj": "hg or jj",
		".Anamnesis/eas.yaml": "belong to the program",
	} {
		if got := tool.Protected(rel); (got == "") != (use == "") || !strings.Contains(got, use) {
			t.Errorf("%s: %q, want %q in it", rel, got, use)
		}
	}
}

// TestOpenDir: the directory that opens is the one named, and only [tool.Created] makes one.
func TestOpenDir(t *testing.T) {
	env := pathWorld(t)
	for _, tt := range []struct {
		rel     string
		parents tool.Parents
		refused string // "" if it opens
	}{
		{".", tool.MustExist, ""},
		{"dir", tool.MustExist, ""},
		{"dir", tool.Created, ""},
		{"no/such", tool.MustExist, "does not exist"},
		{"new/deep", tool.Created, ""},
		{"new/deep", tool.MustExist, ""},
		{"dir/file", tool.Created, "file is not a directory"},
		{"in", tool.MustExist, "was changed"}, // a link where a resolved path has none
	} {
		dir, err := env.OpenDir(tt.rel, tt.parents)
		if tt.refused != "" {
			checkPath(t, tt.rel, "", err, "! "+tt.refused)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.rel, err)
			continue
		}
		opened, err := dir.Stat(".")
		named, err2 := env.Root.Stat(tt.rel)
		if err != nil || err2 != nil || !os.SameFile(opened, named) {
			t.Errorf("%s: another directory was opened: %v, %v", tt.rel, err, err2)
		}
		dir.Close()
	}
}

// TestPathErrorText: a path is shown plainly, but quoted where that would be unclear.
func TestPathErrorText(t *testing.T) {
	for path, want := range map[string]string{
		"a b": "a b: no", "": `"": no`, " a": `" a": no`, "a\n": `"a\n": no`, `a"b`: `"a\"b": no`,
		strings.Repeat("x", 400): strings.Repeat("x", 400) + ": no",
		strings.Repeat("x", 401): strings.Repeat("x", 400) + "…: no",
	} {
		if got := (&tool.PathError{Path: path, Reason: "no"}).Error(); got != want {
			t.Errorf("%q: %q, want %q", path, got, want)
		}
	}
}

package autorun

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestBy(t *testing.T) {
	for form, by := range rules() {
		if by == "" || form != strings.TrimPrefix(form, "/") {
			t.Errorf("%s: %q", form, by)
		}
		name := strings.ReplaceAll(form, "*", "x")
		if strings.HasSuffix(name, "/") {
			name += "inside/file"
		}
		for _, path := range []string{name, "sub/dir/" + name, strings.ToUpper(name), "./" + name} {
			if By(path, false) == "" {
				t.Errorf("%s is not known", path)
			}
		}
	}
	for _, path := range []string{
		"main.go", "Makefile", "package.json", "build.rs", "vscode/tasks.json", "x.vscode/tasks.json", "my.envrc", "settings.json", "docs/claude/settings.json", ".github/ISSUE.md", "conftest.py.md", "",
		".git/index", ".git/HEAD", ".git/COMMIT_EDITMSG", ".git/logs/HEAD", ".hg/dirstate", ".jj/working_copy/tree_state", ".svn/wc.db"} {
		if by := By(path, false); by != "" {
			t.Errorf("%s: %s", path, by)
		}
	}
}

// TestByElsewhere: what programs run by themselves when an editor, a console or a hook starts is known.
func TestByElsewhere(t *testing.T) {
	for _, path := range []string{
		".helix/languages.toml", ".Rprofile", ".ghci", ".iex.exs", ".pdbrc", ".bsp/sbt.json", ".latexmkrc", "ansible.cfg", "crush.json",
		"eslint.config.mjs", "pnpm-workspace.yaml", "mise.development.toml", ".config/mise/conf.d/a.toml", "lefthook.toml", ".claude/agents/a.md",
	} {
		if By(path, false) == "" {
			t.Errorf("%s is not known", path)
		}
	}
}

// place is a directory with links in and out of listed names.
func place(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, d := range []string{"cfg", "hooks", "sub", "old"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{".vscode": "cfg", ".husky": "hooks", "env": ".envrc", "later": "sub/.npmrc", ".gdbinit": "sub/gdb"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "conftest.py"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(dir, "conftest.py"), filepath.Join(dir, "other.py")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestNamed: a file is found by its name, by where links lead, and as the target of a listed link.
func TestNamed(t *testing.T) {
	dir := place(t)
	for name, want := range map[string]bool{
		".envrc": true, "sub/.ENVRC": true, dir + "/.envrc": true, "env": true, "later": true, ".vscode/tasks.json": true,
		"cfg/tasks.json": true, "hooks/pre-commit": true, "other.py": true, "sub/gdb": true,
		"cfg/notes.txt": false, "sub/other": false, "main.go": false, "sub/../.envrc": true,
	} {
		if got := Named(dir, name); (got.By != "") != want {
			t.Errorf("%s: %+v, want %v", name, got, want)
		}
	}
}

// TestNamedBelowListed: directories above the world, which may be anybody's, make nothing of its files listed.
func TestNamedBelowListed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), ".kiro", "work")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{dir + "/main.go": false, "main.go": false, dir + "/.envrc": true, filepath.Dir(dir) + "/hooks": true} {
		if got := Named(dir, name); (got.By != "") != want {
			t.Errorf("%s: %+v, want %v", name, got, want)
		}
	}
	for _, line := range []string{"cp a " + dir + "/b.go", "cd sub && cp a " + dir + "/b.go"} {
		if got := Written(dir, line); len(got) > 0 {
			t.Errorf("%s: %v", line, got)
		}
	}
}

// TestWritten: a command line names what it writes.
func TestWritten(t *testing.T) {
	dir := place(t)
	for line, want := range map[string]string{
		"echo x > .envrc":                          ".envrc",
		"echo x >> sub/conftest.py":                "sub/conftest.py",
		"cp a .vscode/tasks.json":                  ".vscode/tasks.json",
		"cp evil/.npmrc .":                         "evil/.npmrc",
		"mv cfg2 .vscode":                          ".vscode",
		"mv old .claude && ls":                     ".claude",
		"cat x | tee -a .husky/pre-commit":         ".husky/pre-commit",
		"sed -i s/a/b/ .mcp.json":                  ".mcp.json",
		"sed -n p .mcp.json":                       "",
		"ln -s ../x .envrc":                        ".envrc",
		"cd .vscode && cp ../x tasks.json":         "tasks.json",
		"pushd .vscode; cat x > tasks.json":        "tasks.json",
		"echo .envrc | xargs touch":                "touch",
		"ls | xargs sed -n p":                      "",
		"bash -c 'cp x .envrc'":                    ".envrc",
		"sudo install -m755 x .githooks/pre-push":  ".githooks/pre-push",
		"dd if=x of=.gdbinit":                      ".gdbinit",
		"cp --target-directory=.vscode tasks.json": ".vscode",
		"cp x env":                                 "env",
		"cp x cfg/tasks.json":                      "cfg/tasks.json",
		"cp x $DIR/y":                              "$DIR/y",
		"echo x > ~/.bashrc":                       "~/.bashrc",
		"cat .envrc > out":                         "",
		"cp a.go b.go; git add .envrc":             "",
		"python -m pytest conftest.py":             "",
		"go test ./... 2>&1":                       "",
		"git mv a .github/workflows/ci.yml":        ".github/workflows/ci.yml",
		"cat <<EOF > .hg/hgrc\nx\nEOF":             ".hg/hgrc",
	} {
		var got []string
		for _, f := range Written(dir, line) {
			got = append(got, f.Path)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// TestMarks: a listed file that no snapshot has is seen to change.
func TestMarks(t *testing.T) {
	dir := place(t)
	before := Mark(dir)
	for _, name := range []string{".envrc", "hooks/pre-commit", "conftest.py", "main.go"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, f := range before.Changed(dir, []string{"sub/.npmrc", "sub/main.go"}) {
		got = append(got, f.Path)
	}
	if want := []string{".envrc", ".husky/pre-commit", "conftest.py", "sub/.npmrc"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

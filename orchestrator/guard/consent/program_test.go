package consent

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// An approval covers the programs in a directory that a command runs, however
// it names them, and no others.
func TestHashPrograms(t *testing.T) {
	for name, tc := range map[string]struct {
		words   []string
		file    string // that is changed
		text    string // what it holds before
		more    map[string]string
		covered bool
	}{
		"by path":                   {words: []string{"./s"}, file: "s", covered: true},
		"an argument":               {words: []string{"python3", "s.py"}, file: "s.py", covered: true},
		"an option's value":         {words: []string{"node", "--require=./hook.js"}, file: "hook.js", covered: true},
		"in a shell's text":         {words: []string{"bash", "-c", "cd . && exec ./s --stdio"}, file: "s", covered: true},
		"behind env":                {words: []string{"env", "A=b", "./s"}, file: "s", covered: true},
		"an interpreter":            {words: []string{"./s"}, more: map[string]string{"s": "#!bin/interp -x\n"}, file: "bin/interp", covered: true},
		"an interpreter, by path":   {words: []string{"./s"}, more: map[string]string{"s": "#!DIR/interp\n"}, file: "interp", covered: true},
		"an interpreter's own":      {words: []string{"./s"}, more: map[string]string{"s": "#!./a\n", "a": "#!./b\n"}, file: "b", covered: true},
		"npx":                       {words: []string{"npx", "-y", "server@1.2.3"}, file: "node_modules/.bin/server", covered: true},
		"npx of a scope":            {words: []string{"npx", "@scope/server@latest"}, file: "node_modules/@scope/server/package.json", covered: true},
		"a module that it loads":    {words: []string{"./s"}, more: map[string]string{"s": "#!/bin/sh\n. ./lib\n"}, file: "lib"},
		"in PATH, which is dropped": {words: []string{"tool"}, file: "bin/tool"},
		"a link's end":              {words: []string{"DIR-link/s"}, file: "s", covered: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Symlink(dir, dir+"-link"); err != nil {
				t.Fatal(err)
			}
			put := func(name, text string) {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for name, text := range tc.more {
				put(name, text)
			}
			var words []string
			for _, w := range tc.words {
				words = append(words, strings.ReplaceAll(w, "DIR", dir))
			}
			sum := func() string {
				h := sha256.New()
				if err := HashPrograms(h, dir, words, dir+"/bin:/usr/bin:/bin"); err != nil {
					t.Fatal(err)
				}
				return string(h.Sum(nil))
			}
			absent := sum()
			put(tc.file, "one")
			before := sum()
			put(tc.file, "two") // as long, and in the same moment
			if after := sum(); (after != before) != tc.covered || (absent != before) != tc.covered {
				t.Errorf("%q: a change of %s is seen: %v, its making: %v; want %v", tc.words, tc.file, after != before,
					absent != before, tc.covered)
			}
		})
	}
}

func TestFindProgram(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	for _, path := range []string{dir + "/bin/tool", outside + "/tool"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{outside + "/into": dir + "/bin/tool", outside + "/bin": dir + "/bin"} {
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
	}
	path := "bin:.::" + dir + "/bin:" + outside + "/bin:" + outside
	t.Chdir(dir)
	if got, err := FindProgram("tool", dir, path, nil); got != outside+"/tool" {
		t.Errorf("in PATH: %s, %v", got, err)
	}
	if got, err := FindProgram("into", dir, path, nil); err == nil {
		t.Errorf("a link into the directory: %s", got)
	}
	if got, err := FindProgram("bin/tool", dir, path, nil); got != dir+"/bin/tool" || err != nil {
		t.Errorf("by path: %s, %v", got, err)
	}
	hides := func(path string) bool { return strings.HasPrefix(path, outside) }
	if got, err := FindProgram("tool", dir, path, hides); err == nil {
		t.Errorf("a hidden one: %s", got)
	}
	// A link is hidden with its target, and so is a folder that only leads to one that is not.
	shelf := t.TempDir()
	for from, to := range map[string]string{shelf + "/tool": outside + "/tool", outside + "/open": "/bin/sh"} {
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
	}
	for name, path := range map[string]string{"tool": shelf, "open": outside} {
		if got, err := FindProgram(name, dir, path, hides); err == nil || !strings.Contains(err.Error(), "hides") {
			t.Errorf("%s in %s: %q, %v", name, path, got, err)
		}
	}
}

func TestEnvironOutside(t *testing.T) {
	got := EnvironOutside([]string{"PATH=/w/bin:/usr/bin:.:bin::/usr/local/bin", "A=1"}, "/w")
	if want := []string{"PATH=/usr/bin:/usr/local/bin", "A=1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestEnvironApart(t *testing.T) {
	world, beside := t.TempDir(), t.TempDir()
	if err := os.Symlink(world, filepath.Join(beside, "link")); err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{
		world, world + "/lib", "--require " + world + "/x.js", "--import=file://" + world + "/x.mjs", "file://" + world,
		"--require=" + beside + "/link/x.js",
		`{"path":"` + world + `/x"}`, "-I" + world + "/lib", "x;" + world, "file://localhost" + world + "/x",
	} {
		if got := EnvironApart([]string{"X=" + value}, world); len(got) > 0 {
			t.Errorf("kept %q", got)
		}
	}
	for _, value := range []string{"", "1", beside, beside + world, world + "2", "file://" + beside + "/x", "--require " + beside + "/x.js"} {
		if got := EnvironApart([]string{"X=" + value}, world); !slices.Equal(got, []string{"X=" + value}) {
			t.Errorf("%q: %q", value, got)
		}
	}
	if got := EnvironApart([]string{"P=" + world + "/a:" + beside, "HOME=" + world}, world); !slices.Equal(got, []string{"P=" + beside, "HOME=" + world}) {
		t.Errorf("a list: %q", got)
	}
}

package search_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/search"
)

// world makes a world of files, the first one the newest.
func world(t testing.TB, files ...string) *tool.Env {
	t.Helper()
	dir := t.TempDir()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, f := range files {
		name, text, _ := strings.Cut(f, "|")
		p := filepath.Join(dir, name)
		stamp := now.Add(-time.Duration(i) * time.Minute)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte(text), 0o644), os.Chtimes(p, stamp, stamp)); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return &tool.Env{Call: "c", Root: root, Dir: dir}
}

func call(t testing.TB, env *tool.Env, tl tool.Tool, args map[string]any) tool.Result {
	t.Helper()
	data, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	r, err := tl.Call(t.Context(), env, data)
	if err != nil {
		t.Fatalf("%s %s: %v", tl.Spec().Name, data, err)
	}
	return r
}

func tree(t testing.TB) *tool.Env {
	return world(t,
		"main.go|package main\n\nfunc main() { Run() }\n", // newest
		"README.md|# Run it\nrun, RUN, Run\n",
		"pkg/run.go|package pkg\n\n// Run runs.\nfunc Run() {}\n\nfunc run() {\n\tRun()\n}\n",
		"pkg/run_test.go|package pkg\n",
		"pkg/deep/er/x.go|package er // Run\n",
		".hidden/y.go|package y // Run\n",
		".env|KEY=Run\n",
		"build/out.go|package out // Run\n",
		"debug.log|Run\n",
		"keep.log|Run\n",
		"pkg/tmp/z.go|package z // Run\n",
		"node_modules/m/i.js|Run()\n",
		".git/config|Run\n", ".git/info/exclude|excluded.txt\n", "excluded.txt|Run\n",
		".anamnesis/x|Run\n",
		"bin.dat|Run\x00Run\n",
		".gitignore|/build/  \n*.log\r\n!keep.log\n# comment\n",
		"pkg/.gitignore|tmp\n",
	)
}

func TestGlob(t *testing.T) {
	env := tree(t)
	tests := []struct {
		name string
		args map[string]any
		want string
		err  bool
	}{
		{"newest first", map[string]any{"pattern": "**/*.go"}, "main.go\npkg/run.go\npkg/run_test.go\npkg/deep/er/x.go\n.hidden/y.go", false},
		{"name at any depth", map[string]any{"pattern": "run*.go"}, "pkg/run.go\npkg/run_test.go", false},
		{"one level", map[string]any{"pattern": "pkg/*.go"}, "pkg/run.go\npkg/run_test.go", false},
		{"dot slash", map[string]any{"pattern": "./pkg/*.go"}, "pkg/run.go\npkg/run_test.go", false},
		{"below a path", map[string]any{"pattern": "*.go", "path": "pkg/deep"}, "pkg/deep/er/x.go", false},
		{"absolute path", map[string]any{"pattern": "er/*", "path": env.Dir + "/pkg/deep"}, "pkg/deep/er/x.go", false},
		{"alternatives", map[string]any{"pattern": "*.{md,log}"}, "README.md\nkeep.log", false},
		{"ignored, too", map[string]any{"pattern": "{build,node_modules,pkg/tmp}/**", "include_ignored": true}, "build/out.go\npkg/tmp/z.go\nnode_modules/m/i.js", false},
		{"rules above hold below", map[string]any{"pattern": "*.go", "path": "pkg"}, "pkg/run.go\npkg/run_test.go\npkg/deep/er/x.go", false},
		{"never git", map[string]any{"pattern": "**/config", "include_ignored": true}, "No file matches.", false},
		{"none", map[string]any{"pattern": "*.rs"}, "No file matches.", false},
		{"page", map[string]any{"pattern": "**/*.go", "head_limit": 2, "offset": 1}, "pkg/run.go\npkg/run_test.go\n[results 2-3 of 5; go on with offset 3]", false},
		{"page beyond", map[string]any{"pattern": "**/*.go", "offset": 9}, "[no results from offset 9, there are 5]", false},
		{"malformed", map[string]any{"pattern": "[a"}, "Glob: pattern \"[a\" is malformed: a bracket or brace is not closed.", true},
		{"absolute pattern", map[string]any{"pattern": "/etc/*"}, "Glob: pattern \"/etc/*\" must be relative; give the directory as path.", true},
		{"climbing pattern", map[string]any{"pattern": "../*"}, "Glob: pattern \"../*\" must be relative; give the directory as path.", true},
		{"outside", map[string]any{"pattern": "*", "path": "../"}, "Glob: ../: leads out of the world; paths are relative to the world's directory.", true},
		{"missing", map[string]any{"pattern": "*", "path": "nope"}, "Glob: nope: does not exist.", true},
	}
	for _, tt := range tests {
		r := call(t, env, search.Glob(), tt.args)
		if r.Text != tt.want || r.IsError != tt.err {
			t.Errorf("%s: %v\n%s\nwant\n%s", tt.name, r.IsError, r.Text, tt.want)
		}
	}
}

func TestGrep(t *testing.T) {
	env := tree(t)
	const hidden = "\n[not searched, they look like files of secrets: .env]"
	tests := []struct {
		name string
		args map[string]any
		want string
		err  bool
	}{
		{"files", map[string]any{"pattern": `\bRun\b`}, "main.go\nREADME.md\npkg/run.go\npkg/deep/er/x.go\n.hidden/y.go\nkeep.log" + hidden, false},
		{"count", map[string]any{"pattern": "Run", "output_mode": "count", "path": "pkg"}, "pkg/run.go:3\npkg/deep/er/x.go:1", false},
		{"content", map[string]any{"pattern": "Run", "output_mode": "content", "glob": "*.md"}, "README.md:1:# Run it\nREADME.md:2:run, RUN, Run", false},
		{"ignore case", map[string]any{"pattern": "RUNS", "-i": true, "output_mode": "content"}, "pkg/run.go:3:// Run runs." + hidden, false},
		{"context", map[string]any{"pattern": "// Run runs|Run\\(\\)$", "output_mode": "content", "path": "pkg/run.go", "context": 1},
			"pkg/run.go-2-\npkg/run.go:3:// Run runs.\npkg/run.go-4-func Run() {}\n--\npkg/run.go-6-func run() {\npkg/run.go:7:\tRun()\npkg/run.go-8-}", false},
		{"after", map[string]any{"pattern": "runs", "output_mode": "content", "path": "pkg/run.go", "-A": 1}, "pkg/run.go:3:// Run runs.\npkg/run.go-4-func Run() {}", false},
		{"before", map[string]any{"pattern": "runs", "output_mode": "content", "path": "pkg/run.go", "-B": 9}, "pkg/run.go-1-package pkg\npkg/run.go-2-\npkg/run.go:3:// Run runs.", false},
		{"end of line", map[string]any{"pattern": "package pkg$", "path": "pkg"}, "pkg/run.go\npkg/run_test.go", false},
		{"glob with a path", map[string]any{"pattern": "package", "glob": "deep/**/*.go", "path": "pkg"}, "pkg/deep/er/x.go", false},
		{"ignored, too", map[string]any{"pattern": "Run", "include_ignored": true, "glob": "{debug.log,build/**,node_modules/**}"}, "build/out.go\ndebug.log\nnode_modules/m/i.js", false},
		{"page of files", map[string]any{"pattern": "package", "head_limit": 1, "offset": 2}, "pkg/run_test.go\n[results 3-3 of 5; go on with offset 3]" + hidden, false},
		{"page of lines", map[string]any{"pattern": "Run", "output_mode": "content", "path": "pkg/run.go", "head_limit": 1, "offset": 1}, "pkg/run.go:4:func Run() {}\n[results 2-2 of 3; go on with offset 2]", false},
		{"none", map[string]any{"pattern": "nothing like it"}, "No line matches." + hidden, false},
		{"bad expression", map[string]any{"pattern": "(?=x)"}, "Grep: the pattern is not a regular expression in RE2 syntax: error parsing regexp: invalid or unsupported Perl syntax: `(?=`.", true},
		{"unbalanced", map[string]any{"pattern": "a)(b", "-i": true}, "Grep: the pattern is not a regular expression in RE2 syntax: error parsing regexp: unexpected ): `a)(b`.", true},
		{"outside", map[string]any{"pattern": "x", "path": "/etc"}, "Grep: /etc: is outside the world " + env.Dir + "; only files inside it can be used.", true},
	}
	for _, tt := range tests {
		r := call(t, env, search.Grep(nil), tt.args)
		if r.Text != tt.want || r.IsError != tt.err {
			t.Errorf("%s: %v\n%s\nwant\n%s", tt.name, r.IsError, r.Text, tt.want)
		}
	}
	r := call(t, env, search.Grep([]string{".env"}), map[string]any{"pattern": "KEY", "output_mode": "content"})
	if r.Text != ".env:1:KEY=Run" || len(r.Reads) != 1 {
		t.Errorf("an allowed secrets file: %+v", r)
	}
}

// The rules are git's to the letter: classes, escapes, "**" and the order of
// files included. The matcher itself is held against git in worldstate.
func TestSearchIgnoresAsGit(t *testing.T) {
	env := world(t,
		"1.gen|", "a.gen|", "sub/2.gen|", "x/y/z/deep.tmp|", "x/deep.tmp|", "other/deep.tmp|", "#kept|", "end |", "end|", "a/b/c.o|", "a/keep.o|",
		".gitignore|[[:digit:]].gen\nx/**/deep.tmp\n\\#kept\nend\\ \na/*\n!a/keep.o\n*.lib\n",
		"lib/one.lib|", "lib/.gitignore|!one.lib\n", "lib/two.lib|",
		".git/info/exclude|lib/one.lib\nother\n",
	)
	const want = "a.gen\nend\na/keep.o\n.gitignore\nlib/one.lib\nlib/.gitignore"
	if r := call(t, env, search.Glob(), map[string]any{"pattern": "**"}); r.Text != want {
		t.Errorf("Glob:\n%s\nwant\n%s", r.Text, want)
	}
	if r := call(t, env, search.Glob(), map[string]any{"pattern": "**", "path": "lib"}); r.Text != "lib/one.lib\nlib/.gitignore" {
		t.Errorf("Glob in lib:\n%s", r.Text)
	}
}

// Links are not followed, so nothing outside is seen and no loop entered.
func TestSearchStaysInside(t *testing.T) {
	env := world(t, "a.txt|needle\n")
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "o.txt"), []byte("needle\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"out": outside, "loop": ".", "file": filepath.Join(outside, "o.txt")} {
		if err := os.Symlink(to, filepath.Join(env.Dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if r := call(t, env, search.Grep(nil), map[string]any{"pattern": "needle"}); r.Text != "a.txt" {
		t.Errorf("Grep: %s", r.Text)
	}
	if r := call(t, env, search.Glob(), map[string]any{"pattern": "**"}); r.Text != "a.txt" {
		t.Errorf("Glob: %s", r.Text)
	}
	for _, tl := range []tool.Tool{search.Grep(nil), search.Glob()} {
		for _, path := range []string{"out", "file", "out/o.txt"} {
			if r := call(t, env, tl, map[string]any{"pattern": "needle", "path": path}); !r.IsError ||
				!strings.Contains(r.Text, "out of the world") {
				t.Errorf("%s in %s: %+v", tl.Spec().Name, path, r)
			}
		}
	}
}

// A file that has a name outside is not searched, and that is said; names of
// its own in the world, ignored places included, are no reason.
func TestGrepLeavesOutStrayLinks(t *testing.T) {
	env := world(t, "a.txt|needle\n", ".git/x|")
	outside := filepath.Join(t.TempDir(), "o.txt")
	if err := errors.Join(os.WriteFile(outside, []byte("needle\n"), 0o644), os.Link(outside, filepath.Join(env.Dir, "hard")),
		os.Link(filepath.Join(env.Dir, "a.txt"), filepath.Join(env.Dir, ".git/a"))); err != nil {
		t.Fatal(err)
	}
	const want = "a.txt\n[not searched, they have another name (hard link) outside the world: hard]"
	for _, mode := range []string{"files_with_matches", "content"} {
		r := call(t, env, search.Grep(nil), map[string]any{"pattern": "needle", "output_mode": mode})
		if got := strings.Replace(r.Text, "a.txt:1:needle", "a.txt", 1); got != want {
			t.Errorf("%s: %s", mode, r.Text)
		}
	}
}

func TestSearchLimitsAreSaid(t *testing.T) {
	var files []string
	for i := range 30 {
		files = append(files, fmt.Sprintf("f%02d|needle\n", i))
	}
	env := world(t, files...)
	for _, tl := range []tool.Tool{search.GlobOf(10), search.GrepOf(10)} {
		r := call(t, env, tl,
			map[string]any{"pattern": map[string]string{"Glob": "*", "Grep": "needle"}[tl.Spec().Name]})
		if !strings.Contains(r.Text, "f09\n[incomplete: stopped after 10 files; search a smaller path]") {
			t.Errorf("%s: %s", tl.Spec().Name, r.Text)
		}
	}
	if err := os.WriteFile(filepath.Join(env.Dir, "large"), []byte("needle"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(env.Dir, "large"), search.MaxFileBytes+1); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(env.Dir, "wide"), []byte("haystack"+strings.Repeat("ä", 1000)+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := call(t, env, search.Grep(nil), map[string]any{"pattern": "hay", "output_mode": "content"})
	want := "wide:1:haystack" + strings.Repeat("ä", 492) +
		" […1016 bytes of this line cut]\n[not searched, over 16 MB: large]"
	if r.Text != want {
		t.Errorf("Grep: %s\nwant %s", r.Text, want)
	}
	long := "needle" + strings.Repeat("x", 900) + "\n"
	env = world(t, "long|"+strings.Repeat(long, 2*search.MaxOutputBytes/len(long)), "other|needle\n")
	r = call(t, env, search.Grep(nil), map[string]any{"pattern": "needle", "output_mode": "content", "head_limit": 1000})
	if n := len(r.Text); n < search.MaxOutputBytes || n > search.MaxOutputBytes+2*len(long) ||
		!strings.Contains(r.Text, fmt.Sprintf("cut after %d KB; use a smaller head_limit and offset", search.MaxOutputBytes/1000)) {
		t.Errorf("Grep: %d bytes, …%.200s", n, r.Text[max(0, n-200):])
	}
}

func TestSearchCanceled(t *testing.T) {
	env := tree(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tl := range []tool.Tool{search.Glob(), search.Grep(nil)} {
		if _, err := tl.Call(ctx, env, json.RawMessage(`{"pattern":"x"}`)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: err = %v", tl.Spec().Name, err)
		}
	}
}

func BenchmarkGrep(b *testing.B) {
	var files []string
	for i := range 2000 {
		files = append(files, fmt.Sprintf("d%02d/f%03d.txt|%s", i%50, i, strings.Repeat("some line of text\n", 100)))
	}
	env := world(b, files...)
	for b.Loop() {
		call(b, env, search.Grep(nil), map[string]any{"pattern": "no such thing"})
	}
}

package search_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/search"
)

// fakeRipgrep is a program that stands where rg does.
func fakeRipgrep(t testing.TB, script string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rg")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

// The program is one that commands could not have written; another one behind
// it on the PATH is taken.
func TestRipgrepOfTheWorldIsNotRun(t *testing.T) {
	fake, second := fakeRipgrep(t, "exit 1"), fakeRipgrep(t, "exit 1")
	here, elsewhere := filepath.Dir(fake), t.TempDir()
	link := filepath.Join(t.TempDir(), "rg")
	if err := os.Symlink(fake, link); err != nil {
		t.Fatal(err)
	}
	path := func(dirs ...string) string { return strings.Join(dirs, string(filepath.ListSeparator)) }
	for name, tt := range map[string]struct {
		path string
		env  tool.Env
		want string
	}{
		"outside":              {here, tool.Env{Dir: elsewhere}, fake},
		"in the world":         {here, tool.Env{Dir: here}, ""},
		"beside the world":     {here, tool.Env{Dir: elsewhere, Beside: []string{here}}, ""},
		"a link into it":       {filepath.Dir(link), tool.Env{Dir: here}, ""},
		"another one":          {path(here, filepath.Dir(second)), tool.Env{Dir: here}, second},
		"relative directories": {path(".", "", "bin"), tool.Env{Dir: elsewhere}, ""},
		"none":                 {elsewhere, tool.Env{Dir: elsewhere}, ""},
	} {
		t.Setenv("PATH", tt.path)
		t.Chdir(here)
		got, err := search.FindRipgrep(&tt.env)
		want := tt.want
		if want != "" {
			want, _ = filepath.EvalSymlinks(want)
		}
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
}

// A list that ripgrep gives without any oddity is followed; any other is not.
func TestGrepFollowsRipgrepOnlyWhenItIsPlain(t *testing.T) {
	t.Setenv("NOT_FOR_RIPGREP", "1")
	env := world(t, "a.txt|needle\n", "d/b.txt|needle\n", "c.txt|hay\n")
	const all = "a.txt\nd/b.txt"
	for script, want := range map[string]string{
		"exit 1":                                        "No line matches.",
		`printf './d/b.txt\0'`:                          "d/b.txt",
		`printf './d/b.txt\0./c.txt\0'`:                 "d/b.txt",
		"exit 0":                                        all,
		"exit 2":                                        all,
		`printf './d/b.txt\0'; exit 1`:                  all,
		`printf './d/b.txt\0'; exit 2`:                  all,
		`printf './d/b.txt\0'; echo odd >&2`:            all,
		`printf './d/b.txt'`:                            all,
		`printf 'd/b.txt\0'`:                            all,
		`printf './elsewhere\0'`:                        all,
		`printf './d/b.txt\0'; kill -KILL $$`:           all,
		`printf './d/b.txt\0'; sleep 1000 & exit 0`:     all,
		`[ -n "$HOME$NOT_FOR_RIPGREP" ] || exit 1`:      "No line matches.",
		`while printf './d/b.txt\0'; do :; done`:        all,
		`[ "$(pwd -P)" = "` + env.Dir + `" ] && exit 1`: "No line matches.",
	} {
		r := call(t, env, search.GrepBeside(nil, fakeRipgrep(t, script), 1, true), map[string]any{"pattern": "needle"})
		if r.Text != want {
			t.Errorf("%s:\n%s\nwant\n%s", script, r.Text, want)
		}
	}
	r := call(t, env, search.GrepBeside(nil, "/nonexistent/rg", 1, true), map[string]any{"pattern": "needle"})
	if r.Text != all {
		t.Errorf("no such program: %s", r.Text)
	}
}

// Ripgrep is told the files that Grep would read, and no other: nothing
// ignored or secret, no link, nothing over the limit, no name that would not
// reach it. Few files are read without it.
func TestRipgrepIsAskedOnlyWhatWouldBeRead(t *testing.T) {
	env := tree(t)
	asked := filepath.Join(t.TempDir(), "asked")
	rg := fakeRipgrep(t, `printf '%s\n' "$@" >'`+asked+`'; exit 1`)
	outside := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(outside, "o.go"), []byte("Run"), 0o644), os.Symlink(outside, filepath.Join(env.Dir, "out")),
		os.Symlink("main.go", filepath.Join(env.Dir, "again.go")), os.WriteFile(filepath.Join(env.Dir, "\xff.go"), []byte("Run"), 0o644),
		os.WriteFile(filepath.Join(env.Dir, "large.go"), nil, 0o644), os.Truncate(filepath.Join(env.Dir, "large.go"), search.MaxFileBytes+1)); err != nil {
		t.Fatal(err)
	}
	grep := func(from int) string {
		return call(t, env, search.GrepBeside(nil, rg, from, true), map[string]any{"pattern": "Run", "glob": "*.{go,env}"}).Text
	}
	r := grep(8)
	if _, err := os.Stat(asked); !errors.Is(err, os.ErrNotExist) || !strings.HasPrefix(r, "\xff.go\nmain.go\n") {
		t.Errorf("few files: %v\n%s", err, r)
	}
	if r = grep(7); !strings.HasPrefix(r, "\xff.go\n[") {
		t.Errorf("files that were not asked about: %q", r)
	}
	data, err := os.ReadFile(asked)
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(data), "--\n")
	got := strings.Fields(list)
	slices.Sort(got)
	if want := "./.hidden/y.go ./main.go ./pkg/deep/er/x.go ./pkg/run.go ./pkg/run_test.go"; strings.Join(got, " ") != want {
		t.Errorf("asked about %s, want %s", got, want)
	}
}

// A search that ends early, because the user stopped it or because it is done,
// leaves no process running and does not wait for ripgrep, which never ends here.
func TestGrepDoesNotWaitForRipgrep(t *testing.T) {
	var files []string
	for i := range 10 {
		files = append(files, fmt.Sprintf("f%02d|needle\n", i))
	}
	env := world(t, files...)
	hung := fakeRipgrep(t, "trap '' TERM; while :; do sleep 1000; done")
	r := call(t, env, search.GrepBeside(nil, hung, 1, false), map[string]any{"pattern": "needle", "output_mode": "count"})
	if strings.Count(r.Text, ":1") != 10 {
		t.Errorf("%s", r.Text)
	}
	ctx, cancel := context.WithCancel(t.Context())
	started := filepath.Join(t.TempDir(), "started")
	hung = fakeRipgrep(t, "trap '' TERM; : >'"+started+"'; while :; do sleep 1000; done")
	go func() {
		defer cancel()
		for ctx.Err() == nil {
			if _, err := os.Stat(started); err == nil {
				return
			}
		}
	}()
	if _, err := search.GrepBeside(nil, hung, 1, true).Call(ctx, env, []byte(`{"pattern":"needle"}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// More names than one run takes are asked about in several.
func TestRipgrepIsAskedInBatches(t *testing.T) {
	var files []string
	deep := strings.Repeat(strings.Repeat("d", 200)+"/", 5)
	for i := range 600 {
		files = append(files, fmt.Sprintf("%sf%03d|%s\n", deep, i, map[bool]string{true: "needle", false: "hay"}[i%100 == 0]))
	}
	env := world(t, files...)
	want := call(t, env, search.GrepBeside(nil, "", 1, true), map[string]any{"pattern": "needle"})
	got := call(t, env, search.GrepBeside(nil, needRipgrep(t), 1, true), map[string]any{"pattern": "needle"})
	if got.Text != want.Text || strings.Count(want.Text, "\n") != 5 {
		t.Errorf("%s\nwant\n%s", got.Text, want.Text)
	}
	runs := filepath.Join(t.TempDir(), "runs")
	call(t, env, search.GrepBeside(nil, fakeRipgrep(t, "echo >>'"+runs+"'; exit 1"), 1, true), map[string]any{"pattern": "needle"})
	if data, err := os.ReadFile(runs); len(data) != 3 {
		t.Errorf("%d runs, want 3: %v", len(data), err)
	}
}

// The program as it is installed takes the options it is given, and what it
// cannot read makes it say so.
func TestRipgrepUnderstandsItsOptions(t *testing.T) {
	env := world(t, "a.txt|needle\n", "d/b.txt|\xff\xfeneedle\r\n", "c.txt|hay\n", "n.dat|\x00needle\n", ".git/x|needle\n", "-e|NEEDLE\n", "f.txt|a\u017f\u212a", ".gitignore|*")
	rg := needRipgrep(t)
	all := []string{"a.txt", "d/b.txt", "c.txt", "n.dat", ".git/x", "-e", "f.txt", ".gitignore"}
	for _, tt := range []struct {
		any     []string
		anyCase bool
		want    string
	}{
		{[]string{"needle"}, false, ".git/x a.txt d/b.txt n.dat"}, {[]string{"needle"}, true, "-e .git/x a.txt d/b.txt n.dat"},
		{[]string{"hay", "NEED"}, false, "-e c.txt"}, {[]string{"ask"}, true, "f.txt"}, {[]string{"-e"}, false, ""}, {[]string{"nee.le"}, false, ""},
	} {
		got, err := search.Holding(t.Context(), rg, env.Dir, tt.anyCase, tt.any, all)
		if err != nil || strings.Join(got, " ") != tt.want {
			t.Errorf("%q, anyCase %v: %s, %v, want %s", tt.any, tt.anyCase, got, err, tt.want)
		}
	}
	if got, err := search.Holding(t.Context(), rg, env.Dir, false, []string{"needle"}, []string{"a.txt", "gone.txt"}); err == nil {
		t.Errorf("with a file that cannot be read: %s", got)
	}
	if got, err := search.CheckRipgrep(t.Context(), nil, t.TempDir()); err != nil || !filepath.IsAbs(got) {
		t.Errorf("check: %q, %v", got, err)
	}
}

package search_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/tool/search"
)

func TestMain(m *testing.M) {
	guard.SuperviseMain()
	os.Exit(m.Run())
}

// needRipgrep is the rg program; where it is missing the test fails in CI and
// is skipped elsewhere.
func needRipgrep(t testing.TB) string {
	t.Helper()
	rg, err := exec.LookPath("rg")
	if err == nil {
		rg, err = filepath.Abs(rg)
	}
	if err != nil {
		if os.Getenv("ANAMNESIS_CI") != "" {
			t.Fatalf("ripgrep is missing: %v", err)
		}
		t.Skipf("NOT RUN: ripgrep is missing: %v", err)
	}
	return rg
}

// contents are what the files of a random tree are made of: marks of other
// encodings, UTF-16, NUL bytes, what is no UTF-8, every kind of line end, lines
// longer than any buffer, letters that fold into ASCII.
var contents = rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]string{
	"needle", "Needle", "NEEDLE", "nee", "dle", "hay", "ask", "ASK", "a\u017fk", "as\u212a", "ab", "\n", "\r\n", "\r", "\x00", " ", "needle\n", "\n\n",
	"\xff\xfe", "\xfe\xff", "n\x00e\x00e\x00d\x00l\x00e\x00", "\xef\xbb\xbf", "ä", "\xff", strings.Repeat("long ", 20_000),
}), 0, 8), func(parts []string) string { return strings.Join(parts, "") })

// names are those of files and directories: hidden, ignored and never searched
// ones, ignore files, options, names that are no UTF-8, names of two lines.
var names = rapid.SampledFrom([]string{
	"a", "b.go", ".hidden", "c.log", "\xff\xfe", "new\nline", "-dash", ".env", "node_modules", ".gitignore", ".ignore", ".rgignore", ".gitattributes",
	"ä ö", ".git", ".git/info/exclude", ".anamnesis", "link",
})

// rules are lines of ignore files.
var rules = rapid.Map(rapid.SliceOf(rapid.SampledFrom([]string{"*.log", "a", "!a", "/b.go", "a/", "*", "!*.go", "**/a/b.go", "* binary"})),
	func(lines []string) string { return strings.Join(lines, "\n") })

// randomTree fills a directory through its root, so that no link leads what is
// written out of it.
func randomTree(t *rapid.T, root *os.Root, outside string) {
	stamp := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for range rapid.IntRange(5, 30).Draw(t, "files") {
		name := filepath.Join(rapid.SliceOfN(names, 1, 3).Draw(t, "path")...)
		if root.MkdirAll(filepath.Dir(name), 0o755) != nil {
			continue // a file stands where the directory would
		}
		_ = root.Remove(name) // nothing is written through a link or into a pipe
		switch kind := rapid.IntRange(0, 30).Draw(t, "kind"); {
		case strings.HasSuffix(name, "ignore") || strings.HasSuffix(name, "exclude") || strings.HasSuffix(name, "attributes"):
			_ = root.WriteFile(name, []byte(rules.Draw(t, "rules")), 0o644)
		case kind <= 2:
			_ = root.Symlink(rapid.SampledFrom([]string{".", "a", "..", outside, filepath.Join(outside, "o.txt")}).Draw(t, "to"), name)
		case kind == 3 && filepath.Dir(name) == ".":
			_ = syscall.Mkfifo(filepath.Join(root.Name(), name), 0o644)
		case kind == 4:
			_ = errors.Join(root.WriteFile(name, []byte("needle\n"), 0o644), enlarge(root, name))
		default:
			mode := rapid.SampledFrom([]os.FileMode{0o644, 0o644, 0o644, 0o644, 0o644, 0o644, 0}).Draw(t, "mode")
			_ = root.WriteFile(name, []byte(contents.Draw(t, "content")), mode)
		}
		when := stamp.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "minute")) * time.Minute)
		_ = root.Chtimes(name, when, when)
	}
}

// enlarge makes a file one byte larger than Grep reads.
func enlarge(root *os.Root, name string) error {
	f, err := root.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(search.MaxFileBytes+1), f.Close())
}

// question draws the arguments of one search.
func question(t *rapid.T) map[string]any {
	q := map[string]any{
		"-i":              rapid.IntRange(0, 2).Draw(t, "case") == 0,
		"include_ignored": rapid.Bool().Draw(t, "ignored"),
		"output_mode":     rapid.SampledFrom([]string{"content", "count", "files_with_matches"}).Draw(t, "mode"),
		"head_limit":      rapid.IntRange(1, 8).Draw(t, "limit"),
		"offset":          rapid.IntRange(0, 3).Draw(t, "offset"),
		"context":         rapid.IntRange(0, 1).Draw(t, "context"),
	}
	if rapid.IntRange(0, 3).Draw(t, "random") == 0 {
		q["pattern"] = expression(t, 1)
	} else {
		q["pattern"] = rapid.SampledFrom([]string{"needle", "^needle$", "needle|hay", "nee(dle)+", "(?i)needle", "äneedle", "needle\\x00?",
			"long .*hay", "(needle)?", "(needle)?a", "(?:needle|ask)*", "^", "n.e", "(?i)ask", "ask|needle", "hay?n?eed", "needle$"}).Draw(t, "pattern")
	}
	if rapid.IntRange(0, 3).Draw(t, "below") == 0 {
		q["path"] = rapid.SampledFrom([]string{"a", "node_modules", ".git", "-dash", "b.go", "link"}).Draw(t, "path")
	}
	if rapid.IntRange(0, 3).Draw(t, "globbed") == 0 {
		q["glob"] = rapid.SampledFrom([]string{"*.go", "a/**", "**/-dash"}).Draw(t, "glob")
	}
	return q
}

// On random trees, every search gives the same with ripgrep as without it,
// whatever the user has configured for it.
func TestGrepIsTheSameWithRipgrep(t *testing.T) {
	rg := needRipgrep(t)
	config, outside := filepath.Join(t.TempDir(), "config"), t.TempDir()
	if err := errors.Join(os.WriteFile(config, []byte("--invert-match\n--follow\n"), 0o644), os.WriteFile(filepath.Join(outside, "o.txt"), []byte("needle\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("RIPGREP_CONFIG_PATH", config)
	base, found, none := t.TempDir(), 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(base, "tree")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		root, err := os.OpenRoot(dir)
		if err != nil {
			rt.Fatal(err)
		}
		defer root.Close()
		randomTree(rt, root, outside)
		env := &tool.Env{Call: "c", Root: root, Dir: dir}
		o := &search.Options{MaxFiles: rapid.SampledFrom([]int{0, 0, 5}).Draw(rt, "most")}
		for range 3 {
			args := question(rt)
			want := call(t, env, search.GrepBeside(o, "", 1, true), args)
			got := call(t, env, search.GrepBeside(o, rg, 1, rapid.IntRange(0, 5).Draw(rt, "beside") > 0), args)
			if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
				rt.Fatalf("%v: with ripgrep\n%q\nwithout\n%q", args, got.Text, want.Text)
			}
			if strings.Contains(want.Text, "No line") {
				none++
			} else {
				found++
			}
		}
	})
	if found == 0 || none == 0 {
		t.Errorf("%d searches found lines, %d none: nothing was compared", found, none)
	}
}

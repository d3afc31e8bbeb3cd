// Package worldtest compares directories in tests. It shares no code with what it tests.
package worldtest

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// Heavy skips a test that takes minutes and rarely fails, unless CI or -nightly runs it.
func Heavy(t testing.TB) {
	t.Helper()
	nightly := flag.Lookup("nightly")
	if (testing.Short() || os.Getenv("ANAMNESIS_CI") == "") && (nightly == nil || nightly.Value.String() != "true") {
		t.Skip("NOT RUN: heavy; .ci/run runs it, or ANAMNESIS_CI=1")
	}
}

// Git runs the real git. Without git it skips the test loudly, and fails it in CI.
func Git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("ANAMNESIS_CI") != "" {
			t.Fatal("git is not installed: CI must have it")
		}
		t.Skip("NOT CHECKED: git is not installed")
	}
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@localhost", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@localhost")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// A Path is the file, directory or link at one path.
type Path struct {
	What  string // "dir 755", "file 644 SHA256", "link TARGET", or another type
	Inode uint64
	Mtime int64 // in nanoseconds
}

// A Tree is the content of a directory by relative path.
type Tree map[string]Path

// TempDir is t.TempDir for a test that makes read-only directories, which an ordinary user
// could not remove.
func TempDir(t testing.TB) string {
	t.Helper()
	top := t.TempDir()
	t.Cleanup(func() {
		_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, _ error) error {
			if d != nil && d.IsDir() {
				_ = os.Chmod(path, 0o700)
			}
			return nil
		})
	})
	return top
}

// Snapshot reads a directory. A file that vanishes meanwhile fails the test.
func Snapshot(t testing.TB, root string) Tree {
	t.Helper()
	out := Tree{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		what, err := describe(path, info)
		if err != nil {
			return err
		}
		st := info.Sys().(*syscall.Stat_t)
		out[rel] = Path{what, st.Ino, info.ModTime().UnixNano()}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func describe(path string, info fs.FileInfo) (string, error) {
	switch {
	case info.IsDir():
		return fmt.Sprintf("dir %o", info.Mode().Perm()), nil
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		return "link " + target, err
	case info.Mode().IsRegular():
		f, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer f.Close()
		sum := sha256.New()
		_, err = io.Copy(sum, f)
		return fmt.Sprintf("file %o %x", info.Mode().Perm(), sum.Sum(nil)), err
	}
	return info.Mode().Type().String(), nil
}

// Whats returns the tree without inodes and times.
func (t Tree) Whats() map[string]string {
	out := make(map[string]string, len(t))
	for path, p := range t {
		out[path] = p.What
	}
	return out
}

// Without returns the paths that have none of these names in them.
func Without(m map[string]string, names ...string) map[string]string {
	out := make(map[string]string, len(m))
	for path, what := range m {
		named := func(part string) bool { return slices.Contains(names, part) }
		if !slices.ContainsFunc(strings.Split(path, "/"), named) {
			out[path] = what
		}
	}
	return out
}

// maxTold bounds the differences that a failing test lists.
const maxTold = 30

// Differences returns the paths in which two trees differ, sorted; empty if there are none.
func Differences(got, want map[string]string) []string {
	if maps.Equal(got, want) {
		return nil
	}
	var lines []string
	paths := maps.Clone(want)
	maps.Copy(paths, got)
	for path := range paths {
		if got[path] != want[path] { // "" is nothing
			lines = append(lines, fmt.Sprintf("%q is %q, want %q", path, got[path], want[path]))
		}
	}
	slices.Sort(lines)
	if len(lines) > maxTold {
		lines = append(lines[:maxTold], fmt.Sprintf("and %d more", len(lines)-maxTold))
	}
	return lines
}

// RequireEqual fails the test with the paths in which two trees differ.
func RequireEqual(t testing.TB, got, want map[string]string, when string) {
	t.Helper()
	if lines := Differences(got, want); len(lines) > 0 {
		t.Fatalf("%s:\n%s", when, strings.Join(lines, "\n"))
	}
}

// Untouched fails the test if a path that is not in moved has another inode, time or content
// than before, or came or went. A directory's time may change if something in it was moved.
func Untouched(t testing.TB, before, after Tree, moved []string, when string) {
	t.Helper()
	touched, parents := map[string]bool{}, map[string]bool{}
	for _, path := range moved {
		path = strings.TrimSuffix(path, "/")
		touched[path] = true
		parents[filepath.Dir(path)] = true
	}
	for path, was := range before {
		is, there := after[path]
		if parents[path] {
			is.Mtime = was.Mtime
		}
		if !touched[path] && (!there || is != was) {
			t.Errorf("%s: %q was not to be touched: %+v before, %+v after", when, path, was, is)
		}
	}
	for path := range after {
		if _, was := before[path]; !was && !touched[path] {
			t.Errorf("%s: %q has appeared", when, path)
		}
	}
}

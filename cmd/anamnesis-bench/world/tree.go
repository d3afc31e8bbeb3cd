//go:build unix

package world

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// tree is the copy all subjects work on.
type tree struct {
	root  string
	count int // of files and links
	bytes int64
	files []string // those a change may touch, in path order
}

// changeableBytes: larger files are left alone by a change, which represents a
// user's or an agent's edits.
const changeableBytes = 1 << 20

// copyTree copies a directory without its git directories.
func copyTree(ctx context.Context, from, to string) (*tree, error) {
	t := &tree{root: to}
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.Name() == ".git" && rel != "." {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		dest := filepath.Join(to, rel)
		switch {
		case d.IsDir():
			return os.Mkdir(dest, info.Mode().Perm()|0o700)
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			t.count++
			return os.Symlink(target, dest)
		case !info.Mode().IsRegular():
			return nil
		}
		return t.copyFile(path, dest, info)
	})
	return t, err
}

func (t *tree) copyFile(from, to string, info fs.FileInfo) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to, data, info.Mode().Perm()|0o600); err != nil {
		return err
	}
	t.count++
	t.bytes += int64(len(data))
	if len(data) <= changeableBytes {
		t.files = append(t.files, to)
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}

// removeIgnored removes from the files to change those that git ignores:
// a change of another is not saved.
func (t *tree) removeIgnored(ctx context.Context, repo string) error {
	s := shadow{repo: repo, work: t.root}
	if err := s.fresh(ctx); err != nil {
		return err
	}
	list, err := s.git(ctx, "ls-files", "-z", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	saved := make(map[string]bool)
	for rel := range strings.SplitSeq(list, "\x00") {
		saved[filepath.Join(t.root, rel)] = true
	}
	t.files = slices.DeleteFunc(t.files, func(path string) bool { return !saved[path] })
	if len(t.files) == 0 {
		return fmt.Errorf("%w: its ignore rules leave nothing of it to save", ErrUsage)
	}
	return nil
}

// mark is the line a change appends; the round makes it a new one.
func mark(round int) string { return fmt.Sprintf("\nchange %d\n", round) }

// picked returns n files spread over the tree.
func (t *tree) picked(n int) []string {
	n = min(n, len(t.files))
	out := make([]string, n)
	for i := range out {
		out[i] = t.files[i*len(t.files)/n]
	}
	return out
}

// change appends a line to n files.
func (t *tree) change(n, round int) error {
	for _, path := range t.picked(n) {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteString(mark(round))
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// expect reports a file that a restore left with a round's change in it.
func (t *tree) expect(n, round int) error {
	for _, path := range t.picked(n) {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if strings.HasSuffix(string(data), mark(round)) {
			return fmt.Errorf("the restore left %s changed", path)
		}
	}
	return nil
}

// load is the machine's load averages, "" where they are not to be had.
func load() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	f := strings.Fields(string(data))
	return strings.Join(f[:min(3, len(f))], " ")
}

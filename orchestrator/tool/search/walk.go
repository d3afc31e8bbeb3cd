// Package search has the tools that find files and text: Glob and Grep.
//
// Both walk the world without following symbolic links. They omit what .gitignore files and
// .git/info/exclude name, and, unless include_ignored is set, node_modules; they always omit
// .git and .anamnesis.
package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"anamnesis/orchestrator/tool"
	"anamnesis/worldstate/ignore"
)

// The limits of a search.
const (
	TimeoutSeconds = 20
	MaxFiles       = 200_000  // files looked at
	MaxFileBytes   = 16 << 20 // larger files are not searched by Grep
	MaxIgnoreBytes = 1 << 20  // read of one .gitignore
	MaxHeadLimit   = 1_000    // results at once
	DefaultLimit   = 100
	MaxLineRunes   = 500     // characters shown of a line
	MaxOutputBytes = 100_000 // bytes shown
)

// errEnough ends a walk at its limit of files.
var errEnough = errors.New("limit of files reached")

// found is a regular file of the walk.
type found struct {
	rel  string // relative to the world
	info fs.FileInfo
}

// walker walks one tree.
type walker struct {
	root     *os.Root
	from     string            // the resolved path whose tree it is
	match    func(string) bool // decides on a path below from
	maxFiles int
	ignored  bool    // ignored files, too
	found    []found // that match
	files    int
	unread   int // directories that could not be read
}

// walk finds the regular files that match at and below from, in the order of their names.
func (w *walker) walk(ctx context.Context) error {
	rel := w.from
	info, err := w.root.Lstat(rel)
	if err != nil {
		return err
	}
	if info.Mode().IsRegular() {
		w.add(rel, info)
		return nil
	}
	if !info.IsDir() {
		return &tool.PathError{Path: rel, Reason: "is neither a file nor a directory"}
	}
	var rules ignore.Chain
	if !w.ignored {
		// The rules of the parent directories apply, too. Of rules that fit, git lets the last one decide, so that
		// info/exclude comes first and the nearest .gitignore last.
		rules = w.rules(nil, ".git/info/exclude", ".")
		above := "."
		if rel != "." {
			for part := range strings.SplitSeq(rel, "/") {
				rules = w.rules(rules, path.Join(above, ".gitignore"), above)
				above = path.Join(above, part)
			}
		}
	}
	return w.dir(ctx, rel, rules)
}

func (w *walker) dir(ctx context.Context, rel string, rules ignore.Chain) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := fs.ReadDir(w.root.FS(), rel)
	if err != nil {
		w.unread++ // what was read before the error counts
	}
	if !w.ignored {
		rules = w.rules(rules, path.Join(rel, ".gitignore"), rel)
	}
	for _, e := range entries {
		name := path.Join(rel, e.Name())
		if w.skip(e, name, rules) {
			continue
		}
		if e.IsDir() {
			if err := w.dir(ctx, name, rules); err != nil {
				return err
			}
			continue
		}
		if !e.Type().IsRegular() {
			continue
		}
		if w.files++; w.files > w.maxFiles {
			return errEnough
		}
		info, err := e.Info()
		if err != nil {
			continue // gone meanwhile
		}
		w.add(name, info)
	}
	return nil
}

func (w *walker) add(rel string, info fs.FileInfo) {
	if w.match(below(w.from, rel)) {
		w.found = append(w.found, found{rel, info})
	}
}

func (w *walker) skip(e fs.DirEntry, name string, rules ignore.Chain) bool {
	switch e.Name() {
	case ".git", ".anamnesis":
		return true
	case "node_modules":
		if !w.ignored && e.IsDir() {
			return true
		}
	}
	return !w.ignored && rules.Ignored(name, e.IsDir())
}

// rules adds the patterns of an ignore file, if it exists, for the directory rel.
func (w *walker) rules(above ignore.Chain, name, rel string) ignore.Chain {
	data, err := readRegular(w.root, name, MaxIgnoreBytes)
	if err != nil {
		return above
	}
	if rel == "." {
		rel = ""
	}
	return above.With(ignore.Parse(rel, "", data))
}

// errLarge says that a file is over the limit.
var errLarge = errors.New("file too large")

// readRegular reads a whole regular file, and never blocks on one that was replaced by
// something else.
func readRegular(root *os.Root, name string, limit int64) ([]byte, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", name)
	}
	if info.Size() > limit {
		return nil, errLarge
	}
	return io.ReadAll(io.LimitReader(f, limit))
}

// newestFirst sorts files by time, newest first, then by path.
func newestFirst(files []found) {
	slices.SortFunc(files, func(a, b found) int {
		return cmp.Or(b.info.ModTime().Compare(a.info.ModTime()), cmp.Compare(a.rel, b.rel))
	})
}

// start resolves the place to search and bounds the time. A non-nil result is for the model:
// the search cannot begin.
func start(ctx context.Context, env *tool.Env, verb, name string) (
	string, context.Context, context.CancelFunc, *tool.Result) {
	name = cmp.Or(name, ".")
	rel, err := env.Resolve(name)
	if err == nil {
		_, err = env.Root.Lstat(rel)
		if errors.Is(err, fs.ErrNotExist) {
			err = &tool.PathError{Path: name, Reason: "does not exist"}
		}
	}
	if err != nil {
		r := tool.Errorf("%s: %v.", verb, err)
		return "", nil, nil, &r
	}
	limited, cancel := context.WithTimeout(ctx, TimeoutSeconds*time.Second)
	return rel, limited, cancel, nil
}

// pageOf returns the requested results and a note about which they are.
func pageOf[T any](all []T, offset, limit int) (part []T, note string) {
	from := min(offset, len(all))
	to := min(len(all), from+limit)
	if from == 0 && to == len(all) {
		return all, ""
	}
	note = fmt.Sprintf("results %d-%d of %d", from+1, to, len(all))
	if from == to {
		note = fmt.Sprintf("no results from offset %d, there are %d", offset, len(all))
	}
	if to < len(all) {
		note += fmt.Sprintf("; go on with offset %d", to)
	}
	return all[from:to], note
}

// ending returns why a walk ended early, for the model; failed reports any other error.
func (w *walker) ending(ctx context.Context, err error) (notes []string, failed error) {
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("search: %w", ctx.Err())
	case errors.Is(err, errEnough):
		notes = append(notes, fmt.Sprintf("incomplete: stopped after %d files; search a smaller path", w.maxFiles))
	case errors.Is(err, context.DeadlineExceeded):
		notes = append(notes, fmt.Sprintf("incomplete: stopped after %d s; search a smaller path", TimeoutSeconds))
	case err != nil:
		return nil, err
	}
	if w.unread > 0 {
		notes = append(notes, fmt.Sprintf("%d directories could not be read", w.unread))
	}
	return notes, nil
}

func withNotes(text string, notes []string) string {
	for _, n := range notes {
		text += "[" + n + "]\n"
	}
	return strings.TrimSuffix(text, "\n")
}

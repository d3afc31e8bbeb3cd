// Package usergit reads a user's git repositories around and inside a world: ignore rules and
// tracked files. It writes nothing there.
package usergit

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/worldstate/ignore"
	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/tree"
)

// Repository holds what the user's git repository around (or at) a world determines of a scan.
type Repository struct {
	Outer   ignore.Chain    // info/exclude, then .gitignore files above the world
	Tracked map[string]bool // paths in its index, relative to the world
	Above   map[string]bool // the ancestors of Tracked
	Notes   []gitfmt.Skip   // what could not be read
	// gitDir and common are the git directory and the one that linked worktrees share; empty
	// without a repository.
	gitDir, common string
	up             string        // from its top to the world
	Sources        []fsys.Source // the files that all this was read from
	// Nested are the repositories inside, by directory; see nested.go.
	Nested map[string]*Repository
}

func (r *Repository) addSource(path string) { r.Sources = append(r.Sources, fsys.SourceAt(path)) }

// isCurrent reports whether a new read would return the same.
func (r *Repository) isCurrent() bool {
	for _, n := range r.Nested {
		if !n.isCurrent() {
			return false
		}
	}
	return !slices.ContainsFunc(r.Sources, func(s fsys.Source) bool { return !s.Equal(fsys.SourceAt(s.Path)) })
}

func (r *Repository) sameSources(o *Repository) bool {
	return slices.EqualFunc(r.Sources, o.Sources, fsys.Source.Equal) &&
		maps.EqualFunc(r.Nested, o.Nested, (*Repository).sameSources)
}

// SameRules reports whether both repositories leave out the same paths.
func (r *Repository) SameRules(o *Repository) bool {
	if r == o || r.sameSources(o) {
		return true
	}
	same := func(a, b *ignore.Rules) bool { return a.Up == b.Up && slices.Equal(a.Patterns, b.Patterns) }
	return r.Tracked != nil && maps.Equal(r.Tracked, o.Tracked) && slices.EqualFunc(r.Outer, o.Outer, same) &&
		maps.EqualFunc(r.Nested, o.Nested, (*Repository).SameRules)
}

// Refresh returns the present state of the user's repository around dir; if no source has
// changed, that is was itself. was, or if it is nil known, names the repositories inside.
func (was *Repository) Refresh(dir string, known *Repository) *Repository {
	if was != nil && was.isCurrent() {
		return was
	}
	inside := was.NestedDirs()
	if was == nil {
		inside = known.NestedDirs()
	}
	now := readRepository(dir)
	for _, d := range inside {
		if n := ReadNested(filepath.Join(dir, d)); n != nil {
			now.Nest(d, n)
		}
	}
	return now
}

// readRepository reads the repository that contains a world, if any.
func readRepository(world string) *Repository {
	r := newRepository()
	top := world
	for {
		// Places without a .git are sources as well: one that is created there later changes the rules.
		r.addSource(filepath.Join(top, ".git"))
		if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil {
			break
		}
		parent := filepath.Dir(top)
		if parent == top {
			return r
		}
		top = parent
	}
	up, err := filepath.Rel(top, world)
	if err != nil {
		r.addNote(".git", err)
		return r
	}
	if up = filepath.ToSlash(up); up == "." {
		up = ""
	}
	r.readGit(top, up)
	return r
}

// Tops returns where the .git of the repository around the world and of those inside is, relative to
// the world, at most so many.
func (r *Repository) Tops(most int) (dirs []string) {
	if r != nil && r.gitDir != "" {
		top, err := filepath.Rel(filepath.Join("/", r.up), "/")
		if err != nil { // impossible: both are absolute
			return nil
		}
		dirs = append(dirs, top)
	}
	dirs = append(dirs, r.NestedDirs()...)
	return dirs[:min(most, len(dirs))]
}

// Around implements worldstate.GitAround.
func Around(dir string) (gitDir, common string, outer ignore.Chain) {
	r := readRepository(dir)
	if r.gitDir == "" {
		return "", "", nil
	}
	return r.gitDir, r.common, r.Outer
}

func newRepository() *Repository {
	return &Repository{Tracked: map[string]bool{}, Above: map[string]bool{}}
}

// readGit reads the repository at top; up is the path from there to the world.
func (r *Repository) readGit(top, up string) {
	r.addSource(filepath.Join(top, ".git", "commondir"))
	gitDir, common, err := gitDirs(top)
	if err != nil {
		r.addNote(".git", err)
		return
	}
	r.addRules(filepath.Join(common, "info", "exclude"), ".git/info/exclude", up)
	if up != "" {
		d, rest := top, up
		for { // the .gitignore files from the top down to the world's parent
			r.addRules(filepath.Join(d, ".gitignore"), "../.gitignore", rest)
			name, deeper, ok := strings.Cut(rest, "/")
			if !ok {
				break
			}
			d, rest = filepath.Join(d, name), deeper
		}
	}
	r.readIndex(filepath.Join(gitDir, "index"), up)
	r.gitDir, r.common, r.up = gitDir, common, up
}

func (r *Repository) addNote(path string, err error) {
	r.Notes = append(r.Notes, gitfmt.Skip{Path: path, Reason: "not read: " + Reason(err)})
}

func (r *Repository) addRules(path, shown, up string) {
	r.addSource(path)
	data, err := readIgnoreFile(path)
	if err != nil {
		r.addNote(shown, err)
	}
	r.Outer = r.Outer.With(ignore.Parse("", up, data))
}

// readIgnoreFile reads a regular file; one that does not exist is empty.
func readIgnoreFile(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil, nil
	}
	if err == nil && info.Size() > tree.MaxIgnoreBytes {
		err = fmt.Errorf("over %d bytes", tree.MaxIgnoreBytes)
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// gitDirs returns a working tree's git directory and the directory that linked worktrees share.
func gitDirs(top string) (gitDir, common string, err error) {
	gitDir = filepath.Join(top, ".git")
	info, err := os.Stat(gitDir)
	if err != nil {
		return "", "", err
	}
	if !info.IsDir() {
		data, err := readIgnoreFile(gitDir)
		if err != nil {
			return "", "", err
		}
		target, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir: ")
		if !ok {
			return "", "", errors.New("the .git file names no directory")
		}
		if gitDir = target; !filepath.IsAbs(gitDir) {
			gitDir = filepath.Join(top, target)
		}
	}
	common = gitDir
	if data, err := readIgnoreFile(filepath.Join(gitDir, "commondir")); err == nil && len(data) > 0 {
		if common = strings.TrimSpace(string(data)); !filepath.IsAbs(common) {
			common = filepath.Join(gitDir, common)
		}
	}
	// Who opens a pipe waits for its other end: so would this program, and git itself.
	for _, path := range []string{gitDir + "/HEAD", gitDir + "/index", common + "/config", common + "/packed-refs",
		common + "/info/exclude"} {
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			return "", "", fmt.Errorf("%s is not a regular file", filepath.Base(path))
		}
	}
	return gitDir, common, nil
}

func (r *Repository) readIndex(path, up string) {
	r.addSource(path)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var paths []string
	if err == nil {
		paths, err = DecodeIndex(data)
	}
	if err != nil {
		r.addNote(".git/index", err)
		return
	}
	for _, p := range paths {
		if up != "" {
			var inside bool
			if p, inside = strings.CutPrefix(p, up+"/"); !inside {
				continue
			}
		}
		r.Tracked[p] = true
		fsys.Ancestors(p, func(d string) bool { r.Above[d] = true; return true })
	}
}

// Reason returns the part of a system error that matters to a user.
func Reason(err error) string {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err.Error()
	}
	return err.Error()
}

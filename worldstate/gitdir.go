package worldstate

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
)

// repository is what the user's own git repository around (or at) a world
// tells of its ignored files. It is only ever read.
type repository struct {
	outer   ignore.Chain    // info/exclude, then .gitignore files above the world
	tracked map[string]bool // paths its index holds, relative to the world
	above   map[string]bool // the directories they lie in
	notes   []Skip          // what could not be read
	objects *userObjects    // what a first save may borrow from; nil without a repository
	sources []fsys.Source   // what all this was read from
	// nested are the repositories found inside, by their directories; see
	// nested.go.
	nested map[string]*repository
}

// look notes a source.
func (r *repository) look(path string) { r.sources = append(r.sources, fsys.SourceAt(path)) }

// current reports whether reading it all again would give the same.
func (r *repository) current() bool {
	for i := range r.sources {
		if s := &r.sources[i]; !s.Same(fsys.SourceAt(s.Path)) {
			return false
		}
	}
	for _, n := range r.nested {
		if !n.current() {
			return false
		}
	}
	return true
}

func (r *repository) sameSources(o *repository) bool {
	return slices.EqualFunc(r.sources, o.sources, fsys.Source.SameAs) &&
		maps.EqualFunc(r.nested, o.nested, (*repository).sameSources)
}

// sameRules reports whether both leave out the same paths.
func (r *repository) sameRules(o *repository) bool {
	if r == o || r.sameSources(o) {
		return true
	}
	return r.tracked != nil && maps.Equal(r.tracked, o.tracked) && slices.EqualFunc(r.outer, o.outer, func(a, b *ignore.Rules) bool {
		return a.Up == b.Up && slices.Equal(a.Patterns, b.Patterns)
	}) && maps.EqualFunc(r.nested, o.nested, (*repository).sameRules)
}

// repository gives what the user's repository says now, from memory while
// nothing it says that with has changed, and those inside that are known.
func (w *World) repository(known *knowledge) *repository {
	if w.repo == nil || !w.repo.current() {
		inside := w.repo.nestedDirs()
		if w.repo == nil && known != nil {
			inside = known.repo.nestedDirs()
		}
		w.repo = readRepository(w.dir)
		w.repo.readAllNested(w.dir, inside)
	}
	return w.repo
}

// maxIgnoreBytes bounds one ignore file; a longer one is not read, and noted.
const maxIgnoreBytes = 1 << 20

// readRepository finds the repository a world lies in, if any.
func readRepository(world string) *repository {
	r := newRepository()
	top := world
	for {
		r.look(filepath.Join(top, ".git"))
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
		r.note(".git", err)
		return r
	}
	if up = filepath.ToSlash(up); up == "." {
		up = ""
	}
	r.readGit(top, up)
	return r
}

func newRepository() *repository {
	return &repository{tracked: map[string]bool{}, above: map[string]bool{}}
}

// readGit reads what the repository at top says; up is the way from there to the
// world.
func (r *repository) readGit(top, up string) {
	r.look(filepath.Join(top, ".git", "commondir"))
	gitDir, common, err := gitDirs(top)
	if err != nil {
		r.note(".git", err)
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
	r.objects = &userObjects{common: common, index: filepath.Join(gitDir, "index"), top: top, up: up}
}

func (r *repository) note(path string, err error) {
	r.notes = append(r.notes, Skip{Path: path, Reason: "not read: " + reason(err)})
}

func (r *repository) addRules(path, shown, up string) {
	r.look(path)
	data, err := readIgnoreFile(path)
	if err != nil {
		r.note(shown, err)
	}
	r.outer = r.outer.With(ignore.Parse("", up, data))
}

// readIgnoreFile reads a regular file; one that is not there is empty.
func readIgnoreFile(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil, nil
	}
	if err == nil && info.Size() > maxIgnoreBytes {
		err = fmt.Errorf("over %d bytes", maxIgnoreBytes)
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// gitDirs gives a working tree's git directory and the common one it shares
// with linked worktrees.
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
			return "", "", errors.New("a .git file that names no directory")
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
	return gitDir, common, nil
}

func (r *repository) readIndex(path, up string) {
	r.look(path)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var list []string
	if err == nil {
		list, err = trackedPaths(path, data, r.look)
	}
	if err != nil {
		r.note(".git/index", err)
		return
	}
	for _, p := range list {
		if up != "" {
			var inside bool
			if p, inside = strings.CutPrefix(p, up+"/"); !inside {
				continue
			}
		}
		r.tracked[p] = true
		fsys.Ancestors(p, func(d string) bool { r.above[d] = true; return true })
	}
}

// reason shortens a system error to what a person wants to know.
func reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

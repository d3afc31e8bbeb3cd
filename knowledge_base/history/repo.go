// Package history keeps a folder of files as a plain git repository that the
// git program agrees with: after each commit made here `git status` is clean,
// and what people do there with git is respected.
//
// go-git reads objects and refs. Its Worktree functions are not used, because they
// do not sync what they write: this package writes loose objects, the index and the
// branch itself, each durably, in the order in which a crash between two of them does
// no harm, and under the locks that git takes. Packing is left to 'git gc'. Remotes
// are reached by the git program, which knows the user's keys.
package history

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"anamnesis/opstream/durable"
)

const (
	// firstBranch is the branch of a repository made here.
	firstBranch = "refs/heads/main"

	// newPrefix names a repository that is being made.
	newPrefix = ".git-new-"

	objectCacheBytes = 8 << 20
)

var (
	// ErrBusy says that git is in the middle of something in the folder: a
	// lock of another process, a merge, a rebase, a detached HEAD.
	ErrBusy = errors.New("the folder's git repository is busy")
	// ErrNoRevision is returned for a revision that is not in the repository.
	ErrNoRevision = errors.New("no such revision")
)

// Person is whom a commit is by.
type Person struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

// String returns the form "Name <email>".
func (p Person) String() string { return fmt.Sprintf("%s <%s>", p.Name, p.Email) }

// Repo is the repository of one folder. Reading is safe at any time and
// beside git; one process at a time may call what writes, which the caller
// ensures by a lock of its own. A Repo is not for concurrent use.
type Repo struct {
	dir string // the folder
	git string // its .git
	st  *filesystem.Storage
}

// Open opens the repository of a folder; [fs.ErrNotExist] when it has none.
func Open(dir string) (*Repo, error) {
	r := &Repo{dir: dir, git: filepath.Join(dir, ".git")}
	info, err := os.Lstat(r.git)
	if err != nil {
		return nil, fmt.Errorf("open git repository: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("open git repository: %s is not a folder: linked worktrees cannot be used; clone the repository instead", r.git)
	}
	r.reopen()
	return r, nil
}

// Create opens the repository of a folder, and makes one where there is none.
// exclude are patterns that its .git/info/exclude is to hold: a repository
// that came from elsewhere gets them, too.
func Create(dir string, exclude ...string) (*Repo, error) {
	r, err := Open(dir)
	if err == nil {
		if err := r.exclude(exclude); err != nil {
			return nil, fmt.Errorf("open git repository: %w", err)
		}
		return r, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	r = &Repo{dir: dir, git: filepath.Join(dir, ".git")}
	if err := r.create(exclude); err != nil {
		return nil, fmt.Errorf("make a git repository in %s: %w", dir, err)
	}
	r.reopen()
	return r, nil
}

// reopen forgets what go-git has read of packs, after git itself wrote some.
func (r *Repo) reopen() {
	r.st = filesystem.NewStorageWithOptions(osfs.New(r.git), cache.NewObjectLRU(objectCacheBytes), filesystem.Options{ExclusiveAccess: false})
}

// create makes the repository under another name and renames it, so that no
// half one is ever met.
func (r *Repo) create(exclude []string) error {
	left, err := fs.Glob(os.DirFS(r.dir), newPrefix+"*")
	if err != nil {
		return err
	}
	for _, dead := range left {
		if err := os.RemoveAll(filepath.Join(r.dir, dead)); err != nil {
			return err
		}
	}
	temp, err := os.MkdirTemp(r.dir, newPrefix+"*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	for _, d := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags", "info"} {
		if err := os.MkdirAll(filepath.Join(temp, d), durable.DirMode); err != nil {
			return err
		}
	}
	// Bytes are kept as they are, whatever the user's own settings say.
	files := map[string]string{
		"HEAD":         "ref: " + firstBranch + "\n",
		"config":       "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n\tautocrlf = false\n\tsafecrlf = false\n",
		"info/exclude": strings.Join(exclude, "\n") + "\n",
	}
	made := &Repo{git: temp}
	for name, text := range files {
		if err := replace(durable.OS{}, made.git, filepath.Join(temp, filepath.FromSlash(name)), []byte(text)); err != nil {
			return err
		}
	}
	if err := os.Rename(temp, r.git); err != nil {
		return err
	}
	return durable.Sync(r.dir)
}

// exclude adds the patterns that are not in .git/info/exclude yet.
func (r *Repo) exclude(patterns []string) error {
	path := filepath.Join(r.git, "info", "exclude")
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	lines := strings.Split(string(data), "\n")
	var more []string
	for _, p := range patterns {
		if !slices.Contains(lines, p) {
			more = append(more, p)
		}
	}
	if len(more) == 0 {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), durable.DirMode); err != nil {
		return err
	}
	if n := len(data); n > 0 && data[n-1] != '\n' {
		data = append(data, '\n')
	}
	return replace(durable.OS{}, r.git, path, append(data, strings.Join(more, "\n")+"\n"...))
}

// Head returns the current commit; "" when there is none yet.
func (r *Repo) Head() (string, error) {
	_, h, err := r.head()
	if err != nil || h.IsZero() {
		return "", err
	}
	return h.String(), nil
}

// head returns the branch and its commit, zero when it has none yet.
func (r *Repo) head() (branch plumbing.ReferenceName, at plumbing.Hash, err error) {
	ref, err := r.st.Reference(plumbing.HEAD)
	if err != nil {
		return "", at, fmt.Errorf("read HEAD of %s: %w", r.git, err)
	}
	if ref.Type() != plumbing.SymbolicReference {
		return "", at, fmt.Errorf("%w: HEAD of %s is detached; check a branch out", ErrBusy, r.dir)
	}
	branch = ref.Target()
	ref, err = r.st.Reference(branch)
	if errors.Is(err, plumbing.ErrReferenceNotFound) {
		return branch, plumbing.ZeroHash, nil
	}
	if err != nil {
		return "", at, fmt.Errorf("read %s of %s: %w", branch, r.git, err)
	}
	return branch, ref.Hash(), nil
}

// Names returns the names at the top of the current commit's tree.
func (r *Repo) Names() ([]string, error) {
	_, head, err := r.head()
	if err != nil {
		return nil, err
	}
	t, err := r.tree(head)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range t.Entries {
		names = append(names, e.Name)
	}
	return names, nil
}

// tree returns the tree of a commit; an empty one for the zero hash.
func (r *Repo) tree(commit plumbing.Hash) (*object.Tree, error) {
	if commit.IsZero() {
		return &object.Tree{}, nil
	}
	c, err := object.GetCommit(r.st, commit)
	if err != nil {
		return nil, fmt.Errorf("read commit %s of %s: %w", commit, r.git, err)
	}
	t, err := c.Tree()
	if err != nil {
		return nil, fmt.Errorf("read the tree of commit %s of %s: %w", commit, r.git, err)
	}
	return t, nil
}

// ongoing are the files by which git remembers what a user has not finished.
func ongoing() []string {
	return []string{"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply"}
}

// Ready reports, as [ErrBusy], what keeps commits from being made now.
func (r *Repo) Ready() error {
	for _, name := range ongoing() {
		if _, err := os.Lstat(filepath.Join(r.git, name)); err == nil {
			return fmt.Errorf("%w: %s has an unfinished %s; finish or abort it with git", ErrBusy, r.dir, name)
		}
	}
	_, _, err := r.head()
	return err
}

func (r *Repo) blob(h plumbing.Hash) ([]byte, error) {
	b, err := object.GetBlob(r.st, h)
	if err != nil {
		return nil, fmt.Errorf("read object %s of %s: %w", h, r.git, err)
	}
	rd, err := b.Reader()
	if err != nil {
		return nil, fmt.Errorf("read object %s of %s: %w", h, r.git, err)
	}
	defer rd.Close()
	var buf bytes.Buffer
	if _, err := buf.ReadFrom(rd); err != nil {
		return nil, fmt.Errorf("read object %s of %s: %w", h, r.git, err)
	}
	return buf.Bytes(), nil
}

func signature(p Person, at time.Time) object.Signature {
	return object.Signature{Name: clean(p.Name, "unknown"), Email: clean(p.Email, "unknown"), When: at.UTC()}
}

// clean keeps a name from breaking the form of a commit.
func clean(s, or string) string {
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == '<' || r == '>' || r == 0x7f {
			return -1
		}
		return r
	}, s))
	if s == "" {
		return or
	}
	return s
}

package history

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"
	"golang.org/x/sys/unix"
)

// Uncommitted returns the files that differ from the current commit, by path,
// with their bytes; nil bytes for one that is gone, other than by a user's
// sparse checkout. files are the paths to be
// looked at that are there; tracked says which paths of the commit belong to
// the caller, so that their absence counts. Files that are not regular, or
// longer than most, are left out.
func (r *Repo) Uncommitted(files []string, tracked func(path string) bool, most int64) (map[string][]byte, error) {
	r.reopen()
	_, at, err := r.head()
	if err != nil {
		return nil, err
	}
	held, err := r.held(at, tracked)
	if err != nil {
		return nil, err
	}
	known, indexTime, err := r.marks()
	if err != nil {
		return nil, err
	}
	changed := make(map[string][]byte)
	r.unmarked = make(map[string]bool)
	for _, path := range files {
		id, has := held[path]
		delete(held, path)
		full := filepath.Join(r.dir, filepath.FromSlash(path))
		var st unix.Stat_t
		if unix.Lstat(full, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Size > most {
			continue
		}
		if e := known[path]; has && e != nil && e.Hash == id && unchanged(e, &st, indexTime) {
			continue
		}
		data, err := os.ReadFile(full)
		if errors.Is(err, fs.ErrNotExist) {
			if has {
				changed[path] = nil
			}
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look for changes in %s: %w", r.dir, err)
		}
		if !has || plumbing.ComputeHash(plumbing.BlobObject, data) != id {
			changed[path] = append([]byte{}, data...)
		} else {
			r.unmarked[path] = true
		}
	}
	for path := range held {
		if e := known[path]; e != nil && e.SkipWorktree {
			continue // a sparse checkout leaves it out
		}
		if _, err := os.Lstat(filepath.Join(r.dir, filepath.FromSlash(path))); errors.Is(err, fs.ErrNotExist) {
			changed[path] = nil
		}
	}
	return changed, nil
}

// held returns the files of a commit that tracked names.
func (r *Repo) held(at plumbing.Hash, tracked func(string) bool) (map[string]plumbing.Hash, error) {
	root, err := r.tree(at)
	if err != nil {
		return nil, err
	}
	out := make(map[string]plumbing.Hash)
	var walk func(t *object.Tree, prefix string) error
	walk = func(t *object.Tree, prefix string) error {
		for _, e := range t.Entries {
			if e.Mode == filemode.Dir {
				sub, err := object.GetTree(r.st, e.Hash)
				if err != nil {
					return fmt.Errorf("read tree %s of %s: %w", e.Hash, r.git, err)
				}
				if err := walk(sub, prefix+e.Name+"/"); err != nil {
					return err
				}
			} else if e.Mode.IsFile() && tracked(prefix+e.Name) {
				out[prefix+e.Name] = e.Hash
			}
		}
		return nil
	}
	return out, walk(root, "")
}

// marks returns the index's entries by path and when it was written.
func (r *Repo) marks() (map[string]*index.Entry, time.Time, error) {
	idx, err := r.readIndex()
	if err != nil {
		return nil, time.Time{}, err
	}
	var at time.Time
	if info, err := os.Stat(filepath.Join(r.git, "index")); err == nil {
		at = info.ModTime()
	}
	known := make(map[string]*index.Entry, len(idx.Entries))
	for _, e := range idx.Entries {
		known[e.Name] = e
	}
	return known, at, nil
}

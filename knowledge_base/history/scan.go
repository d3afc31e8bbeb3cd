package history

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
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
	held, err := r.trackedBlobs(at, tracked)
	if err != nil {
		return nil, err
	}
	idx, err := r.readIndex()
	if err != nil {
		return nil, err
	}
	changed := make(map[string][]byte)
	for _, path := range files {
		id, has := held[path]
		delete(held, path)
		full := filepath.Join(r.dir, filepath.FromSlash(path))
		info, err := os.Lstat(full)
		if err != nil || !info.Mode().IsRegular() || info.Size() > most {
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
		}
	}
	for _, e := range idx.Entries {
		if e.SkipWorktree { // a sparse checkout leaves it out
			delete(held, e.Name)
		}
	}
	for path := range held {
		if _, err := os.Lstat(filepath.Join(r.dir, filepath.FromSlash(path))); errors.Is(err, fs.ErrNotExist) {
			changed[path] = nil
		}
	}
	return changed, nil
}

// Differing returns those of the files, by path, that are not in the current commit with these
// bytes; none before the first commit. The commit's trees are read once for all of them.
func (r *Repo) Differing(files map[string][]byte) (map[string][]byte, error) {
	_, at, err := r.head()
	if err != nil || at.IsZero() {
		return nil, err
	}
	held, err := r.trackedBlobs(at, func(path string) bool { return files[path] != nil })
	if err != nil {
		return nil, err
	}
	out := make(map[string][]byte)
	for path, data := range files {
		if id, has := held[path]; !has || plumbing.ComputeHash(plumbing.BlobObject, data) != id {
			out[path] = data
		}
	}
	return out, nil
}

// trackedBlobs returns the files of a commit that tracked names.
func (r *Repo) trackedBlobs(at plumbing.Hash, tracked func(string) bool) (map[string]plumbing.Hash, error) {
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

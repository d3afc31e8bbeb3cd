package history

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"anamnesis/knowledge_base/history/internal/gitdir"
	"anamnesis/opstream/durable"
)

// Commit is one commit to be made.
type Commit struct {
	Message string // the first line says what changed, as a user would
	Author  Person
	By      Person // the committer
	At      time.Time
	// Files are the paths that change, with slashes, and their new bytes; nil
	// bytes take a path out. Every other path stays as the branch has it.
	Files map[string][]byte
	// LeftOut are paths that are in the commit and not in the folder, with the ids
	// of their blobs, which need not be in the repository.
	LeftOut map[string]string
	// Merged are further parents, for a merge.
	Merged []string
}

// Commit makes the commit on the current branch and returns its id, and the id of the
// commit before, "" where there is none. Where it would change nothing and merge nothing
// it makes none and returns the current one as both. It is durable when Commit returns. The files themselves are not
// touched: the index takes them for unchanged where they hold these bytes.
func (r *Repo) Commit(c Commit) (made, parent string, err error) {
	r.reopen()
	if err := r.Ready(); err != nil {
		return "", "", err
	}
	release, err := r.lock()
	if err != nil {
		return "", "", err
	}
	defer release()
	branch, at, err := r.head()
	if err != nil {
		return "", "", err
	}
	base, err := r.tree(at)
	if err != nil {
		return "", "", err
	}
	w := objectWriter{repo: r}
	blobs := make(map[string]plumbing.Hash, len(c.Files))
	for path, data := range c.Files {
		if data == nil {
			blobs[path] = plumbing.ZeroHash
			continue
		}
		blobs[path] = w.add(plumbing.BlobObject, data, plumbing.ZeroHash)
	}
	for path, id := range c.LeftOut {
		blobs[path] = plumbing.NewHash(id)
	}
	root, err := w.edit(base, blobs, "")
	if err != nil {
		return "", "", err
	}
	if root == base.Hash && len(c.Merged) == 0 && !at.IsZero() {
		return at.String(), at.String(), r.updateIndex(blobs, c.LeftOut)
	}
	id, err := w.commit(c, root, at)
	if err != nil {
		return "", "", err
	}
	if err := w.write(); err != nil {
		return "", "", err
	}
	if err := r.updateIndex(blobs, c.LeftOut); err != nil {
		return "", "", err
	}
	if !at.IsZero() {
		parent = at.String()
	}
	return id.String(), parent, r.moveBranch(branch, at, id)
}

// objectWriter collects a commit's objects; they are written as one pack.
type objectWriter struct {
	repo    *Repo
	objects []newObject
}

// newObject is an object and, of a tree, the one it was made from.
type newObject struct {
	id   plumbing.Hash
	t    plumbing.ObjectType
	data []byte
	like plumbing.Hash
}

func (w *objectWriter) add(t plumbing.ObjectType, data []byte, like plumbing.Hash) plumbing.Hash {
	id := plumbing.ComputeHash(t, data)
	w.objects = append(w.objects, newObject{id, t, data, like})
	return id
}

// write stores the objects durably.
func (w *objectWriter) write() error {
	largest := 0
	for _, o := range w.objects {
		if o.t == plumbing.TreeObject {
			largest = max(largest, len(o.data))
		}
	}
	g, err := gitdir.Grow(w.repo.git, largest)
	if err != nil {
		return fmt.Errorf("write objects of %s: %w", w.repo.git, err)
	}
	for _, o := range w.objects {
		if err := g.Add(o.id, o.t, o.data, o.like); err != nil {
			return fmt.Errorf("write object %s: %w", o.id, err)
		}
	}
	if err := g.Write(); err != nil {
		return fmt.Errorf("write objects of %s: %w", w.repo.git, err)
	}
	w.repo.reopen()
	return nil
}

// edit returns the tree that base becomes; blobs are all changes, those under
// prefix concern this tree.
func (w *objectWriter) edit(base *object.Tree, blobs map[string]plumbing.Hash, prefix string) (plumbing.Hash, error) {
	entries := slices.Clone(base.Entries)
	here := make(map[string]plumbing.Hash) // files of this tree
	subs := make(map[string]bool)
	for path, id := range blobs {
		rest, ok := strings.CutPrefix(path, prefix)
		if !ok {
			continue
		}
		if name, _, deeper := strings.Cut(rest, "/"); deeper {
			subs[name] = true
		} else {
			here[name] = id
		}
	}
	for name := range subs {
		sub := &object.Tree{}
		if e := find(entries, name); e != nil && e.Mode == filemode.Dir {
			var err error
			if sub, err = object.GetTree(w.repo.st, e.Hash); err != nil {
				return plumbing.ZeroHash, fmt.Errorf("read tree %s of %s: %w", e.Hash, w.repo.git, err)
			}
		}
		id, err := w.edit(sub, blobs, prefix+name+"/")
		if err != nil {
			return plumbing.ZeroHash, err
		}
		if id == emptyTree() {
			id = plumbing.ZeroHash
		}
		entries = set(entries, name, filemode.Dir, id)
	}
	for name, id := range here {
		entries = set(entries, name, filemode.Regular, id)
	}
	sort.Sort(object.TreeEntrySorter(entries))
	var b bytes.Buffer
	for _, e := range entries {
		fmt.Fprintf(&b, "%o %s\x00", uint32(e.Mode), e.Name)
		b.Write(e.Hash[:])
	}
	return w.add(plumbing.TreeObject, b.Bytes(), base.Hash), nil
}

func emptyTree() plumbing.Hash { return plumbing.ComputeHash(plumbing.TreeObject, nil) }

func find(entries []object.TreeEntry, name string) *object.TreeEntry {
	for i := range entries {
		if entries[i].Name == name {
			return &entries[i]
		}
	}
	return nil
}

// set replaces, adds or, for the zero hash, removes an entry. A file that is
// there keeps its mode.
func set(entries []object.TreeEntry, name string, mode filemode.FileMode, id plumbing.Hash) []object.TreeEntry {
	e := find(entries, name)
	switch {
	case id.IsZero():
		return slices.DeleteFunc(entries, func(e object.TreeEntry) bool { return e.Name == name })
	case e == nil:
		return append(entries, object.TreeEntry{Name: name, Mode: mode, Hash: id})
	case mode == filemode.Dir || e.Mode != filemode.Executable:
		e.Mode = mode
	}
	e.Hash = id
	return entries
}

func (w *objectWriter) commit(c Commit, root, parent plumbing.Hash) (plumbing.Hash, error) {
	oc := object.Commit{
		Author: signature(c.Author, c.At), Committer: signature(c.By, c.At),
		Message: strings.TrimSpace(c.Message) + "\n", TreeHash: root,
	}
	if !parent.IsZero() {
		oc.ParentHashes = append(oc.ParentHashes, parent)
	}
	for _, m := range c.Merged {
		oc.ParentHashes = append(oc.ParentHashes, plumbing.NewHash(m))
	}
	var mem plumbing.MemoryObject
	if err := oc.Encode(&mem); err != nil {
		return plumbing.ZeroHash, fmt.Errorf("encode commit: %w", err)
	}
	rd, err := mem.Reader()
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("encode commit: %w", err)
	}
	data, err := io.ReadAll(rd)
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("encode commit: %w", err)
	}
	return w.add(plumbing.CommitObject, data, plumbing.ZeroHash), nil
}

// moveBranch makes the branch name id, if it still names from.
func (r *Repo) moveBranch(branch plumbing.ReferenceName, from, id plumbing.Hash) error {
	_, now, err := r.head()
	if err != nil {
		return err
	}
	if now != from {
		return fmt.Errorf("%w: %s moved meanwhile", ErrBusy, branch)
	}
	path := filepath.Join(r.git, filepath.FromSlash(string(branch)))
	if err := os.MkdirAll(filepath.Dir(path), durable.DirMode); err != nil {
		return fmt.Errorf("move %s: %w", branch, err)
	}
	if err := gitdir.Replace(r.git, path, []byte(id.String()+"\n")); err != nil {
		return fmt.Errorf("move %s: %w", branch, err)
	}
	return nil
}

package history

import (
	"bytes"
	"crypto/rand"
	"errors"
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
	"github.com/go-git/go-git/v5/plumbing/format/objfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"golang.org/x/sync/errgroup"

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
	// Merged are further parents, for a merge.
	Merged []string
}

// Commit makes the commit on the current branch and returns its id. Where it would change
// nothing and merge nothing it makes none and returns the current one. It is durable when
// Commit returns. The files themselves are not touched.
func (r *Repo) Commit(c Commit) (id string, err error) {
	r.reopen()
	if err := r.Ready(); err != nil {
		return "", err
	}
	release, err := r.lock()
	if err != nil {
		return "", err
	}
	defer release()
	branch, at, err := r.head()
	if err != nil {
		return "", err
	}
	base, err := r.tree(at)
	if err != nil {
		return "", err
	}
	w := objectWriter{repo: r}
	blobs := make(map[string]plumbing.Hash, len(c.Files))
	for path, data := range c.Files {
		if data == nil {
			blobs[path] = plumbing.ZeroHash
			continue
		}
		blobs[path] = w.add(plumbing.BlobObject, data)
	}
	root, err := w.edit(base, blobs, "")
	if err != nil {
		return "", err
	}
	if root == base.Hash && len(c.Merged) == 0 && !at.IsZero() {
		return at.String(), r.updateIndex(blobs)
	}
	made, err := w.commit(c, root, at)
	if err != nil {
		return "", err
	}
	if err := w.write(); err != nil {
		return "", err
	}
	if err := r.updateIndex(blobs); err != nil {
		return "", err
	}
	return made.String(), r.moveBranch(branch, at, made)
}

// objectWriter collects a commit's objects.
type objectWriter struct {
	repo    *Repo
	objects []newObject
}

type newObject struct {
	id   plumbing.Hash
	kind plumbing.ObjectType
	data []byte
}

func (w *objectWriter) add(kind plumbing.ObjectType, data []byte) plumbing.Hash {
	id := plumbing.ComputeHash(kind, data)
	w.objects = append(w.objects, newObject{id, kind, data})
	return id
}

// writers is how many objects are written at once: a disk syncs several files in little more than
// the time of one.
const writers = 16

// write stores the objects that are not in the repository yet, as loose objects. Each is synced
// and renamed into place before the commit that names it, so that a crash leaves no half object.
func (w *objectWriter) write() error {
	dirs := make(map[string]bool)
	var group errgroup.Group
	group.SetLimit(writers)
	for _, o := range w.objects {
		if w.repo.st.HasEncodedObject(o.id) == nil {
			continue
		}
		dir := filepath.Join(w.repo.git, "objects", o.id.String()[:2])
		if !dirs[dir] {
			dirs[dir] = true
			if err := durable.MakeDir(durable.OS{}, dir); err != nil {
				return errors.Join(fmt.Errorf("write objects of %s: %w", w.repo.git, err), group.Wait())
			}
		}
		group.Go(func() error { return w.repo.writeLoose(dir, o) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("write objects of %s: %w", w.repo.git, err)
	}
	for dir := range dirs {
		group.Go(func() error { return durable.Sync(dir) })
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("write objects of %s: %w", w.repo.git, err)
	}
	w.repo.reopen()
	return nil
}

// looseMode is read-only as in git, and for the user alone as all files of the folder.
const looseMode = 0o400

// writeLoose writes an object to its folder, which the caller syncs.
func (r *Repo) writeLoose(dir string, o newObject) error {
	var b bytes.Buffer
	zw := objfile.NewWriter(&b)
	err := zw.WriteHeader(o.kind, int64(len(o.data)))
	if err == nil {
		_, err = zw.Write(o.data)
	}
	if err = errors.Join(err, zw.Close()); err != nil {
		return err
	}
	fsys := durable.OS{Mode: looseMode}
	return durable.WriteVia(fsys, filepath.Join(r.git, tempPrefix+rand.Text()), filepath.Join(dir, o.id.String()[2:]), b.Bytes())
}

// tempPrefix is what git, too, calls objects it is writing, so that its gc
// removes those a crash left.
const tempPrefix = "tmp_obj_"

// replace puts data at a path of the repository git by a rename, durably. The
// temporary file lies beside no refs, because git would read it as one.
func replace(fsys durable.FS, git, path string, data []byte) error {
	if err := durable.WriteVia(fsys, filepath.Join(git, tempPrefix+rand.Text()), path, data); err != nil {
		return err
	}
	return fsys.SyncDir(filepath.Dir(path))
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
	return w.add(plumbing.TreeObject, b.Bytes()), nil
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
	return w.add(plumbing.CommitObject, data), nil
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
	if err := replace(durable.OS{}, r.git, path, []byte(id.String()+"\n")); err != nil {
		return fmt.Errorf("move %s: %w", branch, err)
	}
	return nil
}

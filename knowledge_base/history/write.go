package history

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/klauspost/compress/zlib"
)

// Commit is one commit to be made.
type Commit struct {
	Message string // the first line says what changed, as a person would
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

// Commit makes the commit on the current branch and gives its id. Where it
// would change nothing and merge nothing it makes none and gives the current
// one. It is durable when Commit returns. The files themselves are not
// touched: the index takes them for unchanged where they hold these bytes.
func (r *Repo) Commit(c Commit) (string, error) {
	r.reopen()
	if err := r.Ready(); err != nil {
		return "", err
	}
	release, err := r.lock()
	if err != nil {
		return "", err
	}
	defer release()
	branch, parent, err := r.head()
	if err != nil {
		return "", err
	}
	base, err := r.tree(parent)
	if err != nil {
		return "", err
	}
	w := objectWriter{repo: r, dirs: make(map[string]bool)}
	blobs := make(map[string]plumbing.Hash, len(c.Files))
	for path, data := range c.Files {
		if data == nil {
			blobs[path] = plumbing.ZeroHash
			continue
		}
		if blobs[path], err = w.write(plumbing.BlobObject, data); err != nil {
			return "", err
		}
	}
	for path, id := range c.LeftOut {
		blobs[path] = plumbing.NewHash(id)
	}
	root, err := w.edit(base, blobs, "")
	if err != nil {
		return "", err
	}
	if root == base.Hash && len(c.Merged) == 0 && !parent.IsZero() {
		return parent.String(), r.updateIndex(blobs, c.LeftOut)
	}
	id, err := w.commit(c, root, parent)
	if err != nil {
		return "", err
	}
	if err := w.sync(); err != nil {
		return "", err
	}
	if err := r.updateIndex(blobs, c.LeftOut); err != nil {
		return "", err
	}
	return id.String(), r.moveBranch(branch, parent, id)
}

// objectWriter writes loose objects and remembers the folders to be synced.
type objectWriter struct {
	repo *Repo
	dirs map[string]bool
}

// write stores one object durably but for its folder, which sync does. One that
// stands in a pack is written again: to look for it lists git's folders, with
// every card.
func (w *objectWriter) write(t plumbing.ObjectType, data []byte) (plumbing.Hash, error) {
	id := plumbing.ComputeHash(t, data)
	hex := id.String()
	dir := filepath.Join(w.repo.git, "objects", hex[:2])
	path := filepath.Join(dir, hex[2:])
	if _, err := os.Stat(path); err == nil {
		return id, nil
	}
	file, err := loose(t, data)
	if err != nil {
		return id, fmt.Errorf("encode object %s: %w", hex, err)
	}
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return id, fmt.Errorf("write object %s: %w", hex, err)
	}
	temp, err := writeTemp(dir, file, 0o400)
	if err != nil {
		return id, fmt.Errorf("write object %s: %w", hex, err)
	}
	if err := os.Rename(temp, path); err != nil {
		return id, errors.Join(fmt.Errorf("write object %s: %w", hex, err), os.Remove(temp))
	}
	w.dirs[dir], w.dirs[filepath.Dir(dir)] = true, true
	return id, nil
}

// loose gives the bytes of a loose object's file. Trees are mostly hashes, which
// do not get shorter by trying harder, and that of a month is written with each
// of its cards.
func loose(t plumbing.ObjectType, data []byte) ([]byte, error) {
	level := zlib.DefaultCompression
	if t == plumbing.TreeObject {
		level = zlib.BestSpeed
	}
	var b bytes.Buffer
	zw, err := zlib.NewWriterLevel(&b, level)
	if err == nil {
		_, err = fmt.Fprintf(zw, "%s %d\x00", t, len(data))
	}
	if err == nil {
		_, err = zw.Write(data)
	}
	if err == nil {
		err = zw.Close()
	}
	return b.Bytes(), err
}

func (w *objectWriter) sync() error {
	for dir := range w.dirs {
		if err := syncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// edit gives the tree that base becomes; blobs are all changes, those under
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
	return w.write(plumbing.TreeObject, b.Bytes())
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
	return w.write(plumbing.CommitObject, data)
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
	if err := os.MkdirAll(filepath.Dir(path), dirMode); err != nil {
		return fmt.Errorf("move %s: %w", branch, err)
	}
	if err := r.replace(path, []byte(id.String()+"\n")); err != nil {
		return fmt.Errorf("move %s: %w", branch, err)
	}
	return nil
}

// tempPrefix is what git, too, calls objects it is writing, so that its gc
// removes those a crash left.
const tempPrefix = "tmp_obj_"

// writeTemp writes a new synced file in dir.
func writeTemp(dir string, data []byte, mode fs.FileMode) (string, error) {
	f, err := os.CreateTemp(dir, tempPrefix+"*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// replace puts data at a path of the repository by a rename, durably. The
// temporary file lies beside no refs: git would take it for one.
func (r *Repo) replace(path string, data []byte) error {
	temp, err := writeTemp(r.git, data, fileMode)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return syncDir(filepath.Dir(path))
}

// sweep removes what dead writers left of replace.
func (r *Repo) sweep() error {
	left, err := fs.Glob(os.DirFS(r.git), tempPrefix+"*")
	if err != nil {
		return err
	}
	for _, name := range left {
		if err := os.Remove(filepath.Join(r.git, name)); err != nil {
			return err
		}
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}

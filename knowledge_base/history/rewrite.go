package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"anamnesis/knowledge_base/history/internal/gitdir"
)

// maxScrubBytes is the longest file whose bytes a rewrite looks at.
const maxScrubBytes = 16 << 20

// Scrub replaces names and contents in a rewrite. Its methods return their argument where nothing
// is to be replaced, and the kinds of what they replaced.
type Scrub interface {
	// Name returns the new last part of a path.
	Name(path string) (base string, kinds []string)
	// Blob returns the new bytes of a file; path is "" for one without a name.
	Blob(path string, data []byte) (out []byte, kinds []string)
	// Text returns the new text of a message.
	Text(text string) (out string, kinds []string)
}

// Place is where a rewrite replaces something.
type Place struct {
	Path    string   `json:"path"`    // as it is called after the rewrite; one of the constants below for no file
	Kinds   []string `json:"kinds"`   // of what is replaced, sorted
	Commits int      `json:"commits"` // that hold it; objects for [Unreachable]
}

// Places of findings that are not paths.
const (
	Messages    = "(commit messages)"
	Unreachable = "(objects that no branch or tag leads to)"
)

// Survey is what a rewrite would replace.
type Survey struct {
	Places  []Place
	Changed int // commits that would get another id
	Commits int
	Unread  []string // paths of files that are too long to be looked at
}

// Survey examines all objects that the refs and the index reach, and the unreachable ones.
func (r *Repo) Survey(ctx context.Context, scrub Scrub) (*Survey, error) {
	r.reopen()
	w, err := r.rewriter(ctx, scrub, nil)
	if err != nil {
		return nil, err
	}
	if err := w.surveyUnreachable(ctx); err != nil {
		return nil, err
	}
	return w.survey(), nil
}

// rewriter computes the new form of each object that the refs reach, and writes it to a new
// repository if there is one.
type rewriter struct {
	r     *Repo
	scrub Scrub
	to    *gitdir.Packer // nil: nothing is written
	tips  []*plumbing.Reference

	names   map[string]name
	files   map[at]changed
	trees   map[at]changed
	commits map[plumbing.Hash]plumbing.Hash
	seen    map[plumbing.Hash]bool
	unread  map[string]bool
	places  map[string]*Place
}

// at is an object at a path, whose name may decide about it.
type at struct {
	path string
	id   plumbing.Hash
}

type name struct {
	base  string
	kinds []string
}

// changed is the result for an object: its new id, and the kinds of what was replaced, by new
// path.
type changed struct {
	id    plumbing.Hash
	found map[string][]string
}

// rewriter walks all refs and the index.
func (r *Repo) rewriter(ctx context.Context, scrub Scrub, to *gitdir.Packer) (*rewriter, error) {
	w := &rewriter{r: r, scrub: scrub, to: to, names: map[string]name{}, files: map[at]changed{}, trees: map[at]changed{},
		commits: map[plumbing.Hash]plumbing.Hash{}, seen: map[plumbing.Hash]bool{}, unread: map[string]bool{}, places: map[string]*Place{}}
	var err error
	if w.tips, err = r.tips(); err != nil {
		return nil, err
	}
	for _, ref := range w.tips {
		if ref.Type() == plumbing.HashReference {
			if _, err := w.object(ctx, ref.Hash()); err != nil {
				return nil, fmt.Errorf("%s of %s: %w", ref.Name(), r.dir, err)
			}
		}
	}
	idx, err := r.readIndex()
	if err != nil {
		return nil, err
	}
	for _, e := range idx.Entries {
		if e.Mode == filemode.Submodule {
			continue
		}
		ch, err := w.file(ctx, e.Name, e.Hash)
		if err != nil {
			return nil, err
		}
		for p, kinds := range ch.found {
			w.note(p, kinds, 0)
		}
	}
	return w, nil
}

// tips returns the refs but HEAD and what was fetched last, sorted.
func (r *Repo) tips() ([]*plumbing.Reference, error) {
	refs, err := r.st.IterReferences()
	if err != nil {
		return nil, fmt.Errorf("read the refs of %s: %w", r.git, err)
	}
	defer refs.Close()
	var out []*plumbing.Reference
	err = refs.ForEach(func(ref *plumbing.Reference) error {
		if ref.Name() != plumbing.HEAD && !strings.HasPrefix(string(ref.Name()), fetchedRefs) {
			out = append(out, ref)
		}
		return nil
	})
	slices.SortFunc(out, func(a, b *plumbing.Reference) int { return strings.Compare(string(a.Name()), string(b.Name())) })
	return out, err
}

func (w *rewriter) note(path string, kinds []string, commits int) {
	p := w.places[path]
	if p == nil {
		p = &Place{Path: path}
		w.places[path] = p
	}
	p.Commits += commits
	p.Kinds = append(p.Kinds, kinds...)
	slices.Sort(p.Kinds)
	p.Kinds = slices.Compact(p.Kinds)
}

func (w *rewriter) survey() *Survey {
	s := &Survey{Commits: len(w.commits), Unread: slices.Sorted(maps.Keys(w.unread))}
	for was, is := range w.commits {
		if was != is {
			s.Changed++
		}
	}
	for _, p := range slices.Sorted(maps.Keys(w.places)) {
		s.Places = append(s.Places, *w.places[p])
	}
	return s
}

// read returns an object's type and bytes.
func (w *rewriter) read(ctx context.Context, id plumbing.Hash) (plumbing.ObjectType, []byte, error) {
	if err := ctx.Err(); err != nil {
		return plumbing.InvalidObject, nil, err
	}
	o, err := w.r.st.EncodedObject(plumbing.AnyObject, id)
	if err != nil {
		return plumbing.InvalidObject, nil, fmt.Errorf("read object %s of %s: %w", id, w.r.git, err)
	}
	rd, err := o.Reader()
	if err != nil {
		return o.Type(), nil, fmt.Errorf("read object %s of %s: %w", id, w.r.git, err)
	}
	data, err := io.ReadAll(rd)
	return o.Type(), data, errors.Join(err, rd.Close())
}

// keep writes an object and returns its id.
func (w *rewriter) keep(t plumbing.ObjectType, data []byte) (plumbing.Hash, error) {
	if w.to != nil {
		return w.to.Add(t, data)
	}
	return plumbing.ComputeHash(t, data), nil
}

// object returns the new id of what a ref names.
func (w *rewriter) object(ctx context.Context, id plumbing.Hash) (plumbing.Hash, error) {
	t, data, err := w.read(ctx, id)
	if err != nil {
		return id, err
	}
	switch t {
	case plumbing.CommitObject:
		return w.history(ctx, id)
	case plumbing.TreeObject:
		ch, err := w.tree(ctx, "", "", id)
		return ch.id, err
	case plumbing.TagObject:
		w.seen[id] = true
		return w.tag(ctx, data)
	}
	ch, err := w.file(ctx, "", id)
	return ch.id, err
}

// history rewrites a commit after all that it comes from.
func (w *rewriter) history(ctx context.Context, tip plumbing.Hash) (plumbing.Hash, error) {
	todo := []plumbing.Hash{tip}
	for len(todo) > 0 {
		id := todo[len(todo)-1]
		if _, done := w.commits[id]; done {
			todo = todo[:len(todo)-1]
			continue
		}
		t, data, err := w.read(ctx, id)
		if err != nil {
			return id, err
		}
		if t != plumbing.CommitObject {
			return id, fmt.Errorf("object %s of %s is no commit", id, w.r.git)
		}
		h, err := parseHeader(data)
		if err != nil {
			return id, fmt.Errorf("commit %s of %s: %w", id, w.r.git, err)
		}
		n := len(todo)
		for _, p := range h.ids("parent") {
			if _, done := w.commits[p]; !done {
				todo = append(todo, p)
			}
		}
		if len(todo) > n {
			continue
		}
		todo = todo[:n-1]
		w.seen[id] = true
		if w.commits[id], err = w.commit(ctx, data, h); err != nil {
			return id, err
		}
	}
	return w.commits[tip], nil
}

// commit rewrites one commit: author, committer and dates stay byte for byte; a
// signature is no longer valid.
func (w *rewriter) commit(ctx context.Context, data []byte, h header) (plumbing.Hash, error) {
	trees := h.ids("tree")
	if len(trees) != 1 {
		return plumbing.ZeroHash, errors.New("a commit without a tree")
	}
	root, err := w.tree(ctx, "", "", trees[0])
	if err != nil {
		return plumbing.ZeroHash, err
	}
	for p, kinds := range root.found {
		w.note(p, kinds, 1)
	}
	text, kinds := w.scrub.Text(h.text)
	if len(kinds) > 0 {
		w.note(Messages, kinds, 1)
	}
	out := h.with(text, func(field string, id plumbing.Hash) plumbing.Hash {
		if field == "tree" {
			return root.id
		}
		return w.commits[id]
	})
	if out == nil {
		return w.keep(plumbing.CommitObject, data)
	}
	return w.keep(plumbing.CommitObject, out)
}

func (w *rewriter) tag(ctx context.Context, data []byte) (plumbing.Hash, error) {
	h, err := parseHeader(data)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	ids := h.ids("object")
	if len(ids) != 1 {
		return plumbing.ZeroHash, errors.New("a tag of nothing")
	}
	target, err := w.object(ctx, ids[0])
	if err != nil {
		return target, err
	}
	text, kinds := w.scrub.Text(h.text)
	if len(kinds) > 0 {
		w.note(Messages, kinds, 1)
	}
	if out := h.with(text, func(string, plumbing.Hash) plumbing.Hash { return target }); out != nil {
		data = out
		if i := bytes.Index(data, []byte("-----BEGIN ")); i >= 0 {
			data = data[:i]
		}
	}
	return w.keep(plumbing.TagObject, data)
}

// tree rewrites the folder at the path was, whose new path is now.
func (w *rewriter) tree(ctx context.Context, was, now string, id plumbing.Hash) (changed, error) {
	key := at{was, id}
	if ch, ok := w.trees[key]; ok {
		return ch, nil
	}
	w.seen[id] = true
	t, err := object.GetTree(w.r.st, id)
	if err != nil {
		return changed{}, fmt.Errorf("read tree %s of %s: %w", id, w.r.git, err)
	}
	ch := changed{found: map[string][]string{}}
	taken := make(map[string]bool, len(t.Entries))
	var entries []object.TreeEntry
	for _, e := range t.Entries {
		n := w.name(path.Join(was, e.Name))
		for taken[n.base] {
			n.base = e.Hash.String()[:8] + "-" + n.base
		}
		taken[n.base] = true
		to := path.Join(now, n.base)
		if len(n.kinds) > 0 {
			ch.found[to] = append(ch.found[to], n.kinds...)
		}
		var sub changed
		switch e.Mode {
		case filemode.Submodule:
			sub.id = e.Hash
		case filemode.Dir:
			sub, err = w.tree(ctx, path.Join(was, e.Name), to, e.Hash)
		default:
			sub, err = w.file(ctx, path.Join(was, e.Name), e.Hash)
		}
		if err != nil {
			return ch, err
		}
		for p, kinds := range sub.found {
			if e.Mode != filemode.Dir {
				p = to
			}
			ch.found[p] = append(ch.found[p], kinds...)
		}
		entries = append(entries, object.TreeEntry{Name: n.base, Mode: e.Mode, Hash: sub.id})
	}
	sort.Sort(object.TreeEntrySorter(entries))
	var b bytes.Buffer
	for _, e := range entries {
		fmt.Fprintf(&b, "%o %s\x00", uint32(e.Mode), e.Name)
		b.Write(e.Hash[:])
	}
	if ch.id, err = w.keep(plumbing.TreeObject, b.Bytes()); err != nil {
		return ch, err
	}
	w.trees[key] = ch
	return ch, nil
}

func (w *rewriter) name(p string) name {
	n, ok := w.names[p]
	if !ok {
		n.base, n.kinds = w.scrub.Name(p)
		w.names[p] = n
	}
	return n
}

// file rewrites a blob. One that is not in the repository was left out by a sync.
func (w *rewriter) file(ctx context.Context, p string, id plumbing.Hash) (changed, error) {
	key := at{p, id}
	if ch, ok := w.files[key]; ok {
		return ch, nil
	}
	ch := changed{id: id}
	size, err := w.r.st.EncodedObjectSize(id)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return ch, nil
	}
	if err != nil {
		return ch, fmt.Errorf("read object %s of %s: %w", id, w.r.git, err)
	}
	w.seen[id] = true
	_, data, err := w.read(ctx, id)
	if err != nil {
		return ch, err
	}
	if size > maxScrubBytes {
		w.unread[p] = true
	} else if out, kinds := w.scrub.Blob(p, data); len(kinds) > 0 {
		data, ch.found = out, map[string][]string{w.renamed(p): kinds}
	}
	if ch.id, err = w.keep(plumbing.BlobObject, data); err != nil {
		return ch, err
	}
	w.files[key] = ch
	return ch, nil
}

// renamed returns a path's new name.
func (w *rewriter) renamed(p string) string {
	var parts []string
	for at := p; at != "." && at != "" && at != "/"; at = path.Dir(at) {
		parts = append(parts, w.name(at).base)
	}
	slices.Reverse(parts)
	return strings.Join(parts, "/")
}

// surveyUnreachable examines the unreachable objects.
func (w *rewriter) surveyUnreachable(ctx context.Context) error {
	objects, err := w.r.st.IterEncodedObjects(plumbing.AnyObject)
	if err != nil {
		return fmt.Errorf("list the objects of %s: %w", w.r.git, err)
	}
	defer objects.Close()
	return objects.ForEach(func(o plumbing.EncodedObject) error {
		if w.seen[o.Hash()] || o.Size() > maxScrubBytes || o.Type() == plumbing.TreeObject {
			return ctx.Err()
		}
		t, data, err := w.read(ctx, o.Hash())
		if err != nil {
			return err
		}
		var kinds []string
		if t == plumbing.BlobObject {
			_, kinds = w.scrub.Blob("", data)
		} else {
			_, kinds = w.scrub.Text(string(data))
		}
		if len(kinds) > 0 {
			w.note(Unreachable, kinds, 1)
		}
		return nil
	})
}

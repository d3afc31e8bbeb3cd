//go:build unix

package worldstate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	gitdiff "github.com/go-git/go-git/v5/plumbing/format/diff"
	linediff "github.com/go-git/go-git/v5/utils/diff"
)

// ChangeKind is how a path differs between two snapshots.
type ChangeKind string

const (
	Added    ChangeKind = "added"
	Deleted  ChangeKind = "deleted"
	Modified ChangeKind = "modified" // other content
	Mode     ChangeKind = "mode"     // the same content, other permissions
	Type     ChangeKind = "type"     // file, link or directory became another of these
)

// A Change is one path that differs. Directories end in a slash and are
// listed only where an empty one or its mode is all that changed.
type Change struct {
	Path string     `json:"path"`
	Kind ChangeKind `json:"kind"`
	Old  *Side      `json:"old,omitempty"` // nil when added
	New  *Side      `json:"new,omitempty"` // nil when deleted
}

// A Side is one end of a change.
type Side struct {
	Type string `json:"type"`           // file, link or dir
	Mode string `json:"mode,omitempty"` // four octal digits; none for a link
	Blob string `json:"blob,omitempty"` // the content's git id; none for a directory
}

// Diff lists the paths in which two snapshots differ, sorted. a may be "" for
// an empty world.
func (w *World) Diff(ctx context.Context, a, b ID) ([]Change, error) {
	end, err := w.begin(ctx, false)
	if err != nil {
		return nil, err
	}
	defer end()
	changes, _, err := w.diff(a, b)
	return changes, err
}

// pair is both states of a changed path.
type pair struct{ from, to state }

func (w *World) diff(a, b ID) ([]Change, []pair, error) {
	var lists [2]*listing
	for i, id := range []ID{a, b} {
		lists[i] = newListing(nil)
		if id == "" {
			continue
		}
		c, err := w.byID(id)
		if err == nil {
			lists[i], err = w.tree(c.tree)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("diff: %w", err)
		}
	}
	full := [2]map[string]bool{parents(lists[0]), parents(lists[1])}
	changes, pairs := []Change{}, []pair{}
	union(lists[0], lists[1], func(path string, from, to state) {
		if from == to || from.isDir() && to.absent() && full[0][path] || to.isDir() && from.absent() && full[1][path] {
			return // a directory that came or went with what is in it
		}
		c := Change{Path: path, Old: side(from), New: side(to)}
		switch {
		case from.absent():
			c.Kind = Added
		case to.absent():
			c.Kind = Deleted
		case from.kind != to.kind:
			c.Kind = Type
		case from.hash != to.hash:
			c.Kind = Modified
		default:
			c.Kind = Mode
		}
		if (from.isDir() || from.absent()) && (to.isDir() || to.absent()) {
			c.Path += "/"
		}
		changes = append(changes, c)
		pairs = append(pairs, pair{from, to})
	})
	return changes, pairs, nil
}

// parents is the set of directories with something in them.
func parents(l *listing) map[string]bool {
	set := make(map[string]bool)
	for i := range l.entries {
		set[dir(l.entries[i].path)] = true
	}
	return set
}

func side(s state) *Side {
	switch s.kind {
	case kindFile:
		return &Side{"file", fmt.Sprintf("%04o", s.perm), s.hash.String()}
	case kindLink:
		return &Side{Type: "link", Blob: s.hash.String()}
	case kindDir:
		return &Side{Type: "dir", Mode: fmt.Sprintf("%04o", s.perm)}
	}
	return nil
}

const (
	// maxPatchBytes: a larger file is shown as binary.
	maxPatchBytes = 1 << 20
	// patchTime bounds the line comparison of one file; past it the patch is
	// right, but not the shortest.
	patchTime    = 2 * time.Second
	contextLines = 3
)

// Patch writes the difference of two snapshots as a unified diff with git's
// headers. Files that are not text, or over 1 MiB, only as differing.
func (w *World) Patch(ctx context.Context, out io.Writer, a, b ID) error {
	end, err := w.begin(ctx, false)
	if err != nil {
		return err
	}
	defer end()
	changes, pairs, err := w.diff(a, b)
	if err != nil {
		return err
	}
	for i, c := range changes {
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, half := range halves(pairs[i]) {
			p, err := w.filePatch(strings.TrimSuffix(c.Path, "/"), half)
			if err != nil {
				return fmt.Errorf("patch: %w", err)
			}
			if p == nil {
				continue
			}
			if err := gitdiff.NewUnifiedEncoder(out, contextLines).Encode(p); err != nil {
				return fmt.Errorf("patch: %w", err)
			}
		}
	}
	return nil
}

// halves splits a change of type, which a patch shows as a deletion and an
// addition.
func halves(p pair) []pair {
	if p.from.absent() || p.to.absent() || p.from.kind == p.to.kind {
		return []pair{p}
	}
	return []pair{{p.from, state{}}, {state{}, p.to}}
}

// filePatch is one file's part of a patch; nil for a directory.
func (w *World) filePatch(path string, p pair) (*patchFile, error) {
	if p.from.isDir() || p.to.isDir() {
		return nil, nil
	}
	out := &patchFile{}
	var text [2]string
	for i, s := range []state{p.from, p.to} {
		if s.absent() {
			continue
		}
		out.sides[i] = &patchSide{path, s}
		data, whole, err := w.text(s.hash, path)
		if err != nil {
			return nil, err
		}
		out.binary = out.binary || !whole || bytes.IndexByte(data, 0) >= 0
		text[i] = string(data)
	}
	if out.binary {
		return out, nil
	}
	for _, d := range linediff.DoWithTimeout(text[0], text[1], patchTime) {
		op := gitdiff.Equal
		switch {
		case d.Type < 0:
			op = gitdiff.Delete
		case d.Type > 0:
			op = gitdiff.Add
		}
		out.chunks = append(out.chunks, patchChunk{d.Text, op})
	}
	return out, nil
}

// text reads a blob up to maxPatchBytes; whole is false for a longer one.
func (w *World) text(h hash, path string) (data []byte, whole bool, err error) {
	lim := &limitBuffer{}
	if _, err := w.objects.copyTo(h, blobObject, path, lim); err != nil && !errors.Is(err, errTooLong) {
		return nil, false, err
	} else if err != nil {
		return nil, false, nil
	}
	return lim.b.Bytes(), true, nil
}

var errTooLong = errors.New("too long to show")

type limitBuffer struct{ b bytes.Buffer }

func (l *limitBuffer) Write(p []byte) (int, error) {
	if l.b.Len()+len(p) > maxPatchBytes {
		return 0, errTooLong
	}
	return l.b.Write(p)
}

// patchFile and its parts are what go-git's encoder asks for.
type patchFile struct {
	sides  [2]*patchSide
	binary bool
	chunks []gitdiff.Chunk
}

func (p *patchFile) FilePatches() []gitdiff.FilePatch { return []gitdiff.FilePatch{p} }
func (p *patchFile) Message() string                  { return "" }
func (p *patchFile) IsBinary() bool                   { return p.binary }
func (p *patchFile) Chunks() []gitdiff.Chunk          { return p.chunks }

func (p *patchFile) Files() (from, to gitdiff.File) {
	if p.sides[0] != nil {
		from = p.sides[0]
	}
	if p.sides[1] != nil {
		to = p.sides[1]
	}
	return from, to
}

type patchSide struct {
	path  string
	state state
}

func (s *patchSide) Hash() plumbing.Hash { return plumbing.Hash(s.state.hash) }
func (s *patchSide) Path() string        { return s.path }

func (s *patchSide) Mode() filemode.FileMode {
	switch s.state.gitMode() {
	case "100755":
		return filemode.Executable
	case "120000":
		return filemode.Symlink
	}
	return filemode.Regular
}

type patchChunk struct {
	content string
	op      gitdiff.Operation
}

func (c patchChunk) Content() string         { return c.content }
func (c patchChunk) Type() gitdiff.Operation { return c.op }

package diff

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

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/tree"
)

const (
	// maxPatchBytes: a larger file is shown as binary.
	maxPatchBytes = 1 << 20
	// patchTime bounds the line comparison of one file; beyond it the patch is correct, but not
	// minimal.
	patchTime    = 2 * time.Second
	contextLines = 3
)

// Patch writes changes as a unified diff that `git apply` accepts.
func Patch(ctx context.Context, s *objects.Store, out io.Writer, changes []Change) error {
	for _, c := range changes {
		for _, half := range halves(c) {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := filePatch(s, out, half); err != nil {
				return fmt.Errorf("patch %q: %w", c.Path, err)
			}
		}
	}
	return nil
}

// halves splits a change of type into a deletion and an addition, as patches show it.
func halves(c Change) []Change {
	if c.Old == nil || c.New == nil || c.Old.Type == c.New.Type {
		return []Change{c}
	}
	return []Change{{Path: c.Path, Kind: Deleted, Old: c.Old}, {Path: c.Path, Kind: Added, New: c.New}}
}

// filePatch writes one file's part, nothing for a directory.
func filePatch(store *objects.Store, out io.Writer, c Change) error {
	path := strings.TrimSuffix(c.Path, "/")
	var text [2]string
	binary := false
	for i, s := range []*Side{c.Old, c.New} {
		if s == nil {
			continue
		}
		if s.Type == "dir" {
			return nil
		}
		h, ok := gitfmt.ParseHash(s.Blob)
		if !ok {
			return fmt.Errorf("bad blob id %q", s.Blob)
		}
		data, err := store.ReadUpTo(h, gitfmt.BlobObject, path, maxPatchBytes)
		if err != nil && !errors.Is(err, objects.ErrTooLarge) {
			return err
		}
		binary = binary || err != nil || bytes.IndexByte(data, 0) >= 0
		text[i] = string(data)
	}
	if _, err := io.WriteString(out, patchHeader(c, path, binary)); err != nil || binary {
		return err
	}
	hunks, err := encodeHunks(text[0], text[1])
	if err == nil {
		_, err = out.Write(hunks)
	}
	return err
}

// patchHeader returns git's extended header.
func patchHeader(c Change, path string, binary bool) string {
	from := path
	if c.From != "" {
		from = c.From
	}
	a, b := quoteGit("a/"+from), quoteGit("b/"+path)
	var s strings.Builder
	fmt.Fprintf(&s, "diff --git %s %s\n", a, b)
	var ids [2]string
	switch {
	case c.Old == nil:
		ids = [2]string{gitfmt.Hash{}.String(), c.New.Blob}
		a = "/dev/null"
		fmt.Fprintf(&s, "new file mode %s\n", c.New.gitMode())
	case c.New == nil:
		ids = [2]string{c.Old.Blob, gitfmt.Hash{}.String()}
		b = "/dev/null"
		fmt.Fprintf(&s, "deleted file mode %s\n", c.Old.gitMode())
	default:
		ids = [2]string{c.Old.Blob, c.New.Blob}
		if c.Old.gitMode() != c.New.gitMode() {
			fmt.Fprintf(&s, "old mode %s\nnew mode %s\n", c.Old.gitMode(), c.New.gitMode())
		}
		if c.From != "" {
			fmt.Fprintf(&s, "similarity index %d%%\nrename from %s\nrename to %s\n", c.Similarity, quoteGit(from), quoteGit(path))
		}
	}
	if ids[0] == ids[1] {
		return s.String()
	}
	fmt.Fprintf(&s, "index %s..%s", ids[0], ids[1])
	if c.Old != nil && c.New != nil && c.Old.gitMode() == c.New.gitMode() {
		s.WriteString(" " + c.Old.gitMode())
	}
	if binary {
		fmt.Fprintf(&s, "\nBinary files %s and %s differ\n", a, b)
	} else if empty := gitfmt.HashObject(gitfmt.BlobObject, nil).String(); ids[0] != empty && ids[1] != empty || c.Old != nil && c.New != nil {
		fmt.Fprintf(&s, "\n--- %s\n+++ %s\n", a, b)
	} else {
		s.WriteString("\n") // an empty file has no hunk, so git writes no names here
	}
	return s.String()
}

func (s *Side) gitMode() string {
	if s.Type == "link" {
		return "120000"
	}
	if perm, err := tree.ParsePerm(s.Mode); err == nil && perm&0o100 != 0 {
		return "100755"
	}
	return "100644"
}

// quoteGit quotes a path as git does, if it has a quote, a backslash, a control character or a
// byte over 0x7f.
func quoteGit(path string) string {
	var s strings.Builder
	odd := false
	for i := 0; i < len(path); i++ {
		c := path[i]
		if j := strings.IndexByte("\a\b\t\n\v\f\r\"\\", c); j >= 0 {
			odd = true
			s.WriteByte('\\')
			s.WriteByte(`abtnvfr"\`[j])
			continue
		}
		if c < 0x20 || c >= 0x7f {
			odd = true
			fmt.Fprintf(&s, `\%03o`, c)
			continue
		}
		s.WriteByte(c)
	}
	if !odd {
		return path
	}
	return `"` + s.String() + `"`
}

// encodeHunks returns the hunks of a unified diff. It cuts off the header of go-git's encoder,
// which quotes no names.
func encodeHunks(from, to string) ([]byte, error) {
	p := &patchFile{}
	for _, d := range linediff.DoWithTimeout(from, to, patchTime) {
		op := gitdiff.Equal
		switch {
		case d.Type < 0:
			op = gitdiff.Delete
		case d.Type > 0:
			op = gitdiff.Add
		}
		p.chunks = append(p.chunks, patchChunk{d.Text, op})
	}
	var b bytes.Buffer
	if err := gitdiff.NewUnifiedEncoder(&b, contextLines).Encode(p); err != nil {
		return nil, err
	}
	if i := bytes.Index(b.Bytes(), []byte("\n@@ ")); i >= 0 {
		return b.Bytes()[i+1:], nil
	}
	return nil, nil
}

// patchFile and its parts implement the input of go-git's encoder.
type patchFile struct{ chunks []gitdiff.Chunk }

func (p *patchFile) FilePatches() []gitdiff.FilePatch { return []gitdiff.FilePatch{p} }
func (p *patchFile) Message() string                  { return "" }
func (p *patchFile) IsBinary() bool                   { return false }
func (p *patchFile) Chunks() []gitdiff.Chunk          { return p.chunks }
func (p *patchFile) Files() (from, to gitdiff.File)   { return patchSide{}, patchSide{} }

// patchSide is a placeholder for both files of the header that is cut off.
type patchSide struct{}

func (patchSide) Hash() plumbing.Hash     { return plumbing.ZeroHash }
func (patchSide) Path() string            { return "" }
func (patchSide) Mode() filemode.FileMode { return filemode.Regular }

type patchChunk struct {
	content string
	op      gitdiff.Operation
}

func (c patchChunk) Content() string         { return c.content }
func (c patchChunk) Type() gitdiff.Operation { return c.op }

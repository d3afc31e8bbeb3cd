package diff

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	linediff "github.com/rogpeppe/go-internal/diff"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/tree"
)

// maxPatchBytes: a larger file is shown as binary.
const maxPatchBytes = 1 << 20

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
	var text [2][]byte
	binary := c.Secret
	for i, s := range []*Side{c.Old, c.New} {
		if s == nil {
			continue
		}
		if s.Type == "dir" {
			return nil
		}
		if c.Secret {
			continue
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
		text[i] = data
	}
	if _, err := io.WriteString(out, patchHeader(c, path, binary)); err != nil || binary {
		return err
	}
	// The library's header is dropped: it quotes no names.
	if diff := linediff.Diff("a", text[0], "b", text[1]); diff != nil {
		_, err := out.Write(diff[bytes.Index(diff, []byte("\n@@ "))+1:])
		return err
	}
	return nil
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
			fmt.Fprintf(&s, "similarity index %d%%\nrename from %s\nrename to %s\n",
				c.Similarity, quoteGit(from), quoteGit(path))
		}
	}
	if c.Secret {
		return s.String() + "Not shown: an ignored file that snapshots hold for restores only\n"
	}
	if ids[0] == ids[1] {
		return s.String()
	}
	fmt.Fprintf(&s, "index %s..%s", ids[0], ids[1])
	if c.Old != nil && c.New != nil && c.Old.gitMode() == c.New.gitMode() {
		s.WriteString(" " + c.Old.gitMode())
	}
	empty := gitfmt.HashObject(gitfmt.BlobObject, nil).String()
	switch {
	case binary:
		fmt.Fprintf(&s, "\nBinary files %s and %s differ\n", a, b)
	case c.Old != nil && c.New != nil || ids[0] != empty && ids[1] != empty:
		fmt.Fprintf(&s, "\n--- %s\n+++ %s\n", a, b)
	default:
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
	for _, c := range []byte(path) {
		switch j := strings.IndexByte("\a\b\t\n\v\f\r\"\\", c); {
		case j >= 0:
			s.WriteString(`\` + `abtnvfr"\`[j:j+1])
		case c < 0x20 || c >= 0x7f:
			fmt.Fprintf(&s, `\%03o`, c)
		default:
			s.WriteByte(c)
		}
	}
	if s.Len() == len(path) { // an escape is longer than its byte
		return path
	}
	return `"` + s.String() + `"`
}

package history

import (
	"bytes"
	"fmt"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
)

// A user's ref in a store may name what no snapshot is: a tag with a text of its
// own (git tag -a), or a file. A collection keeps that, and Verify reads it.

// Aside is an object a ref leads to that is no commit.
type Aside struct {
	Kind gitfmt.ObjectType
	Next gitfmt.Hash // what a tag is of
}

// ReadAside reads the object but not what it leads to. what is the ref or what
// else leads to it.
func ReadAside(s *objects.Store, h gitfmt.Hash, what string) (Aside, error) {
	var a Aside
	err := s.Retry(h, func() error {
		t, _, r, err := s.Open(h)
		if err != nil {
			return &gitfmt.MissingObjectError{Object: h.String(), Path: what, Err: err}
		}
		a.Kind = t
		return r.Close()
	})
	if err != nil || a.Kind != gitfmt.TagObject {
		return a, err
	}
	data, err := s.Read(h, gitfmt.TagObject, what)
	if err != nil {
		return a, err
	}
	line, _, _ := bytes.Cut(data, []byte("\n"))
	var ok bool
	if a.Next, ok = gitfmt.ParseHash(string(bytes.TrimPrefix(line, []byte("object ")))); !ok {
		return a, &gitfmt.MissingObjectError{Object: h.String(), Path: what, Err: fmt.Errorf("a tag of nothing: %q", line)}
	}
	return a, nil
}

// BrokenRef says how to get on where a user's ref leads to what is missing or
// damaged.
func BrokenRef(s *objects.Store, ref string, err error) error {
	return fmt.Errorf("%w: %s leads there; 'git --git-dir=%s update-ref -d %s' removes that ref", err, ref, s.Dir, ref)
}

// FollowTags follows tags from what a user's ref names to the commit they are of;
// ok is false where that is a file or a folder.
func FollowTags(s *objects.Store, h gitfmt.Hash, ref string) (of gitfmt.Hash, ok bool, err error) {
	for {
		a, err := ReadAside(s, h, ref)
		if err != nil || a.Kind != gitfmt.TagObject {
			return h, a.Kind == gitfmt.CommitObject, err
		}
		h = a.Next
	}
}

package gc

import (
	"bytes"
	"fmt"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
)

// A user's ref in a store may name what no snapshot is: a tag with a text of its
// own (git tag -a), or a file. A collection keeps that, and Verify reads it.

// aside is an object a ref leads to that is no commit.
type aside struct {
	hash gitfmt.Hash
	kind gitfmt.ObjectType
	next gitfmt.Hash // what a tag is of
}

// readAside reads the object but not what it leads to. what is the ref or what
// else leads to it.
func readAside(s *objects.Store, h gitfmt.Hash, what string) (aside, error) {
	a := aside{hash: h}
	err := s.Retry(h, func() error {
		t, _, r, err := s.Open(h)
		if err != nil {
			return &gitfmt.MissingObjectError{Object: h.String(), Path: what, Err: err}
		}
		a.kind = t
		return r.Close()
	})
	if err != nil || a.kind != gitfmt.TagObject {
		return a, err
	}
	data, err := s.Read(h, gitfmt.TagObject, what)
	if err != nil {
		return a, err
	}
	line, _, _ := bytes.Cut(data, []byte("\n"))
	var ok bool
	if a.next, ok = gitfmt.ParseHash(string(bytes.TrimPrefix(line, []byte("object ")))); !ok {
		return a, &gitfmt.MissingObjectError{Object: h.String(), Path: what, Err: fmt.Errorf("a tag of nothing: %q", line)}
	}
	return a, nil
}

// BrokenRef says how to get on where a user's ref leads to what is missing or
// damaged.
func BrokenRef(s *objects.Store, ref string, err error) error {
	return fmt.Errorf("%w: %s leads there; 'git --git-dir=%s update-ref -d %s' removes that ref", err, ref, s.Dir, ref)
}

// snapshot follows tags from what a user's ref names to the commit they are of;
// ok is false where that is a file or a folder.
func FollowTags(s *objects.Store, h gitfmt.Hash, ref string) (of gitfmt.Hash, ok bool, err error) {
	for {
		a, err := readAside(s, h, ref)
		if err != nil || a.kind != gitfmt.TagObject {
			return h, a.kind == gitfmt.CommitObject, err
		}
		h = a.next
	}
}

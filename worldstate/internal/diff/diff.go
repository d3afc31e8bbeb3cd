// Package diff compares two listings: the paths that differ, renames, and patches.
package diff

import (
	"fmt"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/tree"
)

// ChangeKind is how a path differs between two snapshots.
type ChangeKind string

const (
	Added    ChangeKind = "added"
	Deleted  ChangeKind = "deleted"
	Modified ChangeKind = "modified" // other content
	Mode     ChangeKind = "mode"     // the same content, other permissions
	Type     ChangeKind = "type"     // file, link or directory became another of these
	Renamed  ChangeKind = "renamed"  // from another path; only Renames makes one
)

// A Change is one path that differs. Directories end in a slash. They are listed only if an
// empty one came or went, or if only the mode changed.
type Change struct {
	Path string     `json:"path"`
	Kind ChangeKind `json:"kind"`
	Old  *Side      `json:"old,omitempty"` // nil when added
	New  *Side      `json:"new,omitempty"` // nil when deleted
	// From is the previous path of a renamed file, and Similarity the share of its bytes that
	// it kept, in percent.
	From       string `json:"from,omitempty"`
	Similarity int    `json:"similarity,omitempty"`
	// Secret: a snapshot holds the file only for restores. Its content is not shown.
	Secret bool `json:"secret,omitempty"`
}

// A Side is one end of a change.
type Side struct {
	Type string `json:"type"`           // file, link or dir
	Mode string `json:"mode,omitempty"` // four octal digits; none for a link
	Blob string `json:"blob,omitempty"` // the content's git id; none for a directory
}

// Between returns the paths in which two listings differ, sorted.
func Between(a, b *tree.Listing) []Change {
	full := [2]map[string]bool{parents(a), parents(b)}
	changes := []Change{}
	tree.Union(a, b, func(path string, from, to tree.State) {
		if from == to || from.IsDir() && to.Absent() && full[0][path] || to.IsDir() && from.Absent() && full[1][path] {
			return // a directory that came or went with its content
		}
		c := Change{Path: path, Old: SideOf(from), New: SideOf(to)}
		switch {
		case from.Absent():
			c.Kind = Added
		case to.Absent():
			c.Kind = Deleted
		case from.Kind != to.Kind:
			c.Kind = Type
		case from.Hash != to.Hash:
			c.Kind = Modified
		default:
			c.Kind = Mode
		}
		if (from.IsDir() || from.Absent()) && (to.IsDir() || to.Absent()) {
			c.Path += "/"
		}
		changes = append(changes, c)
	})
	return changes
}

// parents returns the set of directories that are not empty.
func parents(l *tree.Listing) map[string]bool {
	set := make(map[string]bool)
	for e := range l.All() {
		set[fsys.Dir(e.Path)] = true
	}
	return set
}

// SideOf returns one end of a change, nil for an absent state.
func SideOf(s tree.State) *Side {
	switch s.Kind {
	case tree.KindFile:
		return &Side{"file", fmt.Sprintf("%04o", s.Perm), s.Hash.String()}
	case tree.KindLink:
		return &Side{Type: "link", Blob: s.Hash.String()}
	case tree.KindDir:
		return &Side{Type: "dir", Mode: fmt.Sprintf("%04o", s.Perm)}
	}
	return nil
}

type plainChange Change

// MarshalJSON adds path_bytes and from_bytes where these are not UTF-8.
func (c Change) MarshalJSON() ([]byte, error) { return gitfmt.MarshalNames((*plainChange)(&c)) }

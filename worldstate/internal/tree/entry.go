package tree

import (
	"fmt"

	"anamnesis/worldstate/internal/gitfmt"
)

// Kind is the kind of an entry. FIFOs, sockets and devices have no bytes and are never entries.
type Kind uint8

const (
	KindFile Kind = iota + 1
	KindLink
	KindDir
)

// State is what a snapshot records of one path: equal states are equal content with equal
// permissions.
type State struct {
	Kind Kind
	Perm uint32      // permission bits 0777; 0 for a link
	Hash gitfmt.Hash // the blob; zero for a directory
}

func (s State) Absent() bool { return s.Kind == 0 }
func (s State) IsDir() bool  { return s.Kind == KindDir }

// String returns the journal's form of a state: "-", "f0644:HASH", "l:HASH", "d0755".
func (s State) String() string {
	switch s.Kind {
	case KindFile:
		return fmt.Sprintf("f%04o:%s", s.Perm, s.Hash)
	case KindLink:
		return "l:" + s.Hash.String()
	case KindDir:
		return fmt.Sprintf("d%04o", s.Perm)
	}
	return "-"
}

func (s State) gitMode() string {
	switch {
	case s.Kind == KindDir:
		return "40000"
	case s.Kind == KindLink:
		return "120000"
	case s.Perm&0o100 != 0:
		return "100755"
	}
	return "100644"
}

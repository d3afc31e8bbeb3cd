package worldstate

import (
	"fmt"

	"anamnesis/worldstate/internal/gitfmt"
)

// kind is what stands at a path. Other things (FIFO, socket, device) have no
// bytes and never become an entry.
type kind uint8

const (
	kindFile kind = iota + 1
	kindLink
	kindDir
)

// state is what a snapshot holds of one path: equal states are the same
// content with the same permissions.
type state struct {
	kind kind
	perm uint32      // permission bits 0777; 0 for a link
	hash gitfmt.Hash // the blob; zero for a directory
}

func (s state) absent() bool { return s.kind == 0 }
func (s state) isDir() bool  { return s.kind == kindDir }

// String gives the journal's form of a state: "-", "f0644:HASH", "l:HASH", "d0755".
func (s state) String() string {
	switch s.kind {
	case kindFile:
		return fmt.Sprintf("f%04o:%s", s.perm, s.hash)
	case kindLink:
		return "l:" + s.hash.String()
	case kindDir:
		return fmt.Sprintf("d%04o", s.perm)
	}
	return "-"
}

// gitMode is the mode git gives the state in a tree.
func (s state) gitMode() string {
	switch {
	case s.kind == kindDir:
		return "40000"
	case s.kind == kindLink:
		return "120000"
	case s.perm&0o100 != 0:
		return "100755"
	}
	return "100644"
}

// Package gitfmt encodes and decodes git's formats and those of a snapshot: object ids, commits
// with their trailers, trees, packs and their indexes. Its functions are pure.
package gitfmt

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"anamnesis/worldstate/internal/fsys"
)

// Hash is a git object id (SHA-1), the only one that the store's format has.
type Hash = plumbing.Hash

func ParseHash(s string) (Hash, bool) {
	var h Hash
	if len(s) != 2*len(h) || strings.ToLower(s) != s {
		return h, false
	}
	_, err := hex.Decode(h[:], []byte(s))
	return h, err == nil
}

// The errors of several packages; worldstate documents them.
var (
	ErrCorrupt     = errors.New("corrupt store")
	ErrRefused     = errors.New("refused")
	ErrNoDirectory = errors.New("no such directory")
)

// ObjectType is a git object's type, with its number in a pack.
type ObjectType = plumbing.ObjectType

const (
	CommitObject = plumbing.CommitObject
	TreeObject   = plumbing.TreeObject
	BlobObject   = plumbing.BlobObject
	TagObject    = plumbing.TagObject      // only git writes them
	OffsetDelta  = plumbing.OFSDeltaObject // a delta whose base precedes it in the same pack
	RefDelta     = plumbing.REFDeltaObject // a delta whose base is named by its id
)

// HashObject returns an object's id.
func HashObject(t ObjectType, data []byte) Hash {
	var head [HeaderRoom]byte
	h := sha1.New()
	h.Write(AppendHead(head[:0], t, int64(len(data))))
	h.Write(data)
	return Hash(h.Sum(nil))
}

// HeaderRoom is enough for a type, a size and a NUL.
const HeaderRoom = 32

// AppendHead appends the header that git hashes before an object's bytes.
func AppendHead(out []byte, t ObjectType, size int64) []byte {
	out = append(append(out, t.String()...), ' ')
	return append(strconv.AppendInt(out, size, 10), 0)
}

// ID names a snapshot: its commit's hash, 40 lower-case hex digits.
type ID string

// Short returns an id as messages show it.
func Short(id ID) string { return string(id[:min(len(id), 12)]) }

// A MissingObjectError names an object that is missing or damaged and a path that needs it. It
// is returned before a restore changes the first file.
type MissingObjectError struct {
	Object string // the object's hash, hex
	Path   string // the path in the snapshot that needs it, or a description of the object
	Err    error  // why it cannot be read
}

func (e *MissingObjectError) Error() string {
	if fsys.Exhausted(e.Err) {
		return fmt.Sprintf("object %s (%s) cannot be read: %v", e.Object, e.Path, e.Err)
	}
	return fmt.Sprintf("object %s (%s) is missing or damaged: %v", e.Object, e.Path, e.Err)
}

func (e *MissingObjectError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrCorrupt) true, unless the object could not be opened because too
// many files were open.
func (e *MissingObjectError) Is(target error) bool {
	return target == ErrCorrupt && !fsys.Exhausted(e.Err)
}

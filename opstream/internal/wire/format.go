package wire

import (
	"errors"
	"fmt"
)

// The limits of the format.
const (
	// MaxInlineBytes is the largest compact body kept in its line; a larger
	// one becomes a blob.
	MaxInlineBytes = 64 << 10
	// MaxBodyBytes is the largest body, in bytes as given.
	MaxBodyBytes = 256 << 20
	// MaxKindBytes is the longest kind.
	MaxKindBytes = 64
	// MaxNumber is the largest step and the largest token count.
	MaxNumber = 1<<31 - 1

	// MaxLineBytes bounds a line without its newline: the body, the kind and
	// an envelope of fixed words and bounded numbers.
	MaxLineBytes = MaxInlineBytes + MaxKindBytes + 256
)

// The errors of lines and of what they name.
var (
	// ErrCorrupt: acknowledged bytes are damaged. See CorruptError.
	ErrCorrupt = errors.New("corrupt stream")
	// ErrVersion: a newer program wrote this stream; nothing was changed.
	ErrVersion = errors.New("unknown format version")
	// ErrTooLarge: a body, or one call's lines, exceed a limit.
	ErrTooLarge = errors.New("too large")
	// ErrInvalid: an entry is not one the format can hold.
	ErrInvalid = errors.New("invalid entry")
)

// CorruptError names the acknowledged bytes that are damaged, and how.
type CorruptError struct {
	File   string // the segment or blob
	Offset int64  // where the bad line begins; 0 for a blob
	Seq    uint64 // the record concerned
	Why    string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("corrupt stream: %s at byte %d (seq %d): %s", e.File, e.Offset, e.Seq, e.Why)
}

// Is makes errors.Is(err, ErrCorrupt) true.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

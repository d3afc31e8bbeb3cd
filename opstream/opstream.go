package opstream

import (
	"cmp"
	"errors"
	"time"

	"anamnesis/opstream/durable"
	"anamnesis/opstream/internal/segments"
	"anamnesis/opstream/internal/wire"
)

// The limits of the format and of a writer. Reaching one is an error that
// wraps ErrTooLarge, ErrInvalid or ErrBusy.
const (
	// MaxInlineBytes is the largest compact body kept in its line; a larger
	// one becomes a blob.
	MaxInlineBytes = wire.MaxInlineBytes
	// MaxBodyBytes is the largest body, in bytes as given.
	MaxBodyBytes = wire.MaxBodyBytes
	// MaxKindBytes is the longest kind.
	MaxKindBytes = wire.MaxKindBytes
	// MaxNumber is the largest step and the largest token count.
	MaxNumber = wire.MaxNumber
	// MaxFoldVersionBytes is the longest version of a fold.
	MaxFoldVersionBytes = segments.MaxFoldVersionBytes
	// MaxBatchBytes is the most one write holds, and so the most that one
	// call of Append may add in lines.
	MaxBatchBytes = 8 << 20
	// MaxQueuedCalls is how many calls of Append may wait for a sync.
	MaxQueuedCalls = 4096

	// DefaultSegmentSizeBytes is the size at which a new segment begins.
	DefaultSegmentSizeBytes = 64 << 20
	// DefaultSealAfter is how long a writer is idle before it seals.
	DefaultSealAfter = 10 * time.Second
	// DefaultPollInterval is how often Follow looks for new lines.
	DefaultPollInterval = 50 * time.Millisecond
)

// The kinds the log itself writes.
const (
	kindRecovered = "log.recovered"
	kindSealed    = "log.sealed"
)

// Entry is one operation to append.
type Entry struct {
	// Kind names the operation: 1 to MaxKindBytes characters of a-z A-Z 0-9 . _ -
	Kind string
	// Step and Tok are the caller's numbers, 0 to MaxNumber.
	Step, Tok int
	// Body is one JSON object. It is stored compacted, its bytes otherwise
	// unchanged (key order, duplicates, escapes). Nil means {}.
	Body []byte
}

// Record is one operation as read back.
type Record struct {
	Seq  uint64    // position in the stream, from 1, without gaps
	Ack  uint64    // last seq known durable when this line was written
	Time time.Time // UTC, microseconds; advice only: order is by Seq
	Kind string
	Step int
	Tok  int
	// Body is the JSON object, compact. A blob has been resolved and its
	// hash verified. The record owns it.
	Body []byte
	// Prev is the hash of the line before; zeros before the first.
	Prev [16]byte
	// Durable reports whether the line is known to be on disk. A reader learns it from later
	// lines, so that the newest lines are not durable to it yet. The writer may still withdraw
	// a record that is not durable.
	Durable bool
}

// Options configure a writer or a reader. The zero value, and nil, mean the defaults.
type Options struct {
	// SegmentSizeBytes is where a new segment begins; 0 means
	// DefaultSegmentSizeBytes.
	SegmentSizeBytes int64
	// SealAfter is how long a writer must be idle before it appends
	// log.sealed; 0 means DefaultSealAfter, negative that only Close seals.
	SealAfter time.Duration
	// PollInterval is how often Follow looks; 0 means DefaultPollInterval.
	PollInterval time.Duration
	// Snapshot, if not empty, is the version of the fold whose snapshot is used, if there
	// is one and it belongs to this stream; see Log.WriteSnapshot. The records before it are then
	// verified when they are read, and by Verify, not by Open. If it cannot be used for any
	// reason, the whole stream is verified; see Log.SnapshotRefused.
	Snapshot string
	// FS is the file system, a seam for faults; nil means the operating
	// system's. The lock is always the operating system's.
	FS durable.FS
	// Now is the clock of the lines' time stamps; nil means time.Now.
	Now func() time.Time
	// AfterAppend, if set, is called after each batch is durable and before its Appends return,
	// with the batch's last seq; seals and recovery notes count as batches. Calls never
	// overlap. It must not call the log.
	AfterAppend func(lastSeq uint64)
}

// withDefaults returns a copy in which every field is set.
func (o *Options) withDefaults() Options {
	var out Options
	if o != nil {
		out = *o
	}
	if out.SegmentSizeBytes <= 0 {
		out.SegmentSizeBytes = DefaultSegmentSizeBytes
	}
	out.SealAfter = cmp.Or(out.SealAfter, DefaultSealAfter)
	if out.PollInterval <= 0 {
		out.PollInterval = DefaultPollInterval
	}
	if out.FS == nil {
		out.FS = durable.OS{}
	}
	if out.Now == nil {
		out.Now = time.Now
	}
	return out
}

// The sentinel errors; the typed errors below match them with errors.Is.
var (
	// ErrLocked: another process writes this stream. See LockedError.
	ErrLocked = durable.ErrLocked
	// ErrCorrupt: acknowledged bytes are damaged. See CorruptError.
	ErrCorrupt = wire.ErrCorrupt
	// ErrVersion: a newer program wrote this stream; nothing was changed.
	ErrVersion = wire.ErrVersion
	// ErrTooLarge: a body, or one call's lines, exceed a limit.
	ErrTooLarge = wire.ErrTooLarge
	// ErrInvalid: an entry is not one the format can hold.
	ErrInvalid = wire.ErrInvalid
	// ErrFoldVersion: a snapshot is of another version of the fold, as after a
	// change of the program.
	ErrFoldVersion = segments.ErrFoldVersion
	// ErrPoisoned: a sync failed, so what the disk holds is unknown. Close
	// the log and open it again, which reads back what survived.
	ErrPoisoned = errors.New("the writer stopped after a failed sync")
	// ErrNotFound: there is no stream in the directory.
	ErrNotFound = errors.New("no operation stream")
	// ErrNoRecord: the stream has no record of that sequence number (yet).
	ErrNoRecord = errors.New("no such record")
	// ErrBusy: MaxQueuedCalls calls are waiting already.
	ErrBusy = errors.New("too many appends are waiting")
	// ErrClosed: the log or reader was closed.
	ErrClosed = errors.New("closed")
)

// Recovery describes what Open repaired.
type Recovery struct {
	File      string `json:"file"`      // segment that was torn, relative to the stream's directory
	Offset    int64  `json:"offset"`    // where the torn bytes began
	Bytes     int64  `json:"bytes"`     // how many were set aside
	SavedAs   string `json:"saved_as"`  // file that holds them, relative to the stream's directory
	Rewritten int    `json:"rewritten"` // unacknowledged good lines that were rewritten and synced
}

// FS and File are the seam for faults; see Options.FS.
type (
	FS   = durable.FS
	File = durable.File
	// LockedError names the holder of the writer's lock: PID, 0 if unknown, and Path of the lock file.
	LockedError = durable.LockedError
	// CorruptError names the acknowledged bytes that are damaged: File is the segment or blob, Offset
	// where the bad line begins (0 for a blob), Seq the record concerned, and Why how.
	CorruptError = wire.CorruptError
)

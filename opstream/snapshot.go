package opstream

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"anamnesis/opstream/durable"
	"anamnesis/opstream/internal/segments"
	"anamnesis/opstream/internal/wire"
)

// WriteSnapshot writes fold, which the caller derived from the records up to seq, to a file
// beside the stream, together with the index of those records. An Open with the same version
// in Options.Snapshot then reads only the records after seq. version names the code that
// makes the fold and changes with it: 1 to MaxFoldVersionBytes bytes. The record seq must be
// durable.
//
// The file replaces the one before it, has the stream's permissions, and may be deleted at any
// time. Writing it takes time and bytes in proportion to the length of the stream (about 5
// bytes a record) and to the fold; so call it on closing, and when a stream has grown
// considerably. A failure leaves the earlier file, or one that is recognised as damaged, and
// does not affect the stream.
//
// The file is synced and then renamed. The directory is not synced: a power cut leaves the old
// file or the new one, and both are valid.
func (l *Log) WriteSnapshot(version string, fold []byte, seq uint64) error {
	if err := l.writeSnapshot(version, fold, seq); err != nil {
		return fmt.Errorf("write snapshot of the index in %s at record %d: %w", l.dir, seq, err)
	}
	return nil
}

func (l *Log) writeSnapshot(version string, fold []byte, seq uint64) error {
	if version == "" || len(version) > segments.MaxFoldVersionBytes {
		return fmt.Errorf("%w: the fold's version %.80q has %d bytes: want 1 to %d",
			wire.ErrInvalid, version, len(version), segments.MaxFoldVersionBytes)
	}
	l.snapshotMu.Lock()
	defer l.snapshotMu.Unlock()
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return ErrClosed
	}
	last := l.scan.Cur
	if seq == 0 || seq > last.Seq {
		l.mu.Unlock()
		return ErrNoRecord
	}
	// What the index says of a line never changes once the line is durable.
	c := segments.Snapshot{Version: version, Fold: fold, Idx: l.scan.Idx.Snapshot(seq)}
	refs, _ := refsAfter(&l.scan, seq-1, min(seq+1, last.Seq))
	l.mu.Unlock()
	at, _ := slices.BinarySearch(last.Segs, seq+1)
	c.Cur = segments.Cursor{Segs: last.Segs[:at], Seq: seq, Hash: last.Hash}
	if seq < last.Seq {
		// The next line's prev must agree with this line as read again; neither alone proves
		// the hash.
		if err := l.hashChained(refs, &c.Cur.Hash); err != nil {
			return err
		}
	}
	data, err := segments.EncodeSnapshot(&c)
	if err != nil {
		return err
	}
	path := filepath.Join(l.dir, segments.SnapshotName)
	// There is one writer at a time, so that under a fixed name the next snapshot overwrites what a crash left.
	return durable.WriteVia(l.opts.FS, path+".tmp", path, data)
}

// hashChained returns the hash of the first of consecutive lines, which it reads
// and checks against each other.
func (l *Log) hashChained(refs []segments.Ref, hash *wire.Hash) error {
	files := segments.Reader{FS: l.opts.FS, Dir: l.dir, Chained: refs[len(refs)-1].Seq}
	defer files.Close()
	for i, ref := range refs {
		line, _, err := files.Read(ref)
		if err != nil {
			return err
		}
		if i == 0 {
			*hash = wire.HashOf(line)
		}
	}
	return nil
}

// Folded returns the fold of the snapshot that Open used and the seq of the
// last record in it; false when Open used none. The fold is shared: it must
// not be changed.
func (l *Log) Folded() (fold []byte, seq uint64, ok bool) { return l.resumed.Folded() }

// SnapshotRefused returns why Open verified the whole stream instead of using the requested
// snapshot. It is nil if the snapshot was used, none was requested, or none exists.
func (l *Log) SnapshotRefused() error { return l.resumed.Refused }

// Folded is Log.Folded; Since reads the records after seq.
func (r *Reader) Folded() (fold []byte, seq uint64, ok bool) { return r.resumed.Folded() }

// SnapshotRefused is Log.SnapshotRefused.
func (r *Reader) SnapshotRefused() error { return r.resumed.Refused }

// checkSnapshot reports a snapshot that belongs to another stream or contradicts the
// verified lines. A snapshot that covers more lines than the stream has shows that its end
// was lost.
func (v *verifier) checkSnapshot() {
	c, err := v.snapshot, v.snapshotErr
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	path, last := filepath.Join(v.dir, segments.SnapshotName), v.report.LastSeq
	whole := !v.report.Has(SeverityCorrupt)
	if err == nil && whole && last > 0 && c.Cur.Seq > last && c.Idx.Differs(&v.scan.Idx) == nil {
		severity := SeverityCorrupt
		if v.report.Has(SeverityTorn) { // the lines are there, but damaged
			severity = SeverityNotice
		}
		v.report.add(Finding{Severity: severity, File: path, Seq: last, Why: fmt.Sprintf(
			"it covers operations up to seq %d, which were durable, and the stream ends with %d: "+
				"its end was lost, or this is an older copy of it", c.Cur.Seq, last)})
		return
	}
	if err == nil {
		err = c.Fit(v.fs, v.dir)
	}
	if err == nil && whole {
		err = c.Idx.Differs(&v.scan.Idx)
	}
	if err != nil {
		v.note(path, fmt.Sprintf("%v; it is derived and can be deleted", err))
	}
}

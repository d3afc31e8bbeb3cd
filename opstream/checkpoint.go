package opstream

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"anamnesis/opstream/internal/disk"
	"anamnesis/opstream/internal/segments"
	"anamnesis/opstream/internal/wire"
)

// Checkpoint keeps fold, what the caller made of the records up to seq, in a
// file beside the stream, together with the index of those records. An Open
// with the same version in Options.Checkpoint then reads only what was
// written after seq. Version names the code that makes the fold, and changes
// with it: 1 to MaxFoldVersionBytes bytes. Seq is that of a durable record.
//
// The file replaces the one before it, is as private as the stream, and may be
// deleted at any time. Writing it costs time and bytes in proportion to the
// length of the stream (about 6 bytes a record) and to the fold, so it is for
// closing, and for when a stream has grown by a good part. A failure leaves the
// file before it, or one that is seen to be damaged, and does not concern the
// stream.
//
// The file is synced and then renamed into place. The directory is not
// synced: a power cut leaves the old one or the new one, and both are true.
func (l *Log) Checkpoint(version string, fold []byte, seq uint64) error {
	if err := l.checkpoint(version, fold, seq); err != nil {
		return fmt.Errorf("checkpoint %s at record %d: %w", l.dir, seq, err)
	}
	return nil
}

func (l *Log) checkpoint(version string, fold []byte, seq uint64) error {
	switch {
	case version == "" || len(version) > segments.MaxFoldVersionBytes:
		return fmt.Errorf("%w: the fold's version %.80q has %d bytes: want 1 to %d", wire.ErrInvalid, version, len(version), segments.MaxFoldVersionBytes)
	case len(fold) > segments.MaxFoldBytes:
		return fmt.Errorf("%w: the fold has %d bytes, the limit is %d", wire.ErrTooLarge, len(fold), segments.MaxFoldBytes)
	}
	l.checkpointMu.Lock()
	defer l.checkpointMu.Unlock()
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
	c := segments.Checkpoint{Version: version, Fold: fold, Idx: l.scan.Idx.Snapshot(seq)}
	refs, _ := refsAfter(&l.scan, seq-1, min(seq+1, last.Seq))
	l.mu.Unlock()
	c.Cur = segments.Cursor{Seq: seq, Hash: last.Hash}
	for _, first := range last.Segs {
		if first <= seq {
			c.Cur.Segs = append(c.Cur.Segs, first)
		}
	}
	if seq < last.Seq {
		// The next line's prev and this line read again have to agree: the
		// checkpoint vouches for neither alone.
		if err := l.hashChained(refs, &c.Cur.Hash); err != nil {
			return err
		}
	}
	data, err := segments.EncodeCheckpoint(&c)
	if err != nil {
		return err
	}
	path := filepath.Join(l.dir, segments.CheckpointName)
	return disk.WriteFile(l.opts.FS, path+".tmp", path, data)
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

// Folded returns the fold of the checkpoint that Open used and the seq of the
// last record in it; false when Open used none. The fold is shared: it must
// not be changed.
func (l *Log) Folded() (fold []byte, seq uint64, ok bool) { return l.resumed.Folded() }

// CheckpointRefused says why Open did not use the checkpoint it was asked to
// use and verified the whole stream instead; nil when it used it, was not
// asked to, or there was none.
func (l *Log) CheckpointRefused() error { return l.resumed.Refused }

// Folded is as Log's; what was written after seq may be read by Since.
func (r *Reader) Folded() (fold []byte, seq uint64, ok bool) { return r.resumed.Folded() }

// CheckpointRefused is as Log's.
func (r *Reader) CheckpointRefused() error { return r.resumed.Refused }

// lookAtCheckpoint says what is wrong with the checkpoint: it is not this
// stream's, or not what the verified lines say. One that stands for more lines
// than there are tells of a lost end.
func (v *verifier) lookAtCheckpoint() {
	c, err := v.checkpoint, v.checkpointErr
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	path, last := filepath.Join(v.dir, segments.CheckpointName), v.report.LastSeq
	whole := !v.report.Has(SeverityCorrupt)
	if err == nil && whole && last > 0 && c.Cur.Seq > last && c.Idx.Differs(&v.scan.Idx) == nil {
		severity := SeverityCorrupt
		if v.report.Has(SeverityTorn) { // the lines are there, but damaged
			severity = SeverityNotice
		}
		v.report.add(Finding{Severity: severity, File: path, Seq: last, Why: fmt.Sprintf(
			"it stands for operations up to seq %d, which were durable, and the stream ends with %d: its end was lost, or this is an older copy of it", c.Cur.Seq, last)})
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

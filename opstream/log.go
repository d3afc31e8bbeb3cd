package opstream

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"time"

	"anamnesis/opstream/durable"
	"anamnesis/opstream/internal/segments"
	"anamnesis/opstream/internal/wire"
)

// Log is the one writer of a stream. Its methods may be called concurrently.
type Log struct {
	opts      Options
	dir       string
	lock      *durable.WriterLock
	recovered *Recovery
	resumed   segments.Resumed

	snapshotMu sync.Mutex // held while a snapshot is written

	blobMu sync.Mutex // held while a blob is written
	blobs  segments.Blobs

	// turn is filled by the one that writes, for all waiting Appends. It owns the fields below meanwhile.
	turn    chan struct{}
	file    durable.File // the current segment; nil before the first
	fileSeg uint64       // its first seq
	batch   []*call
	lines   []framed                   // of batch
	buf     []byte                     // the lines' bytes, with newlines
	stamp   [len(wire.TimeLayout)]byte // the batch's time

	mu     sync.Mutex       // guards what follows
	scan   segments.Scanner // its cursor is the last durable line
	queue  []*call          // calls that wait for the next batch
	closed bool
	poison error // why the writer stopped, for good
	sealer *time.Timer
}

// LockName is the file of the lock of the one writer, the first that Open creates in DIR.
const LockName = "ops.lock"

// Open opens the stream in dir for writing, and creates it if there is none. It takes the
// writer's lock (or fails with a *LockedError), verifies the whole stream, or what follows a
// snapshot (see Options.Snapshot), and repairs a torn tail (see Recovered). Damage below
// what is known durable is a *CorruptError; then nothing was changed.
func Open(dir string, o *Options) (*Log, error) {
	opts := o.withDefaults()
	dir = filepath.Clean(dir)
	if err := durable.MakeDir(opts.FS, dir); err != nil {
		return nil, fmt.Errorf("open stream %s: %w", dir, err)
	}
	lock := durable.NewWriterLock(filepath.Join(dir, LockName))
	if err := lock.Acquire(context.Background(), 0); err != nil {
		return nil, fmt.Errorf("open stream %s: %w", dir, err)
	}
	l, err := openLocked(dir, opts, lock)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return l, nil
}

// openLocked is Open with the lock held.
func openLocked(dir string, opts Options, lock *durable.WriterLock) (*Log, error) {
	l := &Log{
		opts: opts, dir: dir, lock: lock, turn: make(chan struct{}, 1),
		blobs: segments.Blobs{FS: opts.FS, Dir: dir},
		scan:  segments.Scanner{FS: opts.FS, Dir: dir},
	}
	if err := durable.MakeDir(opts.FS, filepath.Join(dir, segments.OpsDirName)); err != nil {
		return nil, fmt.Errorf("open stream %s: %w", dir, err)
	}
	l.resumed = l.scan.Resume(opts.Snapshot)
	if err := l.recover(); err != nil {
		if l.file != nil {
			err = errors.Join(err, l.file.Close())
		}
		return nil, fmt.Errorf("open stream %s: %w", dir, err)
	}
	if opts.SealAfter > 0 {
		// The timer may fire before its variable is set, and commit, which sealIdle calls, reads the variable.
		l.mu.Lock()
		defer l.mu.Unlock()
		l.sealer = time.AfterFunc(opts.SealAfter, l.sealIdle)
	}
	return l, nil
}

// Recovered returns what Open repaired, nil if nothing.
func (l *Log) Recovered() *Recovery { return l.recovered }

// Last returns the seq and hash of the last durable line, 0 and zeros if there is none.
func (l *Log) Last() (seq uint64, hash [16]byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.scan.Cur.Seq, l.scan.Cur.Hash
}

// Get returns one durable record. A seq that is not there (yet) is ErrNoRecord.
func (l *Log) Get(seq uint64) (Record, error) {
	l.mu.Lock()
	last := l.scan.Cur.Seq
	if seq == 0 || seq > last {
		l.mu.Unlock()
		return Record{}, fmt.Errorf("get record %d of %s: %w", seq, l.dir, ErrNoRecord)
	}
	ref := l.scan.Ref(seq)
	l.mu.Unlock()
	files := segments.Reader{FS: l.opts.FS, Dir: l.dir}
	defer files.Close()
	return recordAt(&files, ref, last)
}

// Since returns the records after a seq that are durable at its start, in
// order. An error of one record's blob comes with that record, without body,
// and the sequence may be continued; any other error ends it.
func (l *Log) Since(after uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		l.eachAfter(after, func(files *segments.Reader, ref segments.Ref, limit uint64) bool {
			rec, err := recordAt(files, ref, limit)
			return yield(rec, err) && (err == nil || rec.Seq != 0)
		})
	}
}

// eachAfter calls visit for the lines after a seq that are durable at its start, in order, until it returns false.
func (l *Log) eachAfter(after uint64, visit func(files *segments.Reader, ref segments.Ref, limit uint64) bool) {
	limit, _ := l.Last()
	files := segments.Reader{FS: l.opts.FS, Dir: l.dir, Chained: l.resumed.Seq}
	defer files.Close()
	for {
		l.mu.Lock()
		refs, _ := refsAfter(&l.scan, after, limit)
		l.mu.Unlock()
		if len(refs) == 0 {
			return
		}
		for _, ref := range refs {
			if !visit(&files, ref, limit) {
				return
			}
			after = ref.Seq
		}
	}
}

// sealIdle appends log.sealed after an idle time, so that a later reader can tell the last
// operations from a torn tail. If that fails, Close tries again and reports its failure.
func (l *Log) sealIdle() {
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
		_ = l.seal()
	default: // it is not idle; the end of the batch starts the time again
	}
}

// seal appends log.sealed if anything was appended since the last one. The caller has the turn.
func (l *Log) seal() error {
	l.mu.Lock()
	c := newCall([]item{{kind: []byte(kindSealed), step: l.scan.Cur.Step, body: []byte("{}")}})
	need := l.poison == nil && l.unsealed() && len(l.queue) == 0
	if need {
		l.queue = append(l.queue, c)
	}
	l.mu.Unlock()
	if !need {
		return nil
	}
	l.commit()
	return c.err
}

// unsealed reports whether the last line is not a seal. The caller holds mu.
func (l *Log) unsealed() bool {
	return l.scan.Cur.Seq > 0 && l.scan.Cur.Kind != kindSealed
}

func (l *Log) queued() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue) > 0
}

// Close waits for appends in progress, appends log.sealed if anything was appended since the
// last seal, and always releases the lock. Later calls of Append fail with ErrClosed; a second
// Close does nothing.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true // no more calls are queued
	if l.sealer != nil {
		l.sealer.Stop()
	}
	l.mu.Unlock()
	l.turn <- struct{}{} // for good
	for l.queued() {
		l.commit()
	}
	l.mu.Lock()
	errs := []error{l.poison}
	l.mu.Unlock()
	errs = append(errs, l.seal())
	if l.file != nil {
		errs = append(errs, l.file.Close())
	}
	l.snapshotMu.Lock() // one under way ends before another writer may begin
	defer l.snapshotMu.Unlock()
	errs = append(errs, l.lock.Close())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close stream %s: %w", l.dir, err)
	}
	return nil
}

// Append adds entries, in order and with nothing between them, in one write. It returns the
// seq of the first when all are durable. Concurrent calls share a sync.
//
// Bodies are checked, and blobs written, before anything is appended: on ErrInvalid,
// ErrTooLarge, ErrBusy, ErrClosed or ctx's error nothing was. If ctx ends while the lines are
// being written, Append waits for the outcome. Any other error means that the lines are not
// acknowledged; after a failed sync (ErrPoisoned) the next Open may still find them.
func (l *Log) Append(ctx context.Context, entries ...Entry) (first uint64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("append to %s: %w", l.dir, err)
	}
	items, err := l.prepare(entries)
	if err != nil {
		return 0, fmt.Errorf("append to %s: %w", l.dir, err)
	}
	if first, err = l.submit(ctx, items); err != nil {
		return 0, fmt.Errorf("append to %s: %w", l.dir, err)
	}
	return first, nil
}

// prepare checks entries and makes their blobs durable.
func (l *Log) prepare(entries []Entry) ([]item, error) {
	if len(entries) == 0 {
		return nil, fmt.Errorf("%w: no entries", wire.ErrInvalid)
	}
	items := make([]item, len(entries))
	mimes := make([]string, len(entries))
	size := 0
	for i, e := range entries {
		if !wire.ValidKind(e.Kind) {
			return nil, fmt.Errorf("%w: kind %.80q: want 1 to %d of a-z A-Z 0-9 . _ -",
				wire.ErrInvalid, e.Kind, wire.MaxKindBytes)
		}
		if e.Step < 0 || e.Step > wire.MaxNumber || e.Tok < 0 || e.Tok > wire.MaxNumber {
			return nil, fmt.Errorf("%w: step %d, tok %d: want 0 to %d", wire.ErrInvalid, e.Step, e.Tok, wire.MaxNumber)
		}
		body, mime, err := segments.EncodeBody(e.Body)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Kind, err)
		}
		items[i] = item{kind: []byte(e.Kind), step: e.Step, tok: e.Tok, body: body}
		if mimes[i] = mime; mime == "" {
			size += len(body)
		}
		size += wire.MaxLineBytes - wire.MaxInlineBytes
	}
	if size > MaxBatchBytes {
		return nil, fmt.Errorf("%w: %d entries need about %d bytes, the limit of one call is %d",
			wire.ErrTooLarge, len(entries), size, MaxBatchBytes)
	}
	// A batch that is refused leaves no blobs behind.
	for i, mime := range mimes {
		if mime == "" {
			continue
		}
		l.blobMu.Lock()
		body, err := l.blobs.Put(items[i].body, mime)
		l.blobMu.Unlock()
		if err != nil {
			return nil, err
		}
		items[i].body = body
	}
	return items, nil
}

// openSegment makes the file of segment first the current one.
func (l *Log) openSegment(first uint64, flag int) error {
	// If the new file cannot be opened, the writer still has the old one and the next batch tries again.
	f, err := l.opts.FS.Open(segments.Path(l.dir, first), os.O_RDWR|flag)
	if err != nil {
		return fmt.Errorf("open segment: %w", err)
	}
	if l.file != nil {
		if err := l.file.Close(); err != nil {
			return errors.Join(fmt.Errorf("close segment: %w", err), f.Close())
		}
	}
	l.file, l.fileSeg = f, first
	return nil
}

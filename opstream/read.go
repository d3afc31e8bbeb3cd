package opstream

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"sync"
	"syscall"
	"time"

	"anamnesis/opstream/internal/segments"
	"anamnesis/opstream/internal/wire"
)

const (
	// readBatch is how many references are taken under one lock.
	readBatch = 256
	// rereadTries is how often a reader reads bytes again that seem corrupt before it reports
	// them: a live writer may be changing them.
	rereadTries = 3
)

// recordAt reads a reference as a Record, which is durable up to ack. An error of its blob alone comes with the
// record's envelope, which then has no body.
func recordAt(r *segments.Reader, ref segments.Ref, ack uint64) (Record, error) {
	_, e, err := r.Read(ref)
	if err != nil {
		return Record{}, err
	}
	rec := Record{
		Seq: e.Seq, Ack: e.Ack, Time: wire.ParseTime(e.TS), Kind: string(e.Kind),
		Step: e.Step, Tok: e.Tok, Durable: e.Seq <= ack, Prev: e.Prev,
	}
	rec.Body, err = segments.ResolveBody(r.FS, r.Dir, e.Seq, e.Body)
	return rec, err
}

// Reader reads a stream, even while it is written. It takes no lock and changes nothing. Its
// methods may be called concurrently.
type Reader struct {
	opts    Options
	dir     string
	resumed segments.Resumed

	mu     sync.Mutex
	scan   segments.Scanner
	closed chan struct{}
	torn   *segments.Stop // why the last look ended early, if it did
	rolls  []uint64       // for each withdrawal of lines: the last seq that stayed
}

// OpenReader opens the stream in dir for reading. It fails with ErrNotFound if there is none;
// a damaged stream yields its good prefix and then the error.
func OpenReader(dir string, o *Options) (*Reader, error) {
	opts := o.withDefaults()
	if _, _, err := segments.List(opts.FS, dir); err != nil {
		return nil, notFound(dir, err)
	}
	r := &Reader{opts: opts, dir: dir, closed: make(chan struct{})}
	r.scan = segments.Scanner{FS: opts.FS, Dir: dir}
	r.resumed = r.scan.Resume(opts.Snapshot)
	return r, nil
}

// notFound turns a missing ops/ into ErrNotFound.
func notFound(dir string, err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return fmt.Errorf("%w in %s", ErrNotFound, dir)
	}
	return fmt.Errorf("open stream %s: %w", dir, err)
}

// Close ends every Follow and makes later calls fail with ErrClosed.
func (r *Reader) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.closed:
	default:
		close(r.closed)
	}
	return nil
}

func (r *Reader) checkOpen() error {
	select {
	case <-r.closed:
		return fmt.Errorf("read stream %s: %w", r.dir, ErrClosed)
	default:
		return nil
	}
}

// refresh verifies what was written since the last call. The caller holds mu.
func (r *Reader) refresh() error {
	if err := r.checkOpen(); err != nil {
		return err
	}
	for try := 1; ; try++ {
		st, err := r.scan.Advance()
		if err != nil {
			return err
		}
		if st != nil && r.scan.Cur.Seq > r.scan.Cur.Ack {
			// Lines not vouched for may have been withdrawn: read them again.
			if st, err = r.reread(st); err != nil {
				return err
			}
		}
		if r.torn = st; st == nil {
			return nil
		}
		vouched, err := r.scan.Vouched(st)
		if err != nil {
			return err
		}
		if vouched < st.Seq {
			return nil
		}
		if try == rereadTries {
			return r.scan.Corrupt(st, vouched)
		}
		if err := r.rewind(); err != nil {
			return err
		}
	}
}

// rewind goes back to the last line that is vouched for.
func (r *Reader) rewind() error {
	return r.scan.Rewind(min(r.scan.Cur.Ack, r.scan.Cur.Seq))
}

// reread reads again the lines that nothing vouches for, and records whether the writer had
// withdrawn some.
func (r *Reader) reread(st *segments.Stop) (*segments.Stop, error) {
	old := r.scan.Cur
	if err := r.rewind(); err != nil {
		return st, err
	}
	st, err := r.scan.Advance()
	if err != nil {
		return st, err
	}
	// The old lines are all there if the last of them is: its hash covers those before it.
	same := r.scan.Cur.Seq == old.Seq && r.scan.Cur.Hash == old.Hash
	if r.scan.Cur.Seq > old.Seq {
		line, _, err := r.scan.ReadLine(old.Seq)
		same = err == nil && wire.HashOf(line) == old.Hash
	}
	if !same {
		r.rolls = append(r.rolls, min(old.Ack, old.Seq))
	}
	return st, nil
}

// Last returns the seq and hash of the last readable line, durable or not, and the error that
// ends the readable prefix, if any.
func (r *Reader) Last() (seq uint64, hash [16]byte, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err = r.refresh()
	return r.scan.Cur.Seq, r.scan.Cur.Hash, err
}

// Torn returns the place of torn bytes after the last good line: the damaged end of a crashed
// writer, or a write in progress. It is nil if there are none. It describes the last look of
// Since, Get, Last or Follow.
func (r *Reader) Torn() *Torn {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.torn == nil {
		return nil
	}
	return &Torn{File: segments.Path(r.dir, r.torn.Seg), Offset: r.torn.Off, Seq: r.torn.Seq, Why: r.torn.Why}
}

// Torn is the place of a torn tail.
type Torn struct {
	File   string
	Offset int64  // where the torn bytes begin
	Seq    uint64 // the seq that was expected there
	Why    string
}

func (t *Torn) String() string {
	return fmt.Sprintf("%s at byte %d (seq %d): %s", t.File, t.Offset, t.Seq, t.Why)
}

// refsAfter takes references of up to readBatch lines after a seq, at most up
// to limit, and what is known durable.
func refsAfter(s *segments.Scanner, after, limit uint64) (refs []segments.Ref, ack uint64) {
	last := min(s.Cur.Seq, limit)
	for seq := after + 1; seq <= last && len(refs) < readBatch; seq++ {
		refs = append(refs, s.Ref(seq))
	}
	return refs, s.Cur.Ack
}

// Since returns the records after a seq that can be read now, in order. An error of one
// record's blob comes with that record, without body, and the sequence may be continued; any
// other error ends it. A torn tail is not an error: see Torn.
func (r *Reader) Since(after uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		r.mu.Lock()
		end := r.refresh()
		limit := r.scan.Cur.Seq
		r.mu.Unlock()
		files := segments.Reader{FS: r.opts.FS, Dir: r.dir, Chained: r.resumed.Seq}
		defer files.Close()
		_, _, more := r.emit(&files, after, limit, yield)
		if end != nil && more {
			yield(Record{}, end)
		}
	}
}

// emit yields the records after a seq up to limit. It returns the last seq yielded, how many
// withdrawals it has taken into account, and whether the consumer wants more.
func (r *Reader) emit(files *segments.Reader, after, limit uint64, yield func(Record, error) bool) (uint64, int, bool) {
	for {
		r.mu.Lock()
		refs, ack := refsAfter(&r.scan, after, limit)
		rolls := len(r.rolls)
		r.mu.Unlock()
		if len(refs) == 0 {
			return after, rolls, true
		}
		for _, ref := range refs {
			rec, err := recordAt(files, ref, ack)
			if err != nil && rec.Seq == 0 && ref.Seq > ack {
				return after, rolls, true // withdrawn meanwhile
			}
			if !yield(rec, err) || (err != nil && rec.Seq == 0) {
				return after, rolls, false
			}
			after = ref.Seq
		}
	}
}

// Get returns one record. A seq that is not there (yet) is ErrNoRecord.
func (r *Reader) Get(seq uint64) (Record, error) {
	r.mu.Lock()
	err := r.checkOpen()
	if err != nil {
		r.mu.Unlock()
		return Record{}, err
	}
	// The writer may have withdrawn a record that was not known to be durable.
	if seq > r.scan.Cur.Ack || seq > r.scan.Cur.Seq {
		err = r.refresh()
	}
	if seq == 0 || seq > r.scan.Cur.Seq {
		r.mu.Unlock()
		if err != nil {
			return Record{}, err
		}
		return Record{}, fmt.Errorf("get record %d of %s: %w", seq, r.dir, ErrNoRecord)
	}
	ref, ack := r.scan.Ref(seq), r.scan.Cur.Ack
	r.mu.Unlock()
	files := segments.Reader{FS: r.opts.FS, Dir: r.dir}
	defer files.Close()
	return recordAt(&files, ref, ack)
}

// Follow returns the records after a seq, then each new one as it is written, until ctx ends
// (which is not an error), the reader is closed, or an error occurs. Each record comes once;
// one that came with Durable false and was then withdrawn by its writer is followed by its
// replacement, with the same Seq.
func (r *Reader) Follow(ctx context.Context, after uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		files := segments.Reader{FS: r.opts.FS, Dir: r.dir, Chained: r.resumed.Seq}
		defer files.Close()
		timer := time.NewTimer(r.opts.PollInterval)
		defer timer.Stop()
		r.mu.Lock()
		seen := len(r.rolls)
		r.mu.Unlock()
		more := true
		for more && ctx.Err() == nil {
			r.mu.Lock()
			end := r.refresh()
			for _, stayed := range r.rolls[seen:] {
				after = min(after, stayed)
			}
			limit := r.scan.Cur.Seq
			r.mu.Unlock()
			// The buffered bytes may have been withdrawn since they were read.
			files.Buf = files.Buf[:0]
			after, seen, more = r.emit(&files, after, limit, func(rec Record, err error) bool {
				return ctx.Err() == nil && yield(rec, err)
			})
			if end != nil {
				if more && ctx.Err() == nil && !errors.Is(end, ErrClosed) {
					yield(Record{}, end)
				}
				return
			}
			timer.Reset(r.opts.PollInterval)
			select {
			case <-ctx.Done():
			case <-r.closed:
				return
			case <-timer.C:
			}
		}
	}
}

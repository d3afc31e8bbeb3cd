package opstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

const (
	// readBatch is how many references are taken under one lock.
	readBatch = 256
	// readFirstBytes and readAheadBytes are how much of a segment is read at
	// once at first and, when many records are read in order, at last.
	readFirstBytes = 4 << 10
	readAheadBytes = 256 << 10
	// rereadTries is how often a reader looks again at bytes that seem
	// corrupt before it says so: a live writer may have been changing them.
	rereadTries = 3
)

// isVersionError reports whether a line is of another format version.
func isVersionError(err error) bool { return errors.Is(err, ErrVersion) }

// segmentReader reads lines by reference, well when they are asked for in
// order. It is not safe for concurrent use.
type segmentReader struct {
	fs  FS
	dir string
	f   File
	seg uint64
	buf []byte // bytes of seg from off on
	off int64
	// chained is the last line that, read right after the one before it, must
	// name its hash: of lines no scan has verified, the chain is checked here.
	chained uint64
	seq     uint64 // the line read last
	hash    lineHash
}

func (r *segmentReader) close() {
	if r.f != nil {
		r.f.Close()
		r.f, r.seg, r.buf = nil, 0, r.buf[:0]
	}
}

// read returns the line a reference names, verified against its checksum and
// seq. The line is valid until the next call. Any misfit is a *CorruptError.
func (r *segmentReader) read(ref lineRef) ([]byte, envelope, error) {
	var e envelope
	if r.seg != ref.seg {
		r.close()
		f, err := r.fs.Open(segmentPath(r.dir, ref.seg), os.O_RDONLY)
		if err != nil {
			return nil, e, fmt.Errorf("open segment: %w", err)
		}
		r.f, r.seg = f, ref.seg
	}
	if ref.off < r.off || ref.off+int64(ref.size) > r.off+int64(len(r.buf)) {
		// One record costs little; reading on doubles the stride.
		if n := max(ref.size, min(2*cap(r.buf), readAheadBytes), readFirstBytes); n > cap(r.buf) {
			r.buf = make([]byte, n)
		}
		r.buf, r.off = r.buf[:cap(r.buf)], ref.off
		n, err := r.f.ReadAt(r.buf, ref.off)
		r.buf = r.buf[:n]
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, e, fmt.Errorf("read segment %s: %w", segmentName(ref.seg), err)
		}
	}
	from := int(ref.off - r.off)
	var err error
	var line []byte
	if from+ref.size > len(r.buf) {
		err = lineError("the segment ends early")
	} else {
		line = r.buf[from : from+ref.size]
		err = parseLine(line, &e)
	}
	switch {
	case err != nil:
	case e.seq != ref.seq:
		err = lineError(fmt.Sprintf("seq is %d, expected %d", e.seq, ref.seq))
	case ref.seq > r.chained:
	case ref.seq == r.seq+1 && r.seq > 0 && e.prev != r.hash:
		err = errLineChain
	default:
		r.seq, r.hash = ref.seq, hashLine(line)
	}
	if err != nil {
		return nil, e, &CorruptError{
			File: segmentPath(r.dir, ref.seg), Offset: ref.off, Seq: ref.seq, Why: err.Error(),
		}
	}
	return line, e, nil
}

// record reads a reference as a Record. An error of its blob alone comes with
// the record's envelope, which then has no body.
func (r *segmentReader) record(ref lineRef, durable bool) (Record, error) {
	_, e, err := r.read(ref)
	if err != nil {
		return Record{}, err
	}
	rec := Record{
		Seq: e.seq, Ack: e.ack, Time: parseTime(e.ts), Kind: string(e.kind),
		Step: e.step, Tok: e.tok, Durable: durable, Prev: e.prev,
	}
	rec.Body, err = resolveBody(r.fs, r.dir, e.seq, e.body)
	return rec, err
}

// Reader reads a stream, while it is being written or not. It takes no lock
// and changes nothing. Its methods may be called concurrently.
type Reader struct {
	opts    Options
	dir     string
	resumed resumed

	mu     sync.Mutex
	scan   scanner
	closed chan struct{}
	torn   *stop    // why the last look ended early, if it did
	rolls  []uint64 // for each withdrawal of lines: the last seq that stayed
}

// OpenReader opens the stream in dir for reading. It fails with ErrNotFound
// when there is none; a damaged one opens, gives its good prefix and then the
// error.
func OpenReader(dir string, o *Options) (*Reader, error) {
	opts := o.withDefaults()
	if _, _, err := listSegments(opts.FS, dir); err != nil {
		return nil, notFound(dir, err)
	}
	r := &Reader{opts: opts, dir: dir, closed: make(chan struct{})}
	r.scan = scanner{fs: opts.FS, dir: dir}
	r.resumed = r.scan.resume(opts.Checkpoint)
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

// look verifies what was written since the last look. The caller holds mu.
func (r *Reader) look() error {
	if err := r.checkOpen(); err != nil {
		return err
	}
	for try := 1; ; try++ {
		st, err := r.scan.advance()
		if err != nil {
			return err
		}
		if st != nil && r.scan.cur.seq > r.scan.cur.ack {
			// Lines not vouched for may have been withdrawn: read them again.
			if st, err = r.relook(st); err != nil {
				return err
			}
		}
		if r.torn = st; st == nil {
			return nil
		}
		vouched, err := r.scan.vouched(st)
		if err != nil {
			return err
		}
		if vouched < st.seq {
			return nil
		}
		if try == rereadTries {
			return r.scan.corrupt(st, vouched)
		}
		if err := r.rewind(); err != nil {
			return err
		}
	}
}

// rewind goes back to the last line that is vouched for.
func (r *Reader) rewind() error {
	return r.scan.rewind(min(r.scan.cur.ack, r.scan.cur.seq))
}

// relook reads the lines nothing vouches for once more, and notes when the
// writer had withdrawn some.
func (r *Reader) relook(st *stop) (*stop, error) {
	old := r.scan.cur
	if err := r.rewind(); err != nil {
		return st, err
	}
	st, err := r.scan.advance()
	if err != nil {
		return st, err
	}
	same := r.scan.cur.seq == old.seq && r.scan.cur.hash == old.hash
	if r.scan.cur.seq > old.seq {
		line, _, err := r.scan.readLine(old.seq)
		same = err == nil && hashLine(line) == old.hash
	}
	if !same {
		r.rolls = append(r.rolls, min(old.ack, old.seq))
	}
	return st, nil
}

// Last returns the seq and hash of the last line that can be read now, durable
// or not, and the error that ends the readable prefix, if any.
func (r *Reader) Last() (seq uint64, hash [16]byte, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	err = r.look()
	return r.scan.cur.seq, r.scan.cur.hash, err
}

// Torn says where bytes stand behind the last good line that are no line:
// the damaged end of a crashed writer, or a write under way. Nil when there
// are none. It tells of the last look that Since, Get, Last or Follow made.
func (r *Reader) Torn() *Torn {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.torn == nil {
		return nil
	}
	return &Torn{File: segmentPath(r.dir, r.torn.seg), Offset: r.torn.off, Seq: r.torn.seq, Why: r.torn.why}
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
func refsAfter(s *scanner, after, limit uint64) (refs []lineRef, ack uint64) {
	last := min(s.cur.seq, limit)
	for seq, e := range s.idx.from(after + 1) {
		if seq > last || len(refs) == readBatch {
			break
		}
		refs = append(refs, s.refOf(seq, e))
	}
	return refs, s.cur.ack
}

// Since returns the records after a seq that can be read now, in order. An
// error of one record's blob comes with that record, without body, and the
// sequence may be continued; any other error ends it. A torn tail is no
// error: see Torn.
func (r *Reader) Since(after uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		r.mu.Lock()
		end := r.look()
		limit := r.scan.cur.seq
		r.mu.Unlock()
		files := segmentReader{fs: r.opts.FS, dir: r.dir, chained: r.resumed.seq}
		defer files.close()
		_, _, more := r.emit(&files, after, limit, yield)
		if end != nil && more {
			yield(Record{}, end)
		}
	}
}

// emit yields the records after a seq up to limit. It returns the last seq
// yielded, how many withdrawals it knows of, and whether the consumer wants
// more.
func (r *Reader) emit(files *segmentReader, after, limit uint64, yield func(Record, error) bool) (uint64, int, bool) {
	for {
		r.mu.Lock()
		refs, ack := refsAfter(&r.scan, after, limit)
		rolls := len(r.rolls)
		r.mu.Unlock()
		if len(refs) == 0 {
			return after, rolls, true
		}
		for _, ref := range refs {
			rec, err := files.record(ref, ref.seq <= ack)
			if err != nil && rec.Seq == 0 && ref.seq > ack {
				return after, rolls, true // withdrawn meanwhile
			}
			if !yield(rec, err) || (err != nil && rec.Seq == 0) {
				return after, rolls, false
			}
			after = ref.seq
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
	if seq > r.scan.cur.ack || seq > r.scan.cur.seq {
		err = r.look()
	}
	if seq == 0 || seq > r.scan.cur.seq {
		r.mu.Unlock()
		if err != nil {
			return Record{}, err
		}
		return Record{}, fmt.Errorf("get record %d of %s: %w", seq, r.dir, ErrNoRecord)
	}
	ref, ack := r.scan.ref(seq), r.scan.cur.ack
	r.mu.Unlock()
	files := segmentReader{fs: r.opts.FS, dir: r.dir}
	defer files.close()
	return files.record(ref, seq <= ack)
}

// Follow returns the records after a seq, then each new one as it is written,
// until ctx ends (which is no error), the reader is closed, or an error. Each
// record comes once; one that came with Durable false and was then withdrawn
// by its writer is followed by the one that took its place, with the same
// Seq.
func (r *Reader) Follow(ctx context.Context, after uint64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		files := segmentReader{fs: r.opts.FS, dir: r.dir, chained: r.resumed.seq}
		defer files.close()
		timer := time.NewTimer(r.opts.PollInterval)
		defer timer.Stop()
		r.mu.Lock()
		seen := len(r.rolls)
		r.mu.Unlock()
		more := true
		for more && ctx.Err() == nil {
			r.mu.Lock()
			end := r.look()
			for _, stayed := range r.rolls[seen:] {
				after = min(after, stayed)
			}
			limit := r.scan.cur.seq
			r.mu.Unlock()
			// The buffered bytes may have been withdrawn since they were read.
			files.buf = files.buf[:0]
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

// blobPath is where a blob of that hash stands.
func blobPath(dir, sum string) string {
	return filepath.Join(dir, blobsDirName, blobAlgorithm, sum[:2], sum)
}

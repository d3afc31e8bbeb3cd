package opstream

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"anamnesis/opstream/internal/segments"
	"anamnesis/opstream/internal/wire"
)

// item is one checked entry, its body as the line will hold it.
type item struct {
	kind      []byte
	step, tok int
	body      []byte
}

// call is one Append in the queue.
type call struct {
	items []item
	size  int // a bound of its lines' bytes
	first uint64
	err   error
	done  chan struct{} // closed when first and err are set
}

func newCall(items []item) *call {
	c := &call{items: items, done: make(chan struct{})}
	for _, it := range items {
		c.size += len(it.body) + wire.MaxLineBytes - wire.MaxInlineBytes
	}
	return c
}

// submit queues a call and returns when it is written: by the caller that has the turn, for all that wait, or
// by this one once it has the turn.
func (l *Log) submit(ctx context.Context, items []item) (first uint64, err error) {
	c := newCall(items)
	l.mu.Lock()
	err = l.poison
	switch {
	case l.closed:
		err = ErrClosed
	case err == nil && len(l.queue) >= MaxQueuedCalls:
		err = ErrBusy
	case err == nil:
		l.queue = append(l.queue, c)
	}
	l.mu.Unlock()
	if err != nil {
		return 0, err
	}
	select {
	case <-c.done:
	case l.turn <- struct{}{}:
		// Calls of others may stand before this one, and a batch has a limited size: it may take several.
		for !c.written() {
			l.commit()
		}
		<-l.turn
	case <-ctx.Done():
		if l.withdraw(c) {
			return 0, ctx.Err()
		}
		<-c.done
	}
	return c.first, c.err
}

func (c *call) written() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// withdraw removes a call from the queue. It returns false if the call is being written.
func (l *Log) withdraw(c *call) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.queue, c)
	if i >= 0 {
		l.queue = slices.Delete(l.queue, i, i+1)
	}
	return i >= 0
}

// commit writes one batch from the queue's head and ends its calls. The caller has the turn.
func (l *Log) commit() {
	l.mu.Lock()
	err, cur := l.poison, l.scan.Cur
	l.mu.Unlock()
	// A poisoned writer takes the calls from the queue as well, so that each of them gets the error.
	l.gather(&cur)
	if err == nil {
		err = l.write(&cur)
	}
	if err == nil && l.opts.AfterAppend != nil {
		l.opts.AfterAppend(l.lines[len(l.lines)-1].env.Seq)
	}
	for i, c := range l.batch {
		c.err = err
		close(c.done)
		l.batch[i] = nil
	}
	clear(l.lines) // release the bodies
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sealer != nil && len(l.queue) == 0 && !l.closed && l.poison == nil && l.unsealed() {
		l.sealer.Reset(l.opts.SealAfter)
	}
}

// gather takes calls from the queue's head, at least one and at most MaxBatchBytes, as the batch and
// frames their lines.
func (l *Log) gather(cur *segments.Cursor) {
	l.batch, l.lines, l.buf = l.batch[:0], l.lines[:0], l.buf[:0]
	l.mu.Lock()
	size, n := 0, 0
	for ; n < len(l.queue) && (n == 0 || size+l.queue[n].size <= MaxBatchBytes); n++ {
		size += l.queue[n].size
	}
	l.batch = append(l.batch, l.queue[:n]...)
	l.queue = slices.Delete(l.queue, 0, n)
	l.mu.Unlock()
	e := wire.Envelope{Seq: cur.Seq, Ack: cur.Seq, TS: wire.AppendTime(l.stamp[:0], l.opts.Now()), Prev: cur.Hash}
	for _, c := range l.batch {
		l.frame(&e, c)
	}
}

// framed is one encoded line of the batch.
type framed struct {
	size int // bytes without the newline
	hash wire.Hash
	env  wire.Envelope
}

// write makes the batch durable and moves cur, a copy of the cursor, past it.
func (l *Log) write(cur *segments.Cursor) error {
	fresh, err := l.room(cur, int64(len(l.buf)))
	if err != nil {
		return err
	}
	off := cur.Off
	if fresh {
		off = 0
	}
	if _, err := l.file.WriteAt(l.buf, off); err != nil {
		return l.cutBack(off, err)
	}
	if err := l.file.Sync(); err != nil {
		// A second sync proves nothing: after a failure the kernel may drop the pages and then report success.
		return l.poisoned(fmt.Errorf("sync %s: %w", segments.Name(l.fileSeg), err))
	}
	if fresh {
		if err := l.opts.FS.SyncDir(filepath.Join(l.dir, segments.OpsDirName)); err != nil {
			return l.poisoned(fmt.Errorf("sync directory %s: %w", segments.OpsDirName, err))
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if fresh {
		l.scan.Cur.Segs = append(l.scan.Cur.Segs, l.fileSeg)
		l.scan.Cur.Off = 0
	}
	for i := range l.lines {
		l.scan.Accept(l.lines[i].size, l.lines[i].hash, &l.lines[i].env)
	}
	l.scan.Cur.Ack = l.scan.Cur.Seq
	return nil
}

// frame appends the lines of a call to buf, after the line of e.
func (l *Log) frame(e *wire.Envelope, c *call) {
	c.first = e.Seq + 1
	for _, it := range c.items {
		e.Seq++
		e.Kind, e.Step, e.Tok, e.Body = it.kind, it.step, it.tok, it.body
		from := len(l.buf)
		l.buf = wire.AppendLine(l.buf, e)
		line := framed{size: len(l.buf) - from, hash: wire.HashOf(l.buf[from:]), env: *e}
		l.lines = append(l.lines, line)
		e.Prev = line.hash
		l.buf = append(l.buf, '\n')
	}
}

// room ensures that the current segment can take n more bytes, and reports whether it is new.
// All earlier lines are durable when a segment begins, since write syncs before it returns.
func (l *Log) room(cur *segments.Cursor, n int64) (fresh bool, err error) {
	switch {
	case l.file == nil, l.fileSeg != cur.Seg():
		// There is none yet, or the first batch of a new one failed.
		if l.fileSeg == cur.Seq+1 && l.file != nil {
			return true, nil
		}
	// A batch that is larger than a segment goes into an empty one.
	case cur.Off == 0 || cur.Off+n <= l.opts.SegmentSizeBytes:
		return false, nil
	}
	return true, l.openSegment(cur.Seq+1, os.O_CREATE|os.O_TRUNC)
}

// cutBack removes the bytes of a failed write, so that the writer can continue when there is
// space again. If that fails too, the writer stops.
func (l *Log) cutBack(off int64, cause error) error {
	cause = fmt.Errorf("write %s: %w", segments.Name(l.fileSeg), cause)
	if err := l.file.Truncate(off); err != nil {
		return l.poisoned(fmt.Errorf("%w; then cut it back: %w", cause, err))
	}
	if err := l.file.Sync(); err != nil {
		return l.poisoned(fmt.Errorf("%w; then sync the cut: %w", cause, err))
	}
	return cause
}

// poisoned stops the writer for good.
func (l *Log) poisoned(cause error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.poison = fmt.Errorf("%w: %w", ErrPoisoned, cause)
	return l.poison
}

package opstream

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// item is one checked entry, its body as the line will hold it.
type item struct {
	kind      string
	step, tok int
	body      []byte
}

// call is one Append in the queue.
type call struct {
	items []item
	size  int // a bound of its lines' bytes
	// wake gets true when the outcome is set, false when the caller must
	// lead the next batch.
	wake     chan bool
	promoted bool // it was told to lead; under the log's mu
	first    uint64
	err      error
}

// lead makes a call and its caller the leader. The caller holds mu, leading
// is false, and commit must follow.
func (l *Log) lead(items []item) *call {
	c := newCall(items)
	l.leading = true
	l.queue = append(l.queue, c)
	return c
}

func newCall(items []item) *call {
	c := &call{items: items, wake: make(chan bool, 1)}
	for _, it := range items {
		c.size += len(it.body) + maxLineBytes - MaxInlineBytes
	}
	return c
}

// enqueue brings a call to its outcome: it waits for a leader to write it, or
// leads. An error means that the call was not written.
func (l *Log) enqueue(ctx context.Context, items []item) (*call, error) {
	l.mu.Lock()
	switch {
	case l.closed:
		l.mu.Unlock()
		return nil, ErrClosed
	case l.poison != nil:
		defer l.mu.Unlock()
		return nil, l.poison
	case len(l.queue) >= MaxQueuedCalls:
		l.mu.Unlock()
		return nil, ErrBusy
	case !l.leading:
		c := l.lead(items)
		l.mu.Unlock()
		l.commit()
		<-c.wake
		return c, nil
	}
	c := newCall(items)
	l.queue = append(l.queue, c)
	l.mu.Unlock()
	var done bool
	select {
	case done = <-c.wake:
	case <-ctx.Done():
		if l.withdraw(c) {
			return nil, ctx.Err()
		}
		done = <-c.wake
	}
	if !done {
		l.commit()
		<-c.wake
	}
	return c, nil
}

// withdraw takes a call out of the queue; false when it is being written or
// has been told to lead.
func (l *Log) withdraw(c *call) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.queue, c)
	if i < 0 || c.promoted {
		return false
	}
	l.queue = slices.Delete(l.queue, i, i+1)
	return true
}

// commit is the leader's work: it writes one batch from the queue's head,
// tells the callers, and hands leading on.
func (l *Log) commit() {
	l.mu.Lock()
	batch := l.takeBatch()
	err := l.poison
	l.mu.Unlock()
	if err == nil {
		err = l.write(batch)
	}
	l.mu.Lock()
	last := l.scan.cur.seq
	l.mu.Unlock()
	if err == nil && l.opts.AfterAppend != nil {
		l.opts.AfterAppend(last)
	}
	for _, c := range batch {
		c.err = err
		c.wake <- true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) > 0 {
		l.queue[0].promoted = true
		l.queue[0].wake <- false
		return
	}
	l.leading = false
	l.idle.Broadcast()
	if l.sealer != nil && !l.closed && l.poison == nil && l.unsealed() {
		l.sealer.Reset(l.opts.SealAfter)
	}
}

// takeBatch takes the calls of the next write: at least one, at most
// MaxBatchBytes of them. The caller holds mu.
func (l *Log) takeBatch() []*call {
	n, size := 0, 0
	for n < len(l.queue) && (n == 0 || size+l.queue[n].size <= MaxBatchBytes) {
		size += l.queue[n].size
		n++
	}
	batch := slices.Clone(l.queue[:n])
	l.queue = slices.Delete(l.queue, 0, n)
	return batch
}

// framed is one line of the batch, where it will stand.
type framed struct {
	from, to int // in buf, without the newline
	env      envelope
}

// write makes a batch durable and moves the cursor past it. Only the leader
// calls it.
func (l *Log) write(batch []*call) error {
	lines := l.frame(batch)
	fresh, err := l.room(int64(len(l.buf)))
	if err != nil {
		return err
	}
	l.mu.Lock()
	off := l.scan.cur.off
	l.mu.Unlock()
	if fresh {
		off = 0
	}
	if _, err := l.file.WriteAt(l.buf, off); err != nil {
		return l.cutBack(off, err)
	}
	if err := l.file.Sync(); err != nil {
		return l.poisoned(fmt.Errorf("sync %s: %w", segmentName(l.fileSeg), err))
	}
	if fresh {
		if err := l.opts.FS.SyncDir(filepath.Join(l.dir, opsDirName)); err != nil {
			return l.poisoned(fmt.Errorf("sync directory %s: %w", opsDirName, err))
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if fresh {
		l.scan.cur.segs = append(l.scan.cur.segs, l.fileSeg)
		l.scan.cur.off = 0
	}
	for i := range lines {
		l.scan.accept(l.buf[lines[i].from:lines[i].to], &lines[i].env)
	}
	l.scan.cur.ack = l.scan.cur.seq
	return nil
}

// frame writes the batch's lines into buf and gives each call its first seq.
func (l *Log) frame(batch []*call) []framed {
	l.mu.Lock()
	seq, prev := l.scan.cur.seq, l.scan.cur.hash
	l.mu.Unlock()
	ack := seq
	ts := appendTime(nil, l.opts.Now())
	var lines []framed
	l.buf = l.buf[:0]
	for _, c := range batch {
		c.first = seq + 1
		for _, it := range c.items {
			seq++
			e := envelope{
				seq: seq, ack: ack, ts: ts, kind: []byte(it.kind),
				step: it.step, tok: it.tok, body: it.body, prev: prev,
			}
			from := len(l.buf)
			l.buf = appendLine(l.buf, &e)
			prev = hashLine(l.buf[from:])
			lines = append(lines, framed{from, len(l.buf), e})
			l.buf = append(l.buf, '\n')
		}
	}
	return lines
}

// room makes the current segment one that can take n more bytes, and reports
// whether it is new. A segment is begun only when all before it is durable,
// which write's order guarantees.
func (l *Log) room(n int64) (fresh bool, err error) {
	l.mu.Lock()
	cur := l.scan.cur
	l.mu.Unlock()
	switch {
	case l.file == nil, l.fileSeg != cur.seg():
		// None yet, or one was begun and its first batch failed.
		if l.fileSeg == cur.seq+1 && l.file != nil {
			return true, nil
		}
	case cur.off == 0 || cur.off+n <= l.opts.SegmentSizeBytes:
		return false, nil
	}
	return true, l.openSegment(cur.seq+1, os.O_CREATE|os.O_TRUNC)
}

// cutBack takes a failed write's bytes off again, so that the writer can go
// on once there is room. When that fails, too, the writer stops.
func (l *Log) cutBack(off int64, cause error) error {
	cause = fmt.Errorf("write %s: %w", segmentName(l.fileSeg), cause)
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

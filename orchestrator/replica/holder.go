package replica

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"anamnesis/opstream"
	"anamnesis/opstream/durable"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/replica/bucket"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

const (
	// DefaultLease is how long a task's log must not have grown before another process takes the task.
	DefaultLease = 2 * time.Minute
	// heartbeatTime is after how long a holder that recorded nothing extends the log all the same, or after a quarter
	// of the lease.
	heartbeatTime = 30 * time.Second
	// lingerTime is how long new lines that no caller waits for are collected before they are sent.
	lingerTime = time.Second
	// firstRetry and lastRetry bound the pause after the bucket failed.
	firstRetry = 200 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// maxObjectBytes is after how many bytes of lines and files an object is full.
const maxObjectBytes = 4 << 20

// ErrLost: another process has extended the task's log, so that this one must stop.
var ErrLost = errors.New("another process continues the task")

type Options struct {
	Home    taskdir.Home
	Lease   time.Duration // 0: DefaultLease; at least a second
	Sealed  bool          // the bucket's objects are encrypted, so that vaults are sent, too
	Now     func() time.Time
	Waiting func(err error) // called when the bucket fails, and with nil when it answers again
	// Renewed is called after each successful sending with how long commands may run on without another one.
	Renewed func(left time.Duration)
	Closed  func() // called at the end of Close
}

// Holder sends what a task and its subagents record to a bucket. Exactly one process can extend a task's log: it
// creates the object of the next number, and a process that finds this number in use has lost the task.
// The methods may be called concurrently.
type Holder struct {
	o      Options
	bucket bucket.Bucket
	task   string
	holder string
	host   string
	end    context.CancelFunc
	ended  chan struct{}
	// stopped is closed with lost set.
	stopped chan struct{}
	closing chan struct{} // closed by Close
	wrote   chan struct{} // something was recorded
	wake    chan struct{} // a caller waits until it is sent

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change of what follows
	cursor  Cursor
	streams map[string]*stream
	sent    map[string]bool // snapshots, by store and id, that the log has
	until   time.Time       // no call begins after it
	beat    bool            // an object is sent even if nothing was recorded
	lost    error
}

type stream struct {
	log   *opstream.Log
	store string // of its snapshots
	seq   uint64 // the last line sent
	vault int64  // bytes of the vault sent
}

// Hold begins to send what the task records from a position of its log on, which Pull returned or which is zero
// for a new task. The caller attaches the streams and closes the Holder.
func Hold(ctx context.Context, b bucket.Bucket, c Cursor, o Options) (*Holder, error) {
	o.Lease = max(cmp.Or(o.Lease, DefaultLease), time.Second)
	if o.Now == nil {
		o.Now = time.Now
	}
	host, _ := os.Hostname()
	h := &Holder{
		o: o, bucket: b, task: c.Task, holder: randomName(), host: host, cursor: c,
		ended: make(chan struct{}), stopped: make(chan struct{}), closing: make(chan struct{}),
		changed: make(chan struct{}), wrote: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		streams: make(map[string]*stream), sent: make(map[string]bool), until: o.Now(),
	}
	h.cursor.Remote, h.cursor.Own = b.String(), h.holder // so that Pull recognises what this process sends
	if err := h.cursor.write(o.Home); err != nil {
		return nil, err
	}
	ctx, h.end = context.WithCancel(context.WithoutCancel(ctx))
	go h.run(ctx)
	return h, nil
}

// Place records that a directory has the task's files.
func (h *Holder) Place(dir string) {
	h.mu.Lock()
	h.cursor.Place = durable.Identity(dir)
	h.mu.Unlock()
}

// Attach adds a stream whose lines are sent from now on. store is that of its snapshots.
func (h *Holder) Attach(task, store string, log *opstream.Log) {
	h.mu.Lock()
	h.streams[task] = &stream{log: log, store: store, seq: h.cursor.Seqs[task], vault: h.cursor.Vaults[task]}
	h.mu.Unlock()
	h.Wrote()
}

// Wrote reports that a stream has new lines. It does not block.
func (h *Holder) Wrote() { signal(h.wrote) }

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Safe returns when all that was recorded before is in the bucket and this process holds the task. While the
// bucket fails it waits. Errors: ErrLost, or ctx's.
func (h *Holder) Safe(ctx context.Context) error {
	h.mu.Lock()
	goal := make(map[*stream]uint64)
	for _, s := range h.streams {
		goal[s], _ = s.log.Last()
	}
	for {
		done := h.o.Now().Before(h.until)
		for s, seq := range goal {
			done = done && s.seq >= seq
		}
		// If nothing is left to send, only an object without lines renews the lease.
		h.beat = h.beat || !h.o.Now().Before(h.until)
		lost, changed := h.lost, h.changed
		h.mu.Unlock()
		if lost != nil || done {
			return lost
		}
		signal(h.wake)
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w", h.bucket, context.Cause(ctx))
		}
		h.mu.Lock()
	}
}

// Lost is closed when the holder has stopped, as Err says.
func (h *Holder) Lost() <-chan struct{} { return h.stopped }

// Err returns why the holder stopped, such as ErrLost; nil while it sends.
func (h *Holder) Err() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lost
}

// Close sends what is left, for as long as ctx lasts, and says in the log that anybody may take the task.
func (h *Holder) Close(ctx context.Context) error {
	if h.o.Closed != nil {
		defer h.o.Closed()
	}
	h.mu.Lock()
	none := h.cursor.Last.N == 0 // the task could not be begun
	for _, s := range h.streams {
		seq, _ := s.log.Last()
		none = none && seq == 0
	}
	h.mu.Unlock()
	var err error
	if !none {
		err = h.Safe(ctx)
	}
	close(h.closing)
	stop := context.AfterFunc(ctx, h.end)
	<-h.ended // extend would take an object that arrives later for another process's
	stop()
	h.end()
	if err == nil && !none {
		err = h.extend(ctx, nil, true)
	}
	return err
}

// run sends until ctx ends or the task is lost.
func (h *Holder) run(ctx context.Context) {
	defer close(h.ended)
	beat := min(heartbeatTime, h.o.Lease/4)
	timer := time.NewTimer(beat)
	defer timer.Stop()
	lingers := false
	for h.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-h.closing:
			return
		case <-h.wrote:
			// Later lines do not prolong the pause, so that no line waits longer than lingerTime.
			if !lingers {
				lingers = true
				timer.Reset(lingerTime)
			}
			continue
		case <-h.wake:
		case <-timer.C:
			h.mu.Lock()
			h.beat = h.beat || !lingers && h.cursor.Last.N > 0 // a task begins with its first line
			h.mu.Unlock()
		}
		for h.step(ctx) {
		}
		lingers = false
		timer.Reset(beat)
	}
}

// step sends one object, and reports whether there may be more to send.
func (h *Holder) step(ctx context.Context) (more bool) {
	b, err := h.collect(ctx)
	h.mu.Lock()
	beat := h.beat
	h.beat = false
	h.mu.Unlock()
	if err == nil && (len(b.files) > 0 || beat) {
		err = h.extend(ctx, b, false)
	}
	if err != nil && ctx.Err() == nil {
		h.fail(err)
	}
	return err == nil && b.more
}

func (h *Holder) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lost = err
	close(h.stopped)
	h.broadcast()
}

// broadcast wakes who waits; the caller holds mu.
func (h *Holder) broadcast() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// batch is what one object holds.
type batch struct {
	files []file
	sent  map[*stream]mark
	names map[*stream]string // tasks
	size  int
	more  bool
}

// mark is a position in a stream's files.
type mark struct {
	seq   uint64
	file  string
	end   int64
	vault int64
}

// collect gathers what is not sent. Where the root's lines end is determined first, and its lines come last: what
// they say of subagents' streams is in the log before them.
func (h *Holder) collect(ctx context.Context) (*batch, error) {
	h.mu.Lock()
	streams := maps.Clone(h.streams)
	h.mu.Unlock()
	b := &batch{sent: make(map[*stream]mark), names: make(map[*stream]string)}
	tasks := slices.Sorted(maps.Keys(streams)) // a parent before its subagents
	limits := make(map[string]uint64)
	for _, task := range tasks {
		limits[task], _ = streams[task].log.Last()
	}
	for _, task := range slices.Backward(tasks) {
		if b.more {
			break
		}
		if err := h.collectStream(ctx, b, task, streams[task], limits[task]); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func (h *Holder) collectStream(ctx context.Context, b *batch, task string, s *stream, limit uint64) error {
	var lines *file
	dir, m := h.o.Home.Task(task), mark{seq: s.seq, vault: s.vault}
	var out []file
	for line, err := range s.log.Lines(s.seq) {
		if err != nil {
			return err
		}
		if line.Seq > limit {
			break
		}
		// A blob goes before the line that names it: a reader never has a name without its bytes.
		if line.Blob != "" {
			data, err := os.ReadFile(filepath.Join(dir, line.Blob))
			if err != nil {
				return err
			}
			b.files = append(b.files, file{name: taskFile(task, line.Blob), data: data})
			b.size += len(data)
		}
		if err := h.named(ctx, b, task, s, line); err != nil {
			return err
		}
		name := taskFile(task, line.File)
		if lines == nil || lines.name != name {
			out = append(out, file{name: name, offset: line.Offset})
			lines = &out[len(out)-1]
		}
		lines.data = append(lines.data, line.Bytes...)
		m.seq, m.file, m.end = line.Seq, line.File, line.Offset+int64(len(line.Bytes))
		if b.size += len(line.Bytes); b.size >= maxObjectBytes {
			b.more = true
			break
		}
	}
	if h.o.Sealed && len(out) > 0 {
		data, err := os.ReadFile(h.o.Home.Vault(task))
		if err != nil {
			return err
		}
		if n := int64(len(data)); n > s.vault {
			b.files = append(b.files,
				file{name: taskFile(task, taskdir.VaultName), offset: s.vault, data: data[s.vault:]})
			m.vault = n
		}
	}
	b.files = append(b.files, out...) // behind the blobs and keys that the lines need
	b.sent[s], b.names[s] = m, task
	return nil
}

func taskFile(task, name string) string { return tasksPrefix + task + "/" + filepath.ToSlash(name) }

// named adds the snapshots that a line is the first to name, or its bundle of commits.
func (h *Holder) named(ctx context.Context, b *batch, task string, s *stream, line opstream.Line) error {
	git := line.Kind == string((*op.GitSeen)(nil).Kind())
	if !git && !op.NamesSnapshots(op.Kind(line.Kind)) {
		return nil
	}
	o, err := taskdir.ReadOp(s.log, line.Seq)
	if err != nil {
		return err
	}
	if seen, ok := o.Body.(*op.GitSeen); ok && seen.Bundle != "" {
		data, err := os.ReadFile(filepath.Join(h.o.Home.Task(task), seen.Bundle))
		if err != nil {
			return err
		}
		b.files = append(b.files, file{name: taskFile(task, seen.Bundle), data: data})
		b.size += len(data)
	}
	for _, id := range op.Snapshots(o.Body) {
		key := filepath.Base(s.store) + "/" + id
		if h.sent[key] {
			continue
		}
		if err := h.export(ctx, b, s.store, worldstate.ID(id)); err != nil {
			return err
		}
		h.sent[key] = true
	}
	return nil
}

func (h *Holder) export(ctx context.Context, b *batch, store string, id worldstate.ID) error {
	dir, err := emptyDir(h.o.Home, h.task, "export")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	index, err := worldstate.Export(ctx, store, id, dir)
	if err != nil {
		return err
	}
	for _, path := range []string{strings.TrimSuffix(index, ".idx") + ".pack", index} {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		b.files = append(b.files,
			file{name: worldsPrefix + filepath.Base(store) + "/" + string(id) + filepath.Ext(path), data: data})
		b.size += len(data)
	}
	return nil
}

// extend creates the log's next object. A create whose answer was lost is repeated, and found to have succeeded by
// its bytes. While the bucket fails, extend tries again.
func (h *Holder) extend(ctx context.Context, b *batch, released bool) error {
	b = cmp.Or(b, new(batch))
	alive := func() error { // parts can take longer than a lease; no other goroutine writes what is read here
		begun := h.until.Add(-h.o.Lease * 2 / 3) // of the last object
		if h.cursor.Last.N == 0 || h.o.Now().Before(begun.Add(h.o.Lease/4)) {
			return nil
		}
		return h.extend(ctx, nil, false)
	}
	for i := range b.files {
		if err := h.retry(ctx, func() error { return b.files[i].store(ctx, h.bucket, h.task, alive) }); err != nil {
			return err
		}
	}
	h.mu.Lock()
	c := h.cursor
	h.mu.Unlock()
	n := c.Last.N + 1
	about := About{
		V: version, Task: h.task, N: n, After: c.Sum, Holder: h.holder, Time: h.o.Now().UTC(), Host: h.host,
		Released: released, Lease: h.o.Lease,
	}
	data, err := encode(about, b.files)
	if err != nil {
		return err
	}
	var begun time.Time
	// The name comes first: one without a log is passed over, and a log without a name would not be listed.
	if n == 1 {
		if err := h.retry(ctx,
			func() error { return h.bucket.Put(ctx, indexPrefix+h.task, []byte("{}\n")) }); err != nil {
			return err
		}
	}
	first := h.o.Now()
	err = h.retry(ctx, func() error {
		begun = h.o.Now()
		err := h.bucket.Create(ctx, logName(h.task, n), data)
		if !errors.Is(err, bucket.ErrExists) {
			return err
		}
		stored, err := h.bucket.Get(ctx, logName(h.task, n))
		if err != nil {
			return err
		}
		if string(stored) == string(data) {
			begun = first // whose answer was lost, so that others count the lease from then on
			return nil
		}
		return lostError(stored)
	})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(data)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.cursor.Last, h.cursor.Sum = about, hex.EncodeToString(sum[:])
	for s, m := range b.sent {
		s.seq, s.vault = m.seq, m.vault
		h.cursor.move(b.names[s], m)
	}
	// Others count a whole lease from when they see the object. This process and its commands stop earlier, by its own
	// clock from before the request, so that no clock has to agree with another.
	h.until = begun.Add(h.o.Lease * 2 / 3)
	if h.o.Renewed != nil {
		h.o.Renewed(h.until.Sub(h.o.Now()))
	}
	h.broadcast()
	return h.cursor.write(h.o.Home)
}

// lostError returns ErrLost, naming who has the task.
func lostError(stored []byte) error {
	a, _, err := decode(stored)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: a process on %s, since %s", ErrLost, a.Host, a.Time.Format(time.DateTime))
}

// retry repeats f while the bucket fails.
func (h *Holder) retry(ctx context.Context, f func() error) error {
	for pause := firstRetry; ; pause = min(2*pause, lastRetry) {
		err := f()
		if err == nil || errors.Is(err, ErrLost) || errors.Is(err, bucket.ErrKey) || errors.Is(err, ErrNewer) ||
			errors.Is(err, ErrDamaged) {
			if pause > firstRetry && h.o.Waiting != nil {
				h.o.Waiting(nil)
			}
			return err
		}
		if pause == firstRetry && h.o.Waiting != nil {
			h.o.Waiting(err)
		}
		if model.Wait(ctx, pause) != nil {
			return fmt.Errorf("%s: %w: %w", h.bucket, context.Cause(ctx), err)
		}
	}
}

// emptyDir makes an empty directory of a task's own for files under way. It removes what a killed process left
// there.
func emptyDir(h taskdir.Home, task string, name ...string) (string, error) {
	dir := filepath.Join(append([]string{h.Task(task)}, name...)...)
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o700)
}

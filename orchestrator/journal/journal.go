package journal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/state/projection"
	"anamnesis/orchestrator/taskdir"
)

// Options configure a journal. All but Event and Files are required.
type Options struct {
	Stream  opstream.Options
	Mark    string // the word of the task's marks
	Count   func(text string) int
	Secrets []redact.Secret
	Learned *redact.Learned          // what the task and its subagents recognised as secret
	Files   func() (*os.Root, error) // the world, where secrets come from; nil: they are kept nowhere
	Dir     string                   // its path
	Event   func(op.Op)              // sees every operation once it is durable, in order
	// Safe returns when what was recorded before is kept elsewhere, too; nil: it is kept here only.
	Safe func(ctx context.Context) error
}

// Journal is the only way into a task's stream. What it records is signed, redacted and
// durable before any reader sees it. Any goroutine may post; the goroutine that owns the state
// folds what was posted, in ApplyQueued.
type Journal struct {
	o        Options
	log      *opstream.Log
	vault    *Vault
	redactor *redact.Redactor

	mu     sync.Mutex
	closed bool
	queue  []op.Op // durable, not folded yet
	last   uint64  // seq of the last operation queued
	step   int     // the step an operation appended now belongs to
}

// Open opens a task's stream for writing, and its vault.
func Open(dir, vault string, o Options) (*Journal, error) {
	log, err := opstream.Open(dir, &o.Stream)
	if err != nil {
		return nil, err
	}
	v, err := OpenVault(vault)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	o.Learned.Add(v.Learned...)
	return &Journal{o: o, log: log, vault: v, redactor: redact.NewLearning(v.Key, o.Secrets, o.Learned)}, nil
}

// Close seals the stream. What is posted later is refused with ErrNotLive.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return nil
	}
	j.closed = true
	return errors.Join(j.log.Close(), j.vault.Close())
}

// Safe returns when what was recorded before is kept wherever the task is kept. It is called before effects that
// another machine must know of.
func (j *Journal) Safe(ctx context.Context) error {
	if j.o.Safe == nil {
		return nil
	}
	return j.o.Safe(ctx)
}

// Log returns the stream, for reading.
func (j *Journal) Log() *opstream.Log { return j.log }

// Redactor returns the task's redactor.
func (j *Journal) Redactor() *redact.Redactor { return j.redactor }

// Post makes operations durable, in one write.
func (j *Journal) Post(ctx context.Context, bodies ...op.Body) error {
	if len(bodies) == 0 {
		return nil
	}
	_, err := j.PostSeq(ctx, bodies...)
	return err
}

// PostSeq is Post; it returns the seq of the last operation.
func (j *Journal) PostSeq(ctx context.Context, bodies ...op.Body) (uint64, error) {
	entries, bodies, err := j.encode(bodies...)
	if err != nil {
		return 0, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.appendLocked(ctx, entries, bodies...); err != nil {
		return 0, err
	}
	return j.last, nil
}

// Repeat shows an operation of an earlier process again to whom Event tells.
func (j *Journal) Repeat(o op.Op) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.o.Event != nil {
		j.o.Event(o)
	}
}

// PostWith makes operations durable that depend on those that are not folded yet. Of two callers
// the later one sees the operations of the earlier one.
func (j *Journal) PostWith(ctx context.Context, make func(queue []op.Op) ([]op.Body, error)) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	bodies, err := make(j.queue)
	if err != nil {
		return err
	}
	entries, bodies, err := j.encode(bodies...)
	if err != nil {
		return err
	}
	return j.appendLocked(ctx, entries, bodies...)
}

// ReadQueue calls read with the operations that are not folded yet. Neither they nor the state
// change meanwhile.
func (j *Journal) ReadQueue(read func(queue []op.Op)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	read(j.queue)
}

// ApplyQueued folds what was posted into the state. Only the goroutine
// that owns the state may call it.
func (j *Journal) ApplyQueued(s *state.State, fold func(op.Op) error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, o := range j.queue {
		if err := fold(o); err != nil {
			return err
		}
	}
	j.queue = j.queue[:0]
	j.last, j.step = max(j.last, s.Last), s.Steps.Next()
	return nil
}

// sign adds the task's word to the marks of a body and removes it from results. It does not
// change texts of files, so that edits match them.
func (j *Journal) sign(b op.Body) {
	if own := op.OwnText(b); own != nil {
		*own = notice.Signed(*own, j.o.Mark)
		return
	}
	if b, ok := b.(*op.ToolReturned); ok && len(b.Reads) == 0 && len(b.Writes) == 0 {
		b.Text = notice.Visible(b.Text)
		if j.o.Mark != "" {
			b.Text = strings.ReplaceAll(b.Text, j.o.Mark, notice.MaskedWord)
		}
	}
}

// encode makes stream entries of operations, and returns the operations as recorded: redacted.
// Everything that is folded, shown or sent comes from its result.
func (j *Journal) encode(bodies ...op.Body) ([]opstream.Entry, []op.Body, error) {
	entries, redacted := make([]opstream.Entry, len(bodies)), make([]op.Body, len(bodies))
	for i, b := range bodies {
		j.sign(b)
		b, data, err := j.redactBody(b)
		if err != nil {
			return nil, nil, err
		}
		entries[i] = opstream.Entry{Kind: string(b.Kind()), Tok: projection.CountBody(b, j.Count), Body: data}
		redacted[i] = b
	}
	return entries, redacted, nil
}

// maxCounted is how many bytes of one operation are counted; the rest is assumed to be alike.
// Counting runs at about 1 MB/s, and the user may be waiting for the turn to end.
const maxCounted = 1 << 20

// Count returns the tokens of a text.
func (j *Journal) Count(text string) int {
	if len(text) <= maxCounted {
		return j.o.Count(text)
	}
	head := strings.ToValidUTF8(text[:maxCounted], "")
	return int(float64(j.o.Count(head)) * float64(len(text)) / float64(len(head)))
}

// appendLocked appends encoded bodies to the stream; j.mu is held.
func (j *Journal) appendLocked(ctx context.Context, entries []opstream.Entry, bodies ...op.Body) error {
	if j.closed {
		return fmt.Errorf("record %s: %w", bodies[0].Kind(), taskdir.ErrNotLive) // closed meanwhile
	}
	for i := range entries {
		entries[i].Step = j.step
	}
	first, err := j.log.Append(ctx, entries...)
	if err != nil {
		return fmt.Errorf("record %s: %w", bodies[0].Kind(), err)
	}
	if err := j.logOwnLocked(first); err != nil {
		return err
	}
	j.last = first + uint64(len(bodies)) - 1
	for i, b := range bodies {
		o := op.Op{Seq: first + uint64(i), Step: j.step, Tok: entries[i].Tok, Time: j.o.Stream.Now(), Body: b}
		if j.o.Event != nil {
			j.o.Event(o)
		}
		if k, ok := b.(*op.OutputKept); ok { // output must not wait in memory; Fold ignores it
			o.Body = &op.OutputKept{Call: k.Call, Part: k.Part, From: k.From}
		}
		j.queue = append(j.queue, o)
		if b.Kind() == op.KindWorldSaved {
			j.step++ // what is posted before this is folded belongs to the next step already
		}
	}
	return nil
}

// logOwnLocked queues the lines that the log itself wrote before seq, such as seals.
func (j *Journal) logOwnLocked(seq uint64) error {
	for missed := j.last + 1; missed < seq; missed++ {
		o, err := taskdir.ReadOp(j.log, missed)
		if err != nil {
			return err
		}
		j.queue = append(j.queue, o)
	}
	return nil
}

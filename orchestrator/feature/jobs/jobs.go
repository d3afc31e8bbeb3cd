// Package jobs runs the background commands of a task. It keeps their output in files, records
// when they began and ended, and answers for those of earlier processes.
package jobs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool"
)

// Limits of background commands.
const (
	Max      = 16       // that run at once
	MaxBytes = 64 << 20 // of output kept of each; the rest is counted
)

// The reasons of op.JobEnded.
const (
	Exited   = "exit"
	TimedOut = "timeout"
	Stopped  = "stopped"
	ByUser   = "user"
	ByJump   = "jump"
	Closed   = "closed"
	Lost     = "lost"
)

// Jobs are the background commands of this process. It implements tool.Jobs; its
// methods may be called from any goroutine.
type Jobs struct {
	ledger *journal.Ledger
	dir    string // of the files of output
	before int    // the highest number used by an earlier process

	mu   sync.Mutex
	n    int // ids given out in the task
	list []*job
	shut bool

	earlier []*job // of earlier processes; nil: not read yet
}

// New returns the jobs of a task, none of which runs yet.
func New(l *journal.Ledger) *Jobs {
	begun := l.State().Jobs.Begun
	return &Jobs{ledger: l, dir: filepath.Join(l.Home.Task(l.ID), "jobs"), before: begun, n: begun}
}

// Job is one background command.
type Job struct {
	ID, Command string
	Why         string // see op.JobEnded; empty while it runs
	Exit        int
	Bytes       int64 // of output so far
	Note        string
	Network     bool // see tool.JobEnd
}

// Output is a piece of a job's output.
type Output struct {
	Job        Job
	Text       string
	From, Next int64 // its byte range
	Dropped    int64 // bytes at the end that were dropped
}

// job is one command. Its fields are guarded by Jobs.mu.
type job struct {
	Job
	file    *os.File
	dropped int64
	stop    context.CancelFunc
	why     string        // why it was ended, if it was
	done    chan struct{} // closed when nothing of it is alive and its end is recorded
}

// Begin implements tool.Jobs.
func (js *Jobs) Begin(ctx context.Context, s tool.JobStart) (string, error) {
	j, ctx, err := js.register(ctx, s)
	if err != nil {
		return "", err
	}
	began := make(chan error, 1)
	go func() {
		defer close(j.done)
		running := false
		end, err := s.Run(ctx, jobWriter{js, j}, func(p op.ToolStarted) error {
			// The command runs only once this is durable: a later process finds in it what it has to end.
			err := js.ledger.Journal.Post(context.WithoutCancel(ctx), &op.JobStarted{
				Job: j.ID, Call: s.Call, Command: s.Command, Timeout: int(s.Timeout / time.Second), PID: p.PID,
				StartTime: p.StartTime, BootID: p.BootID})
			running = err == nil
			if running {
				began <- nil
			}
			return err
		})
		if !running { // it never began
			js.remove(j)
			began <- err
			return
		}
		js.recordEnd(context.WithoutCancel(ctx), j, end)
	}()
	if err := <-began; err != nil {
		return "", err
	}
	return j.ID, nil
}

// remove undoes register for a job that did not begin.
func (js *Jobs) remove(j *job) {
	js.mu.Lock()
	defer js.mu.Unlock()
	j.stop()
	j.file.Close()
	js.list = slices.DeleteFunc(js.list, func(o *job) bool { return o == j })
}

func (js *Jobs) register(ctx context.Context, s tool.JobStart) (*job, context.Context, error) {
	js.mu.Lock()
	defer js.mu.Unlock()
	running := 0
	for _, j := range js.list {
		if j.Why == "" {
			running++
		}
	}
	switch {
	case js.shut:
		return nil, nil, errors.New("the task is ending")
	case running >= Max:
		return nil, nil, fmt.Errorf("%d commands run in the background already; end one with TaskStop", running)
	}
	id := fmt.Sprintf("%s%d", state.JobPrefix, js.n+1)
	if err := os.MkdirAll(js.dir, 0o700); err != nil {
		return nil, nil, fmt.Errorf("keep the output of %s: %w", id, err)
	}
	file, err := os.OpenFile(js.output(id), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("keep the output of %s: %w", id, err)
	}
	js.n++
	// The command outlives its call and the turn, but not the deadline of their commands.
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	j := &job{Job: Job{ID: id, Command: s.Command}, file: file, stop: stop, done: make(chan struct{})}
	js.list = append(js.list, j)
	return j, ctx, nil
}

// recordEnd records how a job ended. If the task was closed meanwhile, its next opening records
// it.
func (js *Jobs) recordEnd(ctx context.Context, j *job, end tool.JobEnd) {
	js.mu.Lock()
	j.stop()
	j.Exit, j.Note, j.Network = end.Exit, end.Note, end.Network
	if j.why == "" && end.TimedOut {
		j.why = TimedOut
	}
	j.Why = cmp.Or(j.why, Exited)
	b := &op.JobEnded{Job: j.ID, Why: j.Why, Exit: j.Exit, Bytes: j.Bytes, Network: j.Network}
	switch name := named(j.ID, j.Command); {
	case j.Why == Exited || j.Why == TimedOut:
		b.Notice = fmt.Sprintf("[background] %s ended: %s. TaskOutput shows what it printed.", name, endText(j.Job))
	case j.Why == ByUser:
		b.Notice = fmt.Sprintf("[background] %s was ended by the user.", name)
	case j.Note != "":
		b.Notice = fmt.Sprintf("[background] %s was ended: %s", name, j.Note)
	}
	js.mu.Unlock()
	if err := js.ledger.Journal.Post(ctx, b); err != nil && !errors.Is(err, taskdir.ErrNotLive) {
		js.mu.Lock()
		j.Note = strings.TrimSpace(j.Note + " Its end could not be recorded: " + err.Error())
		js.mu.Unlock()
	}
}

// named is a job's id with the beginning of its command.
func named(id, command string) string {
	return fmt.Sprintf("%s (%s)", id, quote.OneLine(command, notice.MaxDelivered))
}

func endText(j Job) string {
	text := fmt.Sprintf("exit %d", j.Exit)
	if j.Why == TimedOut {
		text = "its time was up"
	}
	if j.Note != "" {
		text += " (" + j.Note + ")"
	}
	return text
}

// jobWriter keeps a job's output in its file, up to MaxBytes.
type jobWriter struct {
	js *Jobs
	j  *job
}

func (w jobWriter) Write(p []byte) (int, error) {
	w.js.mu.Lock()
	defer w.js.mu.Unlock()
	room := max(MaxBytes-(w.j.Bytes-w.j.dropped), 0)
	keep := p[:min(int64(len(p)), room)]
	n, err := w.j.file.Write(keep)
	w.j.Bytes += int64(len(p))
	w.j.dropped += int64(len(p) - n)
	return len(p), err
}

func (js *Jobs) own(id string) (*job, bool) {
	js.mu.Lock()
	defer js.mu.Unlock()
	i := slices.IndexFunc(js.list, func(j *job) bool { return j.ID == id })
	if i < 0 {
		return nil, false
	}
	return js.list[i], true
}

// find returns a job of this process, or else of an earlier one. The caller holds js.mu.
func (js *Jobs) find(id string) (*job, error) {
	past, err := js.past()
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, j := range slices.Concat(past, js.list) {
		if j.ID == id {
			return j, nil
		}
		ids = append(ids, j.ID)
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("there is no background task %q; none was begun", id)
	}
	return nil, fmt.Errorf("there is no background task %q; there are %s", id, strings.Join(ids, ", "))
}

// List returns the jobs of the task, oldest first, including those of earlier processes.
func (js *Jobs) List() ([]Job, error) {
	js.mu.Lock()
	defer js.mu.Unlock()
	past, err := js.past()
	if err != nil {
		return nil, err
	}
	var out []Job
	for _, j := range slices.Concat(past, js.list) {
		out = append(out, j.Job)
	}
	return out, nil
}

// Output reads a job's output from byte from on, at most n bytes; a negative from counts from the
// end.
func (js *Jobs) Output(id string, from int64, n int) (Output, error) {
	js.mu.Lock()
	defer js.mu.Unlock()
	j, err := js.find(id)
	if err != nil {
		return Output{}, err
	}
	kept := j.Bytes - j.dropped
	if from < 0 {
		from = max(kept+from, 0)
	}
	from = min(from, kept)
	data := make([]byte, min(int64(n), kept-from))
	if err := js.readOutput(id, data, from); err != nil {
		return Output{}, fmt.Errorf("read the output of %s: %w", id, err)
	}
	return Output{Job: j.Job, Text: string(data), From: from, Next: from + int64(len(data)), Dropped: j.dropped}, nil
}

// Wait returns when the job has ended, limit has passed, or ctx ends.
func (js *Jobs) Wait(ctx context.Context, id string, limit time.Duration) error {
	js.mu.Lock()
	j, err := js.find(id)
	js.mu.Unlock()
	if err != nil {
		return err
	}
	over := time.NewTimer(limit)
	defer over.Stop()
	select {
	case <-j.done:
	case <-over.C:
	case <-ctx.Done():
	}
	return nil
}

// Stop ends a job and everything it started. why is Stopped or ByUser.
func (js *Jobs) Stop(id, why string) (Job, error) {
	js.mu.Lock()
	j, err := js.find(id)
	js.mu.Unlock()
	if err != nil {
		return Job{}, err
	}
	js.end(why, j)
	js.mu.Lock()
	defer js.mu.Unlock()
	return j.Job, nil
}

// end ends jobs and waits until nothing of them is alive.
func (js *Jobs) end(why string, list ...*job) {
	js.mu.Lock()
	for _, j := range list {
		if j.Why == "" && j.why == "" {
			j.why = why
		}
		j.stop()
	}
	js.mu.Unlock()
	for _, j := range list {
		<-j.done
	}
}

// Close ends every job.
func (js *Jobs) Close() error {
	js.mu.Lock()
	js.shut = true
	list := slices.Clone(js.list)
	js.mu.Unlock()
	js.end(Closed, list...)
	var errs []error
	for _, j := range list {
		errs = append(errs, j.file.Close())
	}
	return errors.Join(errs...)
}

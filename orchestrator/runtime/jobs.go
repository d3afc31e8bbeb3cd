package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool"
)

// Limits of background commands.
const (
	maxJobs     = 16       // that run at once
	maxJobBytes = 64 << 20 // of output kept of each; the rest is counted
)

// The reasons of op.JobEnded.
const (
	jobExit    = "exit"
	jobTimeout = "timeout"
	jobStopped = "stopped"
	jobJump    = "jump"
	jobClosed  = "closed"
	jobLost    = "lost"
)

// jobs are the background commands of this process. It implements tool.Jobs; its
// methods may be called from any goroutine.
type jobs struct {
	t   *Task
	dir string // of the files of output

	mu   sync.Mutex
	n    int // ids given out in the task
	list []*job
	shut bool

	before  int // the highest number an earlier process gave out
	pastMu  sync.Mutex
	earlier []*job // of earlier processes; nil: not read yet
}

// job is one command. Its fields are guarded by jobs.mu.
type job struct {
	tool.Job
	file    *os.File
	dropped int64
	stop    context.CancelFunc
	why     string        // who ended it, if somebody did
	done    chan struct{} // closed when nothing of it is alive and its end is recorded
}

// Begin implements tool.Jobs.
func (js *jobs) Begin(s tool.JobStart) (string, error) {
	j, ctx, err := js.enter(s)
	if err != nil {
		return "", err
	}
	began := make(chan error, 1)
	go func() {
		defer close(j.done)
		running := false
		end, err := s.Run(ctx, jobWriter{js, j}, func(p op.ToolStarted) error {
			err := js.t.journal.Post(context.WithoutCancel(ctx), &op.JobStarted{
				Job: j.ID, Call: s.Call, Command: s.Command, Timeout: int(s.Timeout / time.Second), PID: p.PID, StartTime: p.StartTime, BootID: p.BootID})
			running = err == nil
			if running {
				began <- nil
			}
			return err
		})
		if !running { // it never began
			js.forget(j)
			began <- err
			return
		}
		js.leave(context.WithoutCancel(ctx), j, end)
	}()
	if err := <-began; err != nil {
		return "", err
	}
	return j.ID, nil
}

// forget takes out a job that did not begin.
func (js *jobs) forget(j *job) {
	js.mu.Lock()
	defer js.mu.Unlock()
	j.stop()
	j.file.Close()
	js.list = slices.DeleteFunc(js.list, func(o *job) bool { return o == j })
}

// enter makes a job, before it runs.
func (js *jobs) enter(s tool.JobStart) (*job, context.Context, error) {
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
	case running >= maxJobs:
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
	ctx, stop := context.WithCancel(context.Background())
	j := &job{Job: tool.Job{ID: id, Command: s.Command, Began: js.t.now()}, file: file, stop: stop, done: make(chan struct{})}
	js.list = append(js.list, j)
	return j, ctx, nil
}

// leave records how a job ended. A task that was closed meanwhile records it
// when it is opened again.
func (js *jobs) leave(ctx context.Context, j *job, end tool.JobEnd) {
	js.mu.Lock()
	j.stop()
	j.Ended, j.Exit, j.Note, j.Network = js.t.now(), end.Exit, end.Note, end.Network
	j.Why = j.why
	switch {
	case j.Why != "":
	case end.TimedOut:
		j.Why = jobTimeout
	default:
		j.Why = jobExit
	}
	b := &op.JobEnded{Job: j.ID, Why: j.Why, Exit: j.Exit, Bytes: j.Bytes, Network: j.Network}
	if j.Why == jobExit || j.Why == jobTimeout {
		b.Notice = fmt.Sprintf("[background] %s (%s) ended: %s. TaskOutput shows what it printed.", j.ID, notice.OneLine(j.Command, notice.MaxDelivered), endText(j.Job))
	} else if j.Note != "" {
		b.Notice = fmt.Sprintf("[background] %s (%s) was ended: %s", j.ID, notice.OneLine(j.Command, notice.MaxDelivered), j.Note)
	}
	js.mu.Unlock()
	if err := js.t.journal.Post(ctx, b); err != nil && !errors.Is(err, taskdir.ErrNotLive) {
		js.mu.Lock()
		j.Note = strings.TrimSpace(j.Note + " Its end could not be recorded: " + err.Error())
		js.mu.Unlock()
	}
}

func endText(j tool.Job) string {
	text := fmt.Sprintf("exit %d", j.Exit)
	if j.Why == jobTimeout {
		text = "its time was up"
	}
	if j.Note != "" {
		text += " (" + j.Note + ")"
	}
	return text
}

// jobWriter keeps a job's output in its file, up to maxJobBytes.
type jobWriter struct {
	js *jobs
	j  *job
}

func (w jobWriter) Write(p []byte) (int, error) {
	w.js.mu.Lock()
	defer w.js.mu.Unlock()
	room := max(maxJobBytes-(w.j.Bytes-w.j.dropped), 0)
	keep := p[:min(int64(len(p)), room)]
	n, err := w.j.file.Write(keep)
	w.j.Bytes += int64(len(p))
	w.j.dropped += int64(len(p) - n)
	return len(p), err
}

// begun is the highest number given out.
func (js *jobs) begun() int {
	js.mu.Lock()
	defer js.mu.Unlock()
	return js.n
}

// own reports whether a job is one of this process, and gives it.
func (js *jobs) own(id string) (*job, bool) {
	js.mu.Lock()
	defer js.mu.Unlock()
	i := slices.IndexFunc(js.list, func(j *job) bool { return j.ID == id })
	if i < 0 {
		return nil, false
	}
	return js.list[i], true
}

// find returns a job of this process or, where there is none, of an earlier one.
// js.mu is held.
func (js *jobs) find(id string) (*job, error) {
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

// List implements tool.Jobs.
func (js *jobs) List() ([]tool.Job, error) {
	js.mu.Lock()
	defer js.mu.Unlock()
	past, err := js.past()
	if err != nil {
		return nil, err
	}
	var out []tool.Job
	for _, j := range slices.Concat(past, js.list) {
		out = append(out, j.Job)
	}
	return out, nil
}

// Output implements tool.Jobs.
func (js *jobs) Output(id string, from int64, n int) (tool.JobOutput, error) {
	js.mu.Lock()
	defer js.mu.Unlock()
	j, err := js.find(id)
	if err != nil {
		return tool.JobOutput{}, err
	}
	kept := j.Bytes - j.dropped
	if from < 0 {
		from = max(kept+from, 0)
	}
	from = min(from, kept)
	data := make([]byte, min(int64(n), kept-from))
	if err := js.readOutput(j, data, from); err != nil {
		return tool.JobOutput{}, fmt.Errorf("read the output of %s: %w", id, err)
	}
	return tool.JobOutput{Job: j.Job, Text: string(data), From: from, Next: from + int64(len(data)), Dropped: j.dropped}, nil
}

// readFull reads as much as there is.
func readFull(f *os.File, data []byte, from int64) error {
	if _, err := f.ReadAt(data, from); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// Wait implements tool.Jobs.
func (js *jobs) Wait(ctx context.Context, id string, limit time.Duration) error {
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

// Stop implements tool.Jobs.
func (js *jobs) Stop(id string) (tool.Job, error) {
	js.mu.Lock()
	j, err := js.find(id)
	js.mu.Unlock()
	if err != nil {
		return tool.Job{}, err
	}
	js.end(jobStopped, j)
	js.mu.Lock()
	defer js.mu.Unlock()
	return j.Job, nil
}

// end ends jobs and waits until nothing of them is alive.
func (js *jobs) end(why string, list ...*job) {
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

// Close ends every job, for good.
func (js *jobs) close() error {
	js.mu.Lock()
	js.shut = true
	list := slices.Clone(js.list)
	js.mu.Unlock()
	js.end(jobClosed, list...)
	var errs []error
	for _, j := range list {
		errs = append(errs, j.file.Close())
	}
	return errors.Join(errs...)
}

// endJobs ends what runs in the background and was begun in one of some steps,
// and returns it by name.
func (t *Task) endJobs(ctx context.Context, steps []int) ([]string, error) {
	var names []string
	for _, r := range slices.Clone(t.state.Jobs) {
		if !slices.Contains(steps, r.Step) {
			continue
		}
		names = append(names, fmt.Sprintf("%s (%s)", r.Job, notice.OneLine(r.Command, notice.MaxDelivered)))
		if j, ours := t.jobs.own(r.Job); ours {
			t.jobs.end(jobJump, j)
		} else if err := t.closeLostJob(ctx, r, ""); err != nil { // a user jumps in a dead process's place
			return nil, err
		}
	}
	return names, t.settle()
}

// closeLostJobs records the end of background commands that an earlier process
// began: they ended with it.
func (t *Task) closeLostJobs(ctx context.Context) error {
	for _, r := range slices.Clone(t.state.Jobs) {
		if _, ours := t.jobs.own(r.Job); ours {
			continue
		}
		if err := t.closeLostJob(ctx, r, fmt.Sprintf(
			"[background] %s (%s) was ended when the program stopped. Start it again if it is still needed.", r.Job, notice.OneLine(r.Command, notice.MaxDelivered))); err != nil {
			return err
		}
	}
	return nil
}

// closeLostJob ends what is left of a background command of an earlier process
// and records it. The notice tells the model; empty: something else does.
func (t *Task) closeLostJob(ctx context.Context, r state.RunningJob, notice string) error {
	if err := guard.EndLeftover(op.ToolStarted{Call: r.Call, PID: r.PID, StartTime: r.StartTime, BootID: r.BootID}); err != nil {
		return fmt.Errorf("end the background task %s: %w", r.Job, err)
	}
	return t.record(ctx, &op.JobEnded{Job: r.Job, Why: jobLost, Notice: notice})
}

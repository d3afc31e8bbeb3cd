package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"anamnesis/opstream/durable"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/replica/bucket"
	"anamnesis/orchestrator/taskdir"
)

// lookTime is how often a log is looked at whose holder may be alive.
const lookTime = 2 * time.Second

// Take pulls a task and returns when this process may continue it: when the holder has said that it does not go
// on, when it was a process of this home, whose lock the caller can take, or when the log has not grown for a lease,
// its holder's if that is longer, by this process's own clock; 0: it is not waited for. say is called with what is
// waited for.
func Take(ctx context.Context, b bucket.Bucket, h taskdir.Home, task string, lease time.Duration, say func(string)) (
	*Pulled, error) {
	tick := time.NewTicker(lookTime)
	defer tick.Stop()
	var all Pulled
	told := false
	for grown := time.Now(); ; {
		p, err := Pull(ctx, b, h, task)
		if err != nil {
			return nil, err
		}
		if p.Last.N > all.Last.N {
			grown = time.Now()
		}
		p.Aside = append(all.Aside, p.Aside...)
		all = *p
		if lease > 0 {
			lease = max(lease, all.Last.Lease)
		}
		if !all.Rival || all.Last.Released || time.Since(grown) >= lease {
			return &all, nil
		}
		if !told {
			told = true
			say(fmt.Sprintf("a process on %s had task %s last, at %s; waiting until it has sent nothing for %v",
				all.Last.Host, task, all.Last.Time.Format(time.TimeOnly), lease))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for task %s: %w", task, context.Cause(ctx))
		}
	}
}

// Lock keeps other processes from continuing a task in this home, and from copying it, until the result is closed.
// Error: taskdir.ErrRunning.
func Lock(h taskdir.Home, task string) (io.Closer, error) {
	if err := taskdir.CheckTaskID(task); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(h.Task(task)), 0o700); err != nil {
		return nil, err
	}
	f, err := durable.TryLock(h.Task(task) + ".lock")
	if errors.Is(err, durable.ErrLocked) {
		return nil, fmt.Errorf("task %s: %w (pid %d)", task, taskdir.ErrRunning, taskdir.Live(h, task))
	}
	return f, err
}

// withRetries repeats a request for some seconds while the bucket fails transiently.
func withRetries[T any](ctx context.Context, request func() (T, error)) (T, error) {
	for pause := firstRetry; ; pause *= 2 {
		v, err := request()
		lasting := errors.Is(err, bucket.ErrExists) || errors.Is(err, bucket.ErrAbsent) ||
			errors.Is(err, bucket.ErrRefused) || errors.Is(err, bucket.ErrKey)
		if err == nil || lasting || pause > lastRetry {
			return v, err
		}
		if model.Wait(ctx, pause) != nil {
			return v, fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
	}
}

// ErrNoFence: a storage lets two processes create one object.
var ErrNoFence = errors.New("of two processes that create one object not exactly one succeeds: it does not honour " +
	"If-None-Match, so two machines could continue one task")

// Check finds out whether a bucket can keep tasks: it races two creations of one object, of which exactly one may
// succeed, and removes the object.
func Check(ctx context.Context, b bucket.Bucket) error {
	name := "check/" + randomName()
	defer b.Delete(context.WithoutCancel(ctx), name)
	results := make(chan error, 2)
	for _, text := range []string{"one", "two"} {
		go func() {
			_, err := withRetries(ctx, func() (struct{}, error) {
				err := b.Create(ctx, name, []byte(text))
				if errors.Is(err, bucket.ErrExists) {
					if stored, failed := b.Get(ctx, name); failed != nil || string(stored) == text {
						err = failed // nil: an earlier try created it, and the answer was lost
					}
				}
				return struct{}{}, err
			})
			results <- err
		}()
	}
	won := 0
	for range 2 {
		switch err := <-results; {
		case err == nil:
			won++
		case !errors.Is(err, bucket.ErrExists):
			return fmt.Errorf("the remote cannot be used: %w", err)
		}
	}
	if won != 1 {
		return fmt.Errorf("the remote cannot be used: %s: %w", b, ErrNoFence)
	}
	return nil
}

func Has(ctx context.Context, b bucket.Bucket, task string) (bool, error) {
	// A process that was killed before its first object arrived may have left a name in the index.
	_, err := withRetries(ctx, func() ([]byte, error) { return b.Get(ctx, logName(task, 1)) })
	if errors.Is(err, bucket.ErrAbsent) {
		return false, nil
	}
	return err == nil, err
}

// ErrHeld: a process may be working on the task.
var ErrHeld = errors.New("a process works on the task")

// Remove removes a task from a bucket, its newest objects last, and returns how many objects it had. say is called
// with what is waited for. Error: ErrHeld.
func Remove(ctx context.Context, b bucket.Bucket, task string, say func(string)) (int, error) {
	if err := taskdir.CheckTaskID(task); err != nil {
		return 0, err
	}
	names, err := b.List(ctx, tasksPrefix+task+"/", "")
	if err == nil && len(names) == 0 {
		err = fmt.Errorf("%s in %s: %w", task, b, ErrNoTask)
	}
	// A holder creates the next object also if the ones before are gone, and what it then confirms could not be read.
	if i := len(names) - 1; err == nil {
		for i > 0 && !isLog(task, names[i]) {
			i--
		}
		data, _ := withRetries(ctx, func() ([]byte, error) { return b.Get(ctx, names[i]) })
		last, _, failed := decode(data)
		if failed != nil {
			say(fmt.Sprintf("%s cannot be read: waiting %v for a sign of a process that can", names[i], DefaultLease))
			if model.Wait(ctx, DefaultLease) != nil {
				return 0, context.Cause(ctx)
			}
			var more []string
			more, err = b.List(ctx, logPrefix(task), names[i])
			if slices.ContainsFunc(more, func(name string) bool { return isLog(task, name) }) {
				err = fmt.Errorf("%w: one has written to %s meanwhile; stop it first", ErrHeld, task)
			}
		}
		if ends := last.Time.Add(max(DefaultLease, last.Lease)); failed == nil && !last.Released &&
			time.Now().Before(ends) {
			err = fmt.Errorf("%w: one on %s wrote to %s at %s; stop it first, or wait until %s if it is gone",
				ErrHeld, last.Host, task, last.Time.Local().Format(time.TimeOnly), ends.Local().Format(time.TimeOnly))
		}
	}
	for _, name := range names {
		if err == nil {
			err = b.Delete(ctx, name)
		}
	}
	if err == nil {
		err = b.Delete(ctx, indexPrefix+task)
	}
	return len(names), err
}

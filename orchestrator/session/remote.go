package session

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"anamnesis/opstream/durable"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/memory"
	"anamnesis/orchestrator/remedy"
	"anamnesis/orchestrator/replica"
	"anamnesis/orchestrator/replica/bucket"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/taskdir"
)

// Remote says where a task is kept beside this home. The zero value: a new task in this home only, another one where
// it is kept.
type Remote struct {
	Address string          // of a bucket; see bucket.Open
	Lease   time.Duration   // after how long another process's task is taken; 0: replica.DefaultLease
	Project bool            // a project's file names the bucket: what other homes stored there does not count
	Now     bool            // the task is taken at once: the user says that no other process works on it
	Detach  bool            // continue a copy of the task, under a new name, in this home only
	copied  *replica.Cursor // of the task, if this one is such a copy
}

// remoteKeyEnv is the variable with the key that seals what is sent.
const remoteKeyEnv = "ANAMNESIS_REMOTE_KEY"

// releaseTime is how long the end of a session waits for the bucket.
const releaseTime = 15 * time.Second

// suffix tells new tasks of several machines apart.
func (r Remote) suffix() string {
	if r.Address == "" {
		return ""
	}
	return "_" + strings.ToLower(rand.Text()[:6])
}

// Bucket opens the bucket at an address, with the user's key if there is one.
func (s *Service) Bucket(address string) (_ bucket.Bucket, sealed bool, err error) {
	var key []byte
	if text := s.getenv(remoteKeyEnv); text != "" {
		if key, err = bucket.ParseKey(text); err != nil {
			return nil, false, &UsageError{fmt.Errorf("%s: %w", remoteKeyEnv, err)}
		}
	}
	b, err := bucket.Open(address, key, s.getenv)
	if err != nil {
		return nil, false, &UsageError{err}
	}
	return b, key != nil, nil
}

// Mirror brings copies of a bucket's tasks up to date, in a home of their own, and returns the service of that home;
// see replica.Mirror.
func (s *Service) Mirror(ctx context.Context, address, task string) (_ *Service, failed []error, err error) {
	b, _, err := s.Bucket(address)
	if err != nil {
		return nil, nil, err
	}
	h := replica.MirrorHome(b, s.Home)
	failed, err = replica.Mirror(ctx, b, h, task)
	return s.At(h), failed, err
}

// Learn reads what other homes stored in a bucket: which cards were reviewed, and, the last first, what tasks showed in
// the repository of a directory. It returns the service for which that counts, and why not all could be read.
func (s *Service) Learn(ctx context.Context, b bucket.Bucket, dir string) (_ *Service, err error) {
	h := s.Home
	h.Share, h.Shared = b.Put, replica.MirrorHome(b, h).State
	ctx, cancel := context.WithTimeout(ctx, memory.ShareTime)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(replica.MaxGets)
	for _, prefix := range []string{memory.ReviewsPrefix, memory.SharedPrefix(dir)} {
		names, failed := b.List(ctx, prefix, "")
		err = cmp.Or(err, failed)
		for _, name := range slices.Backward(names) {
			group.Go(func() error { return learn(ctx, b, name, filepath.Join(h.Shared, name)) })
		}
	}
	if err = cmp.Or(err, group.Wait()); err != nil {
		err = fmt.Errorf("not all that other homes told in %s was read: %w", b, err)
	}
	return s.At(h), err
}

func learn(ctx context.Context, b bucket.Bucket, name, to string) error {
	// The name has the time of the task's end, or a card's hash: the object of one name does not change.
	if _, err := os.Lstat(to); err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	data, err := b.Get(ctx, name)
	if err != nil {
		return err
	}
	var o memory.Shared
	if json.Unmarshal(data, &o) != nil || o.V != memory.SharedVersion || o.Name != path.Base(name) ||
		path.Clean(name) != name {
		return fmt.Errorf("%s: it is damaged, sealed, of another name, or a newer program wrote it", name)
	}
	return durable.Replace(to, data, 0o600)
}

// fetch brings a task that is kept in a bucket up to date, and waits until it can be taken. The cursor is nil if it
// is not kept in one.
func (o *opening) fetch(ctx context.Context, task string) (*replica.Cursor, error) {
	if taskdir.CheckTaskID(task) != nil {
		return nil, nil // it is refused later
	}
	had, err := replica.ReadCursor(o.Home, task)
	if err != nil {
		return nil, err
	}
	if had != nil && o.Remote.Address == "" {
		o.Remote.Address, o.Remote.Project = had.Remote, had.Project
	}
	if o.Remote.Address == "" {
		return nil, nil
	}
	b, _, err := o.Bucket(o.Remote.Address)
	if err != nil {
		return nil, err
	}
	if o.lock, err = replica.Lock(o.Home, task); err != nil {
		return nil, err
	}
	lease := cmp.Or(o.Remote.Lease, replica.DefaultLease)
	if o.Remote.Now {
		lease = 0
	}
	o.bucket = b
	pulled, err := replica.Take(ctx, b, o.Home, task, lease, o.client.note)
	if err != nil && had != nil && ctx.Err() == nil {
		err = remedy.With(err, remedy.Detach, task)
	}
	if err != nil {
		return nil, err
	}
	for _, path := range pulled.Aside {
		o.warn("another process continued the task without what this home had recorded last; that is in %s", path)
	}
	return &pulled.Cursor, nil
}

// replicate begins to replicate a task that works in dir to the bucket of the settings; nil: there is none. c is how
// far the bucket has the task; nil: it is new.
func (o *opening) replicate(ctx context.Context, task, dir string, c *replica.Cursor, store *runtime.Store) (
	*replica.Holder, error) {
	if o.Remote.Address == "" {
		return nil, nil
	}
	b, sealed, err := o.Bucket(o.Remote.Address)
	if err != nil {
		return nil, err
	}
	// A directory's bucket notices a storage that went away by the folders it has seen, so that the one that read the
	// task goes on.
	b = cmp.Or(o.bucket, b)
	if world, err := taskdir.WorldDir(dir); err == nil && filepath.IsAbs(b.String()) { // a missing one holds no bucket
		root, err := filepath.EvalSymlinks(b.String())
		rel, apart := filepath.Rel(world, root)
		if err == nil && apart == nil && filepath.IsLocal(rel) {
			return nil, Usagef("remote %s: it is inside %s, where the task works: a jump would revert the task's "+
				"log, too; use a directory elsewhere", b, world)
		}
	}
	if err := replica.Check(ctx, b); err != nil { // later the holder waits even if the bucket refuses
		return nil, err
	}
	if !o.Remote.Project {
		if o.Service, err = o.Learn(ctx, b, dir); err != nil {
			o.warn("%v", err)
		}
	}
	if c == nil {
		defer o.unlock()
		if c, err = o.begin(ctx, b, task, dir); err != nil {
			return nil, err
		}
	}
	if !sealed {
		o.warn("whoever can read %s reads this task's record and files, secrets in files included; set %s to "+
			"encrypt them", b, remoteKeyEnv)
	}
	deadline, err := guard.NewDeadline(filepath.Join(o.Home.Task(task), taskdir.DeadlineName))
	if err != nil {
		return nil, err
	}
	lock := o.lock
	store.Deadline = deadline
	store.Replica, err = replica.Hold(ctx, b, *c, replica.Options{
		Home: o.Home, Lease: o.Remote.Lease, Sealed: sealed,
		Renewed: func(left time.Duration) { _ = deadline.Set(left) },
		Closed:  func() { _, _ = deadline.Close(), lock.Close() },
		Waiting: func(err error) {
			if err != nil {
				o.client.note(fmt.Sprintf("the task waits for %s: %v", b, err))
			} else {
				o.client.note(fmt.Sprintf("%s answers again", b))
			}
		},
	})
	if err == nil {
		o.lock = nil
	}
	return store.Replica, err
}

// begin returns the cursor of a new task, whose name the bucket does not have.
func (o *opening) begin(ctx context.Context, b bucket.Bucket, task, dir string) (_ *replica.Cursor, err error) {
	if o.lock, err = replica.Lock(o.Home, task); err != nil {
		return nil, err
	}
	if has, err := replica.Has(ctx, b, task); err != nil {
		return nil, err
	} else if has {
		return nil, Usagef("task %s exists in %s; use another name, or resume it, with its key in %s if it "+
			"cannot be read", task, b, remoteKeyEnv)
	}
	c := &replica.Cursor{Task: task, Place: durable.Identity(dir), Project: o.Remote.Project}
	return c, os.MkdirAll(o.Home.Task(task), 0o700)
}

// unlock releases the lock of a task that was not opened.
func (o *opening) unlock() {
	if o.lock != nil {
		_ = o.lock.Close() // of a file that nobody writes
		o.lock = nil
	}
}

// release sends what is left and lets other processes take the task.
func release(kept *replica.Holder) error {
	if kept == nil {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), releaseTime,
		fmt.Errorf("no answer in %v", releaseTime))
	defer cancel()
	return kept.Close(ctx)
}

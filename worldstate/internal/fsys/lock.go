package fsys

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"anamnesis/opstream/durable"
)

// StateDir is the directory in the bare repository for data that git does not use: locks,
// journals and stat caches.
const StateDir = "anamnesis"

// DefaultLockWait is how long an operation waits for another process.
const DefaultLockWait = 10 * time.Second

// Lock is one of the store's locks. The kernel releases it when its holder ends, so that a
// killed process does not block the store.
type Lock struct {
	*durable.WriterLock
	store string
}

// The store's locks.
const (
	WriterLock  = "lock"
	CollectLock = "collect" // taken before the writer's
)

// NewLock returns a lock that is not held.
func NewLock(store, name string) *Lock {
	return &Lock{durable.NewWriterLock(filepath.Join(store, StateDir, name)), store}
}

// AcquireLock takes one of a store's locks once; Close releases it.
func AcquireLock(ctx context.Context, store, name string, wait time.Duration) (*Lock, error) {
	l := NewLock(store, name)
	return l, l.Acquire(ctx, wait)
}

// Acquire takes the lock. If it cannot within wait, the error names the holder.
func (l *Lock) Acquire(ctx context.Context, wait time.Duration) error {
	err := l.WriterLock.Acquire(ctx, wait)
	if held, ok := errors.AsType[*durable.LockedError](err); ok {
		return &LockedError{Store: l.store, Holder: held.Holder(), Waited: wait.String()}
	}
	if err != nil {
		return fmt.Errorf("lock store %s: %w", l.store, err)
	}
	return nil
}

// ErrLocked: another process holds the store; see LockedError.
var ErrLocked = errors.New("store is locked")

// A LockedError names the process that holds the store.
type LockedError struct {
	Store  string
	Holder string // "process 123", or "another process"
	Waited string // how long the lock was waited for, as a duration
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("store %s is held by %s (waited %s); try again when it is done", e.Store, e.Holder, e.Waited)
}

// Is makes errors.Is(err, ErrLocked) true.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

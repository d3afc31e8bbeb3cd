package fsys

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// StateDir is the directory in the bare repository for data that git does not use: locks,
// journals and stat caches.
const StateDir = "anamnesis"

const (
	// DefaultLockWait is how long an operation waits for another process.
	DefaultLockWait = 10 * time.Second
	lockPoll        = 20 * time.Millisecond
)

// Lock is one of the store's locks. The kernel releases it when its holder ends, so that a
// killed process does not block the store. The file's text names the last holder, for the error
// of a process that waits in vain.
type Lock struct {
	store string
	Path  string
	fd    int // -1: not open
	file  Stamp
	Own   []byte // the text of this process
}

// The store's locks.
const (
	WriterLock  = "lock"
	CollectLock = "collect" // taken before the writer's
)

// NewLock returns a lock that is not held.
func NewLock(store, name string) *Lock {
	return &Lock{store: store, Path: filepath.Join(store, StateDir, name), fd: -1}
}

// TryFlock locks an open file, unless another process holds the lock.
func TryFlock(fd int) error {
	return Retry(func() error { return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
}

// Flock waits for the lock of an open file.
func Flock(fd int) error {
	return Retry(func() error { return unix.Flock(fd, unix.LOCK_EX) })
}

// Unflock releases the lock of an open file.
func Unflock(fd int) error { return unix.Flock(fd, unix.LOCK_UN) }

// AcquireLock takes one of a store's locks once; Close releases it.
func AcquireLock(ctx context.Context, store, name string, wait time.Duration) (*Lock, error) {
	l := NewLock(store, name)
	return l, l.Acquire(ctx, wait)
}

// Acquire takes the lock. If it cannot within wait, the error names the holder.
func (l *Lock) Acquire(ctx context.Context, wait time.Duration) error {
	err := l.take(ctx, wait)
	if err == nil {
		err = l.sign()
	}
	if err == nil {
		return nil
	}
	l.Close()
	if !errors.As(err, new(*LockedError)) {
		err = fmt.Errorf("lock store %s: %w", l.store, err)
	}
	return err
}

// take waits for the lock of the file at its path. If that file was replaced since it was
// opened, it locks the new one.
func (l *Lock) take(ctx context.Context, wait time.Duration) error {
	if l.fd >= 0 {
		if now, err := Lstatat(unix.AT_FDCWD, l.Path); err != nil || now.Ino != l.file.Ino || now.Dev != l.file.Dev {
			l.Close()
		}
	}
	if l.fd < 0 {
		fd, err := Openat(unix.AT_FDCWD, l.Path, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		if err != nil {
			return err
		}
		l.fd = fd
		if l.file, err = Fstat(fd); err != nil {
			return err
		}
	}
	for deadline := time.Now().Add(wait); ; {
		err := TryFlock(l.fd)
		if err != unix.EWOULDBLOCK {
			return err
		}
		if !time.Now().Before(deadline) {
			return &LockedError{Store: l.store, Holder: l.holder(), Waited: wait.String()}
		}
		select {
		case <-time.After(lockPoll):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// sign writes this process into the lock's file, unless the file names it already.
func (l *Lock) sign() error {
	if l.Own == nil {
		l.Own = fmt.Appendf(nil, "%d %s\n", os.Getpid(), BootID())
	}
	var buf [128]byte
	was := l.text(buf[:])
	if bytes.Equal(was, l.Own) {
		return nil
	}
	_, err := unix.Pwrite(l.fd, l.Own, 0)
	if err == nil && len(was) > len(l.Own) {
		err = unix.Ftruncate(l.fd, int64(len(l.Own)))
	}
	return err
}

func (l *Lock) text(buf []byte) []byte {
	n, _ := unix.Pread(l.fd, buf, 0)
	return buf[:max(n, 0)]
}

// holder names the process that wrote the lock's file, if it did so since this boot. Older
// programs put one of three marks before the number.
func (l *Lock) holder() string {
	fields := strings.Fields(strings.TrimLeft(string(l.text(make([]byte, 128))), "-*+"))
	if len(fields) == 0 || len(fields) == 2 && fields[1] != BootID() {
		return "an unknown process"
	}
	return "process " + fields[0]
}

// Release frees the lock and keeps its file open for the next Acquire.
func (l *Lock) Release() {
	if Unflock(l.fd) != nil {
		l.Close()
	}
}

// Close frees the lock and closes its file.
func (l *Lock) Close() {
	if l.fd >= 0 {
		unix.Close(l.fd)
		l.fd = -1
	}
}

// ErrLocked: another process holds the store; see LockedError.
var ErrLocked = errors.New("store is locked")

// A LockedError names the process that holds the store.
type LockedError struct {
	Store  string
	Holder string // "process 123", or "an unknown process"
	Waited string // how long the lock was waited for, as a duration
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("store %s is held by %s (waited %s); try again when it is done", e.Store, e.Holder, e.Waited)
}

// Is makes errors.Is(err, ErrLocked) true.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

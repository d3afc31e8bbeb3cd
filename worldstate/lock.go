package worldstate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// stateDir is the directory in the bare repository for what git does not
// know: the lock, journals and stat caches.
const stateDir = "anamnesis"

const (
	// DefaultLockWait is how long an operation waits for another process.
	DefaultLockWait = 10 * time.Second
	lockPoll        = 20 * time.Millisecond
)

// storeLock is the store's one writer lock. The kernel frees it with its
// holder, so a killed process leaves none; the text inside only names the
// holder to the loser. It is struck out on release: a lock that is free and
// still names a holder tells that this one was killed.
//
// A collection lets go of it while it writes its pack, and has a lock of its own
// all the time. Until somebody has seen that one free, whoever releases the
// writer's lock leaves the mark of a collection in it.
type storeLock struct {
	store      string
	name       string // writerLock or collectLock
	kept       bool   // its file stays open from one holding to the next
	fd         int    // -1: not open
	orphaned   bool   // the holder before, or a collection, may have been killed
	collecting bool   // a collection runs, or was killed
}

// The store's locks.
const (
	writerLock  = "lock"
	collectLock = "collect" // taken before the writer's
)

const (
	// lockText is the length of the lock's text, the same for every holder,
	// so that none need be cut off.
	lockText = 64
	// lockFree, at its beginning, strikes it out; so does lockCollecting, which
	// also says that a collection runs.
	lockFree       = '-'
	lockCollecting = '+'
)

func newLock(store string, kept bool) *storeLock {
	return &storeLock{store: store, name: writerLock, kept: kept, fd: -1}
}

// acquireLock takes one of a store's locks once.
func acquireLock(ctx context.Context, store, name string, wait time.Duration) (*storeLock, error) {
	l := newLock(store, false)
	l.name = name
	return l, l.acquire(ctx, wait)
}

// acquire takes the lock, or says who has it.
func (l *storeLock) acquire(ctx context.Context, wait time.Duration) error {
	err := l.open()
	if err == nil {
		err = l.wait(ctx, wait)
	}
	if err == nil {
		err = l.sign()
	}
	if err != nil {
		l.close()
		if !errors.As(err, new(*LockedError)) {
			err = fmt.Errorf("lock store %s: %w", l.store, err)
		}
	}
	return err
}

// open opens the lock's file, anew where another store stands there by now.
func (l *storeLock) open() error {
	if l.fd >= 0 {
		if st, err := fstat(l.fd); err == nil && st.nlink > 0 {
			return nil
		}
		l.close()
	}
	fd, err := openat(unix.AT_FDCWD, filepath.Join(l.store, stateDir, l.name), unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	if err == nil {
		l.fd = fd
	}
	return err
}

// wait waits until the lock is free and takes it.
func (l *storeLock) wait(ctx context.Context, most time.Duration) error {
	free := func() (bool, error) {
		err := unix.Flock(l.fd, unix.LOCK_EX|unix.LOCK_NB)
		if err == unix.EWOULDBLOCK || err == unix.EINTR {
			return false, nil
		}
		return err == nil, err
	}
	if ok, err := free(); ok || err != nil {
		return err
	}
	deadline := time.NewTimer(most)
	defer deadline.Stop()
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		if ok, err := free(); ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-deadline.C:
			return &LockedError{Store: l.store, Holder: l.holder(), Waited: most.String()}
		}
	}
}

// sign writes us into the lock.
func (l *storeLock) sign() error {
	var left [2 * lockText]byte
	n, _ := unix.Pread(l.fd, left[:], 0)
	l.orphaned = n > 0 && left[0] != lockFree
	l.collecting = n > 0 && left[0] == lockCollecting
	text := fmt.Appendf(nil, "%d %s", os.Getpid(), bootID())
	for len(text) < lockText-1 {
		text = append(text, ' ')
	}
	text = append(text, '\n')
	if n > len(text) { // somebody else's text
		if err := unix.Ftruncate(l.fd, int64(len(text))); err != nil {
			return err
		}
	}
	_, err := unix.Pwrite(l.fd, text, 0)
	return err
}

// holder names who wrote the lock file, if that was in this boot.
func (l *storeLock) holder() string {
	buf := make([]byte, 2*lockText)
	n, _ := unix.Pread(l.fd, buf, 0)
	fields := strings.Fields(string(buf[:max(n, 0)]))
	if len(fields) == 0 || fields[0][0] == lockFree || fields[0][0] == lockCollecting || len(fields) == 2 && fields[1] != bootID() {
		return "an unknown process"
	}
	return "process " + fields[0]
}

func (l *storeLock) release() {
	mark := byte(lockFree)
	if l.collecting {
		mark = lockCollecting
	}
	_, _ = unix.Pwrite(l.fd, []byte{mark}, 0) // where that fails, the next holder looks for leftovers in vain
	if !l.kept || unix.Flock(l.fd, unix.LOCK_UN) != nil {
		l.close()
	}
}

// close closes the lock's file, and frees the lock with it.
func (l *storeLock) close() {
	if l.fd >= 0 {
		unix.Close(l.fd)
		l.fd = -1
	}
}

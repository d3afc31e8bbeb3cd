package worldstate

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

// stateDir is the directory in the bare repository for what git does not
// know: the lock, journals and stat caches.
const stateDir = "anamnesis"

const (
	// DefaultLockWait is how long an operation waits for another process.
	DefaultLockWait = 10 * time.Second
	lockPoll        = 20 * time.Millisecond
)

// storeLock is one of the store's locks. The kernel frees it with its holder, so a
// killed process leaves none; the text inside names the last holder to the loser. What
// a killed process left in the store is removed by each World when it first takes the
// lock.
type storeLock struct {
	store string
	path  string
	kept  bool  // its file stays open from one holding to the next
	fd    int   // -1: not open
	file  stamp // of fd: only its inode and device
	text  sight // the file as it stood when it was found to name us and nothing else
	own   []byte
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
	// lockIdle begins it. Older programs wrote another of lockMarks while they
	// changed the store, and sweep it where they find one.
	lockIdle  = '-'
	lockMarks = "-*+"
	// lockOpens bounds how often the lock's file is opened anew because another
	// one stands at its path by now.
	lockOpens = 8
)

func newLock(store, name string, kept bool) *storeLock {
	return &storeLock{store: store, path: filepath.Join(store, stateDir, name), kept: kept, fd: -1}
}

// acquireLock takes one of a store's locks once.
func acquireLock(ctx context.Context, store, name string, wait time.Duration) (*storeLock, error) {
	l := newLock(store, name, false)
	return l, l.acquire(ctx, wait)
}

// acquire takes the lock, or says who has it.
func (l *storeLock) acquire(ctx context.Context, wait time.Duration) error {
	now, err := l.take(ctx, wait)
	if err == nil {
		err = l.sign(now)
	}
	if err != nil {
		return l.fail(err)
	}
	return nil
}

// fail frees what is held of the lock.
func (l *storeLock) fail(err error) error {
	l.close()
	if !errors.As(err, new(*LockedError)) {
		err = fmt.Errorf("lock store %s: %w", l.store, err)
	}
	return err
}

// open opens the lock's file, unless it is open.
func (l *storeLock) open() error {
	if l.fd >= 0 {
		return nil
	}
	fd, err := openat(unix.AT_FDCWD, l.path, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	l.fd, l.text = fd, sight{}
	l.file, err = fstat(fd)
	return err
}

// take waits for the lock on the file that stands at its path, and says how that
// stands.
func (l *storeLock) take(ctx context.Context, wait time.Duration) (stamp, error) {
	for range lockOpens {
		if err := l.open(); err != nil {
			return stamp{}, err
		}
		if err := l.wait(ctx, wait); err != nil {
			return stamp{}, err
		}
		now, err := lstatat(unix.AT_FDCWD, l.path)
		if err == nil && now.ino == l.file.ino && now.dev == l.file.dev {
			return now, nil
		}
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return stamp{}, err
		}
		l.close()
	}
	return stamp{}, errors.New("its file is replaced again and again")
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

// sign writes us into the lock, which stands as now, unless it names us.
func (l *storeLock) sign(now stamp) error {
	if l.text.ino != 0 && l.text.sure(now) {
		return nil
	}
	var left [2 * lockText]byte
	n, _ := unix.Pread(l.fd, left[:], 0)
	if l.own == nil {
		l.own = ownText()
	}
	if bytes.Equal(left[:max(n, 0)], l.own) {
		l.text = sight{stamp: now, racy: racy(now, time.Now())}
		return nil
	}
	l.text = sight{}
	if n > len(l.own) { // somebody else's text
		if err := unix.Ftruncate(l.fd, int64(len(l.own))); err != nil {
			return err
		}
	}
	_, err := unix.Pwrite(l.fd, l.own, 0)
	return err
}

// ownText is the lock's text once we have held it.
func ownText() []byte {
	text := fmt.Appendf(nil, "%c%d %s", lockIdle, os.Getpid(), bootID())
	for len(text) < lockText-1 {
		text = append(text, ' ')
	}
	return append(text[:lockText-1], '\n')
}

// holder names who wrote the lock file, if that was in this boot.
func (l *storeLock) holder() string {
	buf := make([]byte, 2*lockText)
	n, _ := unix.Pread(l.fd, buf, 0)
	fields := strings.Fields(strings.TrimLeft(string(buf[:max(n, 0)]), lockMarks))
	if len(fields) == 0 || len(fields) == 2 && fields[1] != bootID() {
		return "an unknown process"
	}
	return "process " + fields[0]
}

func (l *storeLock) release() {
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

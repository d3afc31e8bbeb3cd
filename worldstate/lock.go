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
// holder to the loser. It is taken away again on release: a lock that is free
// and still names a holder tells that this one was killed.
type storeLock struct {
	f        *os.File
	orphaned bool // the holder before was killed
}

func acquireLock(ctx context.Context, store string, wait time.Duration) (*storeLock, error) {
	path := filepath.Join(store, stateDir, "lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock store: %w", err)
	}
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("lock store %s: %w", store, err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("lock store %s: %w", store, ctx.Err())
		case <-deadline.C:
			holder := readHolder(f)
			f.Close()
			return nil, &LockedError{Store: store, Holder: holder, Waited: wait.String()}
		}
	}
	var left [1]byte
	n, _ := f.ReadAt(left[:], 0)
	holder := fmt.Appendf(nil, "%d %s\n", os.Getpid(), bootID())
	if err := f.Truncate(0); err == nil {
		_, err = f.WriteAt(holder, 0)
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("lock store %s: %w", store, err)
		}
	}
	return &storeLock{f, n > 0}, nil
}

// readHolder names who wrote the lock file, if that was in this boot.
func readHolder(f *os.File) string {
	buf := make([]byte, 128)
	n, _ := f.ReadAt(buf, 0)
	fields := strings.Fields(string(buf[:n]))
	if len(fields) == 0 || len(fields) == 2 && fields[1] != bootID() {
		return "an unknown process"
	}
	return "process " + fields[0]
}

func (l *storeLock) release() {
	_ = l.f.Truncate(0) // where that fails, the next holder looks for leftovers in vain
	l.f.Close()
}

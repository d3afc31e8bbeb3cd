package disk

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// ErrLocked: another process writes this stream. See LockedError.
var ErrLocked = errors.New("the stream has another writer")

// LockedError names the holder of the writer's lock.
type LockedError struct {
	PID  int    // 0 if unknown
	Path string // the lock file
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s is held by another process", e.Path)
	}
	return fmt.Sprintf("%s is held by process %d", e.Path, e.PID)
}

// Is makes errors.Is(err, ErrLocked) true.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

const (
	LockName = "ops.lock"
	// lockPollInterval is how often a waiting writer tries again.
	lockPollInterval = 10 * time.Millisecond
	// lockReadTries and lockReadInterval bound how long the loser waits for a winner that has
	// not written its id yet: 50 ms.
	lockReadTries    = 10
	lockReadInterval = 5 * time.Millisecond
	// lockContentLimit bounds what is read of a lock file, in bytes.
	lockContentLimit = 4096
)

// lockContent is the lock file's content. It serves only the loser's message: the lock is the
// flock, which ends with its holder.
type lockContent struct {
	PID   int       `json:"pid"`
	Start uint64    `json:"start,omitempty"` // see processStart
	Since time.Time `json:"since"`
}

// lives reports whether the process that wrote it still runs. Another process with its id does
// not count.
func (c *lockContent) lives() bool {
	if c.PID <= 0 || !processExists(c.PID) {
		return false
	}
	start := ProcessStart(c.PID)
	return start == c.Start || start == 0 || c.Start == 0
}

// Lock is the lock of a stream's one writer, held.
type Lock struct{ f *os.File }

// TakeLock takes the lock of dir, waiting at most wait. The loser gets a
// *LockedError.
func TakeLock(dir string, wait time.Duration) (*Lock, error) {
	path := filepath.Join(dir, LockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock stream: %w", err)
	}
	deadline := time.Now().Add(wait)
	for {
		ok, err := tryFlock(f)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("lock stream %s: %w", path, err), f.Close())
		}
		if ok {
			break
		}
		left := time.Until(deadline)
		if left <= 0 {
			return nil, errors.Join(&LockedError{PID: holder(f), Path: path}, f.Close())
		}
		time.Sleep(min(left, lockPollInterval))
	}
	content, err := json.Marshal(lockContent{PID: os.Getpid(), Start: ProcessStart(os.Getpid()), Since: time.Now().UTC()})
	if err == nil {
		if err = f.Truncate(0); err == nil {
			_, err = f.WriteAt(append(content, '\n'), 0)
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock stream: write %s: %w", path, err), f.Close())
	}
	return &Lock{f}, nil
}

// holder reads who holds the lock; 0 if unknown. The id of a dead process is from an earlier
// holder: the new one is about to write its own.
func holder(f *os.File) int {
	for range lockReadTries {
		data, err := io.ReadAll(io.NewSectionReader(f, 0, lockContentLimit))
		var c lockContent
		if err == nil && json.Unmarshal(data, &c) == nil && c.lives() {
			return c.PID
		}
		time.Sleep(lockReadInterval)
	}
	return 0
}

// WriterOf returns the process that seems to write the stream in dir, 0 if none does. It takes
// no lock, which would disturb a writer that starts.
func WriterOf(dir string) int {
	data, err := os.ReadFile(filepath.Join(dir, LockName))
	var c lockContent
	if err == nil && json.Unmarshal(data, &c) == nil && c.lives() {
		return c.PID
	}
	return 0
}

// Release empties the lock file and releases the lock.
func (l *Lock) Release() error {
	if l == nil {
		return nil
	}
	return errors.Join(l.f.Truncate(0), l.f.Close())
}

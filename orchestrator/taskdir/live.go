package taskdir

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// LiveDir is this process's hold on a world's directory: one live task works
// in a directory, nested directories included. Every live task keeps an
// flocked file in the state home that names the directory by device and inode,
// so that links and bind mounts do not hide it; a dead process's file is not
// locked and does not count.
type LiveDir struct {
	file *os.File
	path string
}

// liveRecord is what the file says.
type liveRecord struct {
	Task string `json:"task"` // of a subagent: its parent, which is what users know and steer
	Dir  string `json:"dir"`
	PID  int    `json:"pid"`
	Dev  uint64 `json:"dev"`
	Ino  uint64 `json:"ino"`
}

// BusyError names the task that holds a directory.
type BusyError struct {
	Dir  string // the directory asked for
	Held string // the directory held
	Task string
	PID  int
}

func (e *BusyError) Error() string {
	where := "here"
	if e.Held != e.Dir {
		where = "in " + e.Held
	}
	return fmt.Sprintf("%s: task %s (pid %d) is working %s; wait for it, steer it with 'anamnesis say %s \"…\"', or use another --dir",
		e.Dir, e.Task, e.PID, where, e.Task)
}

// Is makes a BusyError an ErrBusy.
func (e *BusyError) Is(target error) bool { return target == ErrBusy }

// CheckFree returns a BusyError where a task is at work in a directory, above it
// or below it. Tasks of a home that this user cannot read are not looked for.
func (h Home) CheckFree(dir string) error {
	live := filepath.Join(h.State, "live")
	gate, err := lockFile(filepath.Join(live, "gate"), true)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for tasks in %s: %w", dir, err)
	}
	defer gate.Close()
	chain, err := ancestry(dir)
	if err != nil {
		return fmt.Errorf("look for tasks in %s: %w", dir, err)
	}
	return checkHolds(live, dir, chain, false)
}

// HoldDir takes the hold, or says who has it. parent is the task whose subagent
// this is, which works beside the other tasks of its process; else empty.
func HoldDir(h Home, dir, task, parent string) (*LiveDir, error) {
	if err := CheckTaskID(task); err != nil {
		return nil, err
	}
	live := filepath.Join(h.State, "live")
	if err := os.MkdirAll(live, 0o700); err != nil {
		return nil, fmt.Errorf("hold %s: %w", dir, err)
	}
	// One gate for all, so that two tasks cannot check at the same time.
	gate, err := lockFile(filepath.Join(live, "gate"), true)
	if err != nil {
		return nil, fmt.Errorf("hold %s: %w", dir, err)
	}
	defer gate.Close()
	chain, err := ancestry(dir)
	if err != nil {
		return nil, fmt.Errorf("hold %s: %w", dir, err)
	}
	if err := checkHolds(live, dir, chain, parent != ""); err != nil {
		return nil, err
	}
	path := filepath.Join(live, task+".json")
	f, err := lockHold(path)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, &BusyError{Dir: dir, Held: dir, Task: task, PID: readLive(path).PID}
	}
	if err != nil {
		return nil, fmt.Errorf("hold %s: %w", dir, err)
	}
	data, err := json.Marshal(liveRecord{Task: cmp.Or(parent, task), Dir: dir, PID: os.Getpid(), Dev: chain[0].dev, Ino: chain[0].ino})
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt(data, 0)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("hold %s: %w", dir, err)
	}
	return &LiveDir{file: f, path: path}, nil
}

// A process that was killed while it started a command leaves a child that has
// all its files, its locks too, until it notices.
const (
	deadHoldTime  = 5 * time.Second // how long such a child is waited for
	deadHoldPause = 5 * time.Millisecond
)

// lockHold takes the lock of a hold without waiting for a living holder.
func lockHold(path string) (*os.File, error) {
	for deadline := time.Now().Add(deadHoldTime); ; time.Sleep(deadHoldPause) {
		f, err := lockFile(path, false)
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(deadline) {
			return f, err
		}
		if pid := readLive(path).PID; pid == 0 || !errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			return nil, err // at work, or about to say who it is
		}
	}
}

// checkHolds looks for a live task in dir, above it or below it; with
// otherProcess for one of another process.
func checkHolds(live, dir string, chain []inode, otherProcess bool) error {
	files, err := os.ReadDir(live) // no pattern: the path is the user's, and may hold a bracket
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, e := range files {
		path := filepath.Join(live, e.Name())
		if filepath.Ext(path) != ".json" {
			continue
		}
		f, err := lockHold(path)
		if err == nil { // nobody holds it: its process is gone
			os.Remove(path)
			f.Close()
			continue
		}
		rec := readLive(path)
		if otherProcess && rec.PID == os.Getpid() {
			continue
		}
		held := inode{rec.Dev, rec.Ino}
		conflict := false
		for _, a := range chain {
			conflict = conflict || a == held
		}
		if !conflict && rec.Dir != "" {
			if other, err := ancestry(rec.Dir); err == nil {
				for _, a := range other {
					conflict = conflict || a == chain[0]
				}
			}
		}
		if conflict {
			return &BusyError{Dir: dir, Held: rec.Dir, Task: rec.Task, PID: rec.PID}
		}
	}
	return nil
}

func (l *LiveDir) Release() error {
	os.Remove(l.path)
	return l.file.Close()
}

// Live returns the pid of the process that runs a task, 0 when none does.
func Live(h Home, task string) int {
	path := filepath.Join(h.State, "live", task+".json")
	if _, err := os.Stat(path); err != nil {
		return 0
	}
	// The gate keeps this look from being taken for a hold.
	gate, err := lockFile(filepath.Join(h.State, "live", "gate"), true)
	if err != nil {
		return 0
	}
	defer gate.Close()
	f, err := lockFile(path, false)
	if err == nil {
		f.Close()
		return 0
	}
	return readLive(path).PID
}

func readLive(path string) liveRecord {
	var rec liveRecord
	if data, err := os.ReadFile(path); err == nil {
		_ = json.Unmarshal(data, &rec) // half written: its holder is still starting
	}
	return rec
}

// lockFile opens a file and locks it, waiting for the lock or not.
func lockFile(path string, wait bool) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	how := unix.LOCK_EX
	if !wait {
		how |= unix.LOCK_NB
	}
	for {
		err = unix.Flock(int(f.Fd()), how)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

type inode struct{ dev, ino uint64 }

// ancestry returns a directory and those above it, up to the root.
func ancestry(dir string) ([]inode, error) {
	var chain []inode
	for {
		info, err := os.Stat(dir)
		if err != nil {
			return nil, err
		}
		st := info.Sys().(*syscall.Stat_t)
		chain = append(chain, inode{uint64(st.Dev), st.Ino})
		parent := filepath.Dir(dir)
		if parent == dir {
			return chain, nil
		}
		dir = parent
	}
}

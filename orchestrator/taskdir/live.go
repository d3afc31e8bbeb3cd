package taskdir

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/opstream/durable"
	"anamnesis/orchestrator/remedy"
	"anamnesis/worldstate"
)

// LiveDir is this process's hold on a world's directory: one live task works in a directory,
// including nested ones. Every live task keeps a flocked file in the state home that names the
// directory by device and inode, so that links and bind mounts do not hide it. A dead
// process's file is not locked and does not count. A second such file is in a folder that all homes
// of the user share.
type LiveDir struct {
	hold
	shared *hold // nil if there is no such folder
}

type hold struct {
	file   *os.File
	path   string
	beside int // the process whose holds do not count, or noProcess
}

func sharedLivePath() string { return fmt.Sprintf("/tmp/anamnesis-%d", os.Getuid()) }

// sharedLive returns the folder of the holds of all of the user's homes; empty if it cannot be
// used. It does not depend on the environment, which differs between a user's processes.
func sharedLive() string {
	dir := sharedLivePath()
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return ""
	}
	info, err := os.Lstat(dir)
	own := err == nil && info.Sys().(*syscall.Stat_t).Uid == uint32(os.Getuid())
	if !own || !info.IsDir() || info.Mode().Perm() != 0o700 {
		return "" // another user made it
	}
	return dir
}

// liveRecord is the file's content.
type liveRecord struct {
	Task string `json:"task"` // of a subagent: its parent, which users steer
	Dir  string `json:"dir"`
	PID  int    `json:"pid"`
	Dev  uint64 `json:"dev"`
	Ino  uint64 `json:"ino"`
	// Socket is where a process that only keeps the task open is asked to close it; empty: the
	// task is at work.
	Socket string `json:"socket,omitempty"`
	Home   string `json:"home,omitempty"` // the state folder, in the folder that homes share
	// Parked: the task waits for its user, and others may work in the directory.
	Parked bool `json:"parked,omitempty"`
}

func (r *liveRecord) busy(dir string) *BusyError {
	return &BusyError{Dir: dir, Held: r.Dir, Task: r.Task, PID: r.PID, Home: r.Home, socket: r.Socket}
}

// BusyError names the task that holds a directory.
type BusyError struct {
	Dir  string // the directory asked for
	Held string // the directory held
	Task string
	PID  int
	Home string // of the task, if it is another one

	socket string // see liveRecord
}

func (e *BusyError) Error() string {
	where := "here"
	if e.Held != e.Dir {
		where = "in " + e.Held
	}
	if e.Home != "" {
		return fmt.Sprintf("%s: task %s of another home, %s (pid %d), is working %s", e.Dir, e.Task,
			e.Home, e.PID, where)
	}
	return fmt.Sprintf("%s: task %s (pid %d) is working %s", e.Dir, e.Task, e.PID, where)
}

func (e *BusyError) Is(target error) bool { return target == ErrBusy }

// CheckFree returns a BusyError if a task is at work in a directory, above it or below it. It
// skips tasks of a home that this user cannot read.
func (h Home) CheckFree(dir string) error {
	_, err := yielded(func() (*LiveDir, error) { return nil, h.checkFree(dir) })
	return err
}

func (h Home) checkFree(dir string) error {
	err := checkFolder(filepath.Join(h.State, "live"), dir)
	if shared := sharedLive(); err == nil && shared != "" {
		if other := checkFolder(shared, dir); errors.Is(other, ErrBusy) {
			err = h.named(other)
		}
	}
	return err
}

// named leaves out of a BusyError that its task is of this home.
func (h Home) named(err error) error {
	if busy, ok := errors.AsType[*BusyError](err); ok && busy.Home == h.State {
		busy.Home = ""
	}
	return err
}

// checkFolder is CheckFree for the holds in one folder.
func checkFolder(live, dir string) error {
	gate, err := durable.Lock(filepath.Join(live, "gate"))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look for tasks in %s: %w", dir, err)
	}
	defer gate.Close()
	_, err = checkHolds(live, dir, noProcess)
	return err
}

// HoldDir takes the hold, or returns its holder. parent is the parent's id for a subagent,
// which works beside the other tasks of its process; otherwise empty.
func HoldDir(h Home, dir, task, parent string) (*LiveDir, error) {
	if err := CheckTaskID(task); err != nil {
		return nil, err
	}
	return yielded(func() (*LiveDir, error) { return holdDir(h, dir, task, parent) })
}

// CloseVerb asks a process that keeps a task open to close it.
const CloseVerb = "close"

// yieldTime is how long to wait for a process that keeps a task open.
const yieldTime = 10 * time.Second

// yielded takes a hold. If a process that only keeps a task open has it, that process is first
// asked to close the task.
func yielded(hold func() (*LiveDir, error)) (*LiveDir, error) {
	live, err := hold()
	var busy *BusyError
	if !errors.As(err, &busy) || busy.socket == "" {
		return live, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), yieldTime)
	defer cancel()
	var reply commandReply
	if Exchange(ctx, busy.socket, Command{Verb: CloseVerb}, &reply) != nil || !reply.OK {
		return live, err
	}
	return hold()
}

// KeptOpen records that the hold's process only keeps the task open and listens on socket for
// CloseVerb.
func (l *LiveDir) KeptOpen(socket string) error {
	return l.update(func(rec *liveRecord) { rec.Socket = socket })
}

func (l *LiveDir) update(change func(*liveRecord)) error {
	if l.shared != nil {
		_ = l.shared.update(change) // a cleaned /tmp takes only the protection from other homes
	}
	return l.hold.update(change)
}

func (l *hold) update(change func(*liveRecord)) error {
	gate, err := durable.Lock(filepath.Join(filepath.Dir(l.path), "gate"))
	if err != nil {
		return err
	}
	defer gate.Close()
	rec := readLive(l.path)
	change(&rec)
	return l.write(rec)
}

// Offer lets another process have the directory: if one asks for it, closed is called, which
// closes the task. reclaim ends the offer and reports whether the task is still open.
func (l *LiveDir) Offer(closed func() error) (reclaim func() bool, err error) {
	var mu sync.Mutex
	yielded := false
	path := fmt.Sprintf("%s.%d.sock", strings.TrimSuffix(l.path, ".json"), os.Getpid())
	stop, err := Serve(path, func(c Command) error {
		if c.Verb != CloseVerb {
			return fmt.Errorf("unknown request %q", c.Verb)
		}
		mu.Lock()
		defer mu.Unlock()
		if yielded {
			return nil
		}
		err := closed()
		// A task whose closing failed otherwise has given up the directory all the same.
		yielded = !errors.Is(err, ErrBusy)
		return err
	})
	if err != nil {
		return nil, err
	}
	reclaim = func() bool {
		stop()
		return !yielded && l.KeptOpen("") == nil
	}
	if err := l.KeptOpen(path); err != nil {
		reclaim()
		return nil, err
	}
	return reclaim, nil
}

func (l *hold) write(rec liveRecord) error {
	data, err := json.Marshal(rec)
	if err == nil {
		err = l.file.Truncate(0)
	}
	if err == nil {
		_, err = l.file.WriteAt(data, 0)
	}
	return err
}

// lockGate locks the one gate of all tasks, so that two cannot check at the same time.
func lockGate(h Home) (*os.File, error) {
	live := filepath.Join(h.State, "live")
	if err := os.MkdirAll(live, 0o700); err != nil {
		return nil, err
	}
	return durable.Lock(filepath.Join(live, "gate"))
}

func holdDir(h Home, dir, task, parent string) (*LiveDir, error) {
	live := filepath.Join(h.State, "live")
	if err := os.MkdirAll(live, 0o700); err != nil {
		return nil, fmt.Errorf("hold %s: %w", dir, err)
	}
	rec := liveRecord{Task: cmp.Or(parent, task), Dir: dir, PID: os.Getpid()}
	beside := noProcess
	if parent != "" {
		beside = rec.PID
	}
	own, err := holdIn(live, task+".json", rec, beside)
	if err != nil {
		return nil, err
	}
	l := &LiveDir{hold: *own}
	if shared := sharedLive(); shared != "" {
		rec.Home = h.State
		l.shared, err = holdIn(shared, fmt.Sprintf("%s-%x.json", task, sha256.Sum256([]byte(h.State))), rec, beside)
		if errors.Is(err, ErrBusy) { // no other error keeps a task from its own home
			return nil, errors.Join(h.named(err), l.Release())
		}
	}
	return l, nil
}

// holdIn takes a hold in a folder. beside is the process whose holds do not count.
func holdIn(live, name string, rec liveRecord, beside int) (*hold, error) {
	gate, err := durable.Lock(filepath.Join(live, "gate"))
	if err != nil {
		return nil, fmt.Errorf("hold %s: %w", rec.Dir, err)
	}
	defer gate.Close()
	at, err := checkHolds(live, rec.Dir, beside)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(live, name)
	f, err := lockHold(path)
	if errors.Is(err, durable.ErrLocked) {
		held := readLive(path)
		held.Dir, held.Task = cmp.Or(held.Dir, rec.Dir), cmp.Or(held.Task, rec.Task)
		return nil, held.busy(rec.Dir)
	}
	if err != nil {
		return nil, fmt.Errorf("hold %s: %w", rec.Dir, err)
	}
	l := &hold{file: f, path: path, beside: beside}
	rec.Dev, rec.Ino = at.dev, at.ino
	if err := l.write(rec); err != nil {
		f.Close()
		return nil, fmt.Errorf("hold %s: %w", rec.Dir, err)
	}
	return l, nil
}

// A process that was killed while it started a command leaves a child that briefly has all its
// files, including its locks.
const (
	deadHoldTime  = 5 * time.Second // how long to wait for such a child
	deadHoldPause = 5 * time.Millisecond
)

// lockHold takes the lock of a hold without waiting for a living holder.
func lockHold(path string) (*os.File, error) {
	for deadline := time.Now().Add(deadHoldTime); ; time.Sleep(deadHoldPause) {
		f, err := durable.TryLock(path)
		if !errors.Is(err, durable.ErrLocked) || time.Now().After(deadline) {
			return f, err
		}
		if pid := readLive(path).PID; pid == 0 || !errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			return nil, err // at work, or about to write its record
		}
	}
}

const noProcess = 0

// checkHolds returns which directory dir is, and a BusyError if a live task is in it, above it or
// below it. It ignores those of the process beside, if it is not noProcess.
func checkHolds(live, dir string, beside int) (at inode, err error) {
	chain, err := ancestry(dir)
	if err != nil {
		return at, fmt.Errorf("look for tasks in %s: %w", dir, err)
	}
	files, err := os.ReadDir(live) // no pattern: the user's path may have a bracket
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return at, err
	}
	for _, e := range files {
		path := filepath.Join(live, e.Name())
		if filepath.Ext(path) != ".json" {
			continue
		}
		f, err := lockHold(path)
		if err == nil { // unlocked: its process has ended
			if socket := readLive(path).Socket; filepath.Dir(socket) == live {
				os.Remove(socket)
			}
			os.Remove(path)
			f.Close()
			continue
		}
		rec := readLive(path)
		if rec.Parked || beside != noProcess && rec.PID == beside {
			continue
		}
		held := inode{rec.Dev, rec.Ino}
		conflict := slices.Contains(chain, held)
		if !conflict && rec.Dir != "" {
			other, _ := ancestry(rec.Dir) // nil if it was removed
			conflict = slices.Contains(other, chain[0])
		}
		if conflict {
			return at, rec.busy(dir)
		}
	}
	return chain[0], nil
}

// Park lets other tasks work in the directory, until Unpark. The task stays live. Of a nil LiveDir, both do nothing.
func (l *LiveDir) Park() error {
	if l == nil {
		return nil
	}
	return l.update(park)
}

func park(rec *liveRecord) { rec.Parked = true }

// Unpark takes the directory again, or returns a BusyError.
func (l *LiveDir) Unpark() error {
	if l == nil {
		return nil
	}
	if err := l.hold.unpark(); err != nil || l.shared == nil {
		return err
	}
	if err := l.shared.unpark(); errors.Is(err, ErrBusy) {
		return errors.Join(err, l.hold.update(park))
	}
	return nil
}

func (l *hold) unpark() error {
	live := filepath.Dir(l.path)
	gate, err := durable.Lock(filepath.Join(live, "gate"))
	if err != nil {
		return err
	}
	defer gate.Close()
	rec := readLive(l.path)
	if rec.Parked {
		dir, err := WorldDir(rec.Dir)
		if err == nil && dir != rec.Dir {
			err = fmt.Errorf("%w: %s leads to %s now", worldstate.ErrNoDirectory, rec.Dir, dir)
		}
		if err != nil {
			return remedy.With(err, remedy.RelocateOrMake, rec.Task)
		}
		at, err := checkHolds(live, rec.Dir, l.beside)
		if err != nil {
			return err
		}
		rec.Dev, rec.Ino = at.dev, at.ino // another directory may be there now
	}
	rec.Parked = false
	return l.write(rec)
}

func (l *LiveDir) Release() error {
	var err error
	if l.shared != nil {
		err = l.shared.release()
	}
	return errors.Join(err, l.hold.release())
}

func (l *hold) release() error {
	os.Remove(l.path) // while it is locked: afterwards the file could be the next holder's
	return l.file.Close()
}

// Live returns the pid of the process that runs a task, 0 when none does.
func Live(h Home, task string) int {
	path := filepath.Join(h.State, "live", task+".json")
	if _, err := os.Stat(path); err != nil {
		return 0
	}
	// The gate keeps this check from being mistaken for a hold.
	gate, err := durable.Lock(filepath.Join(h.State, "live", "gate"))
	if err != nil {
		return 0
	}
	defer gate.Close()
	f, err := durable.TryLock(path)
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

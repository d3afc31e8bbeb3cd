package quarantine

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/opstream/durable"
)

// endTime is how long to wait for the supervisors of a program that died.
const endTime = 5 * time.Second

func (q *Quarantine) recordRun() error {
	if q.o.Runs == "" || q.run != nil {
		return nil
	}
	err := os.MkdirAll(q.o.Runs, 0o700)
	var f *os.File
	if err == nil {
		sum := sha256.Sum256([]byte(q.o.Dir))
		f, err = durable.TryLock(filepath.Join(q.o.Runs, hex.EncodeToString(sum[:8])+".json"))
	}
	if err != nil {
		return fmt.Errorf("record that commands run in %s: %w", q.o.World, err)
	}
	data, _ := json.Marshal(Run{Dir: q.o.Dir, World: q.o.World, Inode: inodeOf(q.o.World), Skip: q.o.Skip,
		Writable: q.o.Writable, PID: os.Getpid()})
	if err = f.Truncate(0); err == nil {
		_, err = f.WriteAt(data, 0)
	}
	if err = errors.Join(err, f.Sync()); err != nil {
		f.Close()
		return fmt.Errorf("record that commands run in %s: %w", q.o.World, err)
	}
	q.run = f
	return nil
}

func (q *Quarantine) forgetRun() {
	if q.run != nil {
		_ = os.Remove(q.run.Name())
		q.run.Close()
		q.run = nil
	}
}

// Lock returns the locked record of the running commands, for a supervisor to keep open; nil:
// there is none.
func (q *Quarantine) Lock() *os.File {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.run
}

func inodeOf(path string) uint64 {
	var st unix.Stat_t
	_ = unix.Stat(path, &st)
	return st.Ino
}

// Unexamined lists the runs whose program died and whose leftovers were not examined.
func Unexamined(runs string) []Run {
	var out []Run
	eachDead(runs, func(_ *os.File, r Run) { out = append(out, r) })
	return out
}

// Recover quarantines what commands of programs that died left in a world, above it and
// beneath it, and returns a report. Call it before anything else uses the world. state is the
// directory that contains the quarantines: a record that names another was copied from there.
func Recover(runs, state, world string) string {
	if real, err := filepath.EvalSymlinks(state); err == nil {
		state = real
	}
	note := ""
	eachDead(runs, func(f *os.File, r Run) {
		if !exists(r.World) && inodeOf(world) == r.Inode {
			r.World = world // it was moved
		}
		if !Within(r.World, world) && !Within(world, r.World) {
			return
		}
		switch {
		case !Within(r.Dir, state) || exists(r.World) && inodeOf(r.World) != r.Inode:
			_ = os.Remove(f.Name()) // of a copied home, or of another directory of this name
			return
		case !exists(r.World):
			return
		}
		q, err := load(Options{Dir: r.Dir, World: r.World, Skip: r.Skip, Writable: r.Writable})
		if err == nil && q.record.Before != nil {
			found := q.check()
			note = JoinNotes(note, found)
			if q.lost {
				return
			}
			q.record.Before, q.record.Earlier = nil, JoinNotes(q.record.Earlier, found)
			err = q.keep(durable.Replace)
		}
		if err != nil {
			note = JoinNotes(note, fmt.Sprintf("what a command that was killed left in %s was not examined: %v; do "+
				"not use git there", r.World, err))
			return
		}
		_ = os.Remove(f.Name())
	})
	return note
}

// eachDead calls do with the runs of programs that died, whose files it locks meanwhile.
func eachDead(runs string, do func(*os.File, Run)) {
	files, _ := filepath.Glob(filepath.Join(runs, "*.json"))
	for _, file := range files {
		if f := lockDead(file); f != nil {
			if data, err := durable.ReadFile(file, maxGitFileBytes); err == nil {
				var r Run
				if json.Unmarshal(data, &r) == nil && strings.HasPrefix(r.World, "/") {
					do(f, r)
				} else {
					_ = os.Remove(file) // half written: no command has started
				}
			}
			f.Close()
		}
	}
}

// lockDead locks the record of a run if its program died, and waits for the supervisors; nil:
// it is alive, or gone.
func lockDead(file string) *os.File {
	for end := time.Now().Add(endTime); ; time.Sleep(10 * time.Millisecond) {
		before, err := os.Stat(file)
		if err != nil {
			return nil
		}
		f, err := durable.TryLock(file)
		if err == nil {
			if now, err := f.Stat(); err != nil || !os.SameFile(before, now) {
				f.Close()
				return nil
			}
			return f
		}
		var r Run
		data, _ := durable.ReadFile(file, maxGitFileBytes)
		dead := json.Unmarshal(data, &r) == nil && errors.Is(unix.Kill(r.PID, 0), unix.ESRCH)
		if !errors.Is(err, durable.ErrLocked) || !dead || time.Now().After(end) {
			return nil
		}
	}
}

package quarantine

import (
	"cmp"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"anamnesis/anamnesis/shell"

	"golang.org/x/sys/unix"
)

// While commands run, the kernel reports what appears in the world's directories, and what git
// would run is taken out at once. The user's git can run it for as long as that takes; see
// BenchmarkWindow. Not reported are directories beyond the limit of watches, those that their
// owner may not read, writes through a memory map, and changes by other machines: for them the
// world is scanned every rescanTime.
const (
	rescanTime = time.Second
	// rescanShare bounds the time spent in those scans, to one part in so many.
	rescanShare = 20
)

// Events of directories: of all, and of those where the content of files counts, too.
const (
	watchNames   = unix.IN_CREATE | unix.IN_MOVED_TO | unix.IN_ONLYDIR | unix.IN_DONT_FOLLOW
	watchContent = watchNames | unix.IN_MODIFY | unix.IN_ATTRIB
)

// watcher reads events. It is reused by later commands, so that unchanged directories need no
// new watch.
type watcher struct {
	world  string
	events *os.File
	buf    []byte
	paths  map[int32]string // of watched directories, in the world
	stop   atomic.Bool
	done   chan struct{} // closed when it reads no more
}

// newWatcher returns nil if the kernel has no more to give.
func newWatcher(world string) *watcher {
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil
	}
	return &watcher{world: world, events: os.NewFile(uintptr(fd), "inotify"), buf: make([]byte, 64<<10),
		paths: map[int32]string{}}
}

// add watches a directory, if w is not nil; every reports that the content of its files counts.
func (w *watcher) add(rel string, every bool) {
	if w == nil {
		return
	}
	mask := uint32(watchNames)
	if every {
		mask = watchContent
	}
	conn, err := w.events.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) {
		if wd, err := unix.InotifyAddWatch(int(fd), filepath.Join(w.world, rel), mask); err == nil {
			w.paths[int32(wd)] = rel
		}
	})
}

// event is a change of a directory's entry; overflow: events were lost.
type event struct {
	dir, name string
	isDir     bool
	overflow  bool
}

// read waits for events until a time. No events and no error: none came.
func (w *watcher) read(until time.Time) ([]byte, error) {
	if err := w.events.SetReadDeadline(until); err != nil {
		return nil, err
	}
	if w.stop.Load() { // after the deadline was set, which stop sets again
		return nil, os.ErrClosed
	}
	n, err := w.events.Read(w.buf)
	if errors.Is(err, os.ErrDeadlineExceeded) && !w.stop.Load() {
		return nil, nil
	}
	return w.buf[:n], err
}

// parse returns the events that were read, without repetitions.
func (w *watcher) parse(data []byte) []event {
	var out []event
	for len(data) >= unix.SizeofInotifyEvent {
		wd, mask := int32(binary.NativeEndian.Uint32(data)), binary.NativeEndian.Uint32(data[4:])
		end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(data[12:]))
		name, _, _ := strings.Cut(string(data[unix.SizeofInotifyEvent:min(end, len(data))]), "\x00")
		data = data[min(end, len(data)):]
		dir, ok := w.paths[wd]
		if mask&unix.IN_IGNORED != 0 {
			delete(w.paths, wd)
			continue
		}
		e := event{dir: dir, name: name, isDir: mask&unix.IN_ISDIR != 0, overflow: mask&unix.IN_Q_OVERFLOW != 0}
		if (ok && name != "" || e.overflow) && !slices.Contains(out, e) {
			out = append(out, e)
		}
	}
	return out
}

// drain drops the events so far.
func (w *watcher) drain() {
	conn, err := w.events.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Control(func(fd uintptr) {
		for n := 1; n > 0; {
			n, _ = unix.Read(int(fd), w.buf)
			w.parse(w.buf[:max(n, 0)]) // directories that are gone
		}
	})
}

// end stops follow and waits for it.
func (w *watcher) end() {
	w.stop.Store(true)
	_ = w.events.SetReadDeadline(time.Now())
	<-w.done
}

// follow quarantines what appears until the watcher is stopped.
func (q *Quarantine) follow(w *watcher) {
	defer close(w.done)
	pause := rescanTime
	next := time.Now().Add(pause)
	for {
		data, err := w.read(next)
		if err != nil {
			return
		}
		q.mu.Lock()
		began := time.Now()
		events := w.parse(data)
		all := !began.Before(next) || slices.ContainsFunc(events, func(e event) bool { return e.overflow })
		if all {
			_ = q.scanAll(q.record.Before.Named) // a scan at the end of the command reports an error
			q.examine(sortedKeys(q.now.Files), true)
			pause = max(rescanTime, rescanShare*time.Since(began))
			next = time.Now().Add(pause)
		} else {
			for _, e := range events {
				q.examine(q.touched(e), true)
			}
		}
		q.mu.Unlock()
	}
}

// unfinished are names with which a directory becomes one of git's.
const unfinished = "head objects refs commondir"

// touched scans what an event is about, and returns the files that may have changed.
func (q *Quarantine) touched(e event) []string {
	path, base := filepath.Join(e.dir, e.name), strings.ToLower(e.name)
	_, repository := q.now.Dirs[e.dir]
	switch above := filepath.Dir(e.dir); {
	case repository && (shell.InList(repositoryFiles[cmp.Or(repositoryName(e.dir), ".git")], base) ||
		slices.Contains(gitStateDirs, base)):
		return q.scanPart(e.dir)
	case isStateFile(path) && q.now.Dirs[above] != "":
		return q.scanPart(above)
	case !repository && shell.InList(unfinished, base) && isGitDir(e.dir, listDir(filepath.Join(q.o.World, e.dir))):
		return q.scanPart(e.dir)
	}
	info, err := os.Lstat(filepath.Join(q.o.World, path))
	if err == nil && info.Mode().IsRegular() && !leads(path) && !q.isNamed(path) {
		return nil // most events
	}
	return q.scanPart(path)
}

func (q *Quarantine) isNamed(rel string) bool {
	if _, ok := q.now.Named[rel]; ok {
		return true
	}
	return q.now.Named[filepath.Dir(rel)] == namedHooks
}

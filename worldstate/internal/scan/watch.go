package scan

import (
	"time"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/usergit"
)

// A watcher reports which names have changed between two scans, so that the cost of a save
// depends on the changes and not on the size of the directory. Its rules:
//
//   - A directory is watched before its names are read, so that a change during a
//     scan is reported at the next one.
//   - Events are read when a scan starts, never in between: every earlier change is
//     in the queue. If the queue overflowed, or on any error, the next scan reads
//     everything.
//   - A directory that was moved is forgotten, and scanned at its new place.
//   - What causes no event is scanned every time: files with several hard links,
//     file systems mounted inside, paths that could not be read, directories above
//     the limit.
//   - Every CheckSaves saves, or checkAfter, a save scans everything, and so finds a
//     change that no event reported.
//
// Without inotify or on a network file system, worlds are scanned as a whole.

const (
	// maxWatches bounds the watched directories. The kernel keeps about one KiB for each, and
	// has a limit of its own for each user.
	maxWatches = 1 << 16
	// maxMarks bounds the names remembered between two saves; beyond it the next scan reads
	// everything.
	maxMarks = 1 << 17
	// CheckSaves and checkAfter are the intervals at which a save scans everything.
	CheckSaves = 200
	checkAfter = 10 * time.Minute
)

// mark names the parts of a directory to scan. A nil mark means everything.
type mark struct {
	names map[string]struct{} // these names
	subs  map[string]*mark    // directories in it that have marks
}

func (m *mark) empty() bool { return len(m.names) == 0 && len(m.subs) == 0 }

// add marks a name, and reports whether it is new.
func (m *mark) add(name string) bool {
	if _, twice := m.names[name]; twice {
		return false
	}
	if m.names == nil {
		m.names = make(map[string]struct{})
	}
	m.names[name] = struct{}{}
	return true
}

// has reports whether a name, or something beneath it, is marked.
func (m *mark) has(name string) bool {
	_, named := m.names[name]
	_, sub := m.subs[name]
	return named || sub
}

// addAll marks everything beneath a name.
func (m *mark) addAll(name string) {
	if m.subs == nil {
		m.subs = make(map[string]*mark)
	}
	m.subs[name] = nil
}

// sub returns the mark of a directory in it, nil if all of that is marked.
func (m *mark) sub(name string) *mark {
	s, there := m.subs[name]
	if !there {
		if s = (&mark{}); m.subs == nil {
			m.subs = make(map[string]*mark)
		}
		m.subs[name] = s
	}
	return s
}

// watched is a directory with a watch.
type watched struct {
	parent *watched // nil for the root and a forgotten directory
	name   string
	wd     int32
	epoch  int // the last whole scan that saw it
	kids   map[string]*watched
}

// watching is a World's watcher with its reports.
type watching struct {
	n       fsys.Notifier
	Limit   int
	id      fsys.Stamp // of the root: only its inode and device
	root    *watched
	dirs    map[int32]*watched
	epoch   int
	pending *mark
	marks   int
	drained int // counts the calls of readEvents, for recordScan
	// Lost: events may be missing, so that the next scan reads everything.
	Lost bool
	// Saves and since count from the last whole scan.
	Saves int
	since time.Time
	off   string // why the watcher has stopped, "" while it runs
	// Events counts all events, Overflows the overflows of the kernel's queue.
	Events, Overflows int
}

func newWatching(root int) *watching {
	t := &watching{Limit: maxWatches, Lost: true}
	var err error
	if t.id, err = fsys.Fstat(root); err == nil {
		t.n, err = fsys.NewNotifier(root)
	}
	if err != nil {
		t.n, t.off = nil, usergit.Reason(err)
	}
	t.reset()
	return t
}

func (t *watching) reset() {
	t.dirs = make(map[int32]*watched)
	t.root = &watched{wd: -1}
	t.pending, t.marks = &mark{}, 0
}

// stop stops the watcher for good.
func (t *watching) stop(why string) {
	if t.off == "" {
		t.off = why
	}
	if t.n != nil {
		t.n.Close()
		t.n = nil
	}
	t.reset()
}

// watches reports whether root is the watched directory.
func (t *watching) watches(root fsys.Stamp) bool { return root.Ino == t.id.Ino && root.Dev == t.id.Dev }

func (t *watching) active() bool { return t != nil && t.off == "" }

func (t *watching) readEvents() {
	if t.n == nil {
		return
	}
	t.drained++
	if err := t.n.Read(t.handleEvent); err != nil {
		t.stop("reading events: " + usergit.Reason(err))
	}
}

func (t *watching) handleEvent(e fsys.Event) {
	t.Events++
	switch {
	case e.Overflow:
		t.Overflows++
		t.Lost = true
		return
	case e.Lost:
		t.Lost = true
		return
	}
	d := t.dirs[e.Wd]
	switch {
	case d == nil:
		return
	case e.Unknown:
		t.Lost = t.Lost || d == t.root
		t.forget(d)
		return
	case e.Name == "":
		return // reported for its parent, too
	}
	m := t.markOf(d)
	if m == nil {
		if e.MovedOut {
			t.forgetMoved(d, e.Name)
		}
		return
	}
	if m.add(e.Name) {
		t.countMark()
	}
	if e.IsDir && e.Came {
		m.addAll(e.Name)
	}
	if e.MovedOut {
		t.forgetMoved(d, e.Name)
	}
}

func (t *watching) countMark() {
	if t.marks++; t.marks > maxMarks {
		t.Lost, t.pending, t.marks = true, &mark{}, 0
	}
}

// forgetMoved forgets the directory that had a name.
func (t *watching) forgetMoved(d *watched, name string) {
	if kid := d.kids[name]; kid != nil {
		t.unwatch(kid)
	}
}

// markOf returns a directory's mark, nil if it is marked as a whole.
func (t *watching) markOf(d *watched) *mark {
	if d == t.root {
		return t.pending
	}
	if d.parent == nil {
		return nil
	}
	m := t.markOf(d.parent)
	if m == nil {
		return nil
	}
	return m.sub(d.name)
}

// unwatch drops a directory and everything beneath that the kernel still reports.
func (t *watching) unwatch(d *watched) {
	if d.wd >= 0 {
		t.n.Unwatch(d.wd)
	}
	t.forget(d)
}

// forget drops a directory that the kernel no longer reports, and unwatches everything beneath.
func (t *watching) forget(d *watched) {
	for _, kid := range d.kids {
		t.unwatch(kid)
	}
	if t.dirs[d.wd] == d {
		delete(t.dirs, d.wd)
	}
	if d.parent != nil && d.parent.kids[d.name] == d {
		delete(d.parent.kids, d.name)
	}
	d.parent, d.wd = nil, -1
}

// watch adds a watch to a directory that was just opened, before its names are read. It returns
// nil if every scan must read the directory. The caller holds the scanner's mutex.
func (t *watching) watch(parent *watched, name string, fd int, isRoot bool) *watched {
	if !t.active() || !isRoot && (parent == nil || parent.kids[name] == nil && len(t.dirs) >= t.Limit) {
		return nil
	}
	wd, err := t.n.Watch(fd)
	if err != nil {
		t.stop(usergit.Reason(err))
		return nil
	}
	d := t.dirs[wd]
	switch {
	case d == nil:
	case d.parent == parent && d.name == name:
		d.epoch = t.epoch
		return d
	case d.epoch == t.epoch:
		return nil // mounted twice: events name only one of the places
	default:
		t.forget(d) // it moved while it was not watched
	}
	d = &watched{parent: parent, name: name, wd: wd, epoch: t.epoch}
	if isRoot {
		t.root.wd, t.root.epoch, d = wd, t.epoch, t.root
	} else {
		if old := parent.kids[name]; old != nil {
			t.unwatch(old)
		}
		if parent.kids == nil {
			parent.kids = make(map[string]*watched)
		}
		parent.kids[name] = d
	}
	t.dirs[wd] = d
	return d
}

// prune forgets the directories that the last whole scan did not visit.
func (t *watching) prune() {
	for _, d := range t.dirs {
		if d.epoch != t.epoch && d.wd >= 0 && d != t.root {
			t.unwatch(d)
		}
	}
}

// begin prepares a scan: it returns the marks to scan by, nil for everything.
func (t *watching) begin(saving bool) *mark {
	t.readEvents()
	if saving {
		t.Saves++
	}
	if due := t.Saves >= CheckSaves || time.Since(t.since) >= checkAfter; !t.active() || t.Lost || saving && due {
		t.epoch++
		return nil
	}
	return t.pending
}

// recordScan clears the marks that a scan has covered.
func (t *watching) recordScan(sc *Scanned) {
	if sc.whole {
		// Events lost before the scan are covered; those lost during it are not.
		t.Saves, t.since, t.Lost = 0, time.Now(), t.Lost && sc.drained != t.drained
	}
	if sc.drained == t.drained && !t.pending.empty() {
		t.pending, t.marks = &mark{}, 0
	}
}

// Watching reports whether the kernel reports changes, and if not, why.
func (w *Tracker) Watching() (on bool, why string) {
	switch {
	case !w.opts.Watch:
		return false, "not asked for"
	case w.Watch == nil:
		return false, "no scan yet"
	}
	return w.Watch.active(), w.Watch.off
}

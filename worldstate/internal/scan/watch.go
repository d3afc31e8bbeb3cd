package scan

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/tree"
	"anamnesis/worldstate/internal/usergit"
)

// A watcher reports between two scans which names have changed, so that a save
// costs what changed and not what the directory holds. It is a hint with rules:
//
//   - A directory is watched before its names are read, so that what changes
//     while a scan runs is reported at the next one.
//   - Events are read when a scan begins, never in between: what
//     happened before that moment is in the queue. Where the queue ran over,
//     or anything is odd, the next scan looks at everything.
//   - A directory that is moved is forgotten, and scanned where it comes up.
//   - What causes no event is looked at every time: files with several hard
//     links, file systems mounted inside, what could not be read.
//   - A file system mounted or unmounted inside causes no event either. The list
//     of mounts says so, and the next scan looks at everything.
//   - Every checkSaves saves, or checkAfter, a save scans everything and
//     compares. A change that no event reported ends the watching for good.
//
// Where it cannot be had (no inotify, a network file system, more directories
// than the limit) worlds are scanned as without it.

const (
	// maxWatches bounds the directories watched. The kernel keeps about one
	// KiB for each, and has a limit of its own for each user.
	maxWatches = 1 << 16
	// maxMarks bounds the names remembered between two saves; past it the
	// next one scans.
	maxMarks = 1 << 17
	// CheckSaves and checkAfter say how often the watcher is checked.
	CheckSaves = 200
	checkAfter = 10 * time.Minute
)

// mark says what of a directory must be looked at. The nil mark: everything in
// it and beneath.
type mark struct {
	names map[string]struct{} // these names
	subs  map[string]*mark    // directories in it that have marks
}

func (m *mark) empty() bool { return len(m.names) == 0 && len(m.subs) == 0 }

// add marks a name; it reports whether it is a new one.
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

// addAll marks everything beneath a name.
func (m *mark) addAll(name string) {
	if m.subs == nil {
		m.subs = make(map[string]*mark)
	}
	m.subs[name] = nil
}

// sub returns the mark of a directory in it; nil when all of that is marked.
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

// covers reports whether a path, or a directory above it, or the rules of one,
// are marked.
func (m *mark) covers(path string) bool {
	for m != nil {
		if _, rules := m.names[".gitignore"]; rules {
			return true
		}
		name, rest, _ := strings.Cut(path, "/")
		if _, ok := m.names[name]; ok {
			return true
		}
		s, ok := m.subs[name]
		if !ok || rest == "" {
			return ok
		}
		m, path = s, rest
	}
	return true
}

// watched is a directory with a watch on it.
type watched struct {
	parent *watched // nil: the root, or forgotten
	name   string
	wd     int32
	epoch  int // the last whole scan that saw it
	kids   map[string]*watched
}

// watching is a World's watcher and what it has reported.
type watching struct {
	reading sync.Mutex // several may drain at once; nothing else is concurrent with that
	n       fsys.Notifier
	Limit   int
	id      fsys.Stamp // of the root: only its inode and device
	root    *watched
	dirs    map[int32]*watched
	Epoch   int
	pending *mark
	marks   int
	drained int // counts the readings of events, for learn
	// Lost: something happened that no event reports; the next scan looks at
	// everything.
	Lost bool
	// Saves and since count from the last whole scan.
	Saves int
	since time.Time
	off   string // why watching has ended; "": it has not
	// Events counts all read, overflows those the kernel dropped some at.
	Events, Overflows int
}

// ErrTooManyDirs is a reason for not watching.
var ErrTooManyDirs = errors.New("too many directories to watch")

func newWatching(root int, dir string) *watching {
	t := &watching{Limit: maxWatches, Lost: true}
	var err error
	if t.id, err = fsys.Fstat(root); err == nil {
		t.n, err = fsys.NewNotifier(root, dir)
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

// end stops watching for good.
func (t *watching) end(why string) {
	if t.off == "" {
		t.off = why
	}
	if t.n != nil {
		t.n.Close()
		t.n = nil
	}
	t.reset()
}

// of reports whether it is the directory that is watched.
func (t *watching) of(root fsys.Stamp) bool { return root.Ino == t.id.Ino && root.Dev == t.id.Dev }

// on reports whether it watches.
func (t *watching) on() bool { return t != nil && t.off == "" }

// Heed reads the events there are in the middle of an operation that makes
// many. Safe for several goroutines of one operation.
func (w *Tracker) Heed() {
	if w.Watch != nil {
		w.Watch.drain()
	}
}

// drain reads the events there are.
func (t *watching) drain() {
	t.reading.Lock()
	defer t.reading.Unlock()
	if t.n == nil {
		return
	}
	t.drained++
	if err := t.n.Read(t.take); err != nil {
		t.end("reading events: " + usergit.Reason(err))
	}
}

func (t *watching) take(e fsys.Event) {
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
		return // its parent is reported, too
	}
	m := t.markOf(d)
	if m == nil {
		if e.MovedOut {
			t.moved(d, e.Name)
		}
		return
	}
	if m.add(e.Name) {
		t.count()
	}
	if e.IsDir && e.Came {
		m.addAll(e.Name)
	}
	if e.MovedOut {
		t.moved(d, e.Name)
	}
}

func (t *watching) count() {
	if t.marks++; t.marks > maxMarks {
		t.Lost, t.pending, t.marks = true, &mark{}, 0
	}
}

// moved forgets the directory that had a name.
func (t *watching) moved(d *watched, name string) {
	if kid := d.kids[name]; kid != nil {
		t.unwatch(kid)
	}
}

// markOf returns a directory's mark; nil when it is marked as a whole.
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

// unwatch drops a directory and all beneath that the kernel still reports.
func (t *watching) unwatch(d *watched) {
	if d.wd >= 0 {
		t.n.Unwatch(d.wd)
	}
	t.forget(d)
}

// forget drops a directory that the kernel does not report any more, and unwatches all
// beneath.
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

// watch puts a watch on a directory just opened, whose names have not been
// read yet. It returns nil where the directory must be looked at every time. The
// scanner's mutex is held.
func (t *watching) watch(parent *watched, name string, fd int, isRoot bool) *watched {
	if !t.on() || parent == nil && !isRoot {
		return nil
	}
	wd, err := t.n.Watch(fd)
	if err != nil {
		t.end(usergit.Reason(err))
		return nil
	}
	d := t.dirs[wd]
	switch {
	case d == nil && len(t.dirs) >= t.Limit:
		t.end(fmt.Sprintf("%v: over %d", ErrTooManyDirs, t.Limit))
		return nil
	case d == nil:
	case d.parent == parent && d.name == name:
		d.epoch = t.Epoch
		return d
	case d.epoch == t.Epoch:
		return nil // one directory at two places: events of one of them are the other's
	default:
		t.forget(d) // it moved while it was not watched
	}
	d = &watched{parent: parent, name: name, wd: wd, epoch: t.Epoch}
	if isRoot {
		t.root.wd, t.root.epoch, d = wd, t.Epoch, t.root
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

// prune forgets what the last whole scan did not come across.
func (t *watching) prune() {
	for _, d := range t.dirs {
		if d.epoch != t.Epoch && d.wd >= 0 && d != t.root {
			t.unwatch(d)
		}
	}
}

// begin prepares a scan: it returns the marks to scan by, nil for everything.
func (t *watching) begin(saving bool) *mark {
	t.drain()
	t.askMounts()
	if saving {
		t.Saves++
	}
	if due := t.Saves >= CheckSaves || time.Since(t.since) >= checkAfter; !t.on() || t.Lost || saving && due {
		t.Epoch++
		return nil
	}
	return t.pending
}

// askMounts has the next scan look at everything where file systems came or went.
func (t *watching) askMounts() {
	if !t.on() {
		return
	}
	changed, err := t.n.Mounted()
	if err != nil {
		t.end("reading mounts: " + usergit.Reason(err))
	}
	t.Lost = t.Lost || changed
}

// learnt forgets what a scan took in that is the ground of the next one.
func (t *watching) learnt(sc *Scanned) {
	if sc.whole {
		// What was lost while it looked lies behind it.
		t.Saves, t.since, t.Lost = 0, time.Now(), t.Lost && sc.drained != t.drained
	}
	if sc.drained == t.drained && !t.pending.empty() {
		t.pending, t.marks = &mark{}, 0
	}
}

// Watching reports whether the kernel tells of changes, and if not, why.
func (w *Tracker) Watching() (on bool, why string) {
	switch {
	case !w.opts.Watch:
		return false, "not asked for"
	case w.Watch == nil:
		return false, "no scan yet"
	}
	return w.Watch.on(), w.Watch.off
}

// missed returns a path that has changed since it was known, and of which no
// event reported; "" when there is none. Called after a whole scan.
func (t *watching) missed(known, now *tree.Node) string {
	t.drain()
	if !t.on() || t.Lost {
		return ""
	}
	found := ""
	a, b := &tree.Listing{Root: known}, &tree.Listing{Root: now}
	tree.Merge("", known, now, func(path string, ia, ib *tree.Item) bool {
		if ia != nil && ib != nil && ia.State == ib.State || t.pending.covers(path) || unwatchable(a, path) || unwatchable(b, path) {
			return true
		}
		found = path
		return false
	})
	return found
}

// unwatchable: the path is looked at every time, since no event reports it.
func unwatchable(l *tree.Listing, path string) bool {
	n := l.Root
	for {
		if n.Seen == nil || n.Seen.Foreign || n.Seen.Fault != "" {
			return true
		}
		name, rest, _ := strings.Cut(path, "/")
		i := n.Index(name)
		switch {
		case i < 0:
			o := n.Other(name)
			return o != nil && o.Why != "" && !tree.Bodiless(o.Why)
		case n.Items[i].Kind != tree.KindDir:
			return n.Items[i].Kind == tree.KindFile && n.Seen.Items[i].Nlink > 1
		case rest == "":
			sub := n.Items[i].Sub
			return sub.Seen == nil || sub.Seen.Foreign
		}
		n, path = n.Items[i].Sub, rest
	}
}

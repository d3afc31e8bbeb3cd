package scan

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/ignore"
	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/tree"
	"anamnesis/worldstate/internal/usergit"
)

// visit is the scan of one directory. It ends when all its files are read and the visits of all
// its directories have ended. The last goroutine to finish a directory completes its parent, so
// that none blocks.
type visit struct {
	s    *scanner
	up   *visit
	name string
	path string
	deep int        // components of path
	at   int        // index among the items of up.prev, -1 for a new directory
	st   fsys.Sight // from the directory above
	fd   int

	prev    *tree.Node          // the previous node, or nil
	same    bool                // the rules are those of prev
	tracked bool                // the directory is ignored, except paths in the user's index
	nest    *usergit.Repository // the nearest repository inside the world, or nil
	nestAt  string              // its top
	isTop   bool                // the directory is or was the top of a repository
	chain   ignore.Chain
	seen    tree.Sighting // of this scan; items and others are set by end
	now     time.Time

	left  atomic.Int32
	mu    sync.Mutex
	edits []edit
	fault string
}

// run scans the directory that v.fd is.
func (v *visit) run() {
	v.left.Store(1)
	defer v.finish()
	if v.s.stop.Load() {
		return
	}
	if err := v.readDir(); err != nil {
		v.unreadable(err)
	}
}

// finish ends one of the things that the visit waits for; the last one ends the visit.
func (v *visit) finish() {
	for v != nil && v.left.Add(-1) == 0 {
		if v.fd >= 0 {
			unix.Close(v.fd)
		}
		n := v.seal()
		if v.up == nil {
			v.s.root = n
			return
		}
		v.up.putDir(v, n)
		v = v.up
	}
}

// unreadable records that the whole directory cannot be read.
func (v *visit) unreadable(err error) {
	switch {
	case v.up == nil:
		v.s.fail(err)
	case fsys.Exhausted(err):
		v.s.fail(fmt.Errorf("%s: %w", v.path, err))
	case fsys.IsErrno(err, unix.ENOTDIR, unix.ELOOP):
		v.fault = objects.ErrContentChanged.Error()
	default:
		v.fault = "unreadable: " + usergit.Reason(err)
	}
}

// readDir scans the names that need it.
func (v *visit) readDir() error {
	if err := v.s.begin("readdir", "", v.path); err != nil {
		return err
	}
	v.now = time.Now()
	st, err := fsys.Fstat(v.fd)
	if err != nil {
		return err
	}
	v.seen = tree.Sighting{Dir: fsys.Sight{Stamp: st, Racy: fsys.Racy(st, v.now)}}
	if v.prev != nil && (v.prev.Seen == nil || v.prev.Seen.Fault != "") {
		v.prev, v.same = nil, false
	}
	if v.prev != nil && v.prev.Seen.Dir.Sure(st) {
		// The names are unchanged. The rules' file may have changed.
		v.setRepository(v.s.repo.Nested[v.path] != nil)
		v.readRules(v.prev.Item(".gitignore") != nil || v.prev.Other(".gitignore") != nil)
		v.examineKnown()
		return nil
	}
	names, err := fsys.ReadNames(v.fd)
	if err != nil {
		return err
	}
	_, git := slices.BinarySearch(names, ".git")
	v.setRepository(git)
	_, has := slices.BinarySearch(names, ".gitignore")
	v.readRules(has)
	v.examineNames(names)
	return nil
}

func (v *visit) examineKnown() {
	n := v.prev
	for i := range n.Items {
		v.examine(n.Items[i].Name, i, nil)
	}
	for i := range n.Seen.Others {
		// Under the same rules an ignored name stays out; what could not be read, or was too large, may fit by now.
		if o := &n.Seen.Others[i]; !v.same || o.Why != "" || v.s.isSecret(o.Name) {
			v.examine(o.Name, -1, o)
		}
	}
}

func (v *visit) examineNames(names []string) {
	for _, name := range names {
		v.examineName(name)
	}
	if v.prev == nil {
		return
	}
	absent := func(name string) bool { _, there := slices.BinarySearch(names, name); return !there }
	for i := range v.prev.Items {
		if name := v.prev.Items[i].Name; absent(name) {
			v.putRemoved(name)
		}
	}
	for i := range v.prev.Seen.Others {
		if name := v.prev.Seen.Others[i].Name; absent(name) {
			v.putRemoved(name)
		}
	}
}

// examineName scans one name.
func (v *visit) examineName(name string) {
	at, o := -1, (*tree.Other)(nil)
	if v.prev != nil {
		if at = v.prev.Index(name); at < 0 {
			o = v.prev.Other(name)
		}
	}
	v.examine(name, at, o)
}

// nestedAt returns the repository whose top is a directory of the world. has reports whether a
// .git is there; changed, whether it came or went.
func (s *scanner) nestedAt(path string, has bool) (r *usergit.Repository, changed bool) {
	if known := s.repo.Nested[path]; has == (known != nil) {
		return known, false
	}
	if has {
		if r = usergit.ReadNested(filepath.Join(s.dir, path)); r == nil {
			return nil, false
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nested[path] = r
	return r, true
}

// setRepository sets the nearest repository, if the directory is the top of one.
func (v *visit) setRepository(has bool) {
	if v.up == nil {
		return // the world's root
	}
	was := v.s.repo.Nested[v.path] != nil || v.s.were[v.path] != nil
	r, changed := v.s.nestedAt(v.path, has)
	if v.isTop = was || r != nil; r != nil {
		v.nest, v.nestAt = r, v.path
	}
	if changed {
		v.same = false
	}
}

// tracks reports whether the user's index, or that of the nearest nested repository, lists a
// path.
func (v *visit) tracks(path string) bool {
	return v.s.repo.Tracked[path] || v.nest != nil && v.nest.Tracked[path[len(v.nestAt)+1:]]
}

// tracksBeneath reports whether such an index lists a path beneath.
func (v *visit) tracksBeneath(path string) bool {
	return v.s.repo.Above[path] || v.nest != nil && v.nest.Above[path[len(v.nestAt)+1:]]
}

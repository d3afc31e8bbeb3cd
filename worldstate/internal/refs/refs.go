package refs

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

const (
	// Latest is the branch HEAD names: the snapshot saved last, whatever
	// its world, so that plain `git log` shows something.
	Latest = "refs/heads/latest"
	// TaskPrefix holds refs/anamnesis/<task>/<step>.
	TaskPrefix = "refs/anamnesis/"
	// WorldPrefix holds one ref a world: the snapshot it was last known at.
	WorldPrefix = "refs/worlds/"
)

// IsOurs reports whether a ref is one that saves set: it names a snapshot.
func IsOurs(name string) bool {
	return name == Latest || IsStepRef(name) || strings.HasPrefix(name, WorldPrefix)
}

// Store is the refs of one store. Safe for no concurrent use.
type Store struct {
	Dir   string
	cache cache
}

// Begin makes the next look-up check whether refs have changed.
func (s *Store) Begin() { s.cache.checked = false }

func (s *Store) Close() { s.cache.forget() }

// cache is all refs as they were last read, and the files they were read
// from.
type cache struct {
	refs    *Set        // what holds; nil: nothing was read yet
	checked bool        // by the operation under way
	packed  fsys.Source // packed-refs
	log     fsys.Source // see refTail
	tail    refTail
	loose   looseRefs
}

// looseRefs are the refs in files of their own, and the directories they stand
// in: who sets one puts a new file there.
type looseRefs struct {
	byName map[string]looseRef
	dirs   []fsys.Source
}

// looseRef is a ref in a file of its own. value is zero for one that is no id:
// a symbolic ref, or what a power cut left.
type looseRef struct {
	file  fsys.Source
	value gitfmt.Hash
}

func (l looseRef) same(o looseRef) bool { return l.value == o.value }

func (s *Store) PackedPath() string { return filepath.Join(s.Dir, "packed-refs") }

// All gives all refs, as lookUpRefs does, in a map of the caller's.
func (s *Store) All() (map[string]gitfmt.Hash, error) {
	refs, err := s.Look()
	if err != nil {
		return nil, err
	}
	all, err := refs.all()
	if err != nil {
		s.cache.forget()
	}
	return all, err
}

// forget makes the next operation read everything anew.
func (c *cache) forget() {
	if c.refs != nil {
		c.refs.close()
		c.refs = nil
	}
}

// Look gives all refs: the packed ones, then what was set since they were
// packed, then loose ones made by git, which win as in git. The set is not to
// be changed, and holds until the next update. No other operation of the World
// runs.
func (s *Store) Look() (*Set, error) {
	c := &s.cache
	if c.refs != nil && (c.checked || c.log.Current() && c.packed.Current()) {
		same, err := s.sameLooseRefs()
		if err != nil {
			return nil, err
		}
		if same {
			c.checked = true
			return c.refs, nil
		}
		c.forget() // what differs was looked at, and will not be named again
	}
	// In this order: what an update folds away meanwhile is packed by the time
	// that is read.
	read := cache{checked: true, log: fsys.LookAt(s.LogPath())}
	var err error
	if read.tail, err = readRefLog(s.LogPath()); err != nil {
		return nil, err
	}
	if read.loose, err = s.readLooseRefs(nil); err != nil {
		return nil, err
	}
	read.packed = fsys.LookAt(s.PackedPath())
	if read.refs, err = readSet(s.PackedPath()); err != nil {
		return nil, err
	}
	if err := read.merge(); err != nil {
		read.forget()
		return nil, err
	}
	c.forget()
	s.cache = read
	return read.refs, nil
}

// merge puts what the log and the loose files say over the packed refs. Loose
// files are not synced one by one: one with an older value than the log's was
// left by a crash, and so was one that is not there. What packed-refs says is
// older than the log, but for a value the log does not know: see refTail.
func (c *cache) merge() error {
	byGit := make(map[string]gitfmt.Hash)
	for name, l := range c.loose.byName {
		was := c.tail.values[name]
		if l.value.IsZero() || slices.Contains(was, l.value) {
			continue
		}
		if len(was) > 0 {
			packed, err := c.refs.Get(name)
			if err != nil {
				return err
			}
			if l.value == packed {
				continue
			}
		}
		byGit[name] = l.value
	}
	for name, was := range c.tail.values {
		h, loose := was[len(was)-1], c.loose.byName[name].value
		if c.tail.based[name] && loose != h {
			packed, err := c.refs.packed.get(name)
			if err != nil {
				return err
			}
			switch known := slices.Contains(was, packed); {
			case !known && loose.IsZero():
				h = packed
			case !known:
				h = loose
			}
		}
		c.refs.set(name, h)
	}
	for name, h := range byGit {
		c.refs.set(name, h)
	}
	return nil
}

// sameLooseRefs reports whether the loose refs are still those in the cache.
func (s *Store) sameLooseRefs() (bool, error) {
	c := &s.cache
	moved := func(d fsys.Source) bool { return !d.Current() }
	if c.checked || !slices.ContainsFunc(c.loose.dirs, moved) {
		return true, nil
	}
	now, err := s.readLooseRefs(c.loose.byName)
	if err != nil || !maps.EqualFunc(now.byName, c.loose.byName, looseRef.same) {
		return false, err
	}
	c.loose = now
	return true, nil
}

// readLooseRefs reads the loose refs, but not again those whose files are as known.
func (s *Store) readLooseRefs(known map[string]looseRef) (looseRefs, error) {
	out := looseRefs{byName: make(map[string]looseRef, len(known))}
	err := filepath.WalkDir(filepath.Join(s.Dir, "refs"), func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			out.dirs = append(out.dirs, fsys.LookAt(path))
			return nil
		}
		if err != nil || !d.Type().IsRegular() {
			if errors.Is(err, os.ErrNotExist) {
				return nil // packed meanwhile
			}
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, s.Dir+string(filepath.Separator)))
		l, ok := known[name]
		now := fsys.LookAt(path)
		if ok && l.file.Same(now) {
			out.byName[name] = l
			return nil
		}
		h, err := readLooseRef(path)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		out.byName[name] = looseRef{now, h}
		return err
	})
	if err != nil {
		return looseRefs{}, fmt.Errorf("read refs: %w", err)
	}
	return out, nil
}

// readLooseRef gives what a loose ref's file says, zero where that is no id.
func readLooseRef(path string) (gitfmt.Hash, error) {
	data, err := os.ReadFile(path)
	h, _ := gitfmt.ParseHash(strings.TrimSpace(string(data)))
	return h, err
}

// HasTask reports whether a store holds snapshots of a task. It only reads.
func HasTask(store, task string) (bool, error) {
	s := &Store{Dir: store}
	defer s.Close()
	refs, err := s.All()
	if err != nil {
		return false, fmt.Errorf("look into %s: %w", store, err)
	}
	for name := range refs {
		if strings.HasPrefix(name, TaskPrefix+task+"/") {
			return true, nil
		}
	}
	return false, nil
}

// Update sets refs, all or none, durably; a zero id removes one. The
// store's lock is held. The log takes the update with one sync, loose files show
// it to git, and when they are many all refs are packed anew.
func (s *Store) Update(set map[string]gitfmt.Hash) error {
	refs, err := s.Look()
	if err != nil {
		return err
	}
	changed, removed := make(map[string]gitfmt.Hash), false
	for name, h := range set {
		was, err := refs.Get(name)
		if err != nil {
			s.cache.forget()
			return fmt.Errorf("update refs: %w", err)
		}
		if was != h {
			changed[name], removed = h, removed || h.IsZero()
		}
	}
	if len(changed) == 0 {
		return nil
	}
	c := &s.cache
	if err := s.appendRefLog(changed); err != nil {
		c.forget()
		return fmt.Errorf("update refs: %w", err)
	}
	for name, h := range changed {
		refs.set(name, h)
	}
	packed := false
	if removed || refs.due(c.tail.updates) || len(changed) > MaxRefUpdates {
		packed, err = s.packRefs(removed)
	}
	if err == nil && !packed {
		err = s.writeLooseRefs(changed)
	}
	if err != nil {
		c.forget()
		return fmt.Errorf("update refs: %w", err)
	}
	return nil
}

// packRefs writes all refs to one file and empties the log. The loose files go
// first, for good: without the log an older one would be believed. It does
// nothing while git packs them, or has since they were read: git would put the
// file in its place that it had read before. Nor where git has changed a loose
// one since, which would come back as it was. The log and the loose files hold
// what is new until the next time.
func (s *Store) packRefs(wait bool) (packed bool, err error) {
	release, locked, err := s.lockPackedRefs(wait)
	if err != nil || !locked {
		return false, err
	}
	defer release()
	c := &s.cache
	// Who packs puts another file in its place, so that its age does not matter.
	if now := fsys.LookAt(s.PackedPath()); !c.packed.Sight.SameContent(now.Sight.Stamp) {
		return false, nil
	}
	if now, err := s.readLooseRefs(nil); err != nil || !maps.EqualFunc(now.byName, c.loose.byName, looseRef.same) {
		c.forget() // as in lookUpRefs
		return false, err
	}
	refs, err := c.refs.pack(s.PackedPath())
	if err != nil {
		return false, err
	}
	return true, s.tookPacked(refs)
}

// tookPacked removes what refs were made of, which stand in packed-refs now, and
// takes in what git has set meanwhile.
func (s *Store) tookPacked(refs *Set) error {
	c := &s.cache
	c.forget()
	c.refs = refs
	if err := s.removeLooseRefs(); err != nil {
		return err
	}
	if err := s.emptyRefLog(); err != nil {
		return err
	}
	c.packed = fsys.Written(s.PackedPath())
	var err error
	if c.loose, err = s.readLooseRefs(nil); err != nil {
		return err
	}
	return c.merge()
}

// removeLooseRefs removes the files of refs that are packed, durably. Symbolic
// refs are not ours and stay, and so does what git has set meanwhile.
func (s *Store) removeLooseRefs() error {
	c := &s.cache
	dirs := make(map[string]bool)
	for name, l := range c.loose.byName {
		if _, logged := c.tail.values[name]; l.value.IsZero() && !logged {
			continue
		}
		path := filepath.Join(s.Dir, filepath.FromSlash(name))
		if now, err := readLooseRef(path); err == nil && now != l.value {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		dirs[filepath.Dir(path)] = true
	}
	tasks := filepath.Join(s.Dir, "refs", "anamnesis")
	for dir := range dirs {
		if err := fsys.SyncDir(dir); err != nil && !errors.Is(err, os.ErrNotExist) { // git removes what it emptied
			return err
		}
		if filepath.Dir(dir) == tasks {
			_ = os.Remove(dir) // it stays while it holds something
		}
	}
	return nil
}

// writeLooseRefs shows an update to git. The log holds it already. Refs of one
// value are names of one file, as making a file costs more than the rest, but for
// the steps': who writes into the file of a branch, or copies a store's backup
// over it, shall not say of a step what it does not mean.
func (s *Store) writeLooseRefs(set map[string]gitfmt.Hash) error {
	c := &s.cache.loose
	files := make(map[gitfmt.Hash]string, 1)
	for name, h := range set {
		path := filepath.Join(s.Dir, filepath.FromSlash(name))
		if h.IsZero() {
			if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			delete(c.byName, name)
			continue
		}
		same := files[h]
		if IsStepRef(name) {
			same = ""
		}
		err := s.putLooseRef(path, h, same)
		if errors.Is(err, os.ErrNotExist) {
			continue // git sees it when all refs are packed
		}
		if err != nil {
			return err
		}
		if !IsStepRef(name) {
			files[h] = path
		}
		c.byName[name] = looseRef{fsys.Written(path), h}
		in := func(d fsys.Source) bool { return d.Path == filepath.Dir(path) }
		if !slices.ContainsFunc(c.dirs, in) {
			c.dirs = append(c.dirs, fsys.Source{Path: filepath.Dir(path)})
		}
	}
	for name, h := range set { // a further name changes the marks of the file
		if l, ok := c.byName[name]; ok && l.value == h {
			c.byName[name] = looseRef{fsys.Written(l.file.Path), h}
		}
	}
	for i := range c.dirs {
		c.dirs[i] = fsys.LookAt(c.dirs[i].Path)
	}
	return nil
}

// putLooseRef puts a ref at path: as another name of the file same, where there
// is one and files can have two names, or in a new file.
func (s *Store) putLooseRef(path string, h gitfmt.Hash, same string) error {
	tmp := filepath.Join(s.Dir, fsys.StateDir, fsys.TempPrefix+"ref")
	if err := os.Remove(tmp); err != nil && !errors.Is(err, os.ErrNotExist) { // it may be a name of a ref's file
		return err
	}
	if same == "" || os.Link(same, tmp) != nil {
		if err := os.WriteFile(tmp, []byte(h.String()+"\n"), 0o600); err != nil {
			return err
		}
	}
	return fsys.MoveIntoDir(tmp, path)
}

// ValidPart reports whether a task or step may be part of a ref's name:
// letters, digits, dot, dash and underscore, not at either end a dot.
func ValidPart(s string) bool {
	if s == "" || len(s) > 200 || s[0] == '.' || strings.HasSuffix(s, ".") || strings.HasSuffix(s, ".lock") || strings.Contains(s, "..") {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_') {
			return false
		}
	}
	return true
}

// ErrUnknown: no snapshot, or more than one, has this name.
var ErrUnknown = errors.New("unknown snapshot")

// ErrBadName: a task or a step has a name that no ref can have.
var ErrBadName = errors.New("no usable name")

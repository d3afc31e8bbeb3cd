// Package refs reads and writes the refs of a store. An update rewrites packed-refs as a whole
// and renames it into place, under git's own lock. Refs that a user's git set in files of their
// own are read as git reads them.
package refs

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"anamnesis/opstream/durable"
	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

const (
	// Latest is the branch that HEAD names: the most recent snapshot of any world, so that
	// plain `git log` shows something.
	Latest = "refs/heads/latest"
	// TaskPrefix begins refs/anamnesis/<task>/<step>. A task has a ref for each of its
	// snapshots from which no later one was saved, not for every step.
	TaskPrefix = "refs/anamnesis/"
	// WorldPrefix begins one ref for each world: its last snapshot or restored target.
	WorldPrefix = "refs/worlds/"
)

// IsOurs reports whether saves set a ref of this name, so that it names a snapshot.
func IsOurs(name string) bool {
	return name == Latest || IsStep(name) || strings.HasPrefix(name, WorldPrefix)
}

// IsStep reports whether name is the ref of a step.
func IsStep(name string) bool { return strings.HasPrefix(name, TaskPrefix) }

// OfStep returns the ref of TASK@STEP.
func OfStep(step string) string { return TaskPrefix + strings.Replace(step, "@", "/", 1) }

// Step returns TASK@STEP for the ref of a step, otherwise "".
func Step(ref string) string {
	step, ok := strings.CutPrefix(ref, TaskPrefix)
	if !ok {
		return ""
	}
	return strings.Replace(step, "/", "@", 1)
}

// Store reads and writes the refs of one store. It is not safe for concurrent use.
type Store struct {
	Dir    string
	modern bool // the store has the present format
	cache  cache
}

// cache holds the refs as last read, and the files they were read from.
type cache struct {
	checked bool // by the current operation
	source  fsys.Source
	packed  map[string]gitfmt.Hash // packed-refs
	loose   map[string]gitfmt.Hash // refs in files of their own; zero if a file holds no id
	dirs    []fsys.Source          // the directories of loose, which change when a ref is set
	old     oldLog                 // of a store in an earlier format
	all     map[string]gitfmt.Hash // nil if nothing was read
}

func (s *Store) PackedPath() string { return filepath.Join(s.Dir, "packed-refs") }

// Begin makes the next lookup check whether refs have changed.
func (s *Store) Begin() { s.cache.checked = false }

// All returns all refs by name. The caller must not change the map.
func (s *Store) All() (map[string]gitfmt.Hash, error) {
	current, err := s.isCurrent()
	if err != nil {
		return nil, err
	}
	if !current {
		if err := s.read(); err != nil {
			s.cache = cache{}
			return nil, err
		}
	}
	s.cache.checked = true
	return s.cache.all, nil
}

// isCurrent reports whether a new read would return what the cache holds.
func (s *Store) isCurrent() (bool, error) {
	c := &s.cache
	if c.all == nil || c.checked {
		return c.all != nil, nil
	}
	if !s.modern && !c.old.source.Current() || !c.source.Current() {
		return false, nil
	}
	return s.looseUnchanged()
}

// read reads all refs. Packed-refs is read last, so that a ref that an update moves there
// meanwhile is not missed.
func (s *Store) read() error {
	format, err := fsys.ReadFormat(s.Dir)
	if err != nil {
		return err
	}
	var c cache
	if s.modern = format >= fsys.Format; !s.modern {
		if c.old, err = readOldLog(s.oldLogPath()); err != nil {
			return err
		}
	}
	if c.loose, c.dirs, err = s.readLoose(); err != nil {
		return err
	}
	c.source = fsys.StatSource(s.PackedPath())
	if c.packed, err = readPacked(s.PackedPath()); err != nil {
		return err
	}
	c.merge()
	s.cache = c
	return nil
}

// merge sets all from what was read. As in git, a loose ref wins over a packed one.
func (c *cache) merge() {
	c.all = maps.Clone(c.packed)
	for name, h := range c.loose {
		if !h.IsZero() {
			c.all[name] = h
		}
	}
	for name := range c.old.values {
		if h := c.old.resolve(name, c.packed[name], c.loose[name]); h.IsZero() {
			delete(c.all, name)
		} else {
			c.all[name] = h
		}
	}
}

// looseUnchanged reports whether the loose refs equal those in the cache.
func (s *Store) looseUnchanged() (bool, error) {
	c := &s.cache
	moved := func(d fsys.Source) bool { return !d.Current() }
	if !slices.ContainsFunc(c.dirs, moved) {
		return true, nil
	}
	now, dirs, err := s.readLoose()
	if err != nil || !maps.Equal(now, c.loose) {
		return false, err
	}
	c.dirs = dirs
	return true, nil
}

// readLoose reads the loose refs and lists their directories.
func (s *Store) readLoose() (refs map[string]gitfmt.Hash, dirs []fsys.Source, err error) {
	refs = make(map[string]gitfmt.Hash)
	err = filepath.WalkDir(filepath.Join(s.Dir, "refs"), func(path string, d os.DirEntry, err error) error {
		switch {
		case errors.Is(err, os.ErrNotExist):
			return nil // packed meanwhile
		case err != nil:
			return err
		case d.IsDir():
			dirs = append(dirs, fsys.StatSource(path))
		case d.Type().IsRegular():
			h, err := readLooseRef(path)
			if errors.Is(err, os.ErrNotExist) {
				return nil
			}
			refs[filepath.ToSlash(strings.TrimPrefix(path, s.Dir+string(filepath.Separator)))] = h
			return err
		}
		return nil
	})
	if err != nil {
		err = fmt.Errorf("read refs: %w", err)
	}
	return refs, dirs, err
}

// readLooseRef returns the id in a loose ref's file, zero if it holds none.
func readLooseRef(path string) (gitfmt.Hash, error) {
	data, err := os.ReadFile(path)
	h, _ := gitfmt.ParseHash(strings.TrimSpace(string(data)))
	return h, err
}

// HasTask reports whether a store holds snapshots of a task. It only reads.
func HasTask(store, task string) (bool, error) {
	all, err := (&Store{Dir: store}).All()
	if err != nil {
		return false, fmt.Errorf("read store %s: %w", store, err)
	}
	for name := range all {
		if strings.HasPrefix(name, TaskPrefix+task+"/") {
			return true, nil
		}
	}
	return false, nil
}

// updateTries bounds the attempts of an update while a user's git changes refs.
const updateTries = 16

// Update sets refs, all or none, durably; a zero id removes one. The caller holds the store's
// lock.
func (s *Store) Update(set map[string]gitfmt.Hash) error {
	err := s.update(set)
	if err != nil {
		s.cache = cache{}
		return fmt.Errorf("update refs: %w", err)
	}
	return nil
}

func (s *Store) update(set map[string]gitfmt.Hash) error {
	for range updateTries {
		all, err := s.All()
		if err != nil {
			return err
		}
		next, changed, loose := maps.Clone(s.cache.packed), false, !s.modern
		for name, h := range set {
			if all[name] == h {
				continue
			}
			_, file := s.cache.loose[name]
			changed, loose = true, loose || file
			if next[name] = h; h.IsZero() {
				delete(next, name)
			}
		}
		if !changed {
			return nil
		}
		if loose {
			if err := s.moveToPacked(set); err != nil {
				return err
			}
			continue
		}
		if done, err := s.write(next); done || err != nil {
			return err
		}
	}
	return errors.New("a git command keeps changing them; try again when it is done")
}

// moveToPacked moves refs from files of their own, or from an older store's log, to packed-refs:
// ours, and those to be set. Otherwise the files would win over packed-refs.
func (s *Store) moveToPacked(set map[string]gitfmt.Hash) error {
	moves := func(name string) bool {
		_, is := set[name]
		return is || IsOurs(name)
	}
	next := maps.Clone(s.cache.packed)
	for name, h := range s.cache.all {
		if moves(name) {
			next[name] = h
		}
	}
	for name := range s.cache.old.values {
		if s.cache.all[name].IsZero() {
			delete(next, name)
		}
	}
	loose, old := s.cache.loose, s.cache.old.values
	if done, err := s.write(next); !done || err != nil {
		return err
	}
	dirs := make(map[string]bool)
	for name, h := range loose {
		if _, logged := old[name]; !moves(name) || h.IsZero() && !logged {
			continue
		}
		path := filepath.Join(s.Dir, filepath.FromSlash(name))
		if now, err := readLooseRef(path); err == nil && now != h {
			continue // git has set it since
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		dirs[filepath.Dir(path)] = true
	}
	for dir := range dirs {
		if err := durable.Sync(dir); err != nil && !errors.Is(err, os.ErrNotExist) { // git removes empty directories
			return err
		}
		if filepath.Dir(dir) == filepath.Join(s.Dir, "refs", "anamnesis") {
			_ = os.Remove(dir) // fails if it is not empty
		}
	}
	s.cache = cache{}
	if s.modern {
		return nil
	}
	return s.UpgradeFormat()
}

// write replaces packed-refs. It does nothing if a user's git has changed refs since they were
// read.
func (s *Store) write(next map[string]gitfmt.Hash) (done bool, err error) {
	release, err := s.lockPacked()
	if err != nil {
		return false, err
	}
	defer release()
	s.Begin()
	if current, err := s.unpackedSince(); !current || err != nil {
		s.cache = cache{}
		return false, err
	}
	if err := fsys.WriteFileDurably(s.PackedPath(), encodePacked(next)); err != nil {
		return false, err
	}
	c := &s.cache
	c.packed, c.source, c.checked = next, fsys.Written(s.PackedPath()), true
	c.merge()
	return true, nil
}

// unpackedSince reports whether packed-refs and the loose refs are unchanged since they were
// read. Every program replaces packed-refs by another file, so a recent stamp is sure, too.
func (s *Store) unpackedSince() (bool, error) {
	if now := fsys.StatSource(s.PackedPath()); !s.cache.source.Sight.SameContent(now.Sight.Stamp) {
		return false, nil
	}
	return s.looseUnchanged()
}

const (
	// packedWait bounds the wait for a git command that changes packed-refs; packedTick is the
	// interval of the attempts.
	packedWait = 10 * time.Second
	packedTick = 20 * time.Millisecond
	// ourLock is the target of git's lock file of packed-refs while this program holds it. The
	// store's lock is held, so an existing link to it was left by a dead process.
	ourLock = "anamnesis"
)

// lockPacked takes git's lock of packed-refs. It is a symbolic link, so that the lock never
// exists without naming its owner.
func (s *Store) lockPacked() (release func(), err error) {
	path := s.PackedPath() + ".lock"
	for end := time.Now().Add(packedWait); ; time.Sleep(packedTick) {
		s.Sweep()
		err := os.Symlink(ourLock, path)
		switch {
		case err == nil:
			return func() { _ = os.Remove(path) }, nil
		case !errors.Is(err, os.ErrExist):
			return nil, fmt.Errorf("lock packed-refs: %w", err)
		case time.Now().After(end):
			return nil, fmt.Errorf("%w: a git command holds %s; if none is running, remove that file", fsys.ErrLocked, path)
		}
	}
}

// Sweep removes our lock of packed-refs that a killed process left. The caller holds the
// store's lock.
func (s *Store) Sweep() {
	path := s.PackedPath() + ".lock"
	if to, err := os.Readlink(path); err == nil && to == ourLock {
		_ = os.Remove(path)
	}
}

// ValidPart reports whether a task or step may be part of a ref's name: letters, digits, dot,
// dash and underscore, without a dot at either end.
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

// The errors of names; worldstate documents them.
var (
	ErrUnknown = errors.New("unknown snapshot")
	ErrBadName = errors.New("invalid name")
)

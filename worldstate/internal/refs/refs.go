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

// Store reads and writes the refs of one store.
type Store struct{ Dir string }

// content is what a store's files say of its refs.
type content struct {
	modern bool                   // the store has the present format
	packed map[string]gitfmt.Hash // packed-refs
	loose  map[string]gitfmt.Hash // refs in files of their own; zero if a file holds no id
	old    oldLog                 // of a store in an earlier format
}

func (s *Store) PackedPath() string { return filepath.Join(s.Dir, "packed-refs") }

// All returns all refs by name.
func (s *Store) All() (map[string]gitfmt.Hash, error) {
	c, err := s.read()
	if err != nil {
		return nil, err
	}
	return c.all(), nil
}

// read reads all refs. Packed-refs is read last, so that a ref that git moves there meanwhile is not
// missed.
func (s *Store) read() (*content, error) {
	format, err := fsys.ReadFormat(s.Dir)
	if err != nil {
		return nil, err
	}
	c := &content{modern: format >= fsys.Format}
	if !c.modern {
		if c.old, err = readOldLog(s.oldLogPath()); err != nil {
			return nil, err
		}
	}
	if c.loose, err = s.readLoose(); err != nil {
		return nil, err
	}
	if c.packed, err = readPacked(s.PackedPath()); err != nil {
		return nil, err
	}
	return c, nil
}

// all merges what was read. As in git, a loose ref wins over a packed one.
func (c *content) all() map[string]gitfmt.Hash {
	all := maps.Clone(c.packed)
	for name, h := range c.loose {
		if !h.IsZero() {
			all[name] = h
		}
	}
	for name := range c.old.values {
		if h := c.old.resolve(name, c.packed[name], c.loose[name]); h.IsZero() {
			delete(all, name)
		} else {
			all[name] = h
		}
	}
	return all
}

// holds reports whether an update would change nothing.
func (c *content) holds(set map[string]gitfmt.Hash) bool {
	all := c.all()
	for name, h := range set {
		if all[name] != h {
			return false
		}
	}
	return true
}

func (s *Store) readLoose() (map[string]gitfmt.Hash, error) {
	refs := make(map[string]gitfmt.Hash)
	err := filepath.WalkDir(filepath.Join(s.Dir, "refs"), func(path string, d os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil // packed meanwhile
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		h, err := readLooseRef(path)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		refs[filepath.ToSlash(strings.TrimPrefix(path, s.Dir+string(filepath.Separator)))] = h
		return err
	})
	if err != nil {
		err = fmt.Errorf("read refs: %w", err)
	}
	return refs, err
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

// Update sets refs, all or none, durably; a zero id removes one. The caller holds the store's
// lock.
func (s *Store) Update(set map[string]gitfmt.Hash) error {
	if err := s.update(set); err != nil {
		return fmt.Errorf("update refs: %w", err)
	}
	return nil
}

// update reads and replaces packed-refs under git's lock of it, so that nothing that git packs or
// removes meanwhile is lost. Refs in files of their own would win over it: ours, and those to be set,
// are moved there.
func (s *Store) update(set map[string]gitfmt.Hash) error {
	c, err := s.read()
	if err != nil || c.modern && c.holds(set) { // nothing is written where nothing changes
		return err
	}
	release, err := s.lockPacked()
	if err != nil {
		return err
	}
	defer release()
	if c, err = s.read(); err != nil {
		return err
	}
	all := c.all()
	moves := func(name string) bool {
		_, is := set[name]
		return is || IsOurs(name)
	}
	next := maps.Clone(c.packed)
	for name, h := range all {
		if moves(name) {
			next[name] = h
		}
	}
	for name := range c.old.values {
		if all[name].IsZero() {
			delete(next, name)
		}
	}
	for name, h := range set {
		if next[name] = h; h.IsZero() {
			delete(next, name)
		}
	}
	if err := fsys.WriteFileDurably(s.PackedPath(), encodePacked(next)); err != nil {
		return err
	}
	// Files of single refs go only now that packed-refs is durable: at no moment is a ref in neither.
	dirs := make(map[string]bool)
	for name, h := range c.loose {
		if _, logged := c.old.values[name]; !moves(name) || h.IsZero() && !logged {
			continue
		}
		path := filepath.Join(s.Dir, filepath.FromSlash(name))
		if _, is := set[name]; !is {
			if now, err := readLooseRef(path); err == nil && now != h {
				continue // git has set it since
			}
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
	if c.modern {
		return nil
	}
	return s.UpgradeFormat()
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
			return nil, fmt.Errorf("%w: a git command holds %s; remove that file if none is running",
				fsys.ErrLocked, path)
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
	dots := strings.HasPrefix(s, ".") || strings.HasSuffix(s, ".") || strings.Contains(s, "..")
	if s == "" || len(s) > 200 || dots || strings.HasSuffix(s, ".lock") {
		return false
	}
	return !strings.ContainsFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune(".-_", c)
	})
}

// The errors of names; worldstate documents them.
var (
	ErrUnknown = errors.New("unknown snapshot")
	ErrBadName = errors.New("invalid name")
)

package worldstate

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// latestRef is the branch HEAD names: the snapshot saved last, whatever
	// its world, so that plain `git log` shows something.
	latestRef = "refs/heads/latest"
	// taskRefs holds refs/anamnesis/<task>/<step>.
	taskRefs = "refs/anamnesis/"
	// worldRefs holds one ref a world: the snapshot it was last known at.
	worldRefs = "refs/worlds/"
)

// refCache is all refs as they were last read, and the files they were read
// from.
type refCache struct {
	refs    *refSet // what holds; nil: nothing was read yet
	checked bool    // nothing has changed since, as far as that is told
	packed  source  // packed-refs
	log     source  // see refTail
	tail    refTail
	loose   looseRefs
}

// looseRefs are the refs in files of their own, and the directories they stand
// in: who sets one puts a new file there.
type looseRefs struct {
	byName map[string]looseRef
	dirs   []source
}

// looseRef is a ref in a file of its own. value is zero for one that is no id:
// a symbolic ref, or what a power cut left.
type looseRef struct {
	file  source
	value hash
}

func (l looseRef) same(o looseRef) bool { return l.value == o.value }

func (s *objectStore) packedRefsPath() string { return filepath.Join(s.dir, "packed-refs") }

// readRefs gives all refs, as lookUpRefs does, in a map of the caller's.
func (s *objectStore) readRefs() (map[string]hash, error) {
	refs, err := s.lookUpRefs()
	if err != nil {
		return nil, err
	}
	out := make(map[string]hash, refs.n)
	maps.Insert(out, refs.all())
	return out, nil
}

// lookUpRefs gives all refs: the packed ones, then what was set since they were
// packed, then loose ones made by git, which win as in git. The set is not to
// be changed, and holds until the next update. No other operation of the World
// runs.
func (s *objectStore) lookUpRefs() (*refSet, error) {
	c := &s.refs
	if c.refs != nil && (c.checked || c.log.current() && c.packed.current()) {
		same, err := s.sameLooseRefs()
		if err != nil {
			return nil, err
		}
		if same {
			c.checked = true
			return c.refs, nil
		}
	}
	// In this order: what an update folds away meanwhile is packed by the time
	// that is read.
	read := refCache{checked: true, log: lookAt(s.refLogPath())}
	var err error
	if read.tail, err = readRefLog(s.refLogPath()); err != nil {
		return nil, err
	}
	if read.loose, err = s.readLooseRefs(nil); err != nil {
		return nil, err
	}
	read.packed = lookAt(s.packedRefsPath())
	if read.refs, err = readPackedRefs(s.packedRefsPath()); err != nil {
		return nil, err
	}
	read.merge()
	s.refs = read
	return read.refs, nil
}

// merge puts what the log and the loose files say over the packed refs. Loose
// files are not synced one by one: one with an older value than the log's was
// left by a crash.
func (c *refCache) merge() {
	byGit := make(map[string]hash)
	for name, l := range c.loose.byName {
		was := c.tail.values[name]
		if !l.value.isZero() && (len(was) == 0 || l.value != c.refs.get(name) && !slices.Contains(was, l.value)) {
			byGit[name] = l.value
		}
	}
	for name, was := range c.tail.values {
		c.refs.set(name, was[len(was)-1])
	}
	for name, h := range byGit {
		c.refs.set(name, h)
	}
}

func readPackedRefs(path string) (*refSet, error) {
	refs := new(refSet)
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("read refs: %w", err)
	}
	sc := bufio.NewScanner(bytes.NewReader(data))
	for sc.Scan() {
		line := sc.Text()
		if line == "" || line[0] == '#' || line[0] == '^' {
			continue
		}
		id, name, ok := strings.Cut(line, " ")
		h, good := parseHash(id)
		if !ok || !good || !strings.HasPrefix(name, "refs/") {
			return nil, fmt.Errorf("read refs: %w: bad line %q in packed-refs", ErrCorrupt, line)
		}
		refs.set(name, h)
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("read refs: %w: %w", ErrCorrupt, err)
	}
	return refs, nil
}

// sameLooseRefs reports whether the loose refs are still those in the cache.
func (s *objectStore) sameLooseRefs() (bool, error) {
	c := &s.refs
	moved := func(d source) bool { return !d.current() }
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

// readLooseRefs reads the loose refs; those that are as known ones were, not
// again.
func (s *objectStore) readLooseRefs(known map[string]looseRef) (looseRefs, error) {
	out := looseRefs{byName: make(map[string]looseRef, len(known))}
	err := filepath.WalkDir(filepath.Join(s.dir, "refs"), func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			s.told.watch(path)
			out.dirs = append(out.dirs, lookAt(path))
			return nil
		}
		if err != nil || !d.Type().IsRegular() {
			if errors.Is(err, os.ErrNotExist) {
				return nil // packed meanwhile
			}
			return err
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, s.dir+string(filepath.Separator)))
		now := lookAt(path)
		if l, ok := known[name]; ok && l.file.same(now) {
			out.byName[name] = l
			return nil
		}
		id, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		h, _ := parseHash(strings.TrimSpace(string(id)))
		out.byName[name] = looseRef{now, h}
		return nil
	})
	if err != nil {
		return looseRefs{}, fmt.Errorf("read refs: %w", err)
	}
	return out, nil
}

// HasTask reports whether a store holds snapshots of a task. It only reads.
func HasTask(store, task string) (bool, error) {
	refs, err := (&objectStore{dir: store}).readRefs()
	if err != nil {
		return false, fmt.Errorf("look into %s: %w", store, err)
	}
	for name := range refs {
		if strings.HasPrefix(name, taskRefs+task+"/") {
			return true, nil
		}
	}
	return false, nil
}

// updateRefs sets refs, all or none, durably; a zero id removes one. The
// store's lock is held. What it costs does not grow with the refs there are: the
// log takes the update with one sync, loose files show it to git, and every
// maxRefUpdates updates all refs are packed anew.
func (s *objectStore) updateRefs(set map[string]hash) error {
	refs, err := s.lookUpRefs()
	if err != nil {
		return err
	}
	changed, removed := make(map[string]hash), false
	for name, h := range set {
		if refs.get(name) != h {
			changed[name], removed = h, removed || h.isZero()
		}
	}
	if len(changed) == 0 {
		return nil
	}
	if err := s.change(); err != nil {
		return fmt.Errorf("update refs: %w", err)
	}
	c := &s.refs
	if err := s.appendRefLog(changed); err != nil {
		c.refs = nil
		return fmt.Errorf("update refs: %w", err)
	}
	for name, h := range changed {
		refs.set(name, h)
	}
	if removed || c.tail.updates >= maxRefUpdates || len(changed) > maxRefUpdates {
		err = s.packRefs()
	} else {
		err = s.writeLooseRefs(changed)
	}
	if err != nil {
		c.refs = nil
		return fmt.Errorf("update refs: %w", err)
	}
	return nil
}

// packRefs writes all refs to one file and empties the log. The loose files go
// first, for good: without the log an older one would be believed.
func (s *objectStore) packRefs() error {
	c := &s.refs
	text := []byte("# pack-refs with: peeled fully-peeled sorted \n")
	text = c.refs.appendSorted(text)
	if err := writeFileDurably(s.packedRefsPath(), text); err != nil {
		return err
	}
	if err := s.removeLooseRefs(); err != nil {
		return err
	}
	if err := s.emptyRefLog(); err != nil {
		return err
	}
	c.packed = written(s.packedRefsPath())
	var err error
	c.loose, err = s.readLooseRefs(nil)
	return err
}

// removeLooseRefs removes the files of refs that are packed, durably. Symbolic
// refs are not ours and stay.
func (s *objectStore) removeLooseRefs() error {
	c := &s.refs
	dirs := make(map[string]bool)
	for name, l := range c.loose.byName {
		if _, logged := c.tail.values[name]; l.value.isZero() && !logged {
			continue
		}
		path := filepath.Join(s.dir, filepath.FromSlash(name))
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		dirs[filepath.Dir(path)] = true
	}
	tasks := filepath.Join(s.dir, "refs", "anamnesis")
	for dir := range dirs {
		if err := syncDir(dir); err != nil {
			return err
		}
		if filepath.Dir(dir) == tasks {
			_ = os.Remove(dir) // it stays while it holds something
		}
	}
	return nil
}

// writeLooseRefs shows an update to git. The log holds it already.
func (s *objectStore) writeLooseRefs(set map[string]hash) error {
	c := &s.refs.loose
	tmp := filepath.Join(s.dir, stateDir, tempPrefix+"ref")
	for name, h := range set {
		path := filepath.Join(s.dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(tmp, []byte(h.String()+"\n"), 0o600); err != nil {
			return err
		}
		if err := os.Rename(tmp, path); err != nil {
			return err
		}
		c.byName[name] = looseRef{written(path), h}
		in := func(d source) bool { return d.path == filepath.Dir(path) }
		if !slices.ContainsFunc(c.dirs, in) {
			c.dirs = append(c.dirs, source{path: filepath.Dir(path)})
		}
	}
	for i := range c.dirs {
		c.dirs[i] = lookAt(c.dirs[i].path)
	}
	return nil
}

// written looks at a file this process has just put in its place, under the
// store's lock: the next to change it puts another there.
func written(path string) source {
	s := lookAt(path)
	s.sight.racy = false
	return s
}

// validRefPart reports whether a task or step may be part of a ref's name:
// letters, digits, dot, dash and underscore, not at either end a dot.
func validRefPart(s string) bool {
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

package worldstate

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sort"
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

// refCache is all refs as they were last read, and the files and directories
// they were read from.
type refCache struct {
	refs    map[string]hash
	from    []source
	checked bool // within this operation
}

func (c *refCache) current() bool {
	if len(c.from) == 0 {
		return false
	}
	for i := range c.from {
		if !c.from[i].current() {
			return false
		}
	}
	return c.refs != nil
}

// readRefs gives all refs; a loose one (made by git) wins over a packed one,
// as in git. The map is not to be changed. No other operation of the World
// runs.
func (s *objectStore) readRefs() (map[string]hash, error) {
	if s.refs.current() {
		return s.refs.refs, nil
	}
	var from []source
	refs := make(map[string]hash)
	from = append(from, lookAt(filepath.Join(s.dir, "packed-refs")))
	data, err := os.ReadFile(filepath.Join(s.dir, "packed-refs"))
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
		refs[name] = h
	}
	if err := sc.Err(); err != nil {
		return nil, fmt.Errorf("read refs: %w: %w", ErrCorrupt, err)
	}
	err = filepath.WalkDir(filepath.Join(s.dir, "refs"), func(path string, d os.DirEntry, err error) error {
		from = append(from, lookAt(path))
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		id, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(s.dir, path)
		if err != nil {
			return err
		}
		if h, ok := parseHash(strings.TrimSpace(string(id))); ok {
			refs[filepath.ToSlash(rel)] = h
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read refs: %w", err)
	}
	s.refs = refCache{refs, from, true}
	return refs, nil
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
// store's lock is held.
func (s *objectStore) updateRefs(set map[string]hash) error {
	refs, err := s.readRefs()
	if err != nil {
		return err
	}
	changed := false
	refs = maps.Clone(refs)
	for name, h := range set {
		changed = changed || refs[name] != h
		if refs[name] = h; h.isZero() {
			delete(refs, name)
		}
	}
	if !changed {
		return nil
	}
	names := make([]string, 0, len(refs))
	for name := range refs {
		names = append(names, name)
	}
	sort.Strings(names)
	text := []byte("# pack-refs with: peeled fully-peeled sorted \n")
	for _, name := range names { // thousands in a long task, written for every save
		h := refs[name]
		text = hex.AppendEncode(text, h[:])
		text = append(append(append(text, ' '), name...), '\n')
	}
	if err := writeFileDurably(filepath.Join(s.dir, "packed-refs"), text); err != nil {
		return fmt.Errorf("update refs: %w", err)
	}
	for name := range set { // a loose one would hide what was just set
		if err := os.Remove(filepath.Join(s.dir, filepath.FromSlash(name))); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("update refs: %w", err)
		}
	}
	s.refs = refCache{refs: refs, checked: true}
	return nil
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

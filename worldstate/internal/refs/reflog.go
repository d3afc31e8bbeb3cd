package refs

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

// MaxRefUpdates is how many updates of refs the log takes at least before all
// refs are packed; see [refSet.due].
const MaxRefUpdates = 32

// refTail is what the ref log says: the updates since the refs were packed. It is
// one line an update, `CRC NAME ID …`, each synced before it is shown anywhere,
// a zero ID for a ref that was removed. Its values are older than those git sets
// itself. Before what a ref is set to a line names what it was and what stands in
// packed-refs of it, where no line before has: what stands there and the log does
// not know, a user's git has packed, or removed where that is nothing.
type refTail struct {
	size    int64                    // bytes of whole lines
	torn    bool                     // more follow: an update that a crash cut short, and nobody was told of
	updates int                      // lines
	values  map[string][]gitfmt.Hash // by name, oldest first; never empty
	based   map[string]bool          // names of which the log knows what stood in packed-refs
}

// refValue is one word pair of a line of the log.
type refValue struct {
	name  string
	value gitfmt.Hash
}

func (s *Store) LogPath() string { return filepath.Join(s.Dir, fsys.StateDir, "refs.log") }

// add books one update.
func (t *refTail) add(line []refValue) {
	if t.values == nil {
		t.values, t.based = make(map[string][]gitfmt.Hash), make(map[string]bool)
	}
	for i, v := range line {
		t.values[v.name] = append(t.values[v.name], v.value)
		if i > 0 && line[i-1].name == v.name {
			t.based[v.name] = true
		}
	}
	t.updates++
}

// line gives what the log is to take of an update.
func (c *cache) line(set map[string]gitfmt.Hash) ([]refValue, error) {
	var line []refValue
	for _, name := range slices.Sorted(maps.Keys(set)) {
		packed, err := c.refs.packed.get(name)
		if err != nil {
			return nil, err
		}
		now, err := c.refs.Get(name)
		if err != nil {
			return nil, err
		}
		known := c.tail.values[name]
		for _, h := range []gitfmt.Hash{packed, now} {
			if !slices.Contains(known, h) {
				line = append(line, refValue{name, h})
				known = append(known[:len(known):len(known)], h)
			}
		}
		line = append(line, refValue{name, set[name]})
	}
	return line, nil
}

// readRefLog reads the log. A last line that is not whole is left out.
func readRefLog(path string) (refTail, error) {
	var t refTail
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return t, fmt.Errorf("read refs: %w", err)
	}
	for int(t.size) < len(data) {
		line, _, whole := bytes.Cut(data[t.size:], []byte{'\n'})
		set, ok := parseRefLine(string(line))
		if !whole || !ok {
			if whole && int(t.size)+len(line)+1 < len(data) {
				return t, fmt.Errorf("read refs: %w: bad line %q in %s", gitfmt.ErrCorrupt, line, filepath.Base(path))
			}
			t.torn = true
			break
		}
		t.add(set)
		t.size += int64(len(line)) + 1
	}
	return t, nil
}

func parseRefLine(line string) ([]refValue, bool) {
	crc, rest, _ := strings.Cut(line, " ")
	if crc != refLineCRC(rest) {
		return nil, false
	}
	words := strings.Fields(rest)
	set := make([]refValue, 0, len(words)/2)
	for i := 0; i+1 < len(words); i += 2 {
		h, ok := gitfmt.ParseHash(words[i+1])
		if !ok || !strings.HasPrefix(words[i], "refs/") {
			return nil, false
		}
		set = append(set, refValue{words[i], h})
	}
	return set, len(words) > 0 && len(words)%2 == 0
}

func refLineCRC(rest string) string {
	return fmt.Sprintf("%08x", crc32.Checksum([]byte(rest), crc32.MakeTable(crc32.Castagnoli)))
}

// appendRefLog makes an update durable.
func (s *Store) appendRefLog(set map[string]gitfmt.Hash) error {
	c := &s.cache
	values, err := c.line(set)
	if err != nil {
		return err
	}
	var words []string
	for _, v := range values {
		words = append(words, v.name, v.value.String())
	}
	rest := strings.Join(words, " ")
	line := refLineCRC(rest) + " " + rest + "\n"
	fresh := c.log.Sight.Stamp.Ino == 0
	f, err := os.OpenFile(s.LogPath(), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if c.tail.torn {
		if err := f.Truncate(c.tail.size); err != nil {
			return err
		}
	}
	if _, err := f.WriteAt([]byte(line), c.tail.size); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		_ = f.Truncate(c.tail.size) // nobody is told of it, so it shall not come to pass
		return fmt.Errorf("sync %s: %w", s.LogPath(), err)
	}
	if fresh {
		if err := fsys.SyncDir(filepath.Join(s.Dir, fsys.StateDir)); err != nil {
			return err
		}
	}
	c.tail.add(values)
	c.tail.size, c.tail.torn = c.tail.size+int64(len(line)), false
	c.log = fsys.Written(s.LogPath())
	return nil
}

// emptyRefLog takes everything out of the log: the refs are packed.
func (s *Store) emptyRefLog() error {
	if err := os.Truncate(s.LogPath(), 0); err != nil {
		return err
	}
	s.cache.tail = refTail{}
	s.cache.log = fsys.Written(s.LogPath())
	return nil
}

const (
	// packedRefsWait bounds the wait for a git command that packs refs, and
	// packedRefsTick is how often it is looked for.
	packedRefsWait = 2 * time.Second
	packedRefsTick = 20 * time.Millisecond
	// ourLock is what stands in git's lock of packed-refs where it is ours; git's
	// own is empty. The store's lock is held, so whoever left ours there is dead.
	ourLock = "anamnesis\n"
)

// lockPackedRefs takes git's lock of packed-refs. locked is false while git has
// it, for longer than is waited where wait is set. Any other cause, a full disk for
// instance, is the error.
func (s *Store) lockPackedRefs(wait bool) (release func(), locked bool, err error) {
	path, ours := s.PackedPath()+".lock", filepath.Join(s.Dir, fsys.StateDir, fsys.TempPrefix+"lock")
	if err := os.WriteFile(ours, []byte(ourLock), 0o600); err != nil {
		return nil, false, err
	}
	defer os.Remove(ours) // the next operation sweeps it, too
	tick := time.NewTicker(packedRefsTick)
	defer tick.Stop()
	for end := time.Now().Add(packedRefsWait); ; <-tick.C {
		err := fsys.LinkOrCopy(ours, path)
		if err == nil {
			return func() { _ = os.Remove(path) }, true, nil
		}
		if !errors.Is(err, os.ErrExist) {
			return nil, false, fmt.Errorf("lock packed-refs: %w", err)
		}
		if dropped, err := s.dropDeadRefsLock(); err != nil {
			return nil, false, fmt.Errorf("lock packed-refs: %w", err)
		} else if dropped {
			continue
		}
		if !wait || time.Now().After(end) {
			return nil, false, nil
		}
	}
}

// Sweep removes what a killed process left. The store's lock is held.
func (s *Store) Sweep() { _, _ = s.dropDeadRefsLock() }

// dropDeadRefsLock removes git's lock of packed-refs where a killed process of
// ours has left it: git removes no ref while it stands. One that we may not read
// is git's.
func (s *Store) dropDeadRefsLock() (dropped bool, err error) {
	path := s.PackedPath() + ".lock"
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission):
		return false, nil
	case err != nil:
		return false, err
	case string(data) != ourLock:
		return false, nil
	}
	return true, os.Remove(path)
}

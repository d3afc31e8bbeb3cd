package refs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

// Before format 3, saves wrote refs to files of their own, not synced, and to a log
// over packed-refs, synced: one line an update, `CRC NAME ID NAME ID …`, a zero ID for
// a ref that was removed. Before what a ref is set to, a line may name what it was.

// oldLog is what the log of an older store says.
type oldLog struct {
	source fsys.Source
	values map[string][]gitfmt.Hash // by name, oldest first; never empty
	based  map[string]bool          // names of which the log holds what packed-refs held
}

func (s *Store) oldLogPath() string { return filepath.Join(s.Dir, fsys.StateDir, "refs.log") }

// notice is what the log holds in the present format: no line of a log, so that
// programs that read no later format than 2 refuse the store and print it.
const notice = "This store has format 3. Use a newer version of anamnesis.\n\n"

// Raise makes the store one of the present format. Its refs are in packed-refs.
func (s *Store) Raise() error {
	if err := fsys.WriteFileDurably(s.oldLogPath(), []byte(notice)); err != nil {
		return err
	}
	return fsys.WriteFormat(s.Dir, fsys.Format)
}

// readOldLog reads the log. A last line that is not whole is an update that a crash
// cut short.
func readOldLog(path string) (oldLog, error) {
	l := oldLog{source: fsys.LookAt(path), values: make(map[string][]gitfmt.Hash), based: make(map[string]bool)}
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return l, fmt.Errorf("read refs: %w", err)
	}
	for len(data) > 0 && string(data) != notice {
		line, rest, whole := bytes.Cut(data, []byte{'\n'})
		if !whole || !l.add(string(line)) {
			if whole && len(rest) > 0 {
				return l, fmt.Errorf("read refs: %w: bad line %q in %s", gitfmt.ErrCorrupt, line, filepath.Base(path))
			}
			break
		}
		data = rest
	}
	return l, nil
}

// add takes one line, and reports whether it is one.
func (l *oldLog) add(line string) bool {
	sum, rest, _ := strings.Cut(line, " ")
	words := strings.Fields(rest)
	if sum != fmt.Sprintf("%08x", crc32.Checksum([]byte(rest), crc32.MakeTable(crc32.Castagnoli))) || len(words) == 0 || len(words)%2 != 0 {
		return false
	}
	for i := 0; i < len(words); i += 2 {
		h, ok := gitfmt.ParseHash(words[i+1])
		if !ok || !strings.HasPrefix(words[i], "refs/") {
			return false
		}
		l.values[words[i]] = append(l.values[words[i]], h)
		l.based[words[i]] = l.based[words[i]] || i >= 2 && words[i-2] == words[i]
	}
	return true
}

// resolve returns what holds of a ref in the log. A value that the log does not know
// was set by a user's git and wins; any other is older than the log's last.
func (l *oldLog) resolve(name string, packed, loose gitfmt.Hash) gitfmt.Hash {
	was := l.values[name]
	last := was[len(was)-1]
	switch {
	case !loose.IsZero() && !slices.Contains(was, loose) && loose != packed:
		return loose
	case l.based[name] && loose != last && !slices.Contains(was, packed):
		return cmp.Or(loose, packed)
	}
	return last
}

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

// Before format 3, saves wrote refs to files of their own, not synced, and to a log over
// packed-refs, synced. Each line of the log is one update: `CRC NAME ID NAME ID …`, with a zero
// ID for a removed ref. A line may name a ref twice: its previous value, then its new one.

// oldLog is the decoded log of an older store.
type oldLog struct {
	values map[string][]gitfmt.Hash // by name, oldest first; never empty
	based  map[string]bool          // names whose previous value, from packed-refs, is in the log
}

func (s *Store) oldLogPath() string { return filepath.Join(s.Dir, fsys.StateDir, "refs.log") }

// notice is the log's content in the present format. It is not a valid line, so that programs
// that read formats up to 2 refuse the store and print it.
const notice = "This store has format 3. Use a newer version of anamnesis.\n\n"

// UpgradeFormat sets the store's format to the present one. Its refs are in packed-refs.
func (s *Store) UpgradeFormat() error {
	// The notice comes first: until the format follows, earlier programs refuse the store already, and this one reads
	// the notice as an empty log and upgrades again.
	if err := fsys.WriteFileDurably(s.oldLogPath(), []byte(notice)); err != nil {
		return err
	}
	return fsys.WriteFormat(s.Dir, fsys.Format)
}

// readOldLog reads the log. An incomplete last line is an update that a crash cut short.
func readOldLog(path string) (oldLog, error) {
	l := oldLog{values: make(map[string][]gitfmt.Hash), based: make(map[string]bool)}
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

// add adds one line, and reports whether it is valid.
func (l *oldLog) add(line string) bool {
	sum, rest, _ := strings.Cut(line, " ")
	words := strings.Fields(rest)
	want := crc32.Checksum([]byte(rest), crc32.MakeTable(crc32.Castagnoli))
	if sum != fmt.Sprintf("%08x", want) || len(words) == 0 || len(words)%2 != 0 {
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

// resolve returns the value of a ref that the log names. A value that the log lacks was set by
// a user's git and wins. Any other value is older than the log's last.
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

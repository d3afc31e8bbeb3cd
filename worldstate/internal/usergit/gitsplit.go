package usergit

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

// A split index holds what changed since another one, the shared index beside
// it: the extension "link" names that and says, by position, which of its entries
// are gone (gitformat-index describes it).

// TrackedPaths lists what an index tracks, which is at path; split or whole.
// look is called with every other file that decides it.
func TrackedPaths(path string, data []byte, look func(string)) ([]string, error) {
	own, link, err := gitfmt.ParseIndex(data)
	if err != nil {
		return nil, err
	}
	var out []string
	add := func(e *gitfmt.IndexEntry) {
		if e.Path != "" { // one that takes a shared entry's place has no name
			out = append(out, e.Path)
		}
	}
	for i := range own {
		add(&own[i])
	}
	if link == nil || len(link) >= len(gitfmt.Hash{}) && gitfmt.Hash(link[:len(gitfmt.Hash{})]).IsZero() {
		return out, nil
	}
	if len(link) < len(gitfmt.Hash{}) {
		return nil, fmt.Errorf("%w: its link is cut short", gitfmt.ErrIndex)
	}
	at := filepath.Join(filepath.Dir(path), "sharedindex."+hex.EncodeToString(link[:len(gitfmt.Hash{})]))
	look(at)
	if data, err = os.ReadFile(at); err != nil {
		return nil, err
	}
	shared, more, err := gitfmt.ParseIndex(data)
	if err != nil || more != nil {
		return nil, fmt.Errorf("%w: its shared index", gitfmt.ErrIndex)
	}
	gone, ok := gitfmt.EwahBits(link[len(gitfmt.Hash{}):], len(shared))
	if !ok {
		return nil, fmt.Errorf("%w: its link", gitfmt.ErrIndex)
	}
	for i := range shared {
		if !gone[i] {
			add(&shared[i])
		}
	}
	return out, nil
}

// indexMatches reports whether a file is as it was when git read it. written is
// when the index was: a change in the same tick or later shows in no stamp, and
// git itself would read the file again.
func indexMatches(e *gitfmt.IndexEntry, st fsys.Stamp, written time.Time) bool {
	mtime := time.Unix(int64(e.MtimeSec), int64(e.MtimeNsec))
	return e.Stage == 0 && !e.AssumeValid && !e.SkipTree && !e.IntentToAdd && st.IsRegular() &&
		e.Mode&^0o777 == 0o100000 && (e.MtimeNsec != 0 || e.CtimeNsec != 0) && mtime.Before(written) &&
		uint32(st.Size) == e.Size && uint32(st.Ino) == e.Ino &&
		st.Mtime == mtime.UnixNano() && st.Ctime == time.Unix(int64(e.CtimeSec), int64(e.CtimeNsec)).UnixNano()
}

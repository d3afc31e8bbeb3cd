package diff

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
)

const (
	// similarPercent is the share of bytes that two files must have in common to
	// count as a rename; it is git's default.
	similarPercent = 50
	// renameCandidates bounds the files on each side that are compared by content, like git's
	// diff.renameLimit.
	renameCandidates = 1000
	// maxSimilarBytes: a larger file is matched only by its hash.
	maxSimilarBytes = 8 << 20
	// chunkBytes is the longest part of a line that is compared as a whole.
	chunkBytes = 64
	// fullPercent is the similarity of an unchanged file.
	fullPercent = 100
)

// Renames pairs deletions with additions that share at least half of their bytes.
func Renames(ctx context.Context, s *objects.Store, changes []Change) ([]Change, error) {
	m := &renameMatcher{
		changes: changes, seed: maphash.MakeSeed(),
		from: map[int]int{}, taken: map[int]bool{}, score: map[int]int{},
	}
	m.exact()
	if err := m.similar(ctx, s); err != nil {
		return nil, fmt.Errorf("find renames: %w", err)
	}
	return m.merged(), nil
}

// renameMatcher pairs deletions with additions; both are indexes of changes.
//
// go-git's DetectRenames (v5.19) is not used: it drops an added file from the changes if two
// files with its content were deleted and no name is like its own, it pairs no executable that
// was also edited and no file whose mode changed, and its result varies between runs if scores
// are equal.
type renameMatcher struct {
	changes []Change
	from    map[int]int // addition → deletion
	taken   map[int]bool
	score   map[int]int // of an addition, in percent
	seed    maphash.Seed
}

func (m *renameMatcher) pair(deleted, added, score int) {
	m.from[added], m.taken[deleted], m.score[added] = deleted, true, score
}

// side returns the deleted or added file of a change, nil for a directory.
func (m *renameMatcher) side(i int) *Side {
	c := m.changes[i]
	s := c.New
	if c.Kind == Deleted {
		s = c.Old
	}
	if s.Blob == "" {
		return nil
	}
	return s
}

// exact pairs equal contents, those with the same last name first.
func (m *renameMatcher) exact() {
	gone := make(map[string][]int)
	for i, c := range m.changes {
		if s := m.side(i); c.Kind == Deleted && s != nil {
			gone[s.Type+s.Blob] = append(gone[s.Type+s.Blob], i)
		}
	}
	for _, sameName := range []bool{true, false} {
		for i, c := range m.changes {
			s := m.side(i)
			if _, paired := m.from[i]; c.Kind != Added || s == nil || paired {
				continue
			}
			for _, d := range gone[s.Type+s.Blob] {
				if !m.taken[d] && (!sameName || fsys.Base(m.changes[d].Path) == fsys.Base(c.Path)) {
					m.pair(d, i, fullPercent)
					break
				}
			}
		}
	}
}

// profile counts a file's bytes by chunk.
type profile struct {
	chunks map[uint64]int64
	size   int64
}

// similar pairs the remaining files by content.
func (m *renameMatcher) similar(ctx context.Context, s *objects.Store) error {
	deleted, err := m.profiles(ctx, s, Deleted)
	if err != nil {
		return err
	}
	added, err := m.profiles(ctx, s, Added)
	if err != nil {
		return err
	}
	type match struct{ deleted, added, score, sameName int }
	var found []match
	for a, pa := range added {
		if err := ctx.Err(); err != nil {
			return err
		}
		for d, pd := range deleted {
			if score := pd.similarity(pa); score >= similarPercent {
				f := match{deleted: d, added: a, score: score}
				if fsys.Base(m.changes[d].Path) == fsys.Base(m.changes[a].Path) {
					f.sameName = 1
				}
				found = append(found, f)
			}
		}
	}
	// The order of the maps must not show in the result.
	slices.SortFunc(found, func(x, y match) int {
		return cmp.Or(y.score-x.score, y.sameName-x.sameName, x.added-y.added, x.deleted-y.deleted)
	})
	for _, f := range found {
		if _, paired := m.from[f.added]; !paired && !m.taken[f.deleted] {
			m.pair(f.deleted, f.added, f.score)
		}
	}
	return nil
}

// profiles reads the unpaired files of one side.
func (m *renameMatcher) profiles(ctx context.Context, s *objects.Store, side ChangeKind) (map[int]profile, error) {
	out := make(map[int]profile)
	for i, c := range m.changes {
		file := m.side(i)
		_, paired := m.from[i]
		if c.Kind != side || file == nil || file.Type != "file" || paired || m.taken[i] {
			continue
		}
		if len(out) == renameCandidates {
			break
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		h, _ := gitfmt.ParseHash(file.Blob)
		data, err := s.ReadUpTo(h, gitfmt.BlobObject, c.Path, maxSimilarBytes)
		if errors.Is(err, objects.ErrTooLarge) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out[i] = newProfile(m.seed, data)
	}
	return out, nil
}

func newProfile(seed maphash.Seed, data []byte) profile {
	p := profile{chunks: make(map[uint64]int64), size: int64(len(data))}
	for len(data) > 0 {
		n := min(len(data), chunkBytes)
		if i := bytes.IndexByte(data[:n], '\n'); i >= 0 {
			n = i + 1
		}
		p.chunks[maphash.Bytes(seed, data[:n])] += int64(n)
		data = data[n:]
	}
	return p
}

// similarity returns the share of the larger file that both have in common, in percent; 0 if
// the sizes alone exclude a rename.
func (p profile) similarity(o profile) int {
	larger := max(p.size, o.size)
	if min(p.size, o.size)*fullPercent < larger*similarPercent {
		return 0
	}
	shared := int64(0)
	for chunk, n := range p.chunks {
		shared += min(n, o.chunks[chunk])
	}
	return int(shared * fullPercent / larger)
}

// merged returns the changes with each pair as one.
func (m *renameMatcher) merged() []Change {
	out := make([]Change, 0, len(m.changes))
	for i, c := range m.changes {
		if d, ok := m.from[i]; ok {
			c.Kind, c.From, c.Old, c.Similarity = Renamed, m.changes[d].Path, m.changes[d].Old, m.score[i]
			c.Secret = c.Secret || m.changes[d].Secret
		}
		if !m.taken[i] {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return out
}

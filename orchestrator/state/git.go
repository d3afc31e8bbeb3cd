package state

import (
	"maps"
	"slices"

	"anamnesis/opstream/op"
)

// Git is what was last recorded of a git repository of the user's.
type Git struct {
	op.GitAt
	Refs map[string]string // commits of branches, tags and the stash
	Seen []uint64          // its operations
}

// ChangesTo returns the operation by which a state of the repository becomes another; nil if it is equal.
func (g Git) ChangesTo(dir string, now Git) *op.GitSeen {
	b := &op.GitSeen{Dir: dir, GitAt: now.GitAt}
	all := maps.Clone(now.Refs)
	maps.Copy(all, g.Refs)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if was, is := g.Refs[name], now.Refs[name]; was != is {
			b.Refs = append(b.Refs, op.GitRef{Name: name, Old: was, New: is})
		}
	}
	if g.GitAt == now.GitAt && len(b.Refs) == 0 && len(g.Seen) > 0 {
		return nil
	}
	return b
}

func (s *State) gitSeen(seq uint64, b *op.GitSeen) {
	g := s.Git[b.Dir]
	g.GitAt, g.Seen = b.GitAt, append(g.Seen, seq)
	for _, r := range b.Refs {
		if g.Refs = put(g.Refs, r.Name, r.New); r.New == "" {
			delete(g.Refs, r.Name)
		}
	}
	s.Git = put(s.Git, b.Dir, g)
}

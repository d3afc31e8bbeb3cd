package gc

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/history"
	"anamnesis/worldstate/internal/refs"
)

// blame adds to an error that ends a collection which ref leads to the object, and
// what helps.
func (g *collector) blame(err error) error {
	var m *gitfmt.MissingObjectError
	if !errors.As(err, &m) || fsys.Exhausted(m.Err) {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(g.refs)) {
		of, _, terr := history.FollowTags(g.s, g.refs[name], name)
		var t *gitfmt.MissingObjectError
		switch leads := of.String() == m.Object || errors.As(terr, &t) && t.Object == m.Object; {
		case leads && refs.IsOurs(name):
			return fmt.Errorf("%w; %s names it; only a backup of %s can bring it back, and nothing is collected until then", err, name, g.s.Dir)
		case leads:
			return history.BrokenRef(g.s, name, err)
		}
	}
	return fmt.Errorf("%w; 'anamnesis world verify' names all that is damaged", err)
}

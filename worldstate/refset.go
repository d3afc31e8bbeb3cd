package worldstate

import (
	"maps"

	"anamnesis/worldstate/internal/gitfmt"
)

// refSet is refs by name: those that stand in packed-refs, and over them what
// memory holds. Safe for no concurrent use.
type refSet struct {
	packed *packedRefs
	over   map[string]gitfmt.Hash // what was set since, a zero id for what was removed; and all that are no step's
}

// readRefSet reads what stands in packed-refs.
func readRefSet(path string) (*refSet, error) {
	packed, held, err := readPackedRefs(path)
	if err != nil {
		return nil, err
	}
	return &refSet{packed, held}, nil
}

// get gives the id of a name, zero where there is none. Where packed-refs cannot
// be read, or is not what it was, that is the error.
func (s *refSet) get(name string) (gitfmt.Hash, error) {
	if h, ok := s.over[name]; ok || !isStepRef(name) {
		return h, nil
	}
	return s.packed.get(name)
}

// set changes one ref; a zero id removes it.
func (s *refSet) set(name string, h gitfmt.Hash) { s.over[name] = h }

// all gives the refs in a map of the caller's.
func (s *refSet) all() (map[string]gitfmt.Hash, error) {
	out := make(map[string]gitfmt.Hash, s.packed.n+len(s.over))
	err := s.packed.each(func(_, name []byte, h gitfmt.Hash) error {
		out[string(name)] = h
		return nil
	})
	if err != nil {
		return nil, err
	}
	maps.Copy(out, s.over)
	maps.DeleteFunc(out, func(_ string, h gitfmt.Hash) bool { return h.IsZero() })
	return out, nil
}

// pack writes all refs to packed-refs, durably, and gives the set that stands
// there now. s is not changed.
func (s *refSet) pack(path string) (*refSet, error) {
	packed, err := s.packed.write(path, s.over)
	if err != nil {
		return nil, err
	}
	held := make(map[string]gitfmt.Hash)
	for name, h := range s.over {
		if !isStepRef(name) && !h.IsZero() {
			held[name] = h
		}
	}
	return &refSet{packed, held}, nil
}

// due reports whether so many updates since are to be packed. Each update looks
// at what is not packed, and packing writes all refs: the square root of their
// number bounds both.
func (s *refSet) due(updates int) bool {
	return updates >= maxRefUpdates && updates*updates >= s.packed.n
}

func (s *refSet) close() { s.packed.close() }

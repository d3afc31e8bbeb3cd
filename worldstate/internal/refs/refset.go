package refs

import (
	"maps"

	"anamnesis/worldstate/internal/gitfmt"
)

// Set is refs by name: those that stand in packed-refs, and over them what
// memory holds. Safe for no concurrent use.
type Set struct {
	packed *packedRefs
	over   map[string]gitfmt.Hash // what was set since, a zero id for what was removed; and all that are no step's
}

// readSet reads what stands in packed-refs.
func readSet(path string) (*Set, error) {
	packed, held, err := readPackedRefs(path)
	if err != nil {
		return nil, err
	}
	return &Set{packed, held}, nil
}

// Get gives the id of a name, zero where there is none. Where packed-refs cannot
// be read, or is not what it was, that is the error.
func (s *Set) Get(name string) (gitfmt.Hash, error) {
	if h, ok := s.over[name]; ok || !IsStepRef(name) {
		return h, nil
	}
	return s.packed.get(name)
}

// set changes one ref; a zero id removes it.
func (s *Set) set(name string, h gitfmt.Hash) { s.over[name] = h }

// all gives the refs in a map of the caller's.
func (s *Set) all() (map[string]gitfmt.Hash, error) {
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
func (s *Set) pack(path string) (*Set, error) {
	packed, err := s.packed.write(path, s.over)
	if err != nil {
		return nil, err
	}
	held := make(map[string]gitfmt.Hash)
	for name, h := range s.over {
		if !IsStepRef(name) && !h.IsZero() {
			held[name] = h
		}
	}
	return &Set{packed, held}, nil
}

// due reports whether so many updates since are to be packed. Each update looks
// at what is not packed, and packing writes all refs: the square root of their
// number bounds both.
func (s *Set) due(updates int) bool {
	return updates >= MaxRefUpdates && updates*updates >= s.packed.n
}

func (s *Set) close() { s.packed.close() }

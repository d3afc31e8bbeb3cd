package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"anamnesis/orchestrator/state/projection"
)

// FoldVersion identifies the meaning of a folded state. Raise it whenever Fold or State
// changes meaning: a snapshot of another version is not used.
const FoldVersion = "55"

// FromSnapshot returns the state that a snapshot holds, or the empty state.
func FromSnapshot(stream interface {
	Folded() (fold []byte, seq uint64, ok bool)
}) *State {
	if fold, seq, ok := stream.Folded(); ok {
		if s, err := Unmarshal(fold); err == nil && s.Last == seq {
			return s
		}
	}
	return new(State)
}

// ErrSnapshot is returned for bytes that are not a folded state.
var ErrSnapshot = errors.New("not a folded state")

// folded is a state as a snapshot holds it. JSON distinguishes a nil list from an empty one, so that
// a state is read back unchanged.
type folded struct {
	State   *State // without Context
	Context projection.Context
}

// Marshal encodes a state for Unmarshal.
func Marshal(s *State) ([]byte, error) {
	data, err := json.Marshal(folded{s, s.Context})
	if err != nil {
		return nil, fmt.Errorf("write folded state: %w", err)
	}
	return data, nil
}

// Unmarshal reads what Marshal wrote. Other bytes are ErrSnapshot.
func Unmarshal(data []byte) (*State, error) {
	var f folded
	if err := json.Unmarshal(data, &f); err != nil || f.State == nil {
		return nil, fmt.Errorf("%w: it is not readable", ErrSnapshot)
	}
	s := f.State
	s.Context = projection.Restored(f.Context)
	if !s.Steps.Whole() {
		return nil, fmt.Errorf("%w: its steps are not a tree", ErrSnapshot)
	}
	if n := uint64(len(s.Sums)); n != s.Last {
		return nil, fmt.Errorf("%w: %d token counts of %d operations", ErrSnapshot, n, s.Last)
	}
	return s, nil
}

// Holds reports whether an encoded state equals s. An empty list of the process that recorded an operation equals
// the missing list of one that read it.
func Holds(fold []byte, s *State) bool {
	was, err := Unmarshal(fold)
	if err != nil {
		return false
	}
	a, errA := Marshal(was)
	b, errB := Marshal(s)
	empty := strings.NewReplacer(":[]", ":null", ":{}", ":null")
	return errA == nil && errB == nil && empty.Replace(string(a)) == empty.Replace(string(b))
}

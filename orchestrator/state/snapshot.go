package state

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"anamnesis/orchestrator/state/projection"
	"anamnesis/orchestrator/state/steps"
)

// FoldVersion identifies the meaning of a folded state. Raise it whenever Fold or State
// changes meaning: a snapshot of another version is not used.
const FoldVersion = "44"

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

// foldedHead is the part of a folded state that does not grow with the stream: the context,
// the turn under way, the figures. In JSON it distinguishes a nil list from an empty one, so that a
// state is read back unchanged.
type foldedHead struct {
	State   *State // without Steps and Context
	Context projection.Context
}

// Marshal encodes a state for Unmarshal: the head, then the steps and the token counts in
// a compact binary form, since a long task has hundreds of thousands.
func Marshal(s *State) ([]byte, error) {
	bare := *s
	head := foldedHead{State: &bare, Context: s.Context}
	data, err := json.Marshal(head)
	if err != nil {
		return nil, fmt.Errorf("write folded state: %w", err)
	}
	out := append(binary.AppendUvarint(nil, uint64(len(data))), data...)
	if out, err = s.Steps.Append(out); err != nil {
		return nil, err
	}
	for tok := range s.tokenSums.all() {
		out = binary.AppendUvarint(out, tok)
	}
	return out, nil
}

// Unmarshal reads what Marshal wrote. Other bytes are ErrSnapshot.
func Unmarshal(data []byte) (*State, error) {
	var head foldedHead
	first, rest, ok := cutHead(data)
	if !ok || json.Unmarshal(first, &head) != nil || head.State == nil {
		return nil, fmt.Errorf("%w: its head is not readable", ErrSnapshot)
	}
	s := head.State
	s.Context = projection.Restored(head.Context)
	if s.Steps, rest, ok = steps.Decode(rest); !ok {
		return nil, fmt.Errorf("%w: its steps are not readable", ErrSnapshot)
	}
	for len(rest) > 0 {
		tok, size := binary.Uvarint(rest)
		if size <= 0 {
			return nil, fmt.Errorf("%w: its token counts are not readable", ErrSnapshot)
		}
		s.tokenSums.add(tok)
		rest = rest[size:]
	}
	if s.tokenSums.n != s.Last {
		return nil, fmt.Errorf("%w: %d token counts of %d operations", ErrSnapshot, s.tokenSums.n, s.Last)
	}
	return s, nil
}

// cutHead separates the head from what follows it.
func cutHead(data []byte) (head, rest []byte, ok bool) {
	n, size := binary.Uvarint(data)
	if size <= 0 || n > uint64(len(data)-size) {
		return nil, nil, false
	}
	data = data[size:]
	return data[:n], data[n:], true
}

// SameSnapshot reports whether two encoded states are equal. An empty list of the process that
// recorded an operation equals the missing list of one that read it.
func SameSnapshot(a, b []byte) bool {
	headA, restA, okA := cutHead(a)
	headB, restB, okB := cutHead(b)
	var ha, hb any
	if !okA || !okB || json.Unmarshal(headA, &ha) != nil || json.Unmarshal(headB, &hb) != nil {
		return false
	}
	return bytes.Equal(restA, restB) && reflect.DeepEqual(withoutEmpty(ha), withoutEmpty(hb))
}

// withoutEmpty removes nulls and empty lists and objects from a JSON value.
func withoutEmpty(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if e = withoutEmpty(e); e == nil {
				delete(v, k)
			} else {
				v[k] = e
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		if len(v) == 0 {
			return nil
		}
		for i, e := range v {
			v[i] = withoutEmpty(e)
		}
	}
	return v
}

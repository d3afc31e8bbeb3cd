package steps

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"anamnesis/opstream/op"
)

// head is the JSON part of an encoded tree: everything but the rows and what they began.
type head struct {
	Rows, Began int
	Open        *Step       `json:",omitempty"` // the last step, where it has not ended
	Details     []detail    `json:",omitempty"`
	Texts       []string    `json:",omitempty"`
	Todos       [][]op.Todo `json:",omitempty"`
}

// Append appends the encoded tree to dst.
func (s *Tree) Append(dst []byte) ([]byte, error) {
	h := head{Rows: len(s.rows), Began: len(s.began), Details: s.details.list, Texts: s.texts.list, Todos: s.todos}
	if s.isOpen {
		h.Open = &s.open
	}
	data, err := json.Marshal(h)
	if err != nil {
		return dst, fmt.Errorf("encode the steps: %w", err)
	}
	dst = append(binary.AppendUvarint(dst, uint64(len(data))), data...)
	for _, part := range []any{s.rows, s.began} {
		if dst, err = binary.Append(dst, binary.BigEndian, part); err != nil {
			return dst, fmt.Errorf("encode the steps: %w", err)
		}
	}
	return dst, nil
}

// Decode reads a tree that Append encoded, and returns the bytes after it. ok is false if data
// do not begin with one.
func Decode(data []byte) (s Tree, rest []byte, ok bool) {
	var h head
	n, size := binary.Uvarint(data)
	if size <= 0 || n > uint64(len(data)-size) {
		return s, nil, false
	}
	data = data[size:]
	if json.Unmarshal(data[:n], &h) != nil || h.Rows < 0 || h.Rows > len(data) || h.Began < 0 || h.Began > len(data) {
		return s, nil, false
	}
	data = data[n:]
	// As in a tree that Add built, lists without entries are nil.
	s = Tree{rows: append([]row(nil), make([]row, h.Rows)...), began: append([]Began(nil), make([]Began, h.Began)...), todos: h.Todos}
	if h.Open != nil {
		s.open, s.isOpen = *h.Open, true
	}
	for _, part := range []any{s.rows, s.began} {
		n, err := binary.Decode(data, binary.BigEndian, part)
		if err != nil {
			return s, nil, false
		}
		data = data[n:]
	}
	for _, text := range h.Texts {
		s.texts.number(text)
	}
	for _, d := range h.Details {
		s.details.number(d)
	}
	return s, data, len(s.texts.list) == len(h.Texts) && len(s.details.list) == len(h.Details) && s.whole()
}

// whole reports whether a decoded tree holds everything it refers to.
func (s *Tree) whole() bool {
	texts := uint32(len(s.texts.list))
	for _, d := range s.details.list {
		if max(d.Calls, d.NoCheckpoint) > texts || d.Todos > uint32(len(s.todos)) {
			return false
		}
	}
	for id, r := range s.rows {
		if r.Parent < 0 || int(r.Parent) > id || r.LeftBy > texts || r.Detail > uint32(len(s.details.list)) || uint64(r.Began)+uint64(s.detail(id).Began) > uint64(len(s.began)) {
			return false
		}
	}
	return !s.isOpen || s.open.ID == len(s.rows) && !s.open.Ended && s.open.Parent >= 0 && s.open.Parent <= s.open.ID
}

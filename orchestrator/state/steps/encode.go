package steps

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"anamnesis/opstream/op"
)

// head is the JSON part of an encoded tree: everything outside its groups.
type head struct {
	Steps   int
	Open    *Step        `json:",omitempty"` // the last step, where it has not ended
	Parents [][2]int32   `json:",omitempty"` // step and parent
	Wide    map[int]Step `json:",omitempty"`
	Texts   []string     `json:",omitempty"`
	Calls   []string     `json:",omitempty"`
	Todos   [][]op.Todo  `json:",omitempty"`
}

// Append appends the encoded tree to dst.
func (s *Tree) Append(dst []byte) ([]byte, error) {
	h := head{Steps: s.n, Wide: s.wide, Texts: s.texts, Calls: s.calls.list, Todos: s.todos}
	if s.packed < s.n {
		h.Open = &s.open
	}
	for _, p := range s.parents {
		h.Parents = append(h.Parents, [2]int32{p.id, p.parent})
	}
	data, err := json.Marshal(h)
	if err != nil {
		return dst, fmt.Errorf("encode the steps: %w", err)
	}
	dst = append(binary.AppendUvarint(dst, uint64(len(data))), data...)
	for i, g := range s.groups {
		dst = binary.AppendUvarint(dst, g.first)
		for k := range min(groupSize, s.packed-i*groupSize) {
			dst = binary.BigEndian.AppendUint32(dst, g.firsts[k])
			dst = binary.BigEndian.AppendUint16(append(dst, byte(g.flags[k])), g.leftBy[k])
		}
		dst = append(binary.AppendUvarint(dst, uint64(len(g.rest))), g.rest...)
	}
	return dst, nil
}

// Decode reads a tree that Append encoded, and returns the bytes after it. ok is false if data
// do not begin with one.
func Decode(data []byte) (s Tree, rest []byte, ok bool) {
	var h head
	text, data, ok := cut(data)
	if !ok || json.Unmarshal(text, &h) != nil || h.Steps < 0 {
		return s, nil, false
	}
	s = Tree{n: h.Steps, packed: h.Steps, wide: h.Wide, texts: h.Texts, todos: h.Todos}
	if h.Open != nil {
		s.packed, s.open = s.n-1, *h.Open
	}
	for _, list := range h.Calls {
		s.calls.number(list)
	}
	for _, p := range h.Parents {
		s.parents = append(s.parents, parentOf{p[0], p[1]})
	}
	for begin := 0; begin < s.packed; begin += groupSize {
		g, n := new(group), min(groupSize, s.packed-begin)
		size := 0
		if g.first, size = binary.Uvarint(data); size <= 0 || len(data) < size+7*n {
			return s, nil, false
		}
		data = data[size:]
		for k := range n {
			g.firsts[k], g.flags[k], g.leftBy[k] = binary.BigEndian.Uint32(data), Flags(data[4]), binary.BigEndian.Uint16(data[5:])
			data = data[7:]
		}
		if g.rest, data, ok = cut(data); !ok {
			return s, nil, false
		}
		g.rest = append([]byte(nil), g.rest...)
		s.groups = append(s.groups, g)
	}
	return s, data, s.whole()
}

// cut separates length-prefixed bytes from those after them.
func cut(data []byte) (first, rest []byte, ok bool) {
	n, size := binary.Uvarint(data)
	if size <= 0 || n > uint64(len(data)-size) {
		return nil, nil, false
	}
	data = data[size:]
	return data[:n], data[n:], true
}

// whole reports whether a decoded tree holds everything it refers to.
func (s *Tree) whole() bool {
	parents := s.parents
	for i, g := range s.groups {
		r, data, ok := restOf{}, g.rest, true
		for k := range min(groupSize, s.packed-i*groupSize) {
			id := i*groupSize + k
			if data, ok = r.next(data); !ok {
				return false
			}
			listed := len(parents) > 0 && int(parents[0].id) == id
			if listed && (parents[0].parent < 0 || int(parents[0].parent) > id) {
				return false
			}
			if listed {
				parents = parents[1:]
			}
			st, wide := s.wide[id]
			switch {
			case g.flags[k]&flagWide != 0:
				ok = wide && st.ID == id && st.Parent >= 0 && st.Parent <= id
			case g.flags[k]&flagNext != 0:
				ok = id > 0
			default:
				ok = listed
			}
			texts := uint64(len(s.texts))
			if !ok || r.calls > uint64(len(s.calls.list)) || r.todos > uint64(len(s.todos)) || r.noCheckpoint > texts || uint64(g.leftBy[k]) > texts {
				return false
			}
		}
		if len(data) > 0 {
			return false
		}
	}
	return len(parents) == 0 && (s.packed == s.n || s.open.ID == s.packed && !s.open.Ended && s.open.Parent >= 0 && s.open.Parent <= s.packed)
}

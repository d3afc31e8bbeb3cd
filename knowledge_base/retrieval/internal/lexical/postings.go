package lexical

import "encoding/binary"

// ReadPostings reads the texts in which a term occurs, by ascending slot, with its frequency.
// An entry is a varint: the distance of its slot from that of the previous entry (at least
// 1), shifted left by one bit. Bit 0 is set if the frequency is over 1; it follows. Most
// entries are one byte. A zero byte, with which no entry begins, ends postings that were
// shortened in place.
func ReadPostings(packed []byte) cursor { return cursor{left: packed, Slot: -1} }

// cursor reads postings one by one.
type cursor struct {
	left     []byte
	Slot, Tf int32
	bad      bool // the bytes are no postings
}

// Next goes to the next posting; false at the end.
func (c *cursor) Next() bool {
	if len(c.left) == 0 || c.left[0] == 0 {
		return false
	}
	v := c.varint()
	c.Tf = 1
	if v&1 == 1 {
		c.Tf = int32(c.varint())
	}
	c.Slot += int32(v >> 1)
	return !c.bad
}

func (c *cursor) varint() uint64 {
	v, n := binary.Uvarint(c.left)
	if n <= 0 || v > maxPacked {
		c.bad, c.left = true, nil
		return 0
	}
	c.left = c.left[n:]
	return v
}

// maxPacked bounds a number in postings: twice the slots an index may have.
const maxPacked = 1 << 32

// postings are those of one term, to be added to.
type postings struct {
	Packed []byte
	Df     int32 // texts
	next   int32 // the slot after the last one; 0 in the zero value, which is empty
}

// enter adds a text that is not there; at the end it costs least.
func (p *postings) enter(slot, tf int32) {
	if slot >= p.next {
		v := uint64(slot+1-p.next) << 1
		if tf > 1 {
			p.Packed = binary.AppendUvarint(binary.AppendUvarint(p.Packed, v|1), uint64(tf))
		} else {
			p.Packed = binary.AppendUvarint(p.Packed, v)
		}
		p.Df, p.next = p.Df+1, slot+1
		return
	}
	var all postings
	for c := ReadPostings(p.Packed); c.Next(); {
		if slot >= 0 && slot < c.Slot {
			all.enter(slot, tf)
			slot = -1
		}
		all.enter(c.Slot, c.Tf)
	}
	*p = all
}

// without returns postings without a text, and whether they had it. They take no more bytes.
func without(packed []byte, slot int32) (rest postings, had bool) {
	rest.Packed = make([]byte, 0, len(packed))
	for c := ReadPostings(packed); c.Next(); {
		if c.Slot == slot {
			had = true
		} else {
			rest.enter(c.Slot, c.Tf)
		}
	}
	return rest, had
}

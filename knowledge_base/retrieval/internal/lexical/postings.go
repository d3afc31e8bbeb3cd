package lexical

import "encoding/binary"

// Postings list the texts in which a term occurs, by ascending slot, with its frequency.
// An entry is a varint: the distance of its slot from that of the previous entry (at least
// 1), shifted left by two bits. Bit 1 is set if the following slots have the same frequency;
// their number follows. Bit 0 is set if the frequency is over 1; it follows first. Most
// entries are one byte. A zero byte, with which no entry begins, ends postings that were
// shortened in place.

// appendEntry adds the postings of more+1 neighbouring slots; way is the distance of the first
// from the last slot in packed.
func appendEntry(packed []byte, way, tf, more int32) []byte {
	v := uint64(way) << 2
	if more > 0 {
		v |= 2
	}
	if tf > 1 {
		packed = binary.AppendUvarint(packed, v|1)
		packed = binary.AppendUvarint(packed, uint64(tf))
	} else {
		packed = binary.AppendUvarint(packed, v)
	}
	if more > 0 {
		packed = binary.AppendUvarint(packed, uint64(more))
	}
	return packed
}

// cursor reads postings one by one.
type cursor struct {
	left     []byte
	Slot, Tf int32
	more     int32
	bad      bool // the bytes are no postings
}

func ReadPostings(packed []byte) cursor { return cursor{left: packed, Slot: -1} }

// Next goes to the next posting; false at the end.
func (c *cursor) Next() bool {
	if c.more > 0 {
		c.more--
		c.Slot++
		return true
	}
	if len(c.left) == 0 || c.left[0] == 0 {
		return false
	}
	v := c.varint()
	c.Tf = 1
	if v&1 == 1 {
		c.Tf = int32(c.varint())
	}
	if v&2 == 2 {
		c.more = int32(c.varint())
	}
	c.Slot += int32(v >> 2)
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

// maxPacked bounds a number in postings: four times the slots an index may have.
const maxPacked = 1 << 32

// packer writes postings, neighbours that are alike in one entry.
type packer struct {
	packed   []byte
	df       int
	last     int32 // the slot of the last entry written; -1 before the first
	slot, tf int32 // of the entry in hand, and how many more are like it
	more     int32
}

func newPacker(into []byte) packer { return packer{packed: into, last: -1} }

// enter adds a posting beyond all others.
func (p *packer) enter(slot, tf int32) {
	if p.df++; p.df > 1 {
		if slot == p.slot+p.more+1 && tf == p.tf {
			p.more++
			return
		}
		p.flush()
	}
	p.slot, p.tf, p.more = slot, tf, 0
}

func (p *packer) flush() {
	p.packed = appendEntry(p.packed, p.slot-p.last, p.tf, p.more)
	p.last = p.slot + p.more
}

// done returns the postings.
func (p *packer) done() []byte {
	if p.df > 0 {
		p.flush()
	}
	return p.packed
}

// postings returns them with what adding more takes.
func (p *packer) postings() postings {
	if p.df == 0 {
		return postings{}
	}
	return postings{Packed: p.done(), Df: int32(p.df), next: p.slot + p.more + 1}
}

// postings are those of one term, to be added to.
type postings struct {
	Packed []byte
	Df     int32 // texts
	next   int32 // the slot after the last one; 0 in the zero value, which is empty
}

// enter adds a text that is not there; at the end it costs least.
func (p *postings) enter(slot, tf int32) {
	if slot >= p.next {
		p.Packed = appendEntry(p.Packed, slot+1-p.next, tf, 0)
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

// remove takes a text out, if it is there.
func (p *postings) remove(slot int32) {
	var rest postings
	for c := ReadPostings(p.Packed); c.Next(); {
		if c.Slot != slot {
			rest.enter(c.Slot, c.Tf)
		}
	}
	*p = rest
}

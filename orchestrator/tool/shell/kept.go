package shell

import (
	"bytes"
	"fmt"
)

// The limits of the kept part of an output that is too long to be shown.
const (
	MaxKeptBytes  = 16 << 20 // of one output, from its beginning; stored in the task's stream
	keptPartBytes = 1 << 20  // of it in one operation and in memory
)

// kept records an output in parts, so that the agent can open what its result omits. A full
// part is recorded at once, the last one at the end; an output that is shown whole is not
// recorded. Not safe for concurrent use.
type kept struct {
	record func(part int, from int64, text string) (uint64, error) // nil: nothing is kept
	shown  *clip                                                   // of the same output
	buf    []byte
	from   int64    // bytes before buf
	ops    []uint64 // that hold the output before buf
	lost   int64    // bytes beyond the limit
	err    error    // that ended the keeping

	head, line place // where the middle is cut, and where the first line is
}

// place is a byte of a part's text; the zero place is in no part.
type place struct {
	op   uint64
	from int
}

// Write takes the next piece of output, as the clip does.
func (k *kept) Write(p []byte) {
	if k.record == nil {
		return
	}
	room := MaxKeptBytes - k.from - int64(len(k.buf))
	if k.err != nil {
		room = 0
	}
	if int64(len(p)) > room {
		k.lost += int64(len(p)) - room
		p = p[:room]
	}
	for len(p) > 0 {
		n := min(keptPartBytes-len(k.buf), len(p))
		k.buf = append(k.buf, p[:n]...)
		p = p[n:]
		if len(k.buf) == keptPartBytes {
			k.hand(partEnd(k.buf))
		}
	}
}

// partEnd is where a full part ends: after its last line, or between characters.
func partEnd(p []byte) int {
	if i := bytes.LastIndexByte(p, '\n'); i >= 0 {
		return i + 1
	}
	return len(p) - unfinished(p)
}

// hand records the first n held bytes.
func (k *kept) hand(n int) {
	if k.err == nil {
		var seq uint64
		seq, k.err = k.record(len(k.ops)+1, k.from, valid(k.buf[:n]))
		if k.err == nil {
			k.ops = append(k.ops, seq)
			k.find(&k.head, k.shown.headEnd, seq, n)
			k.find(&k.line, k.shown.lineEnd, seq, n)
		}
	}
	if k.err != nil {
		k.lost += int64(len(k.buf))
		k.buf = nil
		return
	}
	k.from += int64(n)
	k.buf = k.buf[:copy(k.buf, k.buf[n:])]
}

// find records the place of a byte of the output, if it is in the part of n bytes being
// recorded.
func (k *kept) find(p *place, at int64, seq uint64, n int) {
	if at -= k.from; 0 <= at && at < int64(n) {
		*p = place{seq, len(valid(k.buf[:at]))}
	}
}

// end records the rest of an output that was cut.
func (k *kept) end() {
	if len(k.buf) > 0 && (k.shown.isCut() || len(k.ops) > 0) {
		k.hand(len(k.buf))
	}
	k.buf = nil
}

// how describes how to open the omitted text at a place.
func (k *kept) how(p place) string {
	switch {
	case k.record == nil:
		return "to see it, run the command with its output in a file and read that"
	case len(k.ops) == 0:
		return fmt.Sprintf("it could not be kept: %v", k.err)
	case p.op == 0: // beyond the limit
		p.op = k.ops[0]
	}
	text := fmt.Sprintf("recall with op %d and from %d shows it", p.op, p.from)
	if len(k.ops) > 1 {
		text += fmt.Sprintf("; the whole output is in ops %v", k.ops)
	}
	switch {
	case k.err != nil:
		text += fmt.Sprintf("; %d bytes could not be kept: %v", k.lost, k.err)
	case k.lost > 0:
		text += fmt.Sprintf("; only the first %d bytes of it are kept", k.from)
	}
	return text
}

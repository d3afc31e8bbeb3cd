package opstream

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"strconv"
	"time"
)

// lineHash is the first 16 bytes of the SHA-256 of a line without its
// newline: what the next line's prev names.
type lineHash [16]byte

func hashLine(line []byte) lineHash {
	sum := sha256.Sum256(line)
	return lineHash(sum[:16])
}

// The fixed words of a line, in the order in which they stand.
const (
	wordVersion = `{"v":1,"seq":`
	wordAck     = `,"ack":`
	wordTime    = `,"ts":"`
	wordKind    = `","kind":"`
	wordStep    = `","step":`
	wordTok     = `,"tok":`
	wordBody    = `,"body":`
	wordPrev    = `,"prev":"`
	wordCRC     = `","crc":"`
	wordEnd     = `"}`

	// timeLayout is RFC 3339 in UTC with exactly six decimals.
	timeLayout = "2006-01-02T15:04:05.000000Z"

	prevHexLen = 32
	crcHexLen  = 8
	// crcTailLen is what follows the checksummed bytes. They end before
	// `,"crc"`, so the quote that closes prev belongs to them.
	crcTailLen = len(`,"crc":"`) + crcHexLen + len(wordEnd)
	// tailLen is everything after the body.
	tailLen = len(wordPrev) + prevHexLen + len(wordCRC) + crcHexLen + len(wordEnd)
)

// crcTable returns CRC32C. MakeTable returns the same shared table each time.
func crcTable() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// envelope is a line taken apart without decoding JSON. Its slices point into
// the line.
type envelope struct {
	seq, ack  uint64
	ts        []byte
	kind      []byte
	step, tok int
	body      []byte
	prev      lineHash
}

// appendLine appends the line of one operation, without newline, to dst.
func appendLine(dst []byte, e *envelope) []byte {
	start := len(dst)
	dst = append(dst, wordVersion...)
	dst = strconv.AppendUint(dst, e.seq, 10)
	dst = append(dst, wordAck...)
	dst = strconv.AppendUint(dst, e.ack, 10)
	dst = append(dst, wordTime...)
	dst = append(dst, e.ts...)
	dst = append(dst, wordKind...)
	dst = append(dst, e.kind...)
	dst = append(dst, wordStep...)
	dst = strconv.AppendInt(dst, int64(e.step), 10)
	dst = append(dst, wordTok...)
	dst = strconv.AppendInt(dst, int64(e.tok), 10)
	dst = append(dst, wordBody...)
	dst = append(dst, e.body...)
	dst = append(dst, wordPrev...)
	dst = hex.AppendEncode(dst, e.prev[:])
	dst = append(dst, '"')
	sum := crc32.Checksum(dst[start:], crcTable())
	dst = append(dst, wordCRC[1:]...)
	dst = hex.AppendEncode(dst, []byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
	return append(dst, wordEnd...)
}

// parseLine takes a line, without newline, apart. It checks the form and the
// checksum, not seq and prev, which need the line before; nor the body's
// syntax, for which the checksum stands. It is total and allocates only for
// its error.
func parseLine(line []byte, e *envelope) error {
	if len(line) > maxLineBytes {
		return fmt.Errorf("the line is longer than %d bytes", maxLineBytes)
	}
	if err := checkCRC(line); err != nil {
		return err
	}
	if v, ok := versionOf(line); ok && v != 1 {
		return fmt.Errorf("%w %d", ErrVersion, v)
	}
	p := lineParser{rest: line[:max(0, len(line)-tailLen)]}
	p.word(wordVersion)
	e.seq = p.number(1<<63 - 1)
	p.word(wordAck)
	e.ack = p.number(1<<63 - 1)
	p.word(wordTime)
	e.ts = p.take(len(timeLayout))
	p.word(wordKind)
	e.kind = p.until('"')
	p.word(wordStep)
	e.step = int(p.number(MaxNumber))
	p.word(wordTok)
	e.tok = int(p.number(MaxNumber))
	p.word(wordBody)
	e.body = p.rest
	tail := lineParser{rest: line[len(line)-min(len(line), tailLen):], bad: p.bad}
	tail.word(wordPrev)
	prev := tail.take(prevHexLen)
	tail.word(wordCRC)
	switch {
	case tail.bad:
		return errLineForm
	case !isTime(e.ts), !validKind(e.kind), !decodeLowerHex(e.prev[:], prev):
		return errLineForm
	case len(e.body) < 2 || len(e.body) > MaxInlineBytes || e.body[0] != '{' || e.body[len(e.body)-1] != '}':
		return errLineForm
	case e.seq == 0 || e.ack >= e.seq:
		return fmt.Errorf("ack %d is not before seq %d", e.ack, e.seq)
	}
	return nil
}

type lineError string

func (e lineError) Error() string { return string(e) }

// Why a single line is bad.
const (
	errLineForm lineError = "the line does not have the format's form"
	errLineCRC  lineError = "the checksum does not match"
	// errLineChain needs the line before.
	errLineChain lineError = "prev is not the hash of the line before"
)

// checkCRC verifies the checksum at a line's end.
func checkCRC(line []byte) error {
	n := len(line) - crcTailLen
	if n <= 0 {
		return errLineForm
	}
	tail := lineParser{rest: line[n:]}
	tail.word(`,"crc":"`)
	digits := tail.take(crcHexLen)
	tail.word(wordEnd)
	var want [4]byte
	if tail.bad || !decodeLowerHex(want[:], digits) {
		return errLineForm
	}
	sum := crc32.Checksum(line[:n], crcTable())
	if want != [4]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)} {
		return errLineCRC
	}
	return nil
}

// versionOf reads the format version of a line of any version.
func versionOf(line []byte) (uint64, bool) {
	p := lineParser{rest: line}
	p.word(`{"v":`)
	v := p.number(1 << 31)
	p.word(",")
	return v, !p.bad
}

// lineParser consumes a line from the left; bad stays set once anything did
// not fit.
type lineParser struct {
	rest []byte
	bad  bool
}

func (p *lineParser) word(w string) {
	if p.bad || len(p.rest) < len(w) || string(p.rest[:len(w)]) != w {
		p.bad = true
		return
	}
	p.rest = p.rest[len(w):]
}

func (p *lineParser) take(n int) []byte {
	if p.bad || len(p.rest) < n {
		p.bad = true
		return nil
	}
	out := p.rest[:n]
	p.rest = p.rest[n:]
	return out
}

func (p *lineParser) until(c byte) []byte {
	i := bytes.IndexByte(p.rest[:min(len(p.rest), MaxKindBytes+1)], c)
	if p.bad || i < 0 {
		p.bad = true
		return nil
	}
	out := p.rest[:i]
	p.rest = p.rest[i:]
	return out
}

// number reads a decimal number without sign or leading zeros, at most limit.
func (p *lineParser) number(limit uint64) uint64 {
	var n uint64
	i := 0
	for ; i < len(p.rest) && i < 19 && p.rest[i] >= '0' && p.rest[i] <= '9'; i++ {
		n = n*10 + uint64(p.rest[i]-'0')
	}
	if p.bad || i == 0 || (i > 1 && p.rest[0] == '0') || n > limit {
		p.bad = true
		return 0
	}
	p.rest = p.rest[i:]
	return n
}

func isLowerHex(b []byte) bool {
	for _, c := range b {
		if nibbles[c] == notHex {
			return false
		}
	}
	return true
}

// notHex is what nibbles has for a byte that is no lower-case hex digit.
const notHex = '\xff'

// nibbles gives the value of each lower-case hex digit. Digits of a hash come
// without order, so that a comparison with '9' and 'a' would be mispredicted
// for every third of them.
const nibbles = notHex16 + notHex16 + notHex16 +
	"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\xff\xff\xff\xff\xff\xff" + notHex16 + notHex16 +
	"\xff\x0a\x0b\x0c\x0d\x0e\x0f\xff\xff\xff\xff\xff\xff\xff\xff\xff" + notHex16 +
	notHex16 + notHex16 + notHex16 + notHex16 + notHex16 + notHex16 + notHex16 + notHex16

const notHex16 = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"

// decodeLowerHex decodes all of dst from as many pairs of digits; false when
// one is none.
func decodeLowerHex(dst, digits []byte) bool {
	if len(digits) != 2*len(dst) {
		return false
	}
	bad := byte(0)
	for i := range dst {
		hi, lo := nibbles[digits[2*i]], nibbles[digits[2*i+1]]
		bad |= hi | lo
		dst[i] = hi<<4 | lo
	}
	return bad < 16
}

// isTime reports whether b has timeLayout's shape; its ranges are checked
// when the time is asked for.
func isTime(b []byte) bool {
	if len(b) != len(timeLayout) {
		return false
	}
	for i := range b {
		c := timeLayout[i]
		if c >= '0' && c <= '9' {
			if b[i] < '0' || b[i] > '9' {
				return false
			}
		} else if b[i] != c {
			return false
		}
	}
	return true
}

func validKind[T string | []byte](k T) bool {
	if len(k) == 0 || len(k) > MaxKindBytes {
		return false
	}
	for i := range len(k) {
		c := k[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}

// appendTime appends t in timeLayout. A year the layout cannot hold becomes
// the zero time: time stamps are advice and never a reason to lose a line.
func appendTime(dst []byte, t time.Time) []byte {
	t = t.UTC()
	if y := t.Year(); y < 0 || y > 9999 {
		t = time.Time{}
	}
	return t.AppendFormat(dst, timeLayout)
}

// parseTime is appendTime's inverse; a time out of range is the zero time.
func parseTime(b []byte) time.Time {
	t, err := time.Parse(timeLayout, string(b))
	if err != nil {
		return time.Time{}
	}
	return t
}

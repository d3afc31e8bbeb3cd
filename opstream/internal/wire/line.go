// Package wire defines the form of a line, its limits and errors, and the index of lines. It
// accesses no files.
package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"strconv"
	"time"
)

// Hash is the first 16 bytes of the SHA-256 of a line without its newline. The next line's
// prev has it.
type Hash [16]byte

func HashOf(line []byte) Hash {
	sum := sha256.Sum256(line)
	return Hash(sum[:16])
}

// The fixed words of a line, in their order.
const (
	WordVersion = `{"v":1,"seq":`
	WordAck     = `,"ack":`
	WordTime    = `,"ts":"`
	WordKind    = `","kind":"`
	WordStep    = `","step":`
	WordTok     = `,"tok":`
	WordBody    = `,"body":`
	WordPrev    = `,"prev":"`
	WordCRC     = `","crc":"`
	wordEnd     = `"}`

	// TimeLayout is RFC 3339 in UTC with exactly six decimals.
	TimeLayout = "2006-01-02T15:04:05.000000Z"

	prevHexLen = 32
	crcHexLen  = 8
	// crcTailLen is the length of what follows the checksummed bytes. They end before
	// `,"crc"`, so the quote that closes prev belongs to them.
	crcTailLen = len(`,"crc":"`) + crcHexLen + len(wordEnd)
	// tailLen is everything after the body.
	tailLen = len(WordPrev) + prevHexLen + len(WordCRC) + crcHexLen + len(wordEnd)
)

// CRCTable returns CRC32C. MakeTable returns the same shared table each time.
func CRCTable() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// Envelope is a line split into its fields without decoding JSON. Its slices point into the
// line.
type Envelope struct {
	Seq, Ack  uint64
	TS        []byte
	Kind      []byte
	Step, Tok int
	Body      []byte
	Prev      Hash
}

// AppendLine appends the line of one operation, without newline, to dst.
func AppendLine(dst []byte, e *Envelope) []byte {
	start := len(dst)
	dst = append(dst, WordVersion...)
	dst = strconv.AppendUint(dst, e.Seq, 10)
	dst = append(dst, WordAck...)
	dst = strconv.AppendUint(dst, e.Ack, 10)
	dst = append(dst, WordTime...)
	dst = append(dst, e.TS...)
	dst = append(dst, WordKind...)
	dst = append(dst, e.Kind...)
	dst = append(dst, WordStep...)
	dst = strconv.AppendInt(dst, int64(e.Step), 10)
	dst = append(dst, WordTok...)
	dst = strconv.AppendInt(dst, int64(e.Tok), 10)
	dst = append(dst, WordBody...)
	dst = append(dst, e.Body...)
	dst = append(dst, WordPrev...)
	dst = hex.AppendEncode(dst, e.Prev[:])
	dst = append(dst, '"')
	sum := crc32.Checksum(dst[start:], CRCTable())
	dst = append(dst, WordCRC[1:]...)
	dst = hex.AppendEncode(dst, []byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)})
	return append(dst, wordEnd...)
}

// ParseLine splits a line, given without newline. It checks the form and the checksum. It does
// not check seq and prev, which need the line before, nor the body's syntax, which the
// checksum covers. It accepts any bytes and allocates only for its error.
func ParseLine(line []byte, e *Envelope) error {
	if len(line) > MaxLineBytes {
		return fmt.Errorf("the line is longer than %d bytes", MaxLineBytes)
	}
	if err := checkCRC(line); err != nil {
		return err
	}
	// The version counts only behind a right checksum, as damage is no newer program, and before the form, which a
	// newer version may change.
	if v, ok := versionOf(line); ok && v != 1 {
		return fmt.Errorf("%w %d", ErrVersion, v)
	}
	p := lineParser{rest: line[:max(0, len(line)-tailLen)]}
	p.word(WordVersion)
	e.Seq = p.number(1<<63 - 1)
	p.word(WordAck)
	e.Ack = p.number(1<<63 - 1)
	p.word(WordTime)
	e.TS = p.next(len(TimeLayout))
	p.word(WordKind)
	e.Kind = p.until('"')
	p.word(WordStep)
	e.Step = int(p.number(MaxNumber))
	p.word(WordTok)
	e.Tok = int(p.number(MaxNumber))
	p.word(WordBody)
	e.Body = p.rest
	// The tail has a fixed length, so that the end of the body is known without parsing it.
	tail := lineParser{rest: line[len(line)-min(len(line), tailLen):], bad: p.bad}
	tail.word(WordPrev)
	prev := tail.next(prevHexLen)
	tail.word(WordCRC)
	switch {
	case tail.bad:
		return errLineForm
	case !isTime(e.TS), !ValidKind(e.Kind), !DecodeLowerHex(e.Prev[:], prev):
		return errLineForm
	case len(e.Body) < 2 || len(e.Body) > MaxInlineBytes || e.Body[0] != '{' || e.Body[len(e.Body)-1] != '}':
		return errLineForm
	case e.Seq == 0 || e.Ack >= e.Seq:
		return fmt.Errorf("ack %d is not before seq %d", e.Ack, e.Seq)
	}
	return nil
}

type Error string

func (e Error) Error() string { return string(e) }

// The reasons why a single line is bad.
const (
	errLineForm Error = "the line does not have the format's form"
	errLineCRC  Error = "the checksum does not match"
	// ErrChain needs the line before.
	ErrChain Error = "prev is not the hash of the line before"
)

// checkCRC verifies the checksum at a line's end.
func checkCRC(line []byte) error {
	n := len(line) - crcTailLen
	if n <= 0 {
		return errLineForm
	}
	tail := lineParser{rest: line[n:]}
	tail.word(`,"crc":"`)
	digits := tail.next(crcHexLen)
	tail.word(wordEnd)
	var want [4]byte
	if tail.bad || !DecodeLowerHex(want[:], digits) {
		return errLineForm
	}
	sum := crc32.Checksum(line[:n], CRCTable())
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

// lineParser consumes a line from the left; bad is set once anything does not match.
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

func (p *lineParser) next(n int) []byte {
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
	// A uint64 holds every number of 19 digits.
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

func IsLowerHex(b []byte) bool { return len(bytes.Trim(b, "0123456789abcdef")) == 0 }

// DecodeLowerHex decodes all of dst from pairs of digits. It returns false if a digit is
// invalid.
func DecodeLowerHex(dst, digits []byte) bool {
	if len(digits) != 2*len(dst) || !IsLowerHex(digits) {
		return false
	}
	_, err := hex.Decode(dst, digits)
	return err == nil
}

// isTime reports whether b, of TimeLayout's length, has its shape. ParseTime checks the ranges.
func isTime(b []byte) bool {
	for i := range b {
		c := TimeLayout[i]
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

func ValidKind[T string | []byte](k T) bool {
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

// AppendTime appends t in TimeLayout. A year the layout cannot hold becomes
// the zero time: time stamps are advice and never a reason to lose a line.
func AppendTime(dst []byte, t time.Time) []byte {
	t = t.UTC()
	if y := t.Year(); y < 0 || y > 9999 {
		t = time.Time{}
	}
	return t.AppendFormat(dst, TimeLayout)
}

// ParseTime is AppendTime's inverse; a time out of range is the zero time.
func ParseTime(b []byte) time.Time {
	t, err := time.Parse(TimeLayout, string(b))
	if err != nil {
		return time.Time{}
	}
	return t
}

package wire

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// resum returns a line the checksum of its bytes.
func resum(line []byte) []byte {
	n := len(line) - crcTailLen
	return fmt.Appendf(bytes.Clone(line[:n]), `,"crc":"%08x"}`, crc32.Checksum(line[:n], CRCTable()))
}

// TestLineGolden fixes the format's bytes forever.
func TestLineGolden(t *testing.T) {
	e := Envelope{
		Seq: 12, Ack: 10, TS: AppendTime(nil, time.Date(2026, 1, 2, 3, 4, 5, 6789000, time.UTC)),
		Kind: []byte("tool.called"), Step: 3, Tok: 42, Body: []byte(`{"a":1}`),
		Prev: Hash{0: 0xab, 15: 0xcd},
	}
	const want = `{"v":1,"seq":12,"ack":10,"ts":"2026-01-02T03:04:05.006789Z","kind":"tool.called","step":3,"tok":42,` +
		`"body":{"a":1},"prev":"ab0000000000000000000000000000cd","crc":"1f132e75"}`
	if got := string(AppendLine(nil, &e)); got != want {
		t.Errorf("line is\n%s\nwant\n%s", got, want)
	}
}

func TestLineRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Envelope{
			Seq:  rapid.Uint64Range(1, 1<<63-1).Draw(t, "seq"),
			TS:   AppendTime(nil, time.UnixMicro(rapid.Int64Range(-1<<55, 1<<57).Draw(t, "time"))),
			Kind: []byte(rapid.StringMatching(`[a-zA-Z0-9._-]{1,64}`).Draw(t, "kind")),
			Step: rapid.IntRange(0, MaxNumber).Draw(t, "step"),
			Tok:  rapid.IntRange(0, MaxNumber).Draw(t, "tok"),
			Body: []byte(fmt.Sprintf(`{"a":%q}`, rapid.String().Draw(t, "body"))),
		}
		e.Ack = rapid.Uint64Range(0, e.Seq-1).Draw(t, "ack")
		copy(e.Prev[:], rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "prev"))
		line := AppendLine(nil, &e)
		var got Envelope
		if err := ParseLine(line, &got); err != nil {
			t.Fatalf("parse %s: %v", line, err)
		}
		if again := AppendLine(nil, &got); !bytes.Equal(again, line) {
			t.Fatalf("came back as %s, was %s", again, line)
		}
	})
}

// TestLineForms holds that a right checksum does not make a wrong form right.
func TestLineForms(t *testing.T) {
	good := AppendLine(nil,
		&Envelope{Seq: 2, TS: AppendTime(nil, time.Unix(0, 0)), Kind: []byte("k"), Body: []byte("{}")})
	var e Envelope
	if err := ParseLine(good, &e); err != nil {
		t.Fatal(err)
	}
	for _, change := range [][2]string{
		{`"seq":2`, `"seq":02`}, {`"seq":2`, `"seq":-2`}, {`"seq":2`, `"seq": 2`}, {`"seq":2`, `"seq":2e0`},
		{`"seq":2`, `"seq":0`}, {`"seq":2`, `"seq":9223372036854775808`}, {`"seq":2`, `"seq":18446744073709551618`},
		{`"ack":0`, `"ack":2`}, {`"ack":0`, `"ack":`}, {`"ts":"1970`, `"ts":"197`}, {`Z","kind"`, `+","kind"`},
		{`"kind":"k"`, `"kind":""`}, {`"kind":"k"`, `"kind":"k k"`}, {`"step":0`, `"step":2147483648`},
		{`"tok":0`, `"tok":1.5`}, {`"body":{}`, `"body":[]`}, {`"body":{}`, `"body":`}, {`"body":{}`, `"body":1`},
		{`"ts":"1970`, `"ts":"197/`}, {`"ts":"1970`, `"ts":"197:`}, {`"kind":"k"`, `"kind":"` + strings.Repeat("k", MaxKindBytes+1) + `"`},
		{`"kind":"k"`, `"kind":"` + strings.Repeat("k", MaxKindBytes+6) + `"`}, {`"body":{}`, `"body":{"a":"` + strings.Repeat("x", MaxInlineBytes-7) + `"}`},
		{`"prev":"00`, `"prev":"0A`}, {`"prev":"00`, `"prev":"0`}, {`{"v":1,"seq"`, `{"seq"`}, {`"ack":0,`, ``},
	} {
		line := bytes.Replace(good, []byte(change[0]), []byte(change[1]), 1)
		if bytes.Equal(line, good) {
			t.Fatalf("%q does not occur", change[0])
		}
		if ParseLine(resum(line), &e) == nil {
			t.Errorf("%s was taken", line)
		}
	}
}

// TestLineLimits: a kind and a body as long as they may be are read; a line that is too long, of another version, cut
// or changed says so.
func TestLineLimits(t *testing.T) {
	good := Envelope{
		Seq: 2, TS: AppendTime(nil, time.Unix(0, 0)), Kind: bytes.Repeat([]byte("k"), MaxKindBytes),
		Body: fmt.Appendf(nil, `{"a":"%s"}`, strings.Repeat("x", MaxInlineBytes-8)),
	}
	var e Envelope
	if err := ParseLine(AppendLine(nil, &good), &e); err != nil || len(e.Kind) != MaxKindBytes ||
		len(e.Body) != MaxInlineBytes {
		t.Errorf("%d, %d, %v", len(e.Kind), len(e.Body), err)
	}
	good.Body = []byte("{}")
	line := AppendLine(nil, &good)
	for n := range len(line) - crcTailLen {
		if err := ParseLine(resum(append(bytes.Clone(line[:n]), make([]byte, crcTailLen)...)), &e); err == nil {
			t.Errorf("%d bytes were taken", n)
		}
	}
	for size, want := range map[int]bool{MaxLineBytes: false, MaxLineBytes + 1: true} {
		if err := ParseLine(make([]byte, size), &e); err == nil || strings.Contains(err.Error(), "longer") != want {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if err := ParseLine(resum(bytes.Replace(line, []byte(`"v":1`), []byte(`"v":2`), 1)), &e); !errors.Is(err, ErrVersion) {
		t.Errorf("another version: %v", err)
	}
	for from, want := range map[string]Error{`"step":0`: errLineCRC, `"crc":"`: errLineForm} {
		if err := ParseLine(bytes.Replace(line, []byte(from), bytes.ToUpper([]byte(from)), 1), &e); err != want {
			t.Errorf("%s changed: %v, want %v", from, err, want)
		}
	}
	digits := bytes.Clone(line)
	digits[len(digits)-4] = 'G'
	if err := ParseLine(digits, &e); err != errLineForm {
		t.Errorf("a checksum with a G: %v", err)
	}
	if err := error(&CorruptError{}); !errors.Is(err, ErrCorrupt) || errors.Is(err, ErrVersion) {
		t.Error("a CorruptError is ErrCorrupt alone")
	}
}

// TestYears: a year of four digits is kept.
func TestYears(t *testing.T) {
	for year, want := range map[int]bool{-1: false, 0: true, 9999: true, 10000: false} {
		at := time.Date(year, 2, 3, 4, 5, 6, 7000, time.UTC)
		if got := ParseTime(AppendTime(nil, at)); got.Equal(at) != want || got.IsZero() == want {
			t.Errorf("%d: %v", year, got)
		}
	}
}

// FuzzLine holds that the decoder never panics and takes only lines that the
// encoder would write, byte for byte.
func FuzzLine(f *testing.F) {
	good := AppendLine(nil, &Envelope{
		Seq: 7, Ack: 3, TS: AppendTime(nil, time.Unix(0, 0)), Kind: []byte("a.b"), Step: 1, Tok: 2,
		Body: []byte(`{"a":"b"}`),
	})
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add([]byte(`{"v":1,"seq":`))
	f.Add([]byte(`,"crc":"00000000"}`))
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0}, 512))
	f.Fuzz(func(t *testing.T, data []byte) {
		lines := [][]byte{data}
		if len(data) >= crcTailLen {
			lines = append(lines, resum(data)) // past the checksum, to the form
		}
		for _, line := range lines {
			var e Envelope
			if ParseLine(line, &e) != nil {
				continue
			}
			if again := AppendLine(nil, &e); !bytes.Equal(again, line) {
				t.Fatalf("took %q, which the encoder writes as %q", line, again)
			}
		}
	})
}

package opstream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"anamnesis/opstream/internal/segments"
	"anamnesis/opstream/internal/wire"
)

// rotEvery is how many bytes lie between two flips, but in the nightly run, which
// flips a bit of each, as does a newline always.
const rotEvery = 4

// TestBitRot flips single bits of a stream of one segment, where acks vouch, and of
// several, where names do, too: no reader gives a wrong record, and damage to what
// is vouched for is called corruption by reader, writer and Verify.
func TestBitRot(t *testing.T) {
	t.Run("one segment", func(t *testing.T) { bitRot(t, 1<<20, 1) })
	t.Run("several", func(t *testing.T) { bitRot(t, 900, 3) })
}

func bitRot(t *testing.T, segmentBytes int64, minSegments int) {
	t.Parallel()
	base := newDisk()
	base.names["/log"] = &node{dir: true}
	o := diskOptions(base)
	o.SegmentSizeBytes = segmentBytes
	l, err := openLocked("/log", o, nil)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range 12 {
		body := fmt.Sprintf(`{"n":%d,"text":"some words of a body"}`, i)
		if i == 5 {
			body = `{"$blob":` + body + `}`
		}
		want = append(want, body)
		mustAppend(t, l, Entry{Kind: "test.op", Step: i, Tok: i, Body: []byte(body)})
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(base.segments()); n < minSegments {
		t.Fatalf("only %d segments", n)
	}
	lastPath, _ := tail(base)
	lastLine := bytes.LastIndexByte(bytes.TrimSuffix(base.names[lastPath].data, []byte("\n")), '\n') + 1
	flips, classes, from, every := 0, map[string]int{}, rand.IntN(rotEvery), rotEvery
	if *nightly {
		from, every = 0, 1
	}
	t.Logf("every byte number %d, from %d", every, from)
	for path, n := range base.names {
		if n.dir {
			continue
		}
		for at := 0; at < len(n.data); at++ {
			if at%every != from && n.data[at] != '\n' {
				continue
			}
			bit := byte(1) << (at / every % 8)
			n.data[at] ^= bit
			err := readsRight(base, want)
			acked := path != lastPath || at < lastLine
			rep, verr := verify(context.Background(), base, "/log")
			if verr != nil {
				t.Fatal(verr)
			}
			if acked && !errors.Is(err, wire.ErrCorrupt) {
				t.Fatalf("%s byte %d bit %x: reader says %v", path, at, bit, err)
			}
			if acked && strings.HasSuffix(path, segments.Suffix) {
				if _, err := openLocked("/log", o, nil); !errors.Is(err, wire.ErrCorrupt) {
					t.Fatalf("%s byte %d bit %x: writer says %v", path, at, bit, err)
				}
			}
			if acked && !rep.Has(SeverityCorrupt) {
				t.Fatalf("%s byte %d bit %x: Verify finds %v", path, at, bit, rep.Findings)
			}
			if !acked && (!errors.Is(err, errTornEnd) || !rep.Has(SeverityTorn)) {
				t.Fatalf("%s byte %d bit %x: reader says %v, Verify %v", path, at, bit, err, rep.Findings)
			}
			n.data[at] ^= bit
			flips++
			classes[byteClass(path, n.data, at)]++
		}
	}
	if err := readsRight(base, want); err != nil {
		t.Fatalf("the unharmed stream: %v", err)
	}
	if len(classes) != 11 || flips < 2000/every {
		t.Errorf("%d flips of %d classes of bytes: %v", flips, len(classes), classes)
	}
	t.Logf("%d flips, 0 silently wrong: %v", flips, classes)
}

// byteClass says what a byte of a stream's files belongs to: a blob, a line's
// field with the words around it, or the end of a line.
func byteClass(path string, data []byte, at int) string {
	if !strings.HasSuffix(path, segments.Suffix) {
		return "blob"
	}
	if data[at] == '\n' {
		return "newline"
	}
	line := data[bytes.LastIndexByte(data[:at], '\n')+1:]
	at -= len(data) - len(line)
	class := ""
	for _, word := range []string{wire.WordVersion, wire.WordAck, wire.WordTime, wire.WordKind, wire.WordStep, wire.WordTok, wire.WordBody, wire.WordPrev, wire.WordCRC} {
		if from := bytes.Index(line, []byte(word)); at >= from {
			class = strings.TrimPrefix(strings.Trim(word, `{":,`), `v":1,"`)
		}
	}
	return class
}

var errTornEnd = errors.New("torn end")

// readsRight reads all and compares; a wrong record is an error of its own
// kind, damage the reader's error.
func readsRight(d *simDisk, want []string) error {
	r, err := OpenReader("/log", &Options{FS: d})
	if err != nil {
		return err
	}
	defer r.Close()
	n := 0
	for rec, err := range r.Since(0) {
		if err != nil {
			return err
		}
		if strings.HasPrefix(rec.Kind, "log.") {
			continue
		}
		if n >= len(want) || string(rec.Body) != want[n] || rec.Step != n || rec.Tok != n {
			return fmt.Errorf("WRONG record %d: %+v", n, rec)
		}
		n++
	}
	if r.Torn() != nil {
		return errTornEnd
	}
	if n != len(want) {
		return fmt.Errorf("%d records of %d", n, len(want))
	}
	return nil
}

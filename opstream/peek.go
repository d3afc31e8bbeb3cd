package opstream

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"strconv"

	"anamnesis/opstream/durable"
	"anamnesis/opstream/internal/segments"
	"anamnesis/opstream/internal/wire"
)

// Peek returns one record of the stream in dir, verified by its own checksum alone: opening a long stream verifies all
// lines before, which a reader of few records of many streams would wait for. A seq that is not there is ErrNoRecord.
func Peek(dir string, seq uint64) (Record, error) {
	fsys := durable.OS{}
	none := fmt.Errorf("get record %d of %s: %w", seq, dir, ErrNoRecord)
	segs, _, err := segments.List(fsys, dir)
	if err != nil {
		return Record{}, notFound(dir, err)
	}
	if len(segs) == 0 || seq < segs[0] {
		return Record{}, none
	}
	path := segments.Path(dir, wire.SegmentOf(segs, seq))
	size, err := segments.FileSize(fsys, path)
	if err != nil {
		return Record{}, err
	}
	f, err := fsys.Open(path, os.O_RDONLY)
	if err != nil {
		return Record{}, err
	}
	defer f.Close()
	begins := []byte(wire.WordVersion + strconv.FormatUint(seq, 10) + wire.WordAck)
	for lines := segments.NewLineReader(f, 0, size); ; {
		line, _, state, err := lines.Next()
		if err != nil || state == segments.LineEnd {
			return Record{}, cmp.Or(err, none)
		}
		var e wire.Envelope
		if !bytes.HasPrefix(line, begins) {
			continue
		} else if err := wire.ParseLine(line, &e); err != nil {
			return Record{}, fmt.Errorf("record %d of %s: %w: %w", seq, dir, ErrCorrupt, err)
		}
		return recordOf(&e, fsys, dir, e.Ack)
	}
}

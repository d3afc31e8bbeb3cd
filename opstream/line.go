package opstream

import (
	"bytes"
	"iter"

	"anamnesis/opstream/internal/segments"
	"anamnesis/opstream/internal/wire"
)

// Line is one durable line as a stream stores it, for a copy of the stream that is the same byte for byte.
type Line struct {
	Seq    uint64
	Kind   string
	File   string // relative to the stream's directory
	Offset int64  // in File
	Bytes  []byte // with the newline
	Blob   string // the file that holds the body, relative to the stream's directory; empty: the line has it
}

// Lines returns the lines after a seq that are durable at its start, in order, each verified. An error ends them.
func (l *Log) Lines(after uint64) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		l.eachAfter(after, func(files *segments.Reader, ref segments.Ref, _ uint64) bool {
			line, err := lineAt(files, ref)
			return yield(line, err) && err == nil
		})
	}
}

func lineAt(files *segments.Reader, ref segments.Ref) (Line, error) {
	stored, e, err := files.Read(ref)
	if err != nil {
		return Line{}, err
	}
	line := Line{Seq: e.Seq, Kind: string(e.Kind), Bytes: append(bytes.Clone(stored), '\n')}
	line.File, line.Offset = ref.Place()
	blob, ok, err := segments.ParseBlobRef(e.Body)
	if err != nil {
		return Line{}, &wire.CorruptError{File: line.File, Offset: line.Offset, Seq: line.Seq, Why: err.Error()}
	}
	if ok {
		line.Blob = segments.BlobPath("", blob.Blob.SHA256)
	}
	return line, nil
}

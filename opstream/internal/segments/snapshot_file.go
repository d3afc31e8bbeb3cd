package segments

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"anamnesis/opstream/durable"
	"anamnesis/opstream/internal/wire"
)

// snapshotVersion is 3 since the index has only the sizes of lines.
const snapshotVersion = 3

// snapshotHead is the first line of a snapshot's file.
type snapshotHead struct {
	V          int      `json:"v"`
	Fold       string   `json:"fold"` // the caller's version
	Seq        uint64   `json:"seq"`
	Hash       string   `json:"hash"`
	Segments   []uint64 `json:"segments"`
	IndexBytes int64    `json:"index_bytes"`
	FoldBytes  int64    `json:"fold_bytes"`
}

const errSnapshotHead wire.Error = "the head does not have the format's form"

// EncodeSnapshot returns the bytes of a snapshot's file: the head, the index,
// the fold and the SHA-256 of all that.
func EncodeSnapshot(c *Snapshot) ([]byte, error) {
	idx := c.Idx.Encoded()
	head, err := json.Marshal(snapshotHead{
		V: snapshotVersion, Fold: c.Version, Seq: c.Cur.Seq, Hash: hex.EncodeToString(c.Cur.Hash[:]),
		Segments: c.Cur.Segs, IndexBytes: int64(len(idx)), FoldBytes: int64(len(c.Fold)),
	})
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(head)+1+len(idx)+len(c.Fold)+sha256.Size)
	out = append(append(out, head...), '\n')
	out = append(append(out, idx...), c.Fold...)
	sum := sha256.Sum256(out)
	return append(out, sum[:]...), nil
}

// ReadSnapshot reads the snapshot beside a stream and verifies it against
// its own checksum, not against the stream. The error is fs.ErrNotExist when
// there is none.
func ReadSnapshot(fsys durable.FS, dir string) (*Snapshot, error) {
	f, err := fsys.Open(filepath.Join(dir, SnapshotName), os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	data := make([]byte, size)
	if _, err := f.ReadAt(data, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return DecodeSnapshot(data)
}

// DecodeSnapshot is EncodeSnapshot's inverse. It takes any bytes, which the fold shares.
func DecodeSnapshot(data []byte) (*Snapshot, error) {
	n := len(data) - sha256.Size
	if n < 0 {
		return nil, errors.New("it is cut short")
	}
	if sha256.Sum256(data[:n]) != [sha256.Size]byte(data[n:]) {
		return nil, errors.New("the checksum does not match")
	}
	line, rest, _ := bytes.Cut(data[:n], []byte{'\n'})
	head, err := decodeSnapshotHead(line, int64(len(rest)))
	if err != nil {
		return nil, err
	}
	c := &Snapshot{Version: head.Fold, Fold: rest[head.IndexBytes:], Cur: Cursor{Segs: head.Segments, Seq: head.Seq}}
	if !wire.DecodeLowerHex(c.Cur.Hash[:], []byte(head.Hash)) {
		return nil, errSnapshotHead
	}
	return c, c.decodeIndex(rest[:head.IndexBytes], head)
}

// decodeSnapshotHead reads the first line and checks it by itself and against
// the number of bytes that follow.
func decodeSnapshotHead(line []byte, rest int64) (*snapshotHead, error) {
	var h snapshotHead
	if err := json.Unmarshal(line, &h); err != nil {
		return nil, fmt.Errorf("read the head: %w", err)
	}
	if h.V != snapshotVersion {
		return nil, fmt.Errorf("%w: the file has version %d, not %d", ErrFoldVersion, h.V, snapshotVersion)
	}
	// A line takes at least one byte of the index, which bounds seq by the file's own size.
	ok := h.IndexBytes >= 0 && h.FoldBytes >= 0 && h.IndexBytes <= rest && h.FoldBytes == rest-h.IndexBytes &&
		h.Seq > 0 && h.Seq <= uint64(h.IndexBytes) &&
		len(h.Segments) > 0 && h.Segments[0] == 1
	for i, seg := range h.Segments {
		ok = ok && seg <= h.Seq && (i == 0 || seg > h.Segments[i-1])
	}
	if !ok {
		return nil, errSnapshotHead
	}
	return &h, nil
}

// decodeIndex reads the index, and from it where the segments' lines end.
func (c *Snapshot) decodeIndex(data []byte, h *snapshotHead) error {
	end, segs := int64(0), h.Segments[1:]
	for seq := uint64(1); seq <= h.Seq; seq++ {
		size, n, ok := wire.DecodeSize(data)
		if !ok {
			return fmt.Errorf("the index is wrong for record %d", seq)
		}
		data = data[n:]
		if len(segs) > 0 && seq == segs[0] { // the line begins a segment, so the one before it ends
			c.ends, end, segs = append(c.ends, end), 0, segs[1:]
		}
		e := wire.Entry{Off: end, Size: size}
		end = e.End()
		c.Idx.Add(e)
	}
	if len(data) > 0 {
		return errors.New("bytes behind the index")
	}
	c.ends, c.Cur.Off = append(c.ends, end), end
	return nil
}

package segments

import (
	"bufio"
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

const (
	// snapshotVersion is 2 since the index has no token counts.
	snapshotVersion = 2
	// maxSnapshotHeadBytes bounds the first line: the segments and the kinds.
	maxSnapshotHeadBytes = 16 << 20
	// snapshotReadBytes is how much of the file is read at once.
	snapshotReadBytes = 256 << 10
)

// snapshotHead is the first line of a snapshot's file.
type snapshotHead struct {
	V          int      `json:"v"`
	Fold       string   `json:"fold"` // the caller's version
	Seq        uint64   `json:"seq"`
	Hash       string   `json:"hash"`
	Segments   []uint64 `json:"segments"`
	Kinds      []string `json:"kinds"`
	IndexBytes int64    `json:"index_bytes"`
	FoldBytes  int64    `json:"fold_bytes"`
}

const errSnapshotHead wire.Error = "the head does not have the format's form"

// EncodeSnapshot returns the bytes of a snapshot's file: the head, the index,
// the fold and the SHA-256 of all that.
func EncodeSnapshot(c *Snapshot) ([]byte, error) {
	idx := c.Idx.AppendEncoded(nil)
	head, err := json.Marshal(snapshotHead{
		V: snapshotVersion, Fold: c.Version, Seq: c.Cur.Seq, Hash: hex.EncodeToString(c.Cur.Hash[:]),
		Segments: c.Cur.Segs, Kinds: c.Idx.Kinds, IndexBytes: int64(len(idx)), FoldBytes: int64(len(c.Fold)),
	})
	if err != nil {
		return nil, err
	}
	if len(head) >= maxSnapshotHeadBytes {
		return nil, fmt.Errorf("%w: segments and kinds need %d bytes, the limit is %d", wire.ErrTooLarge, len(head), maxSnapshotHeadBytes)
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
	c, err := DecodeSnapshot(f, size)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("it is cut short or no snapshot: %w", err)
	}
	return c, err
}

// DecodeSnapshot is EncodeSnapshot's inverse. It takes any bytes, and
// memory in proportion to them.
func DecodeSnapshot(r io.ReaderAt, size int64) (*Snapshot, error) {
	if size < sha256.Size {
		return nil, io.ErrUnexpectedEOF
	}
	sum := sha256.New()
	content := io.NewSectionReader(r, 0, size-sha256.Size)
	in := bufio.NewReaderSize(io.TeeReader(content, sum), int(min(max(size, 4<<10), snapshotReadBytes)))
	head, err := readSnapshotHead(in, size)
	if err != nil {
		return nil, err
	}
	c := &Snapshot{Version: head.Fold, Cur: Cursor{Segs: head.Segments, Seq: head.Seq}}
	if err := c.readIndex(in, head); err != nil {
		return nil, err
	}
	c.Fold = make([]byte, head.FoldBytes)
	if _, err := io.ReadFull(in, c.Fold); err != nil {
		return nil, err
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		return nil, errors.Join(errors.New("bytes behind the fold"), err)
	}
	var want [sha256.Size]byte
	if _, err := r.ReadAt(want[:], size-sha256.Size); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if !bytes.Equal(sum.Sum(nil), want[:]) {
		return nil, errors.New("the checksum does not match")
	}
	if !wire.DecodeLowerHex(c.Cur.Hash[:], []byte(head.Hash)) {
		return nil, errSnapshotHead
	}
	return c, nil
}

// readSnapshotHead reads the first line and checks it by itself and against
// the file's size.
func readSnapshotHead(in *bufio.Reader, size int64) (*snapshotHead, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > maxSnapshotHeadBytes {
			return nil, errors.New("the head is too long")
		}
		line = append(line, part...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
	var h snapshotHead
	if err := json.Unmarshal(line, &h); err != nil {
		return nil, fmt.Errorf("read the head: %w", err)
	}
	if h.V != snapshotVersion {
		return nil, fmt.Errorf("%w %d", wire.ErrVersion, h.V)
	}
	rest := size - int64(len(line)) - sha256.Size
	ok := h.IndexBytes >= 0 && h.FoldBytes >= 0 && h.IndexBytes <= rest && h.FoldBytes == rest-h.IndexBytes &&
		h.FoldBytes <= MaxFoldBytes && h.Seq > 0 && h.Seq <= uint64(h.IndexBytes) &&
		len(h.Kinds) <= wire.MaxIndexedKinds && len(h.Segments) > 0 && h.Segments[0] == 1
	for i, seg := range h.Segments {
		ok = ok && seg <= h.Seq && (i == 0 || seg > h.Segments[i-1])
	}
	for _, kind := range h.Kinds {
		ok = ok && wire.ValidKind(kind)
	}
	if !ok {
		return nil, errSnapshotHead
	}
	return &h, nil
}

// readIndex reads the index, and from it where the segments' lines end.
func (c *Snapshot) readIndex(in *bufio.Reader, h *snapshotHead) error {
	for _, kind := range h.Kinds {
		c.Idx.Number([]byte(kind))
	}
	if len(c.Idx.Kinds) != len(h.Kinds) {
		return errors.New("a kind is named twice")
	}
	var e wire.Entry
	end, left, segs := int64(0), h.IndexBytes, h.Segments[1:]
	for seq := uint64(1); seq <= h.Seq; seq++ {
		buf, err := in.Peek(int(min(left, wire.MaxIndexedBytes)))
		if err != nil {
			return err
		}
		n, ok := e.Decode(buf, len(h.Kinds))
		if !ok {
			return fmt.Errorf("the index is wrong for record %d", seq)
		}
		left -= int64(n)
		if _, err := in.Discard(n); err != nil {
			return err
		}
		if len(segs) > 0 && seq == segs[0] {
			c.ends, end, segs = append(c.ends, end), 0, segs[1:]
		}
		e.Off = end
		end += int64(e.Size) + 1
		c.Idx.Put(e)
	}
	if left != 0 {
		return errors.New("bytes behind the index")
	}
	c.ends, c.Cur.Off = append(c.ends, end), end
	return nil
}

package opstream

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
)

const (
	checkpointVersion = 1
	// maxCheckpointHeadBytes bounds the first line: the segments and the kinds.
	maxCheckpointHeadBytes = 16 << 20
	// checkpointReadBytes is how much of the file is read at once.
	checkpointReadBytes = 256 << 10
)

// checkpointHead is the first line of a checkpoint's file.
type checkpointHead struct {
	V          int      `json:"v"`
	Fold       string   `json:"fold"` // the caller's version
	Seq        uint64   `json:"seq"`
	Hash       string   `json:"hash"`
	Segments   []uint64 `json:"segments"`
	Kinds      []string `json:"kinds"`
	IndexBytes int64    `json:"index_bytes"`
	FoldBytes  int64    `json:"fold_bytes"`
}

const errCheckpointHead lineError = "the head does not have the format's form"

// encodeCheckpoint returns the bytes of a checkpoint's file: the head, the index,
// the fold and the SHA-256 of all that.
func encodeCheckpoint(c *checkpoint) ([]byte, error) {
	idx := c.idx.appendEncoded(nil)
	head, err := json.Marshal(checkpointHead{
		V: checkpointVersion, Fold: c.version, Seq: c.cur.seq, Hash: hex.EncodeToString(c.cur.hash[:]),
		Segments: c.cur.segs, Kinds: c.idx.kinds, IndexBytes: int64(len(idx)), FoldBytes: int64(len(c.fold)),
	})
	if err != nil {
		return nil, err
	}
	if len(head) >= maxCheckpointHeadBytes {
		return nil, fmt.Errorf("%w: segments and kinds need %d bytes, the limit is %d", ErrTooLarge, len(head), maxCheckpointHeadBytes)
	}
	out := make([]byte, 0, len(head)+1+len(idx)+len(c.fold)+sha256.Size)
	out = append(append(out, head...), '\n')
	out = append(append(out, idx...), c.fold...)
	sum := sha256.Sum256(out)
	return append(out, sum[:]...), nil
}

// readCheckpoint reads the checkpoint beside a stream and verifies it against
// its own checksum, not against the stream. The error is fs.ErrNotExist when
// there is none.
func readCheckpoint(fsys FS, dir string) (*checkpoint, error) {
	f, err := fsys.Open(filepath.Join(dir, checkpointName), os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, err
	}
	c, err := decodeCheckpoint(f, size)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("it is cut short or no checkpoint: %w", err)
	}
	return c, err
}

// decodeCheckpoint is encodeCheckpoint's inverse. It takes any bytes, and
// memory in proportion to them.
func decodeCheckpoint(r io.ReaderAt, size int64) (*checkpoint, error) {
	if size < sha256.Size {
		return nil, io.ErrUnexpectedEOF
	}
	sum := sha256.New()
	content := io.NewSectionReader(r, 0, size-sha256.Size)
	in := bufio.NewReaderSize(io.TeeReader(content, sum), int(min(max(size, 4<<10), checkpointReadBytes)))
	head, err := readCheckpointHead(in, size)
	if err != nil {
		return nil, err
	}
	c := &checkpoint{version: head.Fold, cur: cursor{segs: head.Segments, seq: head.Seq}}
	if err := c.readIndex(in, head); err != nil {
		return nil, err
	}
	c.fold = make([]byte, head.FoldBytes)
	if _, err := io.ReadFull(in, c.fold); err != nil {
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
	if !decodeLowerHex(c.cur.hash[:], []byte(head.Hash)) {
		return nil, errCheckpointHead
	}
	return c, nil
}

// readCheckpointHead reads the first line and checks it by itself and against
// the file's size.
func readCheckpointHead(in *bufio.Reader, size int64) (*checkpointHead, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > maxCheckpointHeadBytes {
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
	var h checkpointHead
	if err := json.Unmarshal(line, &h); err != nil {
		return nil, fmt.Errorf("read the head: %w", err)
	}
	if h.V != checkpointVersion {
		return nil, fmt.Errorf("%w %d", ErrVersion, h.V)
	}
	rest := size - int64(len(line)) - sha256.Size
	ok := h.IndexBytes >= 0 && h.FoldBytes >= 0 && h.IndexBytes <= rest && h.FoldBytes == rest-h.IndexBytes &&
		h.FoldBytes <= MaxFoldBytes && h.Seq > 0 && h.Seq <= uint64(h.IndexBytes) &&
		len(h.Kinds) <= maxIndexedKinds && len(h.Segments) > 0 && h.Segments[0] == 1
	for i, seg := range h.Segments {
		ok = ok && seg <= h.Seq && (i == 0 || seg > h.Segments[i-1])
	}
	for _, kind := range h.Kinds {
		ok = ok && validKind(kind)
	}
	if !ok {
		return nil, errCheckpointHead
	}
	return &h, nil
}

// readIndex reads the index, and from it where the segments' lines end.
func (c *checkpoint) readIndex(in *bufio.Reader, h *checkpointHead) error {
	for _, kind := range h.Kinds {
		c.idx.number([]byte(kind))
	}
	if len(c.idx.kinds) != len(h.Kinds) {
		return errors.New("a kind is named twice")
	}
	var e indexEntry
	end, left, segs := int64(0), h.IndexBytes, h.Segments[1:]
	for seq := uint64(1); seq <= h.Seq; seq++ {
		buf, err := in.Peek(int(min(left, maxIndexedBytes)))
		if err != nil {
			return err
		}
		n, ok := e.decode(buf, len(h.Kinds))
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
		e.off = end
		end += int64(e.size) + 1
		c.idx.put(e)
	}
	if left != 0 {
		return errors.New("bytes behind the index")
	}
	c.ends, c.cur.off = append(c.ends, end), end
	return nil
}

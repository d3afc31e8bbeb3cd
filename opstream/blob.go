package opstream

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"unicode/utf8"

	"anamnesis/opstream/jsontext"
)

const (
	blobsDirName  = "blobs"
	blobAlgorithm = "sha256"
	blobTemp      = "tmp-"
	// blobPrefix begins the body that names a blob. A caller's body that
	// begins so is made a blob itself, so that the prefix is never ambiguous.
	blobPrefix = `{"$blob":`

	mimeJSON  = "application/json"
	mimeBytes = "application/octet-stream" // JSON but for bytes that are not UTF-8
)

// blobRef is the body that stands for a blob.
type blobRef struct {
	Blob struct {
		SHA256 string `json:"sha256"`
		Bytes  int64  `json:"bytes"`
		MIME   string `json:"mime"`
	} `json:"$blob"`
}

// parseBlobRef reads a stored body as a blob's reference; false when the body
// is an inline one. An error means that the body begins as a reference and is
// none.
func parseBlobRef(body []byte) (ref blobRef, ok bool, err error) {
	if !bytes.HasPrefix(body, []byte(blobPrefix)) {
		return ref, false, nil
	}
	if err := json.Unmarshal(body, &ref); err != nil {
		return ref, true, fmt.Errorf("the blob reference is not JSON: %w", err)
	}
	if len(ref.Blob.SHA256) != sha256.Size*2 || !isLowerHex([]byte(ref.Blob.SHA256)) ||
		ref.Blob.Bytes < 0 || ref.Blob.Bytes > MaxBodyBytes {
		return ref, true, errors.New("the blob reference does not have the format's form")
	}
	return ref, true, nil
}

// resolveBody returns the body a line stands for: a copy of the inline one, or
// the verified blob. A missing or rotten blob is a *CorruptError naming it.
func resolveBody(fsys FS, dir string, seq uint64, body []byte) ([]byte, error) {
	ref, ok, err := parseBlobRef(body)
	if !ok {
		return bytes.Clone(body), nil
	}
	if err != nil {
		return nil, &CorruptError{File: dir, Seq: seq, Why: err.Error()}
	}
	path := blobPath(dir, ref.Blob.SHA256)
	data, err := readBlob(fsys, path, ref.Blob.Bytes)
	var damage lineError
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return nil, &CorruptError{File: path, Seq: seq, Why: "the blob is missing"}
	case errors.As(err, &damage), unreadable(err):
		return nil, &CorruptError{File: path, Seq: seq, Why: err.Error()}
	case err != nil:
		return nil, fmt.Errorf("read blob of seq %d: %w", seq, err)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != ref.Blob.SHA256 {
		return nil, &CorruptError{File: path, Seq: seq, Why: "the blob's bytes do not have its hash"}
	}
	return data, nil
}

// readBlob reads a file of a known size. A lineError says that the size is
// another.
func readBlob(fsys FS, path string, size int64) ([]byte, error) {
	f, err := fsys.Open(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	have, err := f.Size()
	if err != nil {
		return nil, err
	}
	if have != size {
		return nil, lineError(fmt.Sprintf("the blob has %d bytes, its op says %d", have, size))
	}
	data := make([]byte, size)
	if n, err := f.ReadAt(data, 0); int64(n) < size {
		if errors.Is(err, io.EOF) {
			return nil, lineError("the blob ends early")
		}
		return nil, err
	}
	return data, nil
}

// encodeBody checks a caller's body and returns its compact form, which may be
// the body itself, and the blob's type when it must be one.
func encodeBody(body []byte) (compact []byte, mime string, err error) {
	if body == nil {
		return []byte("{}"), "", nil
	}
	if len(body) > MaxBodyBytes {
		return nil, "", fmt.Errorf("%w: the body has %d bytes, the limit is %d", ErrTooLarge, len(body), MaxBodyBytes)
	}
	if compact = body; !jsontext.CompactObject(body) {
		var buf bytes.Buffer
		if err := json.Compact(&buf, body); err != nil {
			return nil, "", fmt.Errorf("%w: the body is not one JSON value: %w", ErrInvalid, err)
		}
		compact = buf.Bytes()
	}
	switch {
	case len(compact) == 0 || compact[0] != '{':
		return nil, "", fmt.Errorf("%w: the body is not a JSON object", ErrInvalid)
	case !utf8.Valid(compact):
		return compact, mimeBytes, nil
	case len(compact) > MaxInlineBytes, bytes.HasPrefix(compact, []byte(blobPrefix)):
		return compact, mimeJSON, nil
	}
	return compact, "", nil
}

// blobStore writes blobs. It is not safe for concurrent use.
type blobStore struct {
	fs     FS
	dir    string
	made   map[string]bool // directories whose entries are durable
	nextNo int
}

// put makes a blob durable and returns the body that names it. A blob that is
// there and whole is kept; one that is rotten is replaced.
func (b *blobStore) put(data []byte, mime string) ([]byte, error) {
	sum := sha256.Sum256(data)
	name := hex.EncodeToString(sum[:])
	var ref blobRef
	ref.Blob.SHA256, ref.Blob.Bytes, ref.Blob.MIME = name, int64(len(data)), mime
	body, err := json.Marshal(ref)
	if err != nil {
		return nil, fmt.Errorf("name blob: %w", err)
	}
	root := filepath.Join(b.dir, blobsDirName)
	algo := filepath.Join(root, blobAlgorithm)
	leaf := filepath.Join(algo, name[:2])
	for _, d := range [][2]string{{root, b.dir}, {algo, root}, {leaf, algo}} {
		if b.made[d[0]] {
			continue
		}
		if err := mkdirDurable(b.fs, d[0], d[1]); err != nil {
			return nil, fmt.Errorf("write blob: %w", err)
		}
		if b.made == nil {
			b.made = map[string]bool{}
		}
		b.made[d[0]] = true
	}
	path := filepath.Join(leaf, name)
	if have, err := readBlob(b.fs, path, int64(len(data))); err != nil || !bytes.Equal(have, data) {
		b.nextNo++
		temp := filepath.Join(root, fmt.Sprintf("%s%d", blobTemp, b.nextNo))
		if err := writeFileDurable(b.fs, temp, path, data); err != nil {
			return nil, fmt.Errorf("write blob: %w", err)
		}
	}
	if err := b.fs.SyncDir(leaf); err != nil {
		return nil, fmt.Errorf("write blob: sync directory: %w", err)
	}
	return body, nil
}

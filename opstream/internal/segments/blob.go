package segments

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

	"anamnesis/opstream/durable"
	"anamnesis/opstream/internal/wire"
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

// BlobRef is the body that names a blob.
type BlobRef struct {
	Blob struct {
		SHA256 string `json:"sha256"`
		Bytes  int64  `json:"bytes"`
		MIME   string `json:"mime"`
	} `json:"$blob"`
}

// ParseBlobRef reads a stored body as a blob's reference; ok is false for an inline body. An
// error means that the body begins as a reference and is malformed.
func ParseBlobRef(body []byte) (ref BlobRef, ok bool, err error) {
	if !bytes.HasPrefix(body, []byte(blobPrefix)) {
		return ref, false, nil
	}
	if err := json.Unmarshal(body, &ref); err != nil {
		return ref, true, fmt.Errorf("the blob reference is not JSON: %w", err)
	}
	if len(ref.Blob.SHA256) != sha256.Size*2 || !wire.IsLowerHex([]byte(ref.Blob.SHA256)) ||
		ref.Blob.Bytes < 0 || ref.Blob.Bytes > wire.MaxBodyBytes {
		return ref, true, errors.New("the blob reference does not have the format's form")
	}
	return ref, true, nil
}

// ResolveBody returns the body of a line: a copy of the inline one, or the verified blob. A
// missing or damaged blob is a *CorruptError naming it.
func ResolveBody(fsys durable.FS, dir string, seq uint64, body []byte) ([]byte, error) {
	ref, ok, err := ParseBlobRef(body)
	if !ok {
		return bytes.Clone(body), nil
	}
	if err != nil {
		return nil, &wire.CorruptError{File: dir, Seq: seq, Why: err.Error()}
	}
	path := BlobPath(dir, ref.Blob.SHA256)
	data, err := ReadBlob(fsys, path, ref.Blob.Bytes)
	var damage wire.Error
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return nil, &wire.CorruptError{File: path, Seq: seq, Why: "the blob is missing"}
	case errors.As(err, &damage), durable.Unreadable(err):
		return nil, &wire.CorruptError{File: path, Seq: seq, Why: err.Error()}
	case err != nil:
		return nil, fmt.Errorf("read blob of seq %d: %w", seq, err)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != ref.Blob.SHA256 {
		return nil, &wire.CorruptError{File: path, Seq: seq, Why: "the blob's bytes do not have its hash"}
	}
	return data, nil
}

// ReadBlob reads a file of a known size. A wire.Error reports another size.
func ReadBlob(fsys durable.FS, path string, size int64) ([]byte, error) {
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
		return nil, wire.Error(fmt.Sprintf("the blob has %d bytes, its op says %d", have, size))
	}
	data := make([]byte, size)
	if n, err := f.ReadAt(data, 0); int64(n) < size {
		if errors.Is(err, io.EOF) {
			return nil, wire.Error("the blob ends early")
		}
		return nil, err
	}
	return data, nil
}

// EncodeBody checks a caller's body and returns its compact form. mime is set if it must become a blob.
func EncodeBody(body []byte) (compact []byte, mime string, err error) {
	if body == nil {
		return []byte("{}"), "", nil
	}
	if len(body) > wire.MaxBodyBytes {
		return nil, "", fmt.Errorf("%w: the body has %d bytes, the limit is %d",
			wire.ErrTooLarge, len(body), wire.MaxBodyBytes)
	}
	var buf bytes.Buffer
	if err := json.Compact(&buf, body); err != nil {
		return nil, "", fmt.Errorf("%w: the body is not one JSON value: %w", wire.ErrInvalid, err)
	}
	compact = buf.Bytes()
	switch {
	case len(compact) == 0 || compact[0] != '{':
		return nil, "", fmt.Errorf("%w: the body is not a JSON object", wire.ErrInvalid)
	case !utf8.Valid(compact): // a segment is UTF-8 throughout
		return compact, mimeBytes, nil
	case len(compact) > wire.MaxInlineBytes, bytes.HasPrefix(compact, []byte(blobPrefix)):
		return compact, mimeJSON, nil
	}
	return compact, "", nil
}

// Blobs writes blobs. It is not safe for concurrent use.
type Blobs struct {
	FS     durable.FS
	Dir    string
	made   map[string]bool // directories whose entries are durable
	nextNo int
}

// Put makes a blob durable and returns the body that names it. An existing intact blob is
// reused; a damaged one is replaced.
func (b *Blobs) Put(data []byte, mime string) ([]byte, error) {
	sum := sha256.Sum256(data)
	name := hex.EncodeToString(sum[:])
	var ref BlobRef
	ref.Blob.SHA256, ref.Blob.Bytes, ref.Blob.MIME = name, int64(len(data)), mime
	body, err := json.Marshal(ref)
	if err != nil {
		return nil, fmt.Errorf("name blob: %w", err)
	}
	root := filepath.Join(b.Dir, blobsDirName)
	algo := filepath.Join(root, blobAlgorithm)
	leaf := filepath.Join(algo, name[:2])
	// Each of them may be from a writer that died before its entry was durable.
	for _, dir := range []string{root, algo, leaf} {
		if b.made[dir] {
			continue
		}
		if err := durable.MakeDir(b.FS, dir); err != nil {
			return nil, fmt.Errorf("write blob: %w", err)
		}
		if b.made == nil {
			b.made = map[string]bool{}
		}
		b.made[dir] = true
	}
	path := filepath.Join(leaf, name)
	if have, err := ReadBlob(b.FS, path, int64(len(data))); err != nil || !bytes.Equal(have, data) {
		b.nextNo++
		temp := filepath.Join(root, fmt.Sprintf("%s%d", blobTemp, b.nextNo))
		if err := durable.WriteVia(b.FS, temp, path, data); err != nil {
			return nil, fmt.Errorf("write blob: %w", err)
		}
	}
	// A reused blob may be from a writer that died before this sync.
	if err := b.FS.SyncDir(leaf); err != nil {
		return nil, fmt.Errorf("write blob: sync directory: %w", err)
	}
	return body, nil
}

// BlobPath returns the path of the blob with a hash.
func BlobPath(dir, sum string) string {
	return filepath.Join(dir, blobsDirName, blobAlgorithm, sum[:2], sum)
}

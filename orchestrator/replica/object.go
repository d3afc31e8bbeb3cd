package replica

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"anamnesis/orchestrator/replica/bucket"
)

// version is that of the form of objects. A newer one is refused.
const version = 1

// The names of a bucket's objects:
//
//	index/TASK            names the task; it has no content that matters
//	tasks/TASK/log/N      the N-th object of the task's log, from 1, with 16 digits
//	tasks/TASK/parts/ID   a part of a file that is too large for its log object
//	tasks/TASK/inbox/N    the N-th message to the task, with 16 digits
const (
	indexPrefix = "index/"
	tasksPrefix = "tasks/"
	// worldsPrefix begins the names of snapshots' packs in a log's objects.
	worldsPrefix = "worlds/"
)

func logPrefix(task string) string { return tasksPrefix + task + "/log/" }

func logName(task string, n uint64) string { return fmt.Sprintf("%s%016d", logPrefix(task), n) }

// isLog reports whether a name is that of an object of the task's log. Users, editors and other programs leave others.
func isLog(task, name string) bool {
	n, err := strconv.ParseUint(strings.TrimPrefix(name, logPrefix(task)), 10, 64)
	return err == nil && name == logName(task, n)
}

// About describes an object of a log. It is the first file of the object's tar.
type About struct {
	V      int    `json:"v"`
	Task   string `json:"task"`
	N      uint64 `json:"n"`
	After  string `json:"after,omitempty"` // SHA-256 of the object before, as hex
	Holder string `json:"holder"`          // random, of the process that wrote it: no two rivals' objects are equal
	// Time is the holder's clock; advice only.
	Time     time.Time `json:"time"`
	Host     string    `json:"host,omitempty"`
	Released bool      `json:"released,omitempty"` // the holder does not go on: anybody may take the task now
	// Lease is the holder's: two thirds of it after the object, the last of its commands has ended.
	Lease time.Duration `json:"lease,omitempty"`
}

// file is a piece of a file of the home: its bytes from an offset on.
type file struct {
	name   string // with slashes
	offset int64
	data   []byte
	parts  []string // objects that hold data instead, in order
	sum    string   // SHA-256 of data, if parts hold it
}

// The largest file in a log's object, and the largest part of one that is not.
const (
	maxInlineBytes = 1 << 20
	maxPartBytes   = 4 << 20
)

// The records of a tar header that describe a file.
const (
	paxOffset = "ANAMNESIS.offset"
	paxParts  = "ANAMNESIS.parts"
	paxSum    = "ANAMNESIS.sha256"
)

const aboutName = "about.json"

// encode makes an object's bytes: a compressed tar, since headers and lines are half of it.
func encode(a About, files []file) ([]byte, error) {
	text, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&buf, gzip.BestSpeed) // the level is valid
	out := tar.NewWriter(zip)
	for _, f := range append([]file{{name: aboutName, data: text}}, files...) {
		h := &tar.Header{
			Name: f.name, Mode: 0o600, Size: int64(len(f.data)), Format: tar.FormatPAX,
			PAXRecords: map[string]string{},
		}
		if f.offset > 0 {
			h.PAXRecords[paxOffset] = strconv.FormatInt(f.offset, 10)
		}
		if len(f.parts) > 0 {
			h.PAXRecords[paxParts], h.PAXRecords[paxSum] = strings.Join(f.parts, " "), f.sum
		}
		if err := out.WriteHeader(h); err != nil {
			return nil, fmt.Errorf("encode %s: %w", f.name, err)
		}
		if _, err := out.Write(f.data); err != nil {
			return nil, fmt.Errorf("encode %s: %w", f.name, err)
		}
	}
	err = errors.Join(out.Close(), zip.Close())
	return buf.Bytes(), err
}

// ErrDamaged: an object of a log is damaged, missing, or not of this task.
var ErrDamaged = errors.New("the task's log is damaged")

var ErrNewer = errors.New("a newer program wrote the task's log")

func decode(data []byte) (a About, files []file, err error) {
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return a, nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	in := tar.NewReader(zip)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return a, nil, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		f := file{name: h.Name, sum: h.PAXRecords[paxSum], parts: strings.Fields(h.PAXRecords[paxParts])}
		if f.data, err = io.ReadAll(in); err == nil && h.PAXRecords[paxOffset] != "" {
			f.offset, err = strconv.ParseInt(h.PAXRecords[paxOffset], 10, 64)
		}
		if err != nil || f.offset < 0 {
			return a, nil, fmt.Errorf("%w: %s: %w", ErrDamaged, h.Name, err)
		}
		if f.name != aboutName {
			files = append(files, f)
			continue
		}
		if err := json.Unmarshal(f.data, &a); err != nil {
			return a, nil, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
	}
	if _, err := io.Copy(io.Discard, zip); err != nil { // its checksum is at the end
		return a, nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	switch {
	case a.V > version:
		return a, nil, ErrNewer
	case a.V == 0:
		return a, nil, fmt.Errorf("%w: it does not say what it is", ErrDamaged)
	}
	return a, files, nil
}

// store puts what is too large for an object into parts. It calls alive after each.
func (f *file) store(ctx context.Context, b bucket.Bucket, task string, alive func() error) error {
	if len(f.data) <= maxInlineBytes {
		return nil
	}
	sum := sha256.Sum256(f.data)
	f.sum, f.parts = hex.EncodeToString(sum[:]), nil // the parts of an earlier try are not named
	for rest := f.data; len(rest) > 0; {
		n := min(len(rest), maxPartBytes)
		name := tasksPrefix + task + "/parts/" + randomName()
		if err := b.Create(ctx, name, rest[:n]); err != nil && !errors.Is(err, bucket.ErrExists) {
			return err
		}
		if err := alive(); err != nil {
			return err
		}
		f.parts, rest = append(f.parts, name), rest[n:]
	}
	f.data = nil
	return nil
}

// load gets what is in parts.
func (f *file) load(ctx context.Context, b bucket.Bucket) error {
	if len(f.parts) == 0 {
		return nil
	}
	for _, name := range f.parts {
		data, err := withRetries(ctx, func() ([]byte, error) { return b.Get(ctx, name) })
		if err != nil {
			return err
		}
		f.data = append(f.data, data...)
	}
	if sum := sha256.Sum256(f.data); hex.EncodeToString(sum[:]) != f.sum {
		return fmt.Errorf("%w: the parts of %s do not have its hash", ErrDamaged, f.name)
	}
	return nil
}

// randomName returns a name that no other process makes.
func randomName() string { return strings.ToLower(rand.Text()) }

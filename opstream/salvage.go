package opstream

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"anamnesis/opstream/durable"
	"anamnesis/opstream/internal/segments"
	"anamnesis/opstream/internal/wire"
)

// Salvaged is the result of Salvage.
type Salvaged struct {
	Records uint64 `json:"records"` // the last one's seq, too
	Bytes   int64  `json:"bytes"`   // of lines, with newlines
	Blobs   int    `json:"blobs"`
	// Why is what ended the readable prefix; empty when everything was read.
	Why string `json:"why,omitempty"`
}

// partSuffix ends the name of a copy that is not finished.
const partSuffix = ".part"

// errSalvageEnds ends a scan at a line whose blob cannot be read.
var errSalvageEnds = errors.New("the readable prefix ends")

// Salvage copies the readable records of the stream in dir, from the first up to the first
// damage, into a new stream in the directory to, which must not exist or be in dir. Lines are
// copied unchanged, so that their hashes stay; a damaged blob or unreadable bytes also end the
// prefix. The old stream is only read.
//
// The copy is made under the name to + ".part" and renamed when it is durable: a directory of
// the name to is always complete. Salvage refuses to run if an interrupted copy exists, and
// does not touch it.
func Salvage(ctx context.Context, dir, to string) (Salvaged, error) {
	return salvage(ctx, durable.OS{}, dir, filepath.Clean(to))
}

func salvage(ctx context.Context, fsys durable.FS, dir, to string) (Salvaged, error) {
	if err := newPlace(dir, to); err != nil {
		return Salvaged{}, err
	}
	if _, _, err := segments.List(fsys, dir); err != nil {
		return Salvaged{}, notFound(dir, err)
	}
	var out Salvaged
	blobs := map[string]segments.BlobRef{}
	seen := 0
	scan := segments.Scanner{FS: fsys, Dir: dir, Visit: func(e *wire.Envelope, _ int64, size int) error {
		if seen++; seen%verifyCtxEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		ref, isBlob, err := segments.ParseBlobRef(e.Body)
		if isBlob && err == nil && blobs[ref.Blob.SHA256] == (segments.BlobRef{}) {
			if _, err = segments.ResolveBody(fsys, dir, e.Seq, e.Body); err == nil {
				blobs[ref.Blob.SHA256] = ref
			}
		}
		if err != nil { // the prefix before it is worth saving
			out.Why = err.Error()
			return errSalvageEnds
		}
		out.Bytes += int64(size) + 1
		return nil
	}}
	stop, err := scan.Advance()
	switch {
	case err == nil, errors.Is(err, errSalvageEnds):
	case durable.Unreadable(err):
		out.Why = err.Error()
	default:
		return Salvaged{}, fmt.Errorf("salvage %s: %w", dir, err)
	}
	if stop != nil {
		out.Why = fmt.Sprintf("%s at byte %d (seq %d): %s", segments.Path(dir, stop.Seg), stop.Off, stop.Seq, stop.Why)
	}
	out.Records, out.Blobs = scan.Cur.Seq, len(blobs)
	// Of a stream without one readable record the copy is a valid stream that is empty.
	part := to + partSuffix
	err = copyPrefix(fsys, dir, part, &scan.Cur, blobs)
	if err == nil {
		err = fsys.Rename(part, to)
	}
	if err == nil {
		err = fsys.SyncDir(filepath.Dir(to))
	}
	if err != nil {
		return Salvaged{}, fmt.Errorf("salvage %s to %s: %w", dir, to, err)
	}
	return out, nil
}

// newPlace checks where a copy is to go.
func newPlace(dir, to string) error {
	from, err := realPath(dir)
	if err != nil {
		return notFound(dir, err)
	}
	parent, err := realPath(filepath.Dir(to))
	if err != nil {
		return fmt.Errorf("salvage to %s: %w: %w", to, wire.ErrInvalid, err)
	}
	if parent == from || strings.HasPrefix(parent, from+string(filepath.Separator)) {
		return fmt.Errorf("salvage to %s: %w: it is inside the stream to be salvaged", to, wire.ErrInvalid)
	}
	if _, err := os.Lstat(to); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("salvage to %s: %w: it exists; name a new directory", to, wire.ErrInvalid)
	}
	if _, err := os.Lstat(to + partSuffix); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("salvage to %s: %w: %s exists, perhaps of a salvage that was interrupted; "+
			"remove it, or name another directory", to, wire.ErrInvalid, to+partSuffix)
	}
	return nil
}

// realPath is the absolute path of an existing directory, without symbolic
// links.
func realPath(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// copyPrefix copies the lines up to a cursor and the blobs they name, durably.
func copyPrefix(fsys durable.FS, dir, to string, cur *segments.Cursor, blobs map[string]segments.BlobRef) error {
	ops := filepath.Join(to, segments.OpsDirName)
	for _, dir := range []string{to, ops} {
		if err := durable.MakeDir(fsys, dir); err != nil {
			return err
		}
	}
	store := segments.Blobs{FS: fsys, Dir: to}
	for sum, ref := range blobs {
		data, err := segments.ReadBlob(fsys, segments.BlobPath(dir, sum), ref.Blob.Bytes)
		if err == nil {
			_, err = store.Put(data, ref.Blob.MIME)
		}
		if err != nil {
			return err
		}
	}
	for i, seg := range cur.Segs {
		size := cur.Off
		if i < len(cur.Segs)-1 {
			var err error
			if size, err = segments.FileSize(fsys, segments.Path(dir, seg)); err != nil {
				return err
			}
		} else if size == 0 { // none of it was readable
			break
		}
		if err := copyFile(fsys, segments.Path(dir, seg), segments.Path(to, seg), size); err != nil {
			return err
		}
	}
	return fsys.SyncDir(ops)
}

// copyFile copies the first bytes of a file, durably.
func copyFile(fsys durable.FS, from, to string, size int64) error {
	f, err := fsys.Open(from, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	data := make([]byte, size)
	if n, err := f.ReadAt(data, 0); int64(n) < size {
		return fmt.Errorf("read %s: %w", from, err)
	}
	return durable.WriteVia(fsys, to+".tmp", to, data)
}

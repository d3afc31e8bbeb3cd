package history

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"

	"anamnesis/opstream/durable"
)

const (
	// lockWait bounds the wait for a git command that holds the index.
	lockWait = 5 * time.Second
	lockTick = 20 * time.Millisecond
	// lockName is this program's name of a lock, and index.lock a second link to it,
	// so that a lock left by a dead process of this program differs from git's.
	lockName = "anamnesis.lock"
)

// lock takes git's lock of the index.
func (r *Repo) lock() (release func(), err error) {
	ours, theirs := filepath.Join(r.git, lockName), filepath.Join(r.git, "index.lock")
	if err := r.dropDeadLock(ours, theirs); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(ours, os.O_CREATE|os.O_WRONLY, durable.FileMode)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", r.git, err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("lock %s: %w", r.git, err)
	}
	tick := time.NewTicker(lockTick)
	defer tick.Stop()
	for end := time.Now().Add(lockWait); ; <-tick.C {
		err := os.Link(ours, theirs)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("lock %s: %w", r.git, err)
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("%w: another git process holds %s; wait for it, or remove that file if none is running", ErrBusy, theirs)
		}
	}
	if err := durable.RemoveTemp(r.git, tempPrefix); err != nil {
		return nil, errors.Join(fmt.Errorf("sweep %s: %w", r.git, err), os.Remove(theirs))
	}
	return func() {
		// What stays behind after a failure is dropped by the next lock.
		_ = os.Remove(theirs)
		_ = os.Remove(ours)
	}, nil
}

// dropDeadLock removes a lock of this program. The caller is its only writing process,
// so the process that made the lock is dead.
func (r *Repo) dropDeadLock(ours, theirs string) error {
	a, err := os.Lstat(ours)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", r.git, err)
	}
	if b, err := os.Lstat(theirs); err == nil && os.SameFile(a, b) {
		if err := os.Remove(theirs); err != nil {
			return fmt.Errorf("drop a dead lock of %s: %w", r.git, err)
		}
	}
	return os.Remove(ours)
}

// readIndex returns git's index; an empty one where there is none.
func (r *Repo) readIndex() (*index.Index, error) {
	path := filepath.Join(r.git, "index")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &index.Index{Version: 2}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read git index: %w", err)
	}
	// A user's index.skipHash has git write zeros for the checksum.
	if body, none := bytes.CutSuffix(data, make([]byte, sha1.Size)); none {
		sum := sha1.Sum(body)
		data = append(body, sum[:]...)
	}
	idx := new(index.Index)
	err = index.NewDecoder(bytes.NewReader(data)).Decode(idx)
	if errors.Is(err, index.ErrUnknownExtension) {
		err = fmt.Errorf("%w: it is split or sparse; 'git update-index --no-split-index' or 'git sparse-checkout disable' in %s has git write all of it", err, r.dir)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return idx, nil
}

// updateIndex enters the blobs, leaving every other entry as it is: what a
// user has staged stays staged. The entries have no times and sizes: git then compares the
// files' contents once, when it is asked. The lock is held.
func (r *Repo) updateIndex(blobs map[string]plumbing.Hash) error {
	idx, err := r.readIndex()
	if err != nil {
		return err
	}
	modes := make(map[string]filemode.FileMode)
	idx.Entries = slices.DeleteFunc(idx.Entries, func(e *index.Entry) bool {
		_, changed := blobs[e.Name]
		if changed {
			modes[e.Name] = e.Mode
		}
		return changed
	})
	for name, id := range blobs {
		if !id.IsZero() {
			idx.Entries = append(idx.Entries, &index.Entry{Name: name, Hash: id, Mode: cmp.Or(modes[name], filemode.Regular)})
		}
	}
	idx.Cache, idx.ResolveUndo, idx.EndOfIndexEntry = nil, nil, nil // derived from the entries
	var b bytes.Buffer
	if err := index.NewEncoder(&b).Encode(idx); err != nil {
		return fmt.Errorf("encode git index: %w", err)
	}
	if err := replace(durable.OS{}, r.git, filepath.Join(r.git, "index"), b.Bytes()); err != nil {
		return fmt.Errorf("write git index: %w", err)
	}
	return nil
}

// Tracked returns the paths of the files in git's index that are in the folder.
func (r *Repo) Tracked() ([]string, error) {
	idx, err := r.readIndex()
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range idx.Entries {
		if e.Mode.IsFile() && !e.SkipWorktree {
			out = append(out, e.Name)
		}
	}
	return out, nil
}

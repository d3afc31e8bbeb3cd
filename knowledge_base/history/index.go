package history

import (
	"bytes"
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
	"golang.org/x/sys/unix"

	"anamnesis/knowledge_base/history/internal/gitdir"
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
	if err := gitdir.Sweep(r.git); err != nil {
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
// user has staged stays staged. Those left out are marked as git marks what a
// sparse checkout leaves out. The lock is held.
func (r *Repo) updateIndex(blobs map[string]plumbing.Hash, leftOut map[string]string) error {
	path := filepath.Join(r.git, "index")
	var put []*index.Entry
	for name, id := range blobs {
		if leftOut[name] == "" {
			e := &index.Entry{Name: name, Hash: id, Mode: filemode.Regular}
			r.stat(e)
			put = append(put, e)
		}
	}
	if len(leftOut)+len(r.unmarked) == 0 {
		if data, err := os.ReadFile(path); err == nil {
			if data, ok := gitdir.SpliceIndex(data, put); ok {
				return r.writeIndex(path, data)
			}
		}
	}
	idx, err := r.readIndex()
	if err != nil {
		return err
	}
	idx.Entries = slices.DeleteFunc(idx.Entries, func(e *index.Entry) bool {
		if r.unmarked[e.Name] { // of a copied folder, say
			r.stat(e)
		}
		_, changed := blobs[e.Name]
		_, left := leftOut[e.Name]
		return changed || left
	})
	for name, id := range leftOut {
		idx.Version = max(idx.Version, 3) // the first with the mark
		idx.Entries = append(idx.Entries, &index.Entry{Name: name, Hash: plumbing.NewHash(id), Mode: filemode.Regular, SkipWorktree: true})
	}
	for _, e := range put {
		if !e.Hash.IsZero() {
			idx.Entries = append(idx.Entries, e)
		}
	}
	r.unmarked = nil
	idx.Cache, idx.ResolveUndo, idx.EndOfIndexEntry = nil, nil, nil // derived from the entries
	var b bytes.Buffer
	if err := index.NewEncoder(&b).Encode(idx); err != nil {
		return fmt.Errorf("encode git index: %w", err)
	}
	return r.writeIndex(path, b.Bytes())
}

func (r *Repo) writeIndex(path string, data []byte) error {
	if err := gitdir.Replace(r.git, path, data); err != nil {
		return fmt.Errorf("write git index: %w", err)
	}
	return nil
}

// stat notes the file's marks in the entry where the file holds the entry's
// bytes; otherwise they stay zero, and git reads the file when it is asked.
func (r *Repo) stat(e *index.Entry) {
	path := filepath.Join(r.dir, filepath.FromSlash(e.Name))
	var before, after unix.Stat_t
	if unix.Lstat(path, &before) != nil || before.Mode&unix.S_IFMT != unix.S_IFREG {
		return
	}
	data, err := os.ReadFile(path)
	if err != nil || plumbing.ComputeHash(plumbing.BlobObject, data) != e.Hash {
		return
	}
	if unix.Lstat(path, &after) == nil && sameMarks(&before, &after) {
		fillMarks(e, &after)
	}
}

func sameMarks(a, b *unix.Stat_t) bool {
	return a.Ino == b.Ino && a.Size == b.Size && a.Mtim == b.Mtim && a.Ctim == b.Ctim
}

func fillMarks(e *index.Entry, st *unix.Stat_t) {
	e.CreatedAt, e.ModifiedAt = time.Unix(st.Ctim.Unix()), time.Unix(st.Mtim.Unix())
	e.Dev, e.Inode, e.UID, e.GID = uint32(st.Dev), uint32(st.Ino), st.Uid, st.Gid
	e.Size = uint32(st.Size)
	if st.Mode&unix.S_IXUSR != 0 {
		e.Mode = filemode.Executable
	}
}

// unchanged reports whether the entry's marks say that the file still holds
// the entry's bytes. Marks as young as the index itself prove nothing.
func unchanged(e *index.Entry, st *unix.Stat_t, indexTime time.Time) bool {
	marks := index.Entry{}
	fillMarks(&marks, st)
	return e.Size == marks.Size && e.Inode == marks.Inode && e.ModifiedAt.Equal(marks.ModifiedAt) &&
		e.CreatedAt.Equal(marks.CreatedAt) && marks.ModifiedAt.Before(indexTime)
}

package opstream

import (
	"io/fs"
	"os"
	"sync"
	"syscall"
	"testing"

	"anamnesis/opstream/durable"
)

// smallDisk is a file system that can be full.
type smallDisk interface {
	// dir is a directory in it, and fs how the log gets there; nil is the
	// operating system's way.
	place() (dir string, fs durable.FS)
	// fill leaves so many bytes of room, or a few less.
	fill(t *testing.T, leaveBytes int)
	// free makes room again.
	free(t *testing.T)
}

// quotaFS is the operating system's file system with a limit on the bytes that are
// written, in place of a small disk that only root could mount. It can be read-only.
type quotaFS struct {
	durable.OS
	dir string

	mu       sync.Mutex
	room     int64
	readOnly bool
}

// unlimited is more than any test writes.
const unlimited = 1 << 40

func (q *quotaFS) place() (string, durable.FS) { return q.dir, q }

func (q *quotaFS) fill(_ *testing.T, leaveBytes int) { q.set(int64(leaveBytes)) }
func (q *quotaFS) free(*testing.T)                   { q.set(unlimited) }

func (q *quotaFS) set(room int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.room = room
}

// take returns as much of the room that is wanted as there is; less than none is
// given back.
func (q *quotaFS) take(want int64) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	got := min(want, q.room)
	q.room -= got
	return got
}

func (q *quotaFS) changes(name string, op func() error) error {
	if q.readOnly {
		return &fs.PathError{Op: "change", Path: name, Err: syscall.EROFS}
	}
	return op()
}

func (q *quotaFS) Mkdir(name string) error {
	if _, err := os.Stat(name); err == nil {
		return fs.ErrExist
	}
	return q.changes(name, func() error { return q.OS.Mkdir(name) })
}

func (q *quotaFS) Rename(oldname, newname string) error {
	return q.changes(newname, func() error { return q.OS.Rename(oldname, newname) })
}

func (q *quotaFS) Remove(name string) error {
	return q.changes(name, func() error { return q.OS.Remove(name) })
}

func (q *quotaFS) Open(name string, flag int) (f durable.File, err error) {
	open := func() error { f, err = q.OS.Open(name, flag); return err }
	if flag&(os.O_RDWR|os.O_WRONLY|os.O_CREATE) == 0 {
		err = open()
	} else {
		err = q.changes(name, open)
	}
	if err != nil {
		return nil, err
	}
	return quotaFile{f, q}, nil
}

type quotaFile struct {
	durable.File
	fs *quotaFS
}

func (f quotaFile) WriteAt(p []byte, off int64) (int, error) {
	size, err := f.Size()
	if err != nil {
		return 0, err
	}
	grows := max(0, off+int64(len(p))-size)
	short := grows - f.fs.take(grows)
	n, err := f.File.WriteAt(p[:max(0, int64(len(p))-short)], off)
	if err == nil && short > 0 {
		err = syscall.ENOSPC
	}
	return n, err
}

func (f quotaFile) Truncate(size int64) error {
	was, err := f.Size()
	if err != nil {
		return err
	}
	f.fs.take(size - was)
	return f.File.Truncate(size)
}

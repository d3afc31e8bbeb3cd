package restore

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/tree"
)

// Effects is what an executor needs beside the directory.
type Effects struct {
	Objects *objects.Store
	Hook    func(point string)
	Fault   func(op, path string) error // tests: makes an operation fail
	Heed    func()                      // reads the events of what was written
	Piece   int                         // tests: stop after so many bytes of a file written in place
}

// Executor moves a world along a list of actions. Every step is idempotent: it
// looks at the path first and does what is left to do, so that the same code
// restores, finishes a killed restore, and (with the actions turned round)
// rolls one back.
//
// A path is touched only when it is as the action expects. One that
// is otherwise was changed by another program meanwhile; it is left and
// listed. New content is written over the old in place, or beside and renamed
// over; see inplace.go for which and why.
type Executor struct {
	env     Effects
	root    int
	nonce   string
	resumed bool         // a run before this one may have stopped anywhere
	cut     bool         // and the machine with it
	stop    func() error // asked before every action; nil: a restore, once begun, is finished

	actions []Action // of the last run

	mu     sync.Mutex
	Kept   []gitfmt.Skip
	opened map[string]uint32     // directories made writable for the time being, with their own modes
	done   map[string]fsys.Stamp // the stamp of a path right after its action

	seams sync.Mutex // one hook or fault at a time
	steps atomic.Int64
}

const (
	// maxSyncEach: up to so many actions are synced one by one; above it one
	// sync of the whole file system is cheaper, though it waits for
	// everybody's writes.
	maxSyncEach = 32
	// restoreWorkers write files at once: inflating takes the processors, and
	// files replaced by rename wait for the disk.
	restoreWorkers = 4
	// heedEvery: so often the events of what we write ourselves are read, so
	// that the queue does not run over; a step makes at most a dozen.
	heedEvery = 1000
)

// Start says what an executor finds.
type Start bool

const (
	Fresh   Start = false // nothing of the actions was done
	Resumed Start = true  // the actions, or the other way round, may have been done in part
)

// New returns an executor of a journal's actions in the directory root.
func New(env Effects, root int, j *Journal, start Start) *Executor {
	resumed := bool(start)
	return &Executor{
		env: env, root: root, nonce: j.Nonce, resumed: resumed, cut: resumed && j.Boot != "" && j.Boot != fsys.BootID(),
		done: make(map[string]fsys.Stamp),
	}
}

// Undo rolls back a restore that may have been done in part. What it did is not durable
// until Sync.
func Undo(env Effects, root int, j *Journal) (*Executor, error) {
	x := New(env, root, j, Resumed)
	x.SweepTemps(j.Actions)
	return x, x.Run(Reversed(j.Actions))
}

func (x *Executor) hook(point string) {
	x.seams.Lock()
	defer x.seams.Unlock()
	x.env.Hook(point)
}

func (x *Executor) seam(op, path string) error {
	if x.stop != nil {
		if err := x.stop(); err != nil {
			return err
		}
	}
	if x.env.Fault == nil {
		return nil
	}
	x.seams.Lock()
	defer x.seams.Unlock()
	return x.env.Fault(op, path)
}

// ErrInTheWay: an ancestor of the path is not a directory.
var ErrInTheWay = errors.New("something that is no directory is in the way")

// Look returns the state of a path now. A FIFO and the like is ErrInTheWay.
func (x *Executor) Look(path string) (tree.State, fsys.Stamp, error) {
	fd, err := fsys.OpenBeneath(x.root, fsys.Dir(path))
	switch {
	case errors.Is(err, unix.ENOENT):
		return tree.State{}, fsys.Stamp{}, nil
	case fsys.IsErrno(err, unix.ENOTDIR, unix.ELOOP):
		return tree.State{}, fsys.Stamp{}, ErrInTheWay
	case err != nil:
		return tree.State{}, fsys.Stamp{}, err
	}
	defer fsys.CloseFD(fd)
	return x.lookIn(fd, fsys.Base(path))
}

func (x *Executor) lookIn(dirfd int, name string) (tree.State, fsys.Stamp, error) {
	st, err := fsys.Lstatat(dirfd, name)
	if errors.Is(err, unix.ENOENT) {
		return tree.State{}, fsys.Stamp{}, nil
	}
	if err != nil {
		return tree.State{}, fsys.Stamp{}, err
	}
	switch {
	case st.IsDir():
		return tree.State{Kind: tree.KindDir, Perm: st.Mode & 0o777}, st, nil
	case st.IsLink():
		target, err := fsys.Readlinkat(dirfd, name)
		return tree.State{Kind: tree.KindLink, Hash: gitfmt.HashObject(gitfmt.BlobObject, target)}, st, err
	case st.IsRegular():
		h, err := x.hashAt(dirfd, name, st.Size)
		return tree.State{Kind: tree.KindFile, Perm: st.Mode & 0o777, Hash: h}, st, err
	}
	return tree.State{}, st, ErrInTheWay
}

// hashAt returns the blob id of a file that was seen to be so long.
func (x *Executor) hashAt(dirfd int, name string, size int64) (gitfmt.Hash, error) {
	fd, err := fsys.Openat(dirfd, name, fsys.FileFlags, 0)
	if err != nil {
		return gitfmt.Hash{}, err
	}
	defer fsys.CloseFD(fd)
	buf := x.env.Objects.Buffer()
	defer x.env.Objects.Buffers.Put(buf)
	sum := sha1.New()
	sum.Write(gitfmt.AppendHead((*buf)[:0], gitfmt.BlobObject, size))
	for {
		n, err := unix.Read(fd, *buf)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return gitfmt.Hash{}, err
		case n == 0:
			return gitfmt.Hash(sum.Sum(nil)), nil
		}
		sum.Write((*buf)[:n])
	}
}

// compareNow returns the state of a path, and whether it is as wanted. A file is
// read for it: a stamp does not show an edit in the clock tick of the scan,
// nor of a write through a memory map whose page was written before.
func (x *Executor) compareNow(dirfd int, path string, want tree.State) (now tree.State, st fsys.Stamp, same bool, err error) {
	now, st, err = x.lookIn(dirfd, fsys.Base(path))
	if errors.Is(err, ErrInTheWay) {
		return tree.State{}, st, false, nil
	}
	return now, st, now == want, err
}

func (x *Executor) keep(path string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.Kept = append(x.Kept, gitfmt.Skip{Path: path, Reason: gitfmt.KeepRaced})
}

// Run does all actions: first what must go, children before parents; then new
// directories, parents first; then files and links; then directories' modes.
func (x *Executor) Run(actions []Action) error {
	x.opened, x.actions = make(map[string]uint32), actions
	var gone, dirs, files []Action
	for _, a := range actions {
		if !a.Before.Absent() && (a.After.Absent() || a.Before.IsDir() != a.After.IsDir()) {
			gone = append(gone, a)
		}
		switch {
		case a.After.IsDir():
			dirs = append(dirs, a)
		case !a.After.Absent():
			files = append(files, a)
		}
	}
	sort.SliceStable(gone, func(i, j int) bool { return gone[i].Path > gone[j].Path })
	modes := slices.Clone(dirs)
	slices.Reverse(modes) // children before a parent may become unreachable
	if err := x.each("remove", gone, x.remove); err != nil {
		return err
	}
	if err := x.each("mkdir", dirs, x.mkdir); err != nil {
		return err
	}
	if err := x.writeAll(files); err != nil {
		return err
	}
	if err := x.each("chmod", modes, x.chmodDir); err != nil {
		return err
	}
	return x.closeDirs()
}

// writeAll writes the files, several at once where there are many. After the
// first failure no further one is started.
func (x *Executor) writeAll(files []Action) error {
	return AtOnce(len(files), func(i int) error { return x.step("write", i, files[i], x.write) })
}

// AtOnce calls do for every number below n, in order, from several goroutines
// where there are many. After the first failure no further one is started.
func AtOnce(n int, do func(i int) error) error {
	var group errgroup.Group
	group.SetLimit(max(1, min(restoreWorkers, n/maxSyncEach)))
	var failed atomic.Bool
	for i := 0; i < n && !failed.Load(); i++ {
		group.Go(func() error {
			err := do(i)
			if err != nil {
				failed.Store(true)
			}
			return err
		})
	}
	return group.Wait()
}

func (x *Executor) each(what string, list []Action, do func(i int, a Action) error) error {
	for i, a := range list {
		if err := x.step(what, i, a, do); err != nil {
			return err
		}
	}
	return nil
}

func (x *Executor) step(what string, i int, a Action, do func(i int, a Action) error) error {
	x.hook(what + " before")
	if err := x.seam(what, a.Path); err != nil {
		return &RestoreError{Path: a.Path, Err: err}
	}
	if err := do(i, a); err != nil {
		return &RestoreError{Path: a.Path, Err: fmt.Errorf("%s: %w", what, err)}
	}
	x.hook(what + " after")
	if x.steps.Add(1)%heedEvery == 0 {
		x.env.Heed()
	}
	return nil
}

// parent opens the directory a path lies in. ok is false when it is gone or
// no directory any more: then the path was changed by another program.
func (x *Executor) parent(path string) (fd int, ok bool, err error) {
	fd, err = fsys.OpenBeneath(x.root, fsys.Dir(path))
	if fsys.IsErrno(err, unix.ENOENT, unix.ENOTDIR, unix.ELOOP) {
		return -1, false, nil
	}
	return fd, err == nil, err
}

// writable runs f and, where the directory forbids it and is ours to change,
// once more with the directory opened for writing until the restore's end.
func (x *Executor) writable(dirfd int, path string, f func() error) error {
	err := f()
	if !fsys.IsErrno(err, unix.EACCES, unix.EPERM) {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, known := x.opened[fsys.Dir(path)]; known { // by another worker, between the two
		return f()
	}
	st, serr := fsys.Fstat(dirfd)
	if serr != nil || st.Mode&0o300 == 0o300 {
		return err
	}
	if cerr := unix.Fchmod(dirfd, st.Mode&0o7777|0o700); cerr != nil {
		return err
	}
	x.opened[fsys.Dir(path)] = st.Mode & 0o7777
	return f()
}

// remove takes away what is at a path. A directory that is not empty
// stays: what is in it was not planned.
func (x *Executor) remove(_ int, a Action) error {
	fd, ok, err := x.parent(a.Path)
	if err != nil || !ok {
		return err
	}
	defer fsys.CloseFD(fd)
	now, _, same, err := x.compareNow(fd, a.Path, a.Before)
	if err != nil || now.Absent() && !same {
		return err
	}
	if now.IsDir() != a.Before.IsDir() || !same && !now.IsDir() {
		if now != a.After {
			x.keep(a.Path)
		}
		return nil
	}
	flags := 0
	if now.IsDir() {
		flags = unix.AT_REMOVEDIR
	}
	err = x.writable(fd, a.Path, func() error { return unix.Unlinkat(fd, fsys.Base(a.Path), flags) })
	if fsys.IsErrno(err, unix.ENOTEMPTY, unix.EEXIST, unix.EBUSY) {
		x.keep(a.Path)
		return nil
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// mkdir makes a directory, open to us until chmodDir sets its mode.
func (x *Executor) mkdir(_ int, a Action) error {
	fd, ok, err := x.parent(a.Path)
	if err != nil {
		return err
	}
	if !ok {
		x.keep(a.Path)
		return nil
	}
	defer fsys.CloseFD(fd)
	st, err := fsys.Lstatat(fd, fsys.Base(a.Path))
	switch {
	case err == nil && st.IsDir():
		return nil
	case err == nil:
		x.keep(a.Path)
		return nil
	case !errors.Is(err, unix.ENOENT):
		return err
	}
	err = x.writable(fd, a.Path, func() error { return unix.Mkdirat(fd, fsys.Base(a.Path), a.After.Perm|0o700) })
	if err == nil {
		x.ownMade(fd, fsys.Base(a.Path), fsys.Stamp{})
	}
	return err
}

// chmodDir sets a directory's mode; bits that are not kept in snapshots
// (setgid) stay as they are.
func (x *Executor) chmodDir(_ int, a Action) error {
	fd, ok, err := x.parent(a.Path)
	if err != nil || !ok {
		return err
	}
	defer fsys.CloseFD(fd)
	st, err := fsys.Lstatat(fd, fsys.Base(a.Path))
	if err != nil || !st.IsDir() {
		return nil // listed by mkdir, or gone since
	}
	delete(x.opened, a.Path)
	if st.Mode&0o777 == a.After.Perm {
		return nil
	}
	if err := x.seam("chmod looked", a.Path); err != nil {
		return err
	}
	if _, err = ChmodAt(fd, fsys.Base(a.Path), st, st.Mode&0o7000|a.After.Perm); errors.Is(err, objects.ErrContentChanged) {
		x.keep(a.Path)
		return nil
	}
	return err
}

// closeDirs restores the modes of directories that were opened for writing.
func (x *Executor) closeDirs() error {
	for _, path := range slices.Backward(slices.Sorted(maps.Keys(x.opened))) {
		fd, err := fsys.OpenBeneath(x.root, path)
		if fsys.IsErrno(err, unix.ENOENT, unix.ENOTDIR, unix.ELOOP) {
			continue
		}
		if err == nil {
			err = unix.Fchmod(fd, x.opened[path])
			fsys.CloseFD(fd)
		}
		if err != nil {
			return &RestoreError{Path: path, Err: fmt.Errorf("chmod: %w", err)}
		}
	}
	return nil
}

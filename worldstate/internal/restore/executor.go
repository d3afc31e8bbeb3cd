// Package restore moves a world's directory from one snapshot to another: the journal that
// makes this recoverable, the executor of its actions, and forks into new directories. It
// decides nothing; see package plan.
package restore

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/tree"
)

// Effects are the dependencies of an executor apart from the directory.
type Effects struct {
	Objects *objects.Store
	Hook    func(point string)
	// Before, if not nil, is called before each operation on a path. Its error fails the
	// operation.
	Before func(op, path string) error
}

// Executor carries out a list of actions. Every step is idempotent: it examines the path first
// and does what is left to do. The same code restores, completes a killed restore, and (with
// the actions reversed) rolls one back.
//
// A path is changed only if it is in the expected state. Otherwise another program has changed
// it meanwhile; it is left as it is and listed. New content is written over the old in place,
// or to a new file that is renamed over it; inplace.go explains the choice.
type Executor struct {
	env       Effects
	root      int
	nonce     string
	resumed   bool // an earlier run may have stopped anywhere
	restarted bool // the machine was, since that run

	actions []Action // of the last Run

	mu     sync.Mutex
	Kept   []gitfmt.Skip
	Lost   []gitfmt.Skip         // attributes of replaced files that the new ones lack
	opened map[string]uint32     // original modes of directories made writable for a time
	done   map[string]fsys.Stamp // the stamp of a path right after its action
}

const (
	// maxSyncEach: up to this many actions are synced one by one. For more, one sync of the
	// whole file system is cheaper, though it waits for the writes of all programs.
	maxSyncEach = 32
	// restoreWorkers write files concurrently: decompression needs processors, and renamed
	// files wait for the disk.
	restoreWorkers = 4
)

// New returns an executor of a journal's actions in the directory root. None of them was done.
func New(env Effects, root int, j *Journal) *Executor {
	return &Executor{env: env, root: root, nonce: j.Nonce, done: make(map[string]fsys.Stamp)}
}

// Resume is New for actions that, like their reverse, may have been done in part.
func Resume(env Effects, root int, j *Journal) *Executor {
	x := New(env, root, j)
	x.resumed, x.restarted = true, j.Boot != "" && j.Boot != fsys.BootID()
	return x
}

// Undo rolls back a restore that may have been done in part. The result is durable after Sync.
func Undo(env Effects, root int, j *Journal) (*Executor, error) {
	x := Resume(env, root, j)
	x.SweepTemps(j.Actions)
	return x, x.Run(reversed(j.Actions))
}

func (x *Executor) before(op, path string) error {
	if x.env.Before == nil {
		return nil
	}
	return x.env.Before(op, path)
}

// ErrInTheWay: the path, or an ancestor of it, is neither a file, a link nor a directory that
// can be entered.
var ErrInTheWay = errors.New("something that is not a directory is in the way")

// StateAt returns the present state of a path. The error for a FIFO, socket or device is
// ErrInTheWay.
func (x *Executor) StateAt(path string) (tree.State, fsys.Stamp, error) {
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
	return x.stateIn(fd, fsys.Base(path))
}

func (x *Executor) stateIn(dirfd int, name string) (tree.State, fsys.Stamp, error) {
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

// hashAt returns the blob id of a file of the given size.
func (x *Executor) hashAt(dirfd int, name string, size int64) (gitfmt.Hash, error) {
	fd, err := fsys.Openat(dirfd, name, fsys.FileFlags, 0)
	if err != nil {
		return gitfmt.Hash{}, err
	}
	defer fsys.CloseFD(fd)
	buf := x.env.Objects.Buffer()
	defer x.env.Objects.Buffers.Put(buf)
	sum := sha1.New()
	// If the file is no longer of this size, the id differs from that of any blob, and so from what is expected.
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

// compareNow returns the present state of a path, and whether it is the wanted one. It reads a
// file: a stamp does not show an edit in the clock tick of the scan, nor a write through a
// memory map whose page was written before.
func (x *Executor) compareNow(dirfd int, path string, want tree.State) (
	now tree.State, st fsys.Stamp, same bool, err error,
) {
	now, st, err = x.stateIn(dirfd, fsys.Base(path))
	if errors.Is(err, ErrInTheWay) {
		return tree.State{}, st, false, nil
	}
	return now, st, now == want, err
}

func (x *Executor) addKept(path string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.Kept = append(x.Kept, gitfmt.Skip{Path: path, Reason: gitfmt.KeepRaced})
}

// Run carries out all actions: first removals, children before parents; then new directories,
// parents first; then files and links; then the modes of directories.
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
	slices.SortStableFunc(gone, func(a, b Action) int { return strings.Compare(b.Path, a.Path) })
	modes := slices.Clone(dirs)
	slices.Reverse(modes) // children before a parent may become unreachable
	if err := x.each("remove", gone, x.remove); err != nil {
		return err
	}
	if err := x.each("mkdir", dirs, x.mkdir); err != nil {
		return err
	}
	err := atOnce(len(files), func(i int) error { return x.step("write", i, files[i], x.write) })
	if err != nil {
		return err
	}
	if err := x.each("chmod", modes, x.chmodDir); err != nil {
		return err
	}
	return x.closeDirs()
}

// atOnce calls do for every number below n, from several goroutines if there are many. After
// the first failure it starts no more.
func atOnce(n int, do func(i int) error) error {
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

func (x *Executor) each(what string, list []Action, do func(dirfd, i int, a Action) error) error {
	for i, a := range list {
		if err := x.step(what, i, a, do); err != nil {
			return err
		}
	}
	return nil
}

// step does one action in its parent directory. If that is missing or not a directory, another
// program has changed it, and what was to be made there is listed.
func (x *Executor) step(what string, i int, a Action, do func(dirfd, i int, a Action) error) error {
	x.env.Hook(what + " before")
	if err := x.before(what, a.Path); err != nil {
		return &RestoreError{Path: a.Path, Err: err}
	}
	fd, ok, err := x.parent(a.Path)
	switch {
	case ok:
		err = do(fd, i, a)
		fsys.CloseFD(fd)
	case err == nil && (what == "mkdir" || what == "write"):
		x.addKept(a.Path)
	}
	if err != nil {
		return &RestoreError{Path: a.Path, Err: fmt.Errorf("%s: %w", what, err)}
	}
	x.env.Hook(what + " after")
	return nil
}

// parent opens the parent directory of a path. ok is false if it is missing or not a directory.
func (x *Executor) parent(path string) (fd int, ok bool, err error) {
	fd, err = fsys.OpenBeneath(x.root, fsys.Dir(path))
	if fsys.IsErrno(err, unix.ENOENT, unix.ENOTDIR, unix.ELOOP) {
		return -1, false, nil
	}
	return fd, err == nil, err
}

// writable runs f. If the directory's mode forbids it and can be changed, it makes the
// directory writable until the end of the restore and runs f again.
func (x *Executor) writable(dirfd int, path string, f func() error) error {
	err := f()
	if !fsys.IsErrno(err, unix.EACCES, unix.EPERM) {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, known := x.opened[fsys.Dir(path)]; known { // made writable by another worker meanwhile
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

// remove removes a path. A directory that is not empty is kept: its content was not planned.
func (x *Executor) remove(fd, _ int, a Action) error {
	now, _, same, err := x.compareNow(fd, a.Path, a.Before)
	if err != nil || now.Absent() && !same {
		return err
	}
	if now.IsDir() != a.Before.IsDir() || !same && !now.IsDir() {
		// A resumed run finds the target's state where the interrupted one had gone on to write it.
		if now != a.After {
			x.addKept(a.Path)
		}
		return nil
	}
	flags := 0
	if now.IsDir() {
		flags = unix.AT_REMOVEDIR
	}
	err = x.writable(fd, a.Path, func() error { return unix.Unlinkat(fd, fsys.Base(a.Path), flags) })
	if fsys.IsErrno(err, unix.ENOTEMPTY, unix.EEXIST, unix.EBUSY) {
		x.addKept(a.Path)
		return nil
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// mkdir creates a directory that the owner can write; chmodDir sets its mode.
func (x *Executor) mkdir(fd, _ int, a Action) error {
	st, err := fsys.Lstatat(fd, fsys.Base(a.Path))
	switch {
	case err == nil && st.IsDir():
		return nil
	case err == nil:
		x.addKept(a.Path)
		return nil
	case !errors.Is(err, unix.ENOENT):
		return err
	}
	err = x.writable(fd, a.Path, func() error { return unix.Mkdirat(fd, fsys.Base(a.Path), a.After.Perm|0o700) })
	if err == nil {
		x.copyOwnerAt(fd, fsys.Base(a.Path), fsys.Stamp{})
	}
	return err
}

// chmodDir sets a directory's permissions and keeps the bits that snapshots do not record
// (setgid).
func (x *Executor) chmodDir(fd, _ int, a Action) error {
	st, err := fsys.Lstatat(fd, fsys.Base(a.Path))
	if err != nil || !st.IsDir() {
		return nil // listed by mkdir, or removed since
	}
	delete(x.opened, a.Path)
	if st.Mode&0o777 == a.After.Perm {
		return nil
	}
	if err := x.before("chmod looked", a.Path); err != nil {
		return err
	}
	_, err = ChmodAt(fd, fsys.Base(a.Path), st, st.Mode&0o7000|a.After.Perm)
	if errors.Is(err, objects.ErrContentChanged) {
		x.addKept(a.Path)
		return nil
	}
	return err
}

// closeDirs restores the modes of directories that were made writable.
func (x *Executor) closeDirs() error {
	// Children come first, since the mode of their parent may bar the way to them.
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

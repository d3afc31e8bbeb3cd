//go:build unix

package worldstate

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"strconv"

	"golang.org/x/sys/unix"
)

// executor moves a world along a list of actions. Every step is idempotent: it
// looks at the path first and does what is left to do, so that the same code
// restores, finishes a killed restore, and (with the actions turned round)
// rolls one back.
//
// A path is touched only when it stands as the action expects. One that
// stands otherwise was changed by somebody else meanwhile; it is left and
// listed. New content is written beside and renamed over, so a path holds the
// old bytes or the new ones, never a part, and a hard link elsewhere keeps
// what it had.
type executor struct {
	w      *World
	root   int
	nonce  string
	stamps map[string]stamp // what a scan just saw, to spare reading again
	kept   []Skip
	opened map[string]uint32 // directories made writable for the time being, with their own modes
	fault  func(op, path string) error

	syncEach bool            // few actions: each file and directory is synced on its own
	touched  map[string]bool // directories whose entries changed
}

// maxSyncEach: up to so many actions are synced one by one; above it one sync
// of the whole file system is cheaper, though it waits for everybody's writes.
const maxSyncEach = 32

// sync makes the run durable.
func (x *executor) sync() error {
	if !x.syncEach {
		return syncTree(x.root)
	}
	for path := range x.touched {
		fd, err := openBeneath(x.root, path)
		if isErrno(err, unix.ENOENT, unix.ENOTDIR, unix.ELOOP) {
			continue // removed in the same run; its parent is in the list
		}
		if err != nil {
			return fmt.Errorf("sync %s: %w", path, err)
		}
		err = unix.Fsync(fd)
		closeFD(fd)
		if err != nil {
			return fmt.Errorf("sync %s: %w", path, err)
		}
	}
	return nil
}

// syncFile makes one file's content and mode durable.
func (x *executor) syncFile(dirfd int, name string) error {
	fd, err := openat(dirfd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil { // not ours to read: the last sync has to do
		x.syncEach = false
		return nil
	}
	defer closeFD(fd)
	return unix.Fsync(fd)
}

// errInTheWay: an ancestor of the path is not a directory.
var errInTheWay = errors.New("something that is no directory is in the way")

// look tells what stands at a path now. A FIFO and the like is errInTheWay.
func (x *executor) look(path string) (state, stamp, error) {
	fd, err := openBeneath(x.root, dir(path))
	switch {
	case errors.Is(err, unix.ENOENT):
		return state{}, stamp{}, nil
	case isErrno(err, unix.ENOTDIR, unix.ELOOP):
		return state{}, stamp{}, errInTheWay
	case err != nil:
		return state{}, stamp{}, err
	}
	defer closeFD(fd)
	return x.lookIn(fd, base(path))
}

func (x *executor) lookIn(dirfd int, name string) (state, stamp, error) {
	st, err := lstatat(dirfd, name)
	if errors.Is(err, unix.ENOENT) {
		return state{}, stamp{}, nil
	}
	if err != nil {
		return state{}, stamp{}, err
	}
	switch {
	case st.isDir():
		return state{kind: kindDir, perm: st.mode & 0o777}, st, nil
	case st.isLink():
		target, err := readlinkat(dirfd, name)
		return state{kind: kindLink, hash: hashObject(blobObject, target)}, st, err
	case st.isRegular():
		h, err := hashFileAt(dirfd, name)
		return state{kindFile, st.mode & 0o777, h}, st, err
	}
	return state{}, st, errInTheWay
}

func hashFileAt(dirfd int, name string) (hash, error) {
	fd, err := openat(dirfd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return hash{}, err
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	st, err := fstat(fd)
	if err != nil {
		return hash{}, err
	}
	sum := sha1.New()
	fmt.Fprintf(sum, "%s %d\x00", blobObject, st.size)
	if _, err := io.Copy(sum, f); err != nil {
		return hash{}, err
	}
	return hash(sum.Sum(nil)), nil
}

// stands reports whether the path is as the state says, trusting the scan's
// stamp where it still holds.
func (x *executor) stands(dirfd int, path string, want state) (now state, same bool, err error) {
	if seen, ok := x.stamps[path]; ok && want.kind == kindFile {
		if st, err := lstatat(dirfd, base(path)); err == nil && st.sameContent(seen) {
			return want, true, nil
		}
	}
	now, _, err = x.lookIn(dirfd, base(path))
	if errors.Is(err, errInTheWay) {
		return state{}, false, nil
	}
	return now, now == want, err
}

func (x *executor) keep(path string) { x.kept = append(x.kept, Skip{path, keepRaced}) }

// run does all actions: first what must go, children before parents; then new
// directories, parents first; then files and links; then directories' modes.
func (x *executor) run(actions []action) error {
	x.opened = make(map[string]uint32)
	x.syncEach, x.touched = len(actions) <= maxSyncEach, make(map[string]bool)
	for _, a := range actions {
		x.touched[dir(a.path)] = true
		if a.after.isDir() {
			x.touched[a.path] = true
		}
	}
	var gone, dirs, files []action
	for _, a := range actions {
		if !a.before.absent() && (a.after.absent() || a.before.isDir() != a.after.isDir()) {
			gone = append(gone, a)
		}
		switch {
		case a.after.isDir():
			dirs = append(dirs, a)
		case !a.after.absent():
			files = append(files, a)
		}
	}
	sort.SliceStable(gone, func(i, j int) bool { return gone[i].path > gone[j].path })
	steps := []struct {
		what string
		list []action
		do   func(i int, a action) error
	}{
		{"remove", gone, x.remove},
		{"mkdir", dirs, x.mkdir},
		{"write", files, x.write},
		{"chmod", dirs, x.chmodDir},
	}
	for _, step := range steps {
		for i, a := range step.list {
			if step.what == "chmod" { // children before a parent may become unreachable
				a = step.list[len(step.list)-1-i]
			}
			point := step.what + " " + strconv.Itoa(i)
			x.w.opts.Hook(point + " before")
			if err := x.seam(step.what, a.path); err != nil {
				return &RestoreError{Path: a.path, Err: err}
			}
			if err := step.do(i, a); err != nil {
				return &RestoreError{Path: a.path, Err: fmt.Errorf("%s: %w", step.what, err)}
			}
			x.w.opts.Hook(point + " after")
		}
	}
	return x.closeDirs()
}

func (x *executor) seam(op, path string) error {
	if x.fault == nil {
		return nil
	}
	return x.fault(op, path)
}

// parent opens the directory a path lies in. ok is false when it is gone or
// no directory any more: then the path was changed by somebody else.
func (x *executor) parent(path string) (fd int, ok bool, err error) {
	fd, err = openBeneath(x.root, dir(path))
	if isErrno(err, unix.ENOENT, unix.ENOTDIR, unix.ELOOP) {
		return -1, false, nil
	}
	return fd, err == nil, err
}

// writable runs f and, where the directory forbids it and is ours to change,
// once more with the directory opened for writing until the restore's end.
func (x *executor) writable(dirfd int, path string, f func() error) error {
	err := f()
	if !isErrno(err, unix.EACCES, unix.EPERM) {
		return err
	}
	st, serr := fstat(dirfd)
	if serr != nil || st.mode&0o300 == 0o300 {
		return err
	}
	if cerr := unix.Fchmod(dirfd, st.mode&0o7777|0o700); cerr != nil {
		return err
	}
	if _, known := x.opened[dir(path)]; !known {
		x.opened[dir(path)] = st.mode & 0o7777
	}
	return f()
}

// remove takes away what stands at a path. A directory that is not empty
// stays: what is in it was not planned.
func (x *executor) remove(_ int, a action) error {
	fd, ok, err := x.parent(a.path)
	if err != nil || !ok {
		return err
	}
	defer closeFD(fd)
	now, same, err := x.stands(fd, a.path, a.before)
	if err != nil || now.absent() && !same {
		return err
	}
	if now.isDir() != a.before.isDir() || !same && !now.isDir() {
		if now != a.after {
			x.keep(a.path)
		}
		return nil
	}
	flags := 0
	if now.isDir() {
		flags = unix.AT_REMOVEDIR
	}
	err = x.writable(fd, a.path, func() error { return unix.Unlinkat(fd, base(a.path), flags) })
	if isErrno(err, unix.ENOTEMPTY, unix.EEXIST, unix.EBUSY) {
		x.keep(a.path)
		return nil
	}
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	return err
}

// mkdir makes a directory, open to us until chmodDir gives it its mode.
func (x *executor) mkdir(_ int, a action) error {
	fd, ok, err := x.parent(a.path)
	if err != nil {
		return err
	}
	if !ok {
		x.keep(a.path)
		return nil
	}
	defer closeFD(fd)
	st, err := lstatat(fd, base(a.path))
	switch {
	case err == nil && st.isDir():
		return nil
	case err == nil:
		x.keep(a.path)
		return nil
	case !errors.Is(err, unix.ENOENT):
		return err
	}
	err = x.writable(fd, a.path, func() error { return unix.Mkdirat(fd, base(a.path), a.after.perm|0o700) })
	if err == nil {
		x.own(fd, base(a.path), stamp{})
	}
	return err
}

// chmodDir gives a directory its mode; bits that are not kept in snapshots
// (setgid) stay as they are.
func (x *executor) chmodDir(_ int, a action) error {
	fd, ok, err := x.parent(a.path)
	if err != nil || !ok {
		return err
	}
	defer closeFD(fd)
	st, err := lstatat(fd, base(a.path))
	if err != nil || !st.isDir() {
		return nil // listed by mkdir, or gone since
	}
	delete(x.opened, a.path)
	if st.mode&0o777 == a.after.perm {
		return nil
	}
	return unix.Fchmodat(fd, base(a.path), st.mode&0o7000|a.after.perm, 0)
}

// closeDirs gives directories that were opened for writing their modes back.
func (x *executor) closeDirs() error {
	paths := make([]string, 0, len(x.opened))
	for path := range x.opened {
		paths = append(paths, path)
	}
	sort.Sort(sort.Reverse(sort.StringSlice(paths)))
	for _, path := range paths {
		fd, err := openBeneath(x.root, path)
		if isErrno(err, unix.ENOENT, unix.ENOTDIR, unix.ELOOP) {
			continue
		}
		if err == nil {
			err = unix.Fchmod(fd, x.opened[path])
			closeFD(fd)
		}
		if err != nil {
			return &RestoreError{Path: path, Err: fmt.Errorf("chmod: %w", err)}
		}
	}
	return nil
}

// tempName is where the i-th file is written before it is renamed; recovery
// knows the names again and removes what a kill left.
func (x *executor) tempName(i int) string { return ".anamnesis-" + x.nonce + "-" + strconv.Itoa(i) }

// write puts a file or link in place.
func (x *executor) write(i int, a action) error {
	fd, ok, err := x.parent(a.path)
	if err != nil {
		return err
	}
	if !ok {
		x.keep(a.path)
		return nil
	}
	defer closeFD(fd)
	name, temp := base(a.path), x.tempName(i)
	if err := unix.Unlinkat(fd, temp, 0); err == nil { // a killed restore's
		delete(x.stamps, a.path)
	}
	now, same, err := x.stands(fd, a.path, a.before)
	if err != nil {
		return err
	}
	if now == a.after {
		return nil
	}
	gone := now.absent() && (a.after.isDir() != a.before.isDir() || a.before.absent())
	if !same && !gone {
		x.keep(a.path)
		return nil
	}
	old, err := lstatat(fd, name)
	if err != nil {
		old = stamp{}
	}
	if now.kind == kindFile && a.after.kind == kindFile && now.hash == a.after.hash {
		if err := unix.Fchmodat(fd, name, a.after.perm, 0); err != nil { // the same bytes: the inode stays
			return err
		}
		return x.syncFile(fd, name)
	}
	return x.writable(fd, a.path, func() error { return x.replace(fd, temp, a, old) })
}

// replace writes the new content beside and renames it over.
func (x *executor) replace(fd int, temp string, a action, old stamp) error {
	var err error
	if a.after.kind == kindLink {
		var target []byte
		if target, err = x.w.objects.read(a.after.hash, blobObject, a.path); err == nil {
			err = unix.Symlinkat(string(target), fd, temp)
		}
	} else {
		err = x.writeTemp(fd, temp, a)
	}
	if err != nil {
		unix.Unlinkat(fd, temp, 0)
		return err
	}
	x.own(fd, temp, old)
	if a.after.kind == kindFile { // after own, which may drop bits
		if err := unix.Fchmodat(fd, temp, a.after.perm, 0); err != nil {
			unix.Unlinkat(fd, temp, 0)
			return err
		}
	}
	x.w.opts.Hook("temp written")
	if err := unix.Renameat(fd, temp, fd, base(a.path)); err != nil {
		unix.Unlinkat(fd, temp, 0)
		return err
	}
	return nil
}

func (x *executor) writeTemp(fd int, temp string, a action) error {
	n, err := openat(fd, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(n), temp)
	_, err = x.w.objects.copyTo(a.after.hash, blobObject, a.path, f)
	if err == nil && x.syncEach {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// own gives what was made the owner of what stood there, or of its directory,
// where we may; where we may not, it is ours.
func (x *executor) own(dirfd int, name string, old stamp) {
	if os.Geteuid() != 0 {
		return
	}
	if old == (stamp{}) {
		parent, err := fstat(dirfd)
		if err != nil {
			return
		}
		old = parent
	}
	if old.uid != 0 || old.gid != 0 {
		// A failure leaves root's file, with the right bytes and mode.
		_ = unix.Fchownat(dirfd, name, int(old.uid), int(old.gid), unix.AT_SYMLINK_NOFOLLOW)
	}
}

// sweepTemps removes the temporary files a killed run may have left.
func (x *executor) sweepTemps(actions []action) {
	var files int
	for _, list := range [][]action{actions, reversed(actions)} {
		files = 0
		for _, a := range list {
			if a.after.isDir() || a.after.absent() {
				continue
			}
			if fd, err := openBeneath(x.root, dir(a.path)); err == nil {
				unix.Unlinkat(fd, x.tempName(files), 0)
				closeFD(fd)
			}
			files++
		}
	}
}

// reversed turns actions round.
func reversed(actions []action) []action {
	out := make([]action, len(actions))
	for i, a := range actions {
		out[i] = action{a.path, a.after, a.before}
	}
	return out
}

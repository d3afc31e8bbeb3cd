//go:build unix

package worldstate

import (
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// tempName is where the i-th file is written before it is renamed; recovery
// knows the names again and removes what a kill left.
func (x *executor) tempName(i int) string { return ".anamnesis-" + x.nonce + "-" + strconv.Itoa(i) }

// write puts a file or link in place: by chmod where only the permissions
// differ, by writing over the old bytes where that is safe (inPlace), and by
// writing beside and renaming over it everywhere else.
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
	now, st, same, err := x.stands(fd, a.path, a.before)
	if err != nil {
		return err
	}
	if now == a.after {
		x.wrote(a.path, st)
		return nil
	}
	gone := now.absent() && (a.after.isDir() != a.before.isDir() || a.before.absent())
	if !same && !gone && x.resumed {
		same, err = x.ours(fd, a, now)
		if err != nil {
			return err
		}
	}
	if !same && !gone {
		x.keep(a.path)
		return nil
	}
	if now.kind == kindFile && a.after.kind == kindFile && now.hash == a.after.hash && st.nlink == 1 {
		return x.chmodFile(fd, a) // the same bytes: the inode stays, unless it has another name, which keeps its mode
	}
	if inPlace(now, a.after, st) {
		if done, err := x.overwrite(fd, a, st); done || err != nil {
			return err
		}
	}
	x.touch(dir(a.path))
	err = x.writable(fd, a.path, func() error { return x.replace(fd, x.tempName(i), a, st) })
	if err != nil {
		return err
	}
	if st, err = lstatat(fd, base(a.path)); err == nil {
		x.wrote(a.path, st)
	}
	return nil
}

func (x *executor) chmodFile(fd int, a action) error {
	if err := unix.Fchmodat(fd, base(a.path), a.after.perm, 0); err != nil {
		return err
	}
	if st, err := lstatat(fd, base(a.path)); err == nil {
		x.wrote(a.path, st)
	}
	x.changed(a.path)
	return nil
}

// replace writes the new content beside and renames it over. old is the stamp
// of what stood there, zero where nothing did.
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
	x.hook("temp written")
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
	size, err := x.w.objects.copyTo(a.after.hash, blobObject, a.path, f)
	if err == nil && (x.syncEach || size > inPlaceBytes) { // a larger one is not told from somebody else's, see ours
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

// wrote remembers how a path stood right after its action, so that the last
// look need not read it again.
func (x *executor) wrote(path string, st stamp) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.done[path] = st
}

// compare looks at every path of the actions once more and lists those that
// do not stand as they should, apart from those listed already.
func (x *executor) compare(actions []action) error {
	listed := make(map[string]bool, len(x.kept))
	for _, k := range x.kept {
		listed[k.Path] = true
	}
	return atOnce(len(actions), func(i int) error {
		a := actions[i]
		if listed[a.path] {
			return nil
		}
		same, err := x.standsDone(a)
		if err != nil {
			return &RestoreError{Path: a.path, Err: err}
		}
		if !same {
			x.keep(a.path)
		}
		return nil
	})
}

func (x *executor) standsDone(a action) (bool, error) {
	fd, ok, err := x.parent(a.path)
	if err != nil || !ok {
		return a.after.absent(), err
	}
	defer closeFD(fd)
	if want, ok := x.done[a.path]; ok {
		if st, err := lstatat(fd, base(a.path)); err == nil && st.sameContent(want) {
			return true, nil
		}
	}
	now, _, err := x.lookIn(fd, base(a.path))
	if errors.Is(err, errInTheWay) || isErrno(err, unix.EACCES, unix.EPERM) {
		return false, nil
	}
	return now == a.after, err
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

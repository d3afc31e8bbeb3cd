package restore

import (
	"cmp"
	"errors"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/tree"
)

// tempName returns the temporary name of the i-th file. Recovery derives the same names and
// removes leftovers.
func (x *Executor) tempName(i int) string { return ".anamnesis-" + x.nonce + "-" + strconv.Itoa(i) }

// write writes a file or link: by chmod if only the permissions differ, over the old bytes if
// that is safe (inPlace), otherwise to a new file that is renamed over it.
func (x *Executor) write(fd, i int, a Action) error {
	now, st, same, err := x.compareNow(fd, a.Path, a.Before)
	if err != nil {
		return err
	}
	if now == a.After {
		x.recordStamp(a.Path, st)
		return nil
	}
	nothing := now.Absent() && st == (fsys.Stamp{}) // a FIFO that was made meanwhile has a stamp and no state
	gone := nothing && (a.After.IsDir() != a.Before.IsDir() || a.Before.Absent())
	if !same && !gone && x.resumed {
		same, err = x.isHalfWritten(fd, a, now)
		if err != nil {
			return err
		}
	}
	if !same && !gone {
		x.addKept(a.Path)
		return nil
	}
	if now.Kind == tree.KindFile && a.After.Kind == tree.KindFile && now.Hash == a.After.Hash && st.Nlink == 1 {
		return x.chmodFile(fd, a, st) // same bytes: keep the inode, unless another hard link would change its mode
	}
	if inPlace(now, a.After, st) {
		if done, err := x.overwrite(fd, a, st); done || err != nil {
			return err
		}
	}
	var made fsys.Stamp
	err = x.writable(fd, a.Path, func() (err error) {
		made, err = x.replace(fd, x.tempName(i), a, st)
		return err
	})
	if err != nil {
		return err
	}
	st, err = fsys.Lstatat(fd, fsys.Base(a.Path))
	same = st.Ino == made.Ino && st.Mode == made.Mode && st.Mtime == made.Mtime
	if err == nil && made.IsRegular() && same {
		x.recordStamp(a.Path, st)
	}
	return nil
}

func (x *Executor) chmodFile(fd int, a Action, st fsys.Stamp) error {
	if err := x.before("chmod looked", a.Path); err != nil {
		return err
	}
	now, err := ChmodAt(fd, fsys.Base(a.Path), st, st.Mode&tree.SpecialBits|a.After.Perm)
	if errors.Is(err, objects.ErrContentChanged) {
		x.addKept(a.Path)
		return nil
	}
	if err != nil {
		return err
	}
	x.recordStamp(a.Path, now)
	return nil
}

// ChmodAt sets the permissions of a name through a descriptor, without following a link. If the
// file does not match st, the error is ErrContentChanged. It returns the new stamp.
func ChmodAt(dirfd int, name string, st fsys.Stamp, perm uint32) (fsys.Stamp, error) {
	fd, err := fsys.OpenHandle(dirfd, name)
	if fsys.IsErrno(err, unix.ENOENT, unix.ENOTDIR, unix.ELOOP, unix.ENXIO) {
		return st, objects.ErrContentChanged
	}
	if err != nil {
		return fsys.ChmodUnopened(dirfd, name, st, perm, err)
	}
	defer fsys.CloseFD(fd)
	now, err := fsys.Fstat(fd)
	if err != nil {
		return st, err
	}
	same := now.Ino == st.Ino && now.Dev == st.Dev && now.Mode == st.Mode
	// A file must have one name: under another one, its permissions would change as well.
	if !same || !now.IsDir() && !(now.SameContent(st) && now.Nlink == 1) {
		return st, objects.ErrContentChanged
	}
	if err := fsys.ChmodHandle(fd, perm); err != nil {
		return st, err
	}
	return fsys.Fstat(fd)
}

// replace writes the new content to a temporary file and renames it over the path. old is the
// stamp of the previous file, zero if there was none; made is that of the new file.
func (x *Executor) replace(fd int, temp string, a Action, old fsys.Stamp) (made fsys.Stamp, err error) {
	if a.After.Kind == tree.KindLink {
		var target []byte
		if target, err = x.env.Objects.Read(a.After.Hash, gitfmt.BlobObject, a.Path); err == nil {
			err = unix.Symlinkat(string(target), fd, temp)
		}
		if err == nil {
			x.copyOwnerAt(fd, temp, old)
		}
	} else {
		made, err = x.writeTemp(fd, temp, a, old)
	}
	if err == nil {
		x.env.Hook("temp written")
		err = unix.Renameat(fd, temp, fd, fsys.Base(a.Path))
	}
	if err != nil {
		unix.Unlinkat(fd, temp, 0)
	}
	return made, err
}

func (x *Executor) writeTemp(fd int, temp string, a Action, old fsys.Stamp) (made fsys.Stamp, err error) {
	n, err := fsys.Openat(fd, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return made, err
	}
	f := os.NewFile(uintptr(n), temp)
	size, err := x.env.Objects.CopyTo(a.After.Hash, gitfmt.BlobObject, a.Path, fsys.HoleWriter{File: f})
	if err == nil {
		err = f.Truncate(size)
	}
	if err == nil {
		err = x.before("temp filled", a.Path)
	}
	if err == nil {
		x.copyOwner(fd, n, old)
		err = x.copyAttributes(fd, n, a, old)
	}
	if err == nil {
		made, err = fsys.Fstat(n)
	}
	if err == nil && size > InPlaceBytes { // recovery cannot recognise a larger half-written file, see isHalfWritten
		err = f.Sync()
	}
	return made, cmp.Or(err, f.Close())
}

// copyOwner sets the owner of the new file fd to that of the old one, or of its directory. Only root
// can; for other users it does nothing.
func (x *Executor) copyOwner(dirfd, fd int, old fsys.Stamp) {
	if os.Geteuid() != 0 {
		return
	}
	if old == (fsys.Stamp{}) {
		parent, err := fsys.Fstat(dirfd)
		if err != nil {
			return
		}
		old = parent
	}
	if old.Uid != 0 || old.Gid != 0 {
		// After a failure the file belongs to root and has the right bytes and mode.
		_ = fsys.ChownHandle(fd, int(old.Uid), int(old.Gid))
	}
}

// copyOwnerAt is copyOwner for a link or a directory that was just made under a name. It does nothing if
// another program has replaced it or linked it.
func (x *Executor) copyOwnerAt(dirfd int, name string, old fsys.Stamp) {
	if os.Geteuid() != 0 {
		return
	}
	fd, err := fsys.OpenHandle(dirfd, name)
	if err != nil {
		return
	}
	defer fsys.CloseFD(fd)
	if st, err := fsys.Fstat(fd); err == nil && st.Uid == 0 && (st.IsDir() || st.IsLink() && st.Nlink == 1) {
		x.copyOwner(dirfd, fd, old)
	}
}

// recordStamp records the stamp of a path right after its action, so that Compare need not read it.
func (x *Executor) recordStamp(path string, st fsys.Stamp) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.done[path] = st
}

// Compare examines every path of the actions again and lists those that are not in the planned
// state, unless they are listed already.
func (x *Executor) Compare(actions []Action) error {
	listed := make(map[string]bool, len(x.Kept))
	for _, k := range x.Kept {
		listed[k.Path] = true
	}
	return atOnce(len(actions), func(i int) error {
		a := actions[i]
		if listed[a.Path] {
			return nil
		}
		same, err := x.isDone(a)
		if err != nil {
			return &RestoreError{Path: a.Path, Err: err}
		}
		if !same {
			x.addKept(a.Path)
		}
		return nil
	})
}

func (x *Executor) isDone(a Action) (bool, error) {
	fd, ok, err := x.parent(a.Path)
	if err != nil || !ok {
		return a.After.Absent(), err
	}
	defer fsys.CloseFD(fd)
	if want, ok := x.done[a.Path]; ok {
		if st, err := fsys.Lstatat(fd, fsys.Base(a.Path)); err == nil && st.SameContent(want) {
			return true, nil
		}
	}
	now, _, err := x.stateIn(fd, fsys.Base(a.Path))
	if errors.Is(err, ErrInTheWay) || fsys.IsErrno(err, unix.EACCES, unix.EPERM) {
		return false, nil
	}
	return now == a.After, err
}

// SweepTemps removes temporary files of a killed run.
func (x *Executor) SweepTemps(actions []Action) {
	// A roll-back numbers its temporary files over the reversed actions, in which other paths are files.
	for _, list := range [][]Action{actions, reversed(actions)} {
		files := 0
		for _, a := range list {
			if a.After.IsDir() || a.After.Absent() {
				continue
			}
			if fd, err := fsys.OpenBeneath(x.root, fsys.Dir(a.Path)); err == nil {
				unix.Unlinkat(fd, x.tempName(files), 0)
				fsys.CloseFD(fd)
			}
			files++
		}
	}
}

// CleanUp removes temporary files of an abandoned restore and restores the modes of directories
// that it made writable.
func (x *Executor) CleanUp(j *Journal) {
	x.SweepTemps(j.Actions)
	for _, a := range j.Actions {
		if a.Before == a.After { // see WithReadOnlyDirs
			_ = x.step("chmod", 0, a, x.chmodDir)
		}
	}
}

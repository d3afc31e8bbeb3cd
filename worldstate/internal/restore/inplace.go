package restore

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/tree"
)

// Writing in place: a file that only gets other bytes is overwritten, not replaced. On ext4 a
// rename over an existing file starts its write-back at once (auto_da_alloc), as does
// truncating it first, which takes several times as long as overwriting (docs/design/001).
// Overwriting also keeps the inode with its attributes, and the watches and descriptors of
// other programs.
//
// A kill may leave such a file with bytes of both ends. Both are in the store, so that recovery
// can tell this from a user's edit: each byte of a half-written file is, at its offset, that of
// one end or the other (HalfWrite). Any other file is left as it is and listed. A power failure
// may also leave a renamed file without all of its bytes: the beginning of the new content,
// then zeros. The journal's boot id shows whether there may have been one.
//
// Some files are still replaced by rename, so that a reader sees one end or the other: files
// with other hard links, which keep the old content; executable ones, which may be running (a
// shell reads its script as it goes); large ones, which would be half-written for long; and
// those that cannot be opened for writing (permissions, text busy).

// InPlaceBytes: larger files are replaced. The new bytes of a smaller one are in memory and
// verified before the first is written.
const InPlaceBytes = 4 << 20

// inPlace reports whether a file in the state now may be overwritten.
func inPlace(now, after tree.State, st fsys.Stamp) bool {
	return now.Kind == tree.KindFile && after.Kind == tree.KindFile && st.Nlink == 1 &&
		(now.Perm|after.Perm)&0o111 == 0 && st.Size <= InPlaceBytes
}

// overwrite writes the new bytes over the file with stamp st. done is false if the file must be
// replaced instead; then nothing was changed.
func (x *Executor) overwrite(dirfd int, a Action, st fsys.Stamp) (done bool, err error) {
	buf := x.env.Objects.Buffer()
	defer x.env.Objects.Buffers.Put(buf)
	// Verified before the first byte is written.
	data, err := x.env.Objects.ReadInto(*buf, a.After.Hash, gitfmt.BlobObject, a.Path, InPlaceBytes)
	if errors.Is(err, objects.ErrTooLarge) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	fd, err := fsys.Openat(dirfd, fsys.Base(a.Path), unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, nil // replacing the file reports the cause if it persists
	}
	defer fsys.CloseFD(fd)
	now, err := fsys.Fstat(fd)
	if err != nil {
		return false, err
	}
	if !now.SameContent(st) || now.Nlink != st.Nlink {
		x.addKept(a.Path)
		return true, nil
	}
	return true, x.fill(fd, a, now, data)
}

// fill writes the new bytes to an open file, those beyond the old end first: if the disk is
// full, that fails while the old bytes are complete, and is undone.
func (x *Executor) fill(fd int, a Action, old fsys.Stamp, data []byte) error {
	inside := min(old.Size, int64(len(data)))
	if err := x.writeAt(fd, a.Path, data[inside:], inside); err != nil {
		_ = unix.Ftruncate(fd, old.Size) // if this fails as well, the roll-back finds a half write
		return err
	}
	if err := x.writeAt(fd, a.Path, data[:inside], 0); err != nil {
		return err
	}
	if old.Size > inside {
		if err := unix.Ftruncate(fd, inside); err != nil {
			return err
		}
		x.env.Hook("cut")
	}
	mode := old.Mode&tree.SpecialBits | a.After.Perm
	if old.Mode&0o777 != a.After.Perm || mode > 0o777 { // writing drops setuid
		if err := unix.Fchmod(fd, mode); err != nil && old.Mode&0o777 != a.After.Perm {
			return err
		}
	}
	st, err := fsys.Fstat(fd)
	if err == nil {
		x.recordStamp(a.Path, st)
	}
	return err
}

func (x *Executor) writeAt(fd int, path string, data []byte, off int64) error {
	for len(data) > 0 {
		if err := x.before("overwrite", path); err != nil {
			return err
		}
		n, err := unix.Pwrite(fd, data, off)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		data, off = data[n:], off+int64(n)
		x.env.Hook("piece written")
	}
	return nil
}

// isHalfWritten reports whether a path that is in neither end's state is what a killed restore
// leaves in the middle of a file.
func (x *Executor) isHalfWritten(dirfd int, a Action, now tree.State) (bool, error) {
	if now.Kind != tree.KindFile || a.After.Kind != tree.KindFile || a.Before.Kind != tree.KindFile && !x.restarted {
		return false, nil
	}
	if now.Perm != a.After.Perm && (a.Before.Kind != tree.KindFile || now.Perm != a.Before.Perm) {
		return false, nil
	}
	if now.Hash == a.Before.Hash || now.Hash == a.After.Hash {
		return true, nil // only the permissions differ
	}
	var ends [2][]byte
	for i, end := range []tree.State{a.Before, a.After} {
		if end.Kind != tree.KindFile {
			continue
		}
		var err error
		ends[i], err = x.env.Objects.ReadUpTo(end.Hash, gitfmt.BlobObject, a.Path, InPlaceBytes)
		if errors.Is(err, objects.ErrTooLarge) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	fd, err := fsys.Openat(dirfd, fsys.Base(a.Path), unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, err
	}
	f := os.NewFile(uintptr(fd), a.Path)
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, InPlaceBytes+1))
	overOld := a.Before.Kind == tree.KindFile && HalfWrite(data, ends[0], ends[1])
	return err == nil && (overOld || x.restarted && HalfWrite(data, nil, ends[1])), err
}

// HalfWrite reports whether data can be the state of a file with the content of one end while
// the other's is written over it, in any order: its length is between the two, and each byte is
// that of one end or the other at its offset. Beyond its end, an end counts as zeros, which is
// what a file holds that was extended but not yet written.
func HalfWrite(data, one, other []byte) bool {
	if len(data) < min(len(one), len(other)) || len(data) > max(len(one), len(other)) {
		return false
	}
	at := func(end []byte, i int) byte {
		if i < len(end) {
			return end[i]
		}
		return 0
	}
	for i, b := range data {
		if b != at(one, i) && b != at(other, i) {
			return false
		}
	}
	return true
}

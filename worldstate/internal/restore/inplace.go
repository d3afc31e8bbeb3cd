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

// Writing in place. A file that only gets other bytes is written over, not
// replaced: on ext4 a rename over a file that exists starts its write-back at
// once (auto_da_alloc), as does truncating it first, and 1,000 files take 95
// to 115 ms so, fallocate or not, but 13 ms in place. It also keeps the inode,
// with its attributes, and a watcher's or an editor's hold on it.
//
// A kill may leave such a file with the bytes of both ends. Since both are in
// the store, recovery distinguishes this from a user's edit: every byte of a half
// write is, at its place, the one end's or the other's (HalfWrite). Anything
// else stays as it is and is listed. A power cut may also leave a file that was
// renamed into place without all of its bytes: the beginning of its new
// content, with zeros for what did not reach the disk. The journal's boot id
// shows that there may have been one.
//
// Replaced by rename all the same, so that a reader sees one end or the other:
// files with another hard link, which keeps what it had; executable ones,
// which a process may be running (a shell reads its script as it goes); large
// ones, which would stay half-written for long; and what cannot be opened for
// writing (permissions, text busy).

// InPlaceBytes: larger files are replaced; a smaller one's new bytes are in
// memory, whole and verified, before the first of them is written.
const InPlaceBytes = 4 << 20

// inPlace reports whether a file in the state now may be written over.
func inPlace(now, after tree.State, st fsys.Stamp) bool {
	return now.Kind == tree.KindFile && after.Kind == tree.KindFile && st.Nlink == 1 &&
		(now.Perm|after.Perm)&0o111 == 0 && st.Size <= InPlaceBytes
}

// overwrite writes a's bytes over the file that st was taken of. done is false
// when the file must be replaced instead; then nothing was touched.
func (x *Executor) overwrite(dirfd int, a Action, st fsys.Stamp) (done bool, err error) {
	buf := x.env.Objects.Buffer()
	defer x.env.Objects.Buffers.Put(buf)
	data, err := x.env.Objects.ReadInto(*buf, a.After.Hash, gitfmt.BlobObject, a.Path, InPlaceBytes) // verified before the first byte moves
	if errors.Is(err, objects.ErrTooLarge) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if fsys.HasHole(data) {
		return false, nil // a new file has holes
	}
	fd, err := fsys.Openat(dirfd, fsys.Base(a.Path), unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, nil // the way by rename says what is wrong, if it is wrong there, too
	}
	defer fsys.CloseFD(fd)
	now, err := fsys.Fstat(fd)
	if err != nil {
		return false, err
	}
	if !now.SameContent(st) || now.Nlink != st.Nlink {
		x.keep(a.Path)
		return true, nil
	}
	return true, x.fill(fd, a, now, data)
}

// fill writes the new bytes to an open file. What lies beyond the old end is
// written first: when the disk is full, that fails while the old bytes are
// still whole, and is taken back.
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
		x.hook("cut")
	}
	if old.Mode&0o7777 != a.After.Perm {
		if err := unix.Fchmod(fd, a.After.Perm); err != nil {
			return err
		}
	}
	st, err := fsys.Fstat(fd)
	if err == nil {
		x.wrote(a.Path, st)
	}
	return err
}

// writeAt writes data at an offset, in pieces where a test wants to stop
// between them.
func (x *Executor) writeAt(fd int, path string, data []byte, off int64) error {
	piece := len(data)
	if x.env.Piece > 0 {
		piece = x.env.Piece
	}
	for len(data) > 0 {
		if err := x.seam("overwrite", path); err != nil {
			return err
		}
		n, err := unix.Pwrite(fd, data[:min(piece, len(data))], off)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		data, off = data[n:], off+int64(n)
		x.hook("piece written")
	}
	return nil
}

// isHalfWritten reports whether what is at a path, neither end's, is what a killed
// restore leaves in the middle of one file.
func (x *Executor) isHalfWritten(dirfd int, a Action, now tree.State) (bool, error) {
	if now.Kind != tree.KindFile || a.After.Kind != tree.KindFile || a.Before.Kind != tree.KindFile && !x.cut {
		return false, nil
	}
	if now.Perm != a.After.Perm && (a.Before.Kind != tree.KindFile || now.Perm != a.Before.Perm) {
		return false, nil
	}
	if now.Hash == a.Before.Hash || now.Hash == a.After.Hash {
		return true, nil // only the permissions are left to do
	}
	var ends [2][]byte
	for i, end := range []tree.State{a.Before, a.After} {
		if end.Kind != tree.KindFile {
			continue
		}
		var err error
		if ends[i], err = x.env.Objects.ReadUpTo(end.Hash, gitfmt.BlobObject, a.Path, InPlaceBytes); errors.Is(err, objects.ErrTooLarge) {
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
	return err == nil && (a.Before.Kind == tree.KindFile && HalfWrite(data, ends[0], ends[1]) || x.cut && HalfWrite(data, nil, ends[1])), err
}

// HalfWrite reports whether data can be what is left of a file with the bytes
// of one end while the other's are written over it, in whatever order they
// reached the disk: its length is between the two, and every byte is the one's
// or the other's at this place. An end is followed by zeros, which is what a
// file grown but not yet filled holds.
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

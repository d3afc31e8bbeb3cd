package folder

import (
	"errors"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/knowledge_base/sealed"
)

// RacyWindow is the age below which a file's marks prove nothing: another change within the file
// system's coarsest time step (two seconds, on FAT) could leave them as they are. Such a file is
// read again.
const RacyWindow = 2 * time.Second

// Marks identify the state of a file: device, inode, size, and the times of the last change of
// its content and of its inode, in nanoseconds. The zero value vouches for nothing.
type Marks struct {
	dev, ino         uint64
	Size             int64
	modified, noted  int64 // mtime, ctime
	Regular, Settled bool  // Regular: a file, or a folder where that was asked for
}

// MarksOf returns the marks of a file that is about to be read; now is the present time.
func MarksOf(path string, now time.Time) (Marks, error) { return MarksAt(unix.AT_FDCWD, path, now) }

// MarksAt is MarksOf for a path within an open folder. For many files of one folder it takes half
// the time.
func MarksAt(folder int, path string, now time.Time) (Marks, error) {
	return marksAt(folder, path, unix.S_IFREG, now)
}

// MarksOfFolder returns the marks of a folder that is about to be listed. Adding, removing or
// renaming a file in it changes them.
func MarksOfFolder(path string, now time.Time) (Marks, error) {
	return marksAt(unix.AT_FDCWD, path, unix.S_IFDIR, now)
}

func marksAt(folder int, path string, kind uint32, now time.Time) (Marks, error) {
	var st unix.Stat_t
	if err := lstat(folder, path, &st); err != nil {
		return Marks{}, err
	}
	m := Marks{dev: uint64(st.Dev), ino: st.Ino, Size: st.Size, modified: st.Mtim.Nano(), noted: st.Ctim.Nano(),
		Regular: uint32(st.Mode)&unix.S_IFMT == kind}
	m.Settled = m.Regular && max(m.modified, m.noted) < now.Add(-RacyWindow).UnixNano()
	return m, nil
}

// Vouch reports whether a file that has the marks now is unchanged since it was read with the
// marks m.
func (m Marks) Vouch(now Marks) bool {
	now.Settled = m.Settled
	return m.Settled && m == now
}

func (m Marks) Write(w *sealed.Writer) {
	for _, n := range []uint64{m.dev, m.ino, uint64(m.Size), uint64(m.modified), uint64(m.noted)} {
		w.Uint(n)
	}
}

// ReadMarks reads marks that were settled when they were written.
func ReadMarks(r *sealed.Reader) Marks {
	return Marks{dev: r.Uint(), ino: r.Uint(), Size: int64(r.Uint()), modified: int64(r.Uint()), noted: int64(r.Uint()), Regular: true, Settled: true}
}

// lstat repeats the system call if a signal interrupts it.
func lstat(folder int, path string, st *unix.Stat_t) error {
	for {
		err := unix.Fstatat(folder, path, st, unix.AT_SYMLINK_NOFOLLOW)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EINTR) {
			return &fs.PathError{Op: "lstat", Path: path, Err: err}
		}
	}
}

package fsys

import (
	"time"

	"golang.org/x/sys/unix"
)

// Source is a path that something was read from, as it was before the read.
type Source struct {
	Path  string
	Sight Sight // zero if there was nothing
}

func StatSource(path string) Source {
	s := Source{Path: path}
	now := time.Now()
	if st, err := Lstatat(unix.AT_FDCWD, path); err == nil {
		s.Sight = Sight{Stamp: st, Racy: Racy(st, now)}
	}
	return s
}

// Current reports whether a new read of the path would return the same.
func (s Source) Current() bool { return s.Equal(StatSource(s.Path)) }

// Equal reports whether neither the path nor its content differs.
func (s Source) Equal(now Source) bool {
	return s.Path == now.Path && !s.Sight.Racy && s.Sight.SameContent(now.Sight.Stamp)
}

// SourceAt is StatSource, but for a directory only its identity counts, not its content.
func SourceAt(path string) Source {
	s := StatSource(path)
	if st := s.Sight.Stamp; st.IsDir() {
		s.Sight = Sight{Stamp: Stamp{Ino: st.Ino, Dev: st.Dev, Mode: st.Mode & unix.S_IFMT}}
	}
	return s
}

// Sight is one stat of a path.
type Sight struct {
	Stamp
	// Racy: a later change might not show in the stamp.
	Racy bool
	// OnlyTracked: the directory is ignored, and kept for files in it that the user's index
	// tracks.
	OnlyTracked bool
}

// Sure reports whether the file is certainly unchanged since s was taken.
func (s *Sight) Sure(now Stamp) bool { return !s.Racy && s.SameContent(now) }

// RacySlack covers the granularity of the kernel's clock (a tick, at most 10 ms).
const RacySlack = 100 * time.Millisecond

// coarseSlack covers file systems that record whole seconds (FAT: two).
const coarseSlack = 2100 * time.Millisecond

// Racy reports whether a stamp is so recent at the moment of reading that a later change might
// not show in it.
func Racy(st Stamp, read time.Time) bool {
	newest := max(st.Mtime, st.Ctime)
	slack := RacySlack
	if st.Mtime%int64(time.Second) == 0 && st.Ctime%int64(time.Second) == 0 {
		slack = coarseSlack
	}
	return newest+int64(slack) > read.UnixNano()
}

// Stamp is the part of a stat result that identifies a file's content: two equal stamps that
// are not racy mean the same bytes.
type Stamp struct {
	Size, Mtime, Ctime int64 // bytes, ns, ns
	Ino, Dev           uint64
	Mode               uint32 // type and permission bits
	Nlink              uint64
	Uid, Gid           uint32
}

func (s Stamp) IsDir() bool { return s.Mode&unix.S_IFMT == unix.S_IFDIR }

func (s Stamp) IsRegular() bool { return s.Mode&unix.S_IFMT == unix.S_IFREG }

func (s Stamp) IsLink() bool { return s.Mode&unix.S_IFMT == unix.S_IFLNK }

// SameContent compares all but the number of links and the owner.
func (s Stamp) SameContent(o Stamp) bool {
	return s.Size == o.Size && s.Mtime == o.Mtime && s.Ctime == o.Ctime &&
		s.Ino == o.Ino && s.Dev == o.Dev && s.Mode == o.Mode
}

func newStamp(st *unix.Stat_t) Stamp {
	return Stamp{
		Size: int64(st.Size), Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano(),
		Ino: uint64(st.Ino), Dev: uint64(st.Dev), Mode: uint32(st.Mode), Nlink: uint64(st.Nlink),
		Uid: st.Uid, Gid: st.Gid,
	}
}

func Fstat(fd int) (Stamp, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return newStamp(&st), err
}

// Lstatat returns the stamp of a name in a directory without following a link.
func Lstatat(dirfd int, name string) (Stamp, error) {
	var st unix.Stat_t
	err := Retry(func() error { return unix.Fstatat(dirfd, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return newStamp(&st), err
}

package fsys

import (
	"time"

	"golang.org/x/sys/unix"
)

// Source is one path that was looked at, as it was before it was read.
type Source struct {
	Path  string
	Sight Sight // zero where nothing was
}

func LookAt(path string) Source {
	s := Source{Path: path}
	now := time.Now()
	if st, err := Lstatat(unix.AT_FDCWD, path); err == nil {
		s.Sight = Sight{Stamp: st, Racy: Racy(st, now)}
	}
	return s
}

// Current reports whether what was read of the path would be read again.
func (s *Source) Current() bool { return s.Same(LookAt(s.Path)) }

func (s *Source) Same(now Source) bool {
	return s.Path == now.Path && !s.Sight.Racy && s.Sight.SameContent(now.Sight.Stamp)
}

func (s Source) SameAs(now Source) bool { return s.Same(now) }

// SourceAt is LookAt, but of a directory only its being there counts.
func SourceAt(path string) Source {
	s := LookAt(path)
	if st := s.Sight.Stamp; st.IsDir() {
		s.Sight = Sight{Stamp: Stamp{Ino: st.Ino, Dev: st.Dev, Mode: st.Mode & unix.S_IFMT}}
	}
	return s
}

// Written looks at a file this process has just put in its place, under the
// store's lock: the next to change it puts another there.
func Written(path string) Source {
	s := LookAt(path)
	s.Sight.Racy = false
	return s
}

// Sight is one stat. racy: a later change might not show in it.
type Sight struct {
	Stamp
	Racy bool
	// OnlyTracked: of an ignored directory, kept for what the user's index
	// tracks beneath.
	OnlyTracked bool
}

// Sure reports that the file is as it was when s was taken.
func (s *Sight) Sure(now Stamp) bool { return !s.Racy && s.SameContent(now) }

// RacySlack covers the kernel's coarse clock (a tick, at most 10 ms).
const RacySlack = 100 * time.Millisecond

// coarseSlack covers file systems with whole seconds (FAT counts two).
const coarseSlack = 2100 * time.Millisecond

// Racy reports whether a stamp is too young at the moment of reading for a
// later change to be sure to show.
func Racy(st Stamp, read time.Time) bool {
	newest := max(st.Mtime, st.Ctime)
	slack := RacySlack
	if st.Mtime%int64(time.Second) == 0 && st.Ctime%int64(time.Second) == 0 {
		slack = coarseSlack
	}
	return newest+int64(slack) > read.UnixNano()
}

// Stamp is what stat returns of a file: two equal stamps, not racy, are the
// same bytes.
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

// SameContent ignores what a link or a chmod elsewhere changes, but not ctime.
func (s Stamp) SameContent(o Stamp) bool {
	return s.Size == o.Size && s.Mtime == o.Mtime && s.Ctime == o.Ctime && s.Ino == o.Ino && s.Dev == o.Dev && s.Mode == o.Mode
}

func NewStamp(st *unix.Stat_t) Stamp {
	return Stamp{
		Size: int64(st.Size), Mtime: st.Mtim.Nano(), Ctime: st.Ctim.Nano(),
		Ino: uint64(st.Ino), Dev: uint64(st.Dev), Mode: uint32(st.Mode), Nlink: uint64(st.Nlink),
		Uid: st.Uid, Gid: st.Gid,
	}
}

func Fstat(fd int) (Stamp, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return NewStamp(&st), err
}

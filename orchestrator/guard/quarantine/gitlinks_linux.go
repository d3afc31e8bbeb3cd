package quarantine

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// linkCounts reports whether a link could make git run a program. In a git directory every
// link can: git writes through it, and takes a directory for its own; only a reference may be
// one. Elsewhere a link can if it leads into one of the program's directories, which commands
// write and which are not scanned, where git finds a repository.
func (s *gitScan) linkCounts(rel, git string) bool {
	abs := filepath.Join(s.q.o.World, rel)
	if git != "" {
		to, err := os.Readlink(abs)
		return err == nil && (!strings.HasPrefix(to, "refs/") || strings.Contains(to, ".."))
	}
	fd, err := unix.Open(abs, unix.O_PATH|unix.O_CLOEXEC, 0) // follows all links at little cost
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	real, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
	if err != nil {
		real = FollowLinks(abs)
	}
	return WithinAny(real, s.q.o.Skip) && (isInRepository(real) || s.holdsRepository(real))
}

// isInRepository reports whether git finds a git directory at a path without links, or above
// it.
func isInRepository(real string) bool {
	for dir := real; ; dir = filepath.Dir(dir) {
		if isRepository(dir) {
			return true
		}
		if dir == "/" {
			return false
		}
	}
}

func isRepository(dir string) bool {
	entries := listDir(dir)
	return isGitDir(dir, entries) || slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return isName(e, ".git") })
}

// holdsRepository reports whether there may be a git directory below a path. Beyond the limit
// it reports true.
func (s *gitScan) holdsRepository(dir string) bool {
	if s.seen++; s.seen > s.q.limit {
		return true
	}
	var st unix.Stat_t
	if unix.Lstat(dir, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return false
	}
	return isRepository(dir) || slices.ContainsFunc(listDir(dir), func(e fs.DirEntry) bool {
		return e.IsDir() && s.holdsRepository(filepath.Join(dir, e.Name()))
	})
}

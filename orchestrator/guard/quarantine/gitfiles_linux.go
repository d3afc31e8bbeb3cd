package quarantine

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxGitFileBytes is how much of one file is read. A larger one is identified by its inode
	// and times.
	maxGitFileBytes = 1 << 20
	// maxGitDirs bounds the directories that are scanned.
	maxGitDirs = 500_000
)

// gitFile is a file with which git can be made to run a program: a configuration, a hook, or
// one that leads to another git directory.
type gitFile struct {
	Kind  string `json:"kind"` // file, link or other
	Sum   string `json:"sum"`  // of its content, or of its target
	Inode string `json:"inode"`
	Links uint64 `json:"links"`
	Text  string `json:"text,omitempty"` // of a file, up to maxGitFileBytes; of a link, where it leads
	Large bool   `json:"large,omitempty"`
	// Leads is where it leads git, without links: for a link or a file that names a git
	// directory a path, for a configuration see configLeads.
	Leads string `json:"leads,omitempty"`
}

// gitTree lists a world's git directories and their gitFiles, by their path in the world.
type gitTree struct {
	Dirs  map[string]string  `json:"dirs"`            // with their inode
	Heads map[string]bool    `json:"heads,omitempty"` // those of Dirs that have a HEAD
	Files map[string]gitFile `json:"files"`
}

// gitScan is one scan of a world.
type gitScan struct {
	world       string
	own         []string // the program's directories, some of which commands write
	skip        []string // those of them in the world
	tree        gitTree
	limit, seen int
	began       time.Time
	known, read map[string]plainDir // of the previous scan, and of this one
}

// plainDir caches a directory that is not git's, so that a scan reads only changed ones.
type plainDir struct {
	stamp stamp
	git   string   // the outermost git directory around it; empty: none
	dirs  []string // its directories
	links []string // entries named .git that are no directory, and links
}

// stamp shows whether a directory has changed. The kernel may set the same time of change
// twice in a moment: a time younger than settleTime when the directory is read is not relied
// on.
type stamp struct {
	dev, ino     uint64
	mtime, ctime unix.Timespec
}

const settleTime = 2 * time.Second

// scanGit lists the git directories of a world: those named .git, and others that git
// recognises, such as bare repositories. It takes and returns the cache of the other
// directories.
func scanGit(world string, own []string, known map[string]plainDir, limit int) (gitTree, map[string]plainDir, error) {
	s := gitScan{limit: limit, world: world, own: own, began: time.Now(), known: known, read: map[string]plainDir{}, tree: gitTree{Dirs: map[string]string{}, Files: map[string]gitFile{}}}
	for _, dir := range own {
		if Within(dir, world) {
			s.skip = append(s.skip, dir)
		}
	}
	err := s.walk(".", "")
	return s.tree, s.read, err
}

// isName compares file names as a case-insensitive file system may.
func isName(e fs.DirEntry, name string) bool { return strings.EqualFold(e.Name(), name) }

func (s *gitScan) walk(rel, git string) error {
	if s.seen++; s.seen > s.limit {
		return fmt.Errorf("look for git directories in %s: more than %d directories; give commands a smaller directory, or --sandbox read-only", s.world, s.limit)
	}
	abs := filepath.Join(s.world, rel)
	if slices.ContainsFunc(s.skip, func(dir string) bool { return Within(abs, dir) }) {
		return nil
	}
	d := s.list(rel, abs, git)
	for _, name := range d.links {
		if path := filepath.Join(rel, name); leads(path) || s.linkCounts(path, d.git) {
			s.add(path)
		}
	}
	for _, name := range d.dirs {
		path := name
		if rel != "." {
			path = rel + "/" + name
		}
		if err := s.walk(path, d.git); err != nil {
			return err
		}
	}
	return nil
}

// list returns the relevant names in a directory, and records the files of a git directory,
// which is always read.
func (s *gitScan) list(rel, abs, git string) plainDir {
	var st unix.Stat_t
	if unix.Lstat(abs, &st) != nil {
		return plainDir{} // it was removed
	}
	now := stamp{uint64(st.Dev), st.Ino, st.Mtim, st.Ctim}
	if d, ok := s.known[rel]; ok && d.stamp == now && d.git == git {
		s.read[rel] = d
		return d
	}
	d := plainDir{stamp: now, git: git}
	entries := listDir(abs)
	for _, e := range entries {
		if e.IsDir() {
			d.dirs = append(d.dirs, e.Name())
		} else if isName(e, ".git") || e.Type() == fs.ModeSymlink {
			d.links = append(d.links, e.Name())
		}
	}
	if isGitDir(rel, entries) {
		if git == "" {
			d.git = rel
		}
		s.gitDir(rel, abs, inode(&st), entries)
	} else if s.began.Sub(time.Unix(st.Ctim.Unix())) > settleTime {
		s.read[rel] = d
	}
	return d
}

// isGitDir reports whether git could recognise a directory as a git directory. An incomplete
// one with another name than .git is not one yet.
func isGitDir(rel string, entries []fs.DirEntry) bool {
	has := func(name string) bool {
		return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return isName(e, name) })
	}
	return strings.EqualFold(filepath.Base(rel), ".git") || has("HEAD") && (has("objects") && has("refs") || has("commondir"))
}

// gitDir records the files of one git directory.
func (s *gitScan) gitDir(rel, abs, inode string, entries []fs.DirEntry) {
	s.tree.Dirs[rel] = inode
	for _, e := range entries {
		path := filepath.Join(rel, e.Name())
		switch {
		case isName(e, "HEAD"):
			if s.tree.Heads == nil {
				s.tree.Heads = map[string]bool{}
			}
			s.tree.Heads[rel] = true
		case isName(e, "config"), isName(e, "config.worktree"), isName(e, "commondir"):
			s.add(path)
		case slices.Contains(gitStateDirs, strings.ToLower(e.Name())):
			s.add(path)
			for _, f := range listDir(filepath.Join(abs, e.Name())) {
				if !strings.HasPrefix(f.Name(), besidePrefix) && (!isName(e, "hooks") || !strings.HasSuffix(f.Name(), ".sample")) { // which git never runs
					s.add(filepath.Join(path, f.Name()))
				}
			}
		}
	}
}

// listDir lists a directory. One that is gone, or too deep for a path, is empty, because git
// finds nothing there either. One that its owner may not read is made readable: git finds a
// repository in it all the same.
func listDir(abs string) []fs.DirEntry {
	open := func() (int, error) {
		return unix.Open(abs, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	}
	fd, err := open()
	var st unix.Stat_t
	if errors.Is(err, unix.EACCES) && unix.Lstat(abs, &st) == nil && unix.Fchmodat(unix.AT_FDCWD, abs, st.Mode&0o7777|0o500, unix.AT_SYMLINK_NOFOLLOW) == nil {
		fd, err = open()
		defer unix.Fchmodat(unix.AT_FDCWD, abs, st.Mode&0o7777, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return nil
	}
	dir := os.NewFile(uintptr(fd), abs)
	defer dir.Close()
	entries, _ := dir.ReadDir(-1) // what was read before an error counts
	return entries
}

func inode(st *unix.Stat_t) string { return fmt.Sprintf("%d:%d", st.Dev, st.Ino) }

// add records a file. One that is gone is omitted.
func (s *gitScan) add(rel string) {
	abs := filepath.Join(s.world, rel)
	if slices.ContainsFunc(s.skip, func(dir string) bool { return Within(abs, dir) }) {
		return
	}
	var st unix.Stat_t
	if unix.Lstat(abs, &st) != nil {
		return
	}
	f := gitFile{Kind: "other", Inode: inode(&st), Links: uint64(st.Nlink)}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		f.Kind = "link"
		f.Text, _ = os.Readlink(abs)
		f.Leads = followLinks(abs)
	case unix.S_IFDIR: // git neither reads nor runs it
		return
	case unix.S_IFREG:
		f.Kind = "file"
		f.Text, f.Large = readGitFile(abs, &st)
	}
	what := fmt.Sprintf("%s %q", f.Kind, f.Text)
	if f.Large {
		what = fmt.Sprint(f.Inode, st.Size, st.Mtim, st.Ctim)
	}
	switch {
	case leads(rel):
		f.Leads = leadsTo(s.world, rel, f)
	case isConfig(rel) && f.Kind == "file":
		f.Leads = configLeads(f.Text, filepath.Dir(abs))
	}
	what += " " + f.Leads // the target may change while the file does not
	sum := sha256.Sum256([]byte(what))
	f.Sum = hex.EncodeToString(sum[:])
	s.tree.Files[rel] = f
}

// readGitFile reads a file; large reports that it is identified by its inode and times. So is
// an unreadable one, which git cannot read either.
func readGitFile(abs string, st *unix.Stat_t) (text string, large bool) {
	if st.Size > maxGitFileBytes {
		return "", true
	}
	fd, err := unix.Open(abs, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", true
	}
	f := os.NewFile(uintptr(fd), abs)
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxGitFileBytes+1))
	if err != nil || len(data) > maxGitFileBytes {
		return "", true
	}
	return string(data), false
}

// leads reports whether a file leads git to another git directory.
func leads(rel string) bool {
	base := filepath.Base(rel)
	return strings.EqualFold(base, ".git") || strings.EqualFold(base, "commondir")
}

// leadsTo returns the directory, without links, that such a file leads to; empty if there is
// none.
func leadsTo(world, rel string, f gitFile) string {
	to := filepath.Join(world, rel)
	if f.Kind == "file" {
		text := strings.TrimRight(f.Text, "\r\n")
		if strings.EqualFold(filepath.Base(rel), ".git") {
			var ok bool
			if text, ok = strings.CutPrefix(text, "gitdir: "); !ok {
				return ""
			}
		}
		if to = text; !filepath.IsAbs(to) {
			to = filepath.Dir(filepath.Join(world, rel)) + "/" + text // links are resolved before ".."
		}
	}
	real, err := filepath.EvalSymlinks(to)
	if err != nil {
		return ""
	}
	return real
}

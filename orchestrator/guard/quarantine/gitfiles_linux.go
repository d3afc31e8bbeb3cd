package quarantine

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/anamnesis/shell"
	"anamnesis/orchestrator/remedy"
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

// gitTree lists a world's repositories and their gitFiles, by their path in the world.
type gitTree struct {
	Dirs  map[string]string  `json:"dirs"`            // with their inode
	Heads map[string]bool    `json:"heads,omitempty"` // those of Dirs that have a HEAD
	Files map[string]gitFile `json:"files"`
	// Named are further files and directories that the user's configuration makes git read or
	// run; see namedPaths. They need not exist.
	Named map[string]named `json:"named,omitempty"`
}

func (t gitTree) remove(rel string) {
	beneath := func(path string) bool { return Within(path, rel) }
	maps.DeleteFunc(t.Dirs, func(path, _ string) bool { return beneath(path) })
	maps.DeleteFunc(t.Heads, func(path string, _ bool) bool { return beneath(path) })
	maps.DeleteFunc(t.Files, func(path string, _ gitFile) bool { return beneath(path) })
}

// around returns the outermost repository that a path is in; empty: none.
func (t gitTree) around(rel string) (dir string) {
	for at := filepath.Dir(rel); ; at = filepath.Dir(at) {
		if _, ok := t.Dirs[at]; ok {
			dir = at
		}
		if at == "." {
			return dir
		}
	}
}

// gitScan is one scan of a world.
type gitScan struct {
	q           *Quarantine
	skip        []string // the program's directories in the world
	tree        gitTree
	seen        int
	began       time.Time
	known, read map[string]plainDir // of the previous scan, and of this one
	added       []string            // files, in the order of the scan
	namedDirs   map[string]bool     // where something of gitTree.Named is
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

// scan begins a scan of the world, which adds to a tree.
func (q *Quarantine) scan(tree gitTree, known, read map[string]plainDir) *gitScan {
	s := &gitScan{q: q, began: time.Now(), tree: tree, known: known, read: read, namedDirs: map[string]bool{}}
	for _, dir := range q.o.Skip {
		if Within(dir, q.o.World) {
			s.skip = append(s.skip, dir)
		}
	}
	for rel, what := range tree.Named {
		s.namedDirs[filepath.Dir(rel)] = true
		s.namedDirs[rel] = what == namedHooks
	}
	return s
}

// scanAll lists the repositories of a world: directories named .git, .hg and .jj, and others
// that git recognises, such as bare repositories. Other directories are cached.
func (q *Quarantine) scanAll(named map[string]named) error {
	q.now = gitTree{Dirs: map[string]string{}, Heads: map[string]bool{}, Files: map[string]gitFile{}, Named: named}
	s := q.scan(q.now, q.known, map[string]plainDir{})
	err := s.walk(".", "")
	q.known = s.read
	q.scanNamed()
	return err
}

// scanNamed scans what gitTree.Named names, and watches it.
func (q *Quarantine) scanNamed() {
	s := q.scan(q.now, nil, nil)
	for dir := range s.namedDirs {
		s.q.watcher.add(dir, true)
	}
	for rel := range q.now.Named {
		s.addNamed(rel)
	}
}

// scanPart scans what is at a path and beneath it again, and returns the files found.
func (q *Quarantine) scanPart(rel string) []string {
	git := q.now.around(rel)
	q.now.remove(rel)
	s := q.scan(q.now, q.known, q.known)
	if info, err := os.Lstat(filepath.Join(q.o.World, rel)); err == nil && info.IsDir() {
		_ = s.walk(rel, git) // a later scan of everything reports the limit
	} else if err == nil && (leads(rel) || info.Mode().Type() == fs.ModeSymlink && s.linkCounts(rel, git)) {
		s.add(rel)
	}
	for path := range q.now.Named {
		if Within(path, rel) || Within(rel, path) {
			s.addNamed(path)
		}
	}
	return s.added
}

// addNamed records what the user's configuration names.
func (s *gitScan) addNamed(rel string) {
	s.add(rel)
	if s.tree.Named[rel] == namedHooks {
		for _, e := range listDir(filepath.Join(s.q.o.World, rel)) {
			s.add(filepath.Join(rel, e.Name()))
		}
	}
}

// isName compares file names as a case-insensitive file system may.
func isName(e fs.DirEntry, name string) bool { return strings.EqualFold(e.Name(), name) }

func (s *gitScan) walk(rel, git string) error {
	if s.seen++; s.seen > s.q.limit {
		err := fmt.Errorf("look for git directories in %s: more than %d directories", s.q.o.World, s.q.limit)
		return remedy.With(err, remedy.SandboxReadOnly, "")
	}
	abs := filepath.Join(s.q.o.World, rel)
	if WithinAny(abs, s.skip) {
		return nil
	}
	d := s.list(rel, abs, git)
	for _, name := range d.links {
		if path := filepath.Join(rel, name); leads(path) || s.linkCounts(path, d.git) {
			s.add(path)
		}
	}
	for _, name := range d.dirs {
		if err := s.walk(filepath.Join(rel, name), d.git); err != nil {
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
	if d, ok := s.known[rel]; ok && d.stamp == now && d.git == git && !s.namedDirs[rel] {
		s.read[rel] = d
		return d
	}
	d := plainDir{stamp: now, git: git}
	base := strings.ToLower(filepath.Base(rel))
	every := repositoryName(rel) != "" || git != "" && slices.Contains(gitStateDirs, base) || s.namedDirs[rel]
	s.q.watcher.add(rel, every) // before it is read: what comes later is an event
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
		if !every {
			s.q.watcher.add(rel, true)
		}
		s.gitDir(rel, abs, inode(&st), entries)
	} else if s.began.Sub(time.Unix(st.Ctim.Unix())) > settleTime {
		s.read[rel] = d
	}
	return d
}

// repositoryFiles are the files of a repository's directories which lead to programs, or to
// another repository. Any directory can be one of git's; see isGitDir.
var repositoryFiles = map[string]string{
	".git":           "config config.worktree commondir",
	".hg":            "hgrc hgrc-not-shared sharedpath",
	".jj":            "repo workspace-config.toml",
	".jj/repo":       "config.toml",
	".jj/repo/store": "git_target",
}

// repositoryName returns the key of repositoryFiles for a directory; empty: none.
func repositoryName(rel string) string {
	rel = "/" + strings.ToLower(rel)
	for name := range repositoryFiles {
		if strings.HasSuffix(rel, "/"+name) {
			return name
		}
	}
	return ""
}

// isGitDir reports whether git could recognise a directory as a git directory, or another
// system as one of its own. An incomplete one with another name is not one yet.
func isGitDir(rel string, entries []fs.DirEntry) bool {
	has := func(name string) bool {
		return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return isName(e, name) })
	}
	return repositoryName(rel) != "" || has("HEAD") && (has("objects") && has("refs") || has("commondir"))
}

// gitDir records the files of one repository's directory.
func (s *gitScan) gitDir(rel, abs, inode string, entries []fs.DirEntry) {
	s.tree.Dirs[rel] = inode
	kind := cmp.Or(repositoryName(rel), ".git")
	files := strings.Fields(repositoryFiles[kind])
	for _, e := range entries {
		path := filepath.Join(rel, e.Name())
		switch {
		case slices.Contains(files, strings.ToLower(e.Name())):
			s.add(path)
		case kind != ".git":
		case isName(e, "HEAD"):
			s.tree.Heads[rel] = true
		case slices.Contains(gitStateDirs, strings.ToLower(e.Name())):
			s.add(path)
			for _, f := range listDir(filepath.Join(abs, e.Name())) {
				sample := isName(e, "hooks") && strings.HasSuffix(f.Name(), ".sample") // which git never runs
				if !sample && !strings.HasPrefix(f.Name(), besidePrefix) {
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
	if errors.Is(err, unix.EACCES) && unix.Lstat(abs, &st) == nil &&
		unix.Fchmodat(unix.AT_FDCWD, abs, st.Mode&0o7777|0o500, unix.AT_SYMLINK_NOFOLLOW) == nil {
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
	abs := filepath.Join(s.q.o.World, rel)
	if WithinAny(abs, s.skip) {
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
		f.Leads = FollowLinks(abs)
	case unix.S_IFDIR: // git neither reads nor runs it
		return
	case unix.S_IFREG:
		f.Kind = "file"
		f.Text, f.Large = readGitFile(abs, &st)
	}
	if _, ok := s.tree.Named[rel]; ok && f.Kind == "file" {
		f.Leads = FollowLinks(abs)
	}
	what := fmt.Sprintf("%s %q", f.Kind, f.Text)
	if f.Large {
		what = fmt.Sprint(f.Inode, st.Size, st.Mtim, st.Ctim)
	}
	switch {
	case leads(rel):
		f.Leads = leadsTo(s.q.o.World, rel, f)
	case isConfig(rel) && f.Kind == "file":
		f.Leads = configLeads(f.Text, filepath.Dir(abs))
	}
	what += " " + f.Leads // the target may change while the file does not
	f.Sum = fmt.Sprintf("%x", sha256.Sum256([]byte(what)))
	s.tree.Files[rel] = f
	s.added = append(s.added, rel)
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

// leads reports whether a file leads to another repository.
func leads(rel string) bool {
	switch base := strings.ToLower(filepath.Base(rel)); base {
	case ".git", "commondir":
		return true
	case "sharedpath", "repo", "git_target":
		return shell.InList(repositoryFiles[repositoryName(filepath.Dir(rel))], base)
	}
	return false
}

// leadsTo returns the path, without links, that such a file leads to; empty if there is none.
func leadsTo(world, rel string, f gitFile) string {
	at := filepath.Join(world, rel)
	if f.Kind != "file" {
		return FollowLinks(at)
	}
	text, ok := strings.TrimRight(f.Text, "\r\n"), true
	if strings.EqualFold(filepath.Base(rel), ".git") {
		text, ok = strings.CutPrefix(text, "gitdir: ")
	}
	if !ok {
		return ""
	}
	return FollowLinks(resolve(text, filepath.Dir(at)))
}

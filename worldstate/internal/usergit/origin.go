package usergit

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// RepositoryName names the project that dir belongs to, with the same result on other machines:
// host and path of the repository's remote origin, such as "github.com/owner/name", without
// user, password and port. For a local remote, a repository without a remote and a plain
// directory it is the last part of the path, which may be "".
func RepositoryName(dir string) string {
	for top := filepath.Clean(dir); ; top = filepath.Dir(top) {
		if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil {
			return cmp.Or(remoteName(originURL(top)), lastPart(top))
		}
		if top == filepath.Dir(top) {
			return lastPart(dir)
		}
	}
}

// maxWalk bounds the commits read to find the first one: the first task of a clone waits for them, 0.1 s.
const maxWalk = 2_000

// Identity returns the top of the repository that dir belongs to and what identifies it, at no cost: "remote:" with its
// RepositoryName, if its remote is on a host, and "clone:" with its place; without a repository "dir:" with dir.
// first reads the history for the first commit: empty if there is none, it is not near, or the history is shallow.
func Identity(dir string) (top string, ids []string, first func() string) {
	top = filepath.Clean(dir)
	for {
		info, err := os.Lstat(filepath.Join(top, ".git"))
		if err == nil {
			remote := originURL(top)
			if at, err := transport.NewEndpoint(remote); err == nil && at.Host != "" {
				ids = append(ids, "remote:"+remoteName(remote))
			}
			if st, is := info.Sys().(*syscall.Stat_t); is {
				ids = append(ids, fmt.Sprintf("clone:%s:%d", top, st.Ino)) // another one may take its path
			}
			return top, ids, func() string { return firstCommit(top) }
		}
		if top == filepath.Dir(top) {
			return filepath.Clean(dir), []string{"dir:" + filepath.Clean(dir)}, func() string { return "" }
		}
		top = filepath.Dir(top)
	}
}

// firstCommit returns the first commit of HEAD's history along first parents.
func firstCommit(top string) string {
	own, common, err := gitDirs(top)
	if err != nil {
		return ""
	}
	files := dotgit.NewRepositoryFilesystem(osfs.New(own), osfs.New(common))
	st := filesystem.NewStorage(files, cache.NewObjectLRUDefault())
	defer st.Close()
	head, err := storer.ResolveReference(st, plumbing.HEAD)
	// The oldest commit of a shallow clone is not the project's first, and another clone may have another.
	if shallow, failed := st.Shallow(); err != nil || failed != nil || len(shallow) > 0 {
		return ""
	}
	hash := head.Hash()
	for range maxWalk {
		parent, err := firstParent(st, hash)
		if err != nil {
			return ""
		}
		if parent == "" {
			return "commit:" + hash.String()
		}
		hash = plumbing.NewHash(parent)
	}
	return ""
}

func firstParent(st storer.EncodedObjectStorer, hash plumbing.Hash) (string, error) {
	o, err := st.EncodedObject(plumbing.CommitObject, hash)
	if err != nil {
		return "", err
	}
	r, err := o.Reader()
	if err != nil {
		return "", err
	}
	defer r.Close()
	lines := bufio.NewScanner(r)
	lines.Scan() // the tree
	lines.Scan()
	if parent, is := strings.CutPrefix(lines.Text(), "parent "); is {
		return parent, nil
	}
	return "", lines.Err()
}

// originURL returns the URL of the remote origin of the repository at top, "" if it cannot be
// read.
func originURL(top string) string {
	_, common, err := gitDirs(top)
	if err != nil {
		return ""
	}
	data, err := readIgnoreFile(filepath.Join(common, "config"))
	if err != nil {
		return ""
	}
	c := config.NewConfig()
	if err := c.Unmarshal(data); err != nil {
		return ""
	}
	if o := c.Remotes["origin"]; o != nil && len(o.URLs) > 0 {
		return o.URLs[0]
	}
	return ""
}

func remoteName(remote string) string {
	at, err := transport.NewEndpoint(remote)
	if err != nil || at.Host == "" {
		return lastPart(remote)
	}
	return strings.ToLower(at.Host) + strings.TrimSuffix(path.Clean("/"+at.Path), ".git")
}

func lastPart(p string) string {
	switch name := strings.TrimSuffix(path.Base(filepath.ToSlash(p)), ".git"); name {
	case ".", "/":
		return ""
	default:
		return name
	}
}

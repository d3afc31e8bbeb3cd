package usergit

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// RepositoryName names the project that dir belongs to, with the same result on other machines:
// host and path of the repository's remote origin, such as "github.com/owner/name", without
// user, password and port. For a local remote, a repository without a remote and a plain
// directory it is the last part of the path, which may be "".
func RepositoryName(dir string) string {
	for top := filepath.Clean(dir); ; top = filepath.Dir(top) {
		if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil {
			if name := remoteName(originURL(top)); name != "" {
				return name
			}
			return lastPart(top)
		}
		if top == filepath.Dir(top) {
			return lastPart(dir)
		}
	}
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

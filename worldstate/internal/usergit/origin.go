package usergit

import (
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/config"
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

// remoteName shortens a remote's URL, which has one of three forms: with a scheme, host:path as
// in scp, or a local path.
func remoteName(remote string) string {
	if u, err := url.Parse(remote); err == nil && u.Scheme != "" && strings.Contains(remote, "://") {
		if u.Hostname() == "" {
			return lastPart(u.Path)
		}
		return hostAndPath(u.Hostname(), u.Path)
	}
	host, rest, ok := strings.Cut(remote, ":")
	if !ok || strings.ContainsAny(host, `/\`) || strings.Contains(remote, "://") {
		return lastPart(remote)
	}
	return hostAndPath(host[strings.LastIndex(host, "@")+1:], rest)
}

func hostAndPath(host, rest string) string {
	return strings.ToLower(host) + strings.TrimSuffix(path.Clean("/"+rest), ".git")
}

func lastPart(p string) string {
	switch name := strings.TrimSuffix(path.Base(filepath.ToSlash(p)), ".git"); name {
	case ".", "/":
		return ""
	default:
		return name
	}
}

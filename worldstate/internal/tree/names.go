package tree

import (
	"fmt"
	"strings"
	"unicode"

	"anamnesis/worldstate/internal/fsys"
)

// ManifestName is the tree entry that records what git trees cannot hold. A user's file of that
// name is stored under another one (see HostileName).
const ManifestName = ".anamnesis-manifest"

// StoredPrefix begins the names that replace hostile names in a git tree.
const StoredPrefix = ".anamnesis-name-"

// HostileName reports whether git would refuse a name, or would read the file as its own
// configuration. A false positive costs one line in the manifest.
func HostileName(parent, name string, s State, size int64) bool {
	if parent == "" && name == ManifestName || strings.HasPrefix(name, StoredPrefix) || strings.Contains(name, `\`) {
		return true
	}
	n := strings.ToLower(dropInvisible(name))
	if strings.HasPrefix(n, ".git") {
		rest := n[len(".git"):]
		if rest == "" || strings.ContainsAny(rest[:1], ". :") {
			return true
		}
	}
	// Short names of Windows, such as git~1, gitmod~1, gi7eba~1 and maba30~1.
	if i := strings.IndexByte(n, '~'); i >= 0 && i <= 8 && (strings.HasPrefix(n, "gi") || strings.HasPrefix(n, "ma")) {
		return true
	}
	switch {
	case strings.HasPrefix(n, ".gitmodules"):
		return true // git would parse it as a submodule list
	case strings.HasPrefix(n, ".gitattributes"):
		return name != ".gitattributes" || s.Kind != KindFile || size > maxAttributesLine
	case strings.HasPrefix(n, ".gitignore"), strings.HasPrefix(n, ".mailmap"):
		return s.Kind == KindLink
	}
	return false
}

// maxAttributesLine is below git's limit for a line of a .gitattributes file (2,048 bytes): a
// smaller file cannot have a longer line.
const maxAttributesLine = 2000

// dropInvisible removes the code points that HFS+ ignores in a name.
func dropInvisible(name string) string {
	if !strings.ContainsFunc(name, func(r rune) bool { return r > unicode.MaxASCII }) {
		return name
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
			return -1
		}
		return r
	}, name)
}

// StoredName returns a legal, readable name for a hostile one; equal names give equal results.
func StoredName(name string) string {
	var b strings.Builder
	b.WriteString(StoredPrefix)
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_' {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02x", c)
	}
	return b.String()
}

// Paths beyond these limits are left out of a snapshot: no system call takes them as one path,
// or git refuses the tree (core.maxTreeDepth, 2048 by default).
const (
	// MaxDepth is the largest number of components of a path.
	MaxDepth = 1024
	// MaxPathBytes is the longest path: PATH_MAX of Linux without the NUL.
	MaxPathBytes = 4095
	// MaxNameBytes is NAME_MAX. A directory whose path leaves no room for such a name is left
	// out as a whole.
	MaxNameBytes = 255
)

// Fits reports whether a snapshot can hold a file at a path, which must be relative to the
// world, slash-separated and clean.
func Fits(path string) bool {
	return strings.Count(path, "/") < MaxDepth && len(fsys.Dir(path))+1+MaxNameBytes <= MaxPathBytes
}

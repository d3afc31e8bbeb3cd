package tree

import (
	"fmt"
	"strings"

	"anamnesis/worldstate/internal/fsys"
)

// ManifestName is the tree entry that holds what git trees cannot; a user's
// own file of that name is stored under another (see hostileName).
const ManifestName = ".anamnesis-manifest"

// StoredPrefix begins the names that are in a git tree for names git
// forbids or reads for itself.
const StoredPrefix = ".anamnesis-name-"

// HostileName reports whether git would refuse a name, would read the content
// behind it as its own configuration, or would take it for its own. It
// errs on the side of yes: a stored name costs one manifest line.
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
	// Windows' short names: git~1, gitmod~1, gi7eba~1, maba30~1 and the like.
	if i := strings.IndexByte(n, '~'); i >= 0 && i <= 8 && (strings.HasPrefix(n, "gi") || strings.HasPrefix(n, "ma")) {
		return true
	}
	switch {
	case strings.HasPrefix(n, ".gitmodules"):
		return true // its content would be checked as a submodule list
	case strings.HasPrefix(n, ".gitattributes"):
		return name != ".gitattributes" || s.Kind != KindFile || size > maxAttributesLine
	case strings.HasPrefix(n, ".gitignore"), strings.HasPrefix(n, ".mailmap"):
		return s.Kind == KindLink
	}
	return false
}

// maxAttributesLine is shorter than git's longest line of a .gitattributes
// file (2,048 bytes): a file under it cannot hold a longer line.
const maxAttributesLine = 2000

// dropInvisible removes the code points HFS+ ignores in a name.
func dropInvisible(name string) string {
	if isASCII(name) {
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

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// StoredName is a legal name, readable and the same for the same name, to
// stand for a hostile one.
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

// What is left out of a snapshot for its place: what no system call takes as one path,
// or git as one tree (core.maxTreeDepth, 2048 by default).
const (
	// MaxDepth is how many components a path in a snapshot has at most.
	MaxDepth = 1024
	// MaxPathBytes is how long a path in a snapshot is at most: PATH_MAX of Linux
	// without the NUL at the end.
	MaxPathBytes = 4095
	// MaxNameBytes is NAME_MAX: a directory has room for a longer name, or is
	// left out as a whole.
	MaxNameBytes = 255
)

// Fits reports whether a snapshot can hold a file at a path, which is relative to
// the world, slash-separated and clean.
func Fits(path string) bool {
	return strings.Count(path, "/") < MaxDepth && len(fsys.Dir(path))+1+MaxNameBytes <= MaxPathBytes
}

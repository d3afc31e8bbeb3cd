package worldstate

import (
	"fmt"
	"strings"
)

// manifestName is the tree entry that holds what git trees cannot; a user's
// own file of that name is stored under another (see hostileName).
const manifestName = ".anamnesis-manifest"

// storedPrefix begins the names that stand in a git tree for names git
// forbids or reads for itself.
const storedPrefix = ".anamnesis-name-"

// hostileName reports whether git would refuse a name, would read the content
// behind it as its own configuration, or would take it for one of ours. It
// errs on the side of yes: a stored name costs one manifest line.
func hostileName(parent, name string, s state, size int64) bool {
	if parent == "" && name == manifestName || strings.HasPrefix(name, storedPrefix) || strings.Contains(name, `\`) {
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
		return name != ".gitattributes" || s.kind != kindFile || size > maxAttributesLine
	case strings.HasPrefix(n, ".gitignore"), strings.HasPrefix(n, ".mailmap"):
		return s.kind == kindLink
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

// storedName is a legal name, readable and the same for the same name, to
// stand for a hostile one.
func storedName(name string) string {
	var b strings.Builder
	b.WriteString(storedPrefix)
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

package tree

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/ignore"
	"anamnesis/worldstate/internal/fsys"
)

// Reasons for a skip that does not make a snapshot partial: there are no bytes to store.
const (
	ReasonFIFO   = "fifo"
	ReasonSocket = "socket"
	ReasonDevice = "device"
)

// Other returns a name that is not an item, nil if it is absent.
func (n *Node) Other(name string) *Other {
	if n.Seen == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(n.Seen.Others, name, func(o Other, name string) int {
		return strings.Compare(o.Name, name)
	})
	if !ok {
		return nil
	}
	return &n.Seen.Others[i]
}

// Sighting is what a scan saw of a directory in addition to its listing: the stat cache, and
// names that are not in the snapshot. It is immutable once its node is sealed.
type Sighting struct {
	Dir    fsys.Sight   // the directory itself, before its names were read
	Items  []fsys.Sight // parallel to Node.Items
	Others []Other      // sorted by name
	// Rules are the directory's own .gitignore, read at RuleSight.
	Rules     ignore.Rules
	RuleSight fsys.Sight
	Frozen    bool // the rules' file is not in the snapshot
	RulesNote string
	Fault     string // why the directory could not be read
}

// Other is a name that is not in the snapshot.
type Other struct {
	Name  string
	Why   string // "" if the rules ignore it
	IsDir bool
}

// HasNoBytes reports whether a skip for this reason does not make a snapshot partial.
func HasNoBytes(why string) bool {
	return why == ReasonFIFO || why == ReasonSocket || why == ReasonDevice
}

// seenSummary counts, for a directory and everything beneath, what a scan must know without
// walking there.
type seenSummary struct {
	Said    int // skips, notes and frozen rules
	Ignored int
}

// addSighting adds a node's own sighting; its directories are added already.
func (s *seenSummary) addSighting(n *Node) {
	if n.Seen == nil {
		return
	}
	for i := range n.Seen.Items {
		if n.Items[i].Kind == KindFile {
			if n.Seen.Items[i].Nlink > 1 || n.Seen.Items[i].Mode&SpecialBits != 0 {
				s.Said++
			}
		}
	}
	for i := range n.Seen.Others {
		if n.Seen.Others[i].Why == "" {
			s.Ignored++
		} else {
			s.Said++
		}
	}
	if n.Seen.Fault != "" {
		s.Said++
	}
	if n.Seen.Frozen || n.Seen.RulesNote != "" {
		s.Said++
	}
}

// SpecialBits are the mode bits that a snapshot does not hold.
const SpecialBits = unix.S_ISUID | unix.S_ISGID | unix.S_ISVTX

// UnstoredSep separates the names of Unstored in one text.
const UnstoredSep = ", "

// Unstored names what a file with this mode and number of links has and a snapshot does not hold.
func Unstored(mode uint32, nlink uint64) (names []string) {
	if mode&unix.S_ISUID != 0 {
		names = append(names, "setuid bit")
	}
	if mode&unix.S_ISGID != 0 {
		names = append(names, "setgid bit")
	}
	if mode&unix.S_ISVTX != 0 {
		names = append(names, "sticky bit")
	}
	if nlink > 1 {
		names = append(names, "hard link to its other names")
	}
	return names
}

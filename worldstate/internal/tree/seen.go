package tree

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/ignore"
	"anamnesis/worldstate/internal/fsys"
)

// The reasons a path is listed as skipped without making a snapshot partial:
// there are no bytes to hold.
const (
	ReasonFIFO   = "fifo"
	ReasonSocket = "socket"
	ReasonDevice = "device"
)

// Unsure: it must be looked into even if no event reports a change.
func (n *Node) Unsure() bool { return n.Sum.Unsure > 0 }

// Other returns a name that is no item, nil when it is absent.
func (n *Node) Other(name string) *Other {
	if n.Seen == nil {
		return nil
	}
	i, ok := slices.BinarySearchFunc(n.Seen.Others, name, func(o Other, name string) int { return strings.Compare(o.Name, name) })
	if !ok {
		return nil
	}
	return &n.Seen.Others[i]
}

// Sighting is what a scan saw of a directory beside what a listing holds: the
// stat cache, and what has no place in a snapshot. It is not changed once its
// node is sealed.
type Sighting struct {
	Dir    fsys.Sight   // the directory itself, before its names were read
	Items  []fsys.Sight // beside Node.Items
	Others []Other      // by name
	// Rules are the directory's own .gitignore, as it was at RuleSight.
	Rules     ignore.Rules
	RuleSight fsys.Sight
	Frozen    bool // the rules' file is not part of the snapshot itself
	RulesNote string
	Fault     string // why the directory could not be read
	Foreign   bool   // no event reports changes here: another file system, or one directory at two places
}

// Other is a name that is no part of the snapshot.
type Other struct {
	Name  string
	Why   string // "": the rules ignore it
	IsDir bool
}

// Bodiless reports a reason that makes no snapshot partial: there are no bytes.
func Bodiless(why string) bool {
	return why == ReasonFIFO || why == ReasonSocket || why == ReasonDevice
}

// seenSummary counts, of a directory and all beneath, what scans must know
// without walking there.
type seenSummary struct {
	Unsure  int // to be looked at again even if no event reports a change
	Said    int // skips, notes and frozen rules
	Ignored int
}

func (s *seenSummary) add(o *seenSummary) {
	s.Unsure += o.Unsure
	s.Said += o.Said
	s.Ignored += o.Ignored
}

// addSeen adds a node's own sighting; what lies beneath is counted already.
func (s *seenSummary) addSeen(n *Node) {
	if n.Seen == nil {
		return
	}
	for i := range n.Seen.Items {
		if n.Items[i].Kind == KindFile {
			if n.Seen.Items[i].Nlink > 1 { // another name of it may lie outside
				s.Unsure++
			}
			if n.Seen.Items[i].Mode&SpecialBits != 0 {
				s.Said++
			}
		}
	}
	for i := range n.Seen.Others {
		switch o := &n.Seen.Others[i]; {
		case o.Why == "":
			s.Ignored++
		case Bodiless(o.Why):
			s.Said++
		default:
			s.Said++
			s.Unsure++
		}
	}
	if n.Seen.Foreign {
		s.Unsure++
	}
	if n.Seen.Fault != "" {
		s.Unsure++
		s.Said++
	}
	if n.Seen.Frozen || n.Seen.RulesNote != "" {
		s.Said++
	}
}

// SpecialBits are those a snapshot does not keep.
const SpecialBits = unix.S_ISUID | unix.S_ISGID | unix.S_ISVTX

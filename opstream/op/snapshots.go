package op

import (
	"slices"
	"strings"
)

// Snapshots returns the commits that an operation names, as far as it has them.
func Snapshots(b Body) []string {
	var ids []string
	switch b := b.(type) {
	case *WorldSaved:
		ids = []string{b.Commit}
	case *WorldChanged:
		ids = []string{b.From, b.To}
	case *JumpDone:
		ids = []string{b.Base}
	case *WorldRestored:
		ids = []string{b.From, b.To, b.Base}
	case *RestoreIntended:
		ids = []string{b.FromCommit, b.ToCommit}
	case *JumpIntended:
		ids = []string{b.FromCommit, b.ToCommit, b.Base}
	}
	return slices.DeleteFunc(ids, func(id string) bool { return id == "" })
}

// NamesSnapshots reports whether Snapshots may return any for operations of a kind.
func NamesSnapshots(k Kind) bool {
	return strings.HasPrefix(string(k), "world.") || strings.HasPrefix(string(k), "jump.") ||
		strings.HasPrefix(string(k), "restore.")
}

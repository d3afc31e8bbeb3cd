package notice

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"anamnesis/opstream/op"
	"anamnesis/worldstate"
)

func Paths(changes []worldstate.Change) []string {
	var out []string
	for _, c := range changes {
		out = append(out, c.Path)
	}
	return out
}

// Deleted returns the paths of the changes that deleted a file. It is not nil.
func Deleted(changes []worldstate.Change) []string {
	gone := slices.DeleteFunc(slices.Clone(changes), func(c worldstate.Change) bool { return c.New != nil })
	return append([]string{}, Paths(gone)...)
}

func Skips(in []worldstate.Skip) []op.Skipped {
	var out []op.Skipped
	for _, s := range in {
		out = append(out, op.Skipped{Path: s.Path, Reason: s.Reason})
	}
	return out
}

// lostAttributes names restored files that lack something that no snapshot holds.
func lostAttributes(lost []op.Skipped) string {
	if len(lost) == 0 {
		return ""
	}
	var names []string
	for _, l := range lost {
		names = append(names, pathName(l.Path)+" ("+l.Reason+")")
	}
	return fmt.Sprintf("\nRestored without attributes that snapshots do not hold: %s.", List(names, len(names)))
}

func FirstN[T any](in []T, n int) []T {
	if len(in) > n {
		return in[:n:n]
	}
	return in
}

// Limits of what a jump's message says.
const (
	// MaxListed is how many paths a list names; the others are counted.
	MaxListed = 100
	// maxNamed is how many of them the model is shown.
	maxNamed = 20
)

const (
	// maxPathName is the longest path that is shown whole, in bytes. Snapshots may hold longer
	// ones.
	maxPathName = 400
	// MaxDelivered is how much of a delivered answer is quoted, in bytes.
	MaxDelivered = 200
)

// WriteItems appends a list, the first of its items.
func WriteItems(sb *strings.Builder, items []string) {
	for i, it := range items {
		if i == maxNamed {
			fmt.Fprintf(sb, "\n- and %d more", len(items)-i)
			return
		}
		sb.WriteString("\n- " + it)
	}
}

// List names the first of some items, on one line.
func List(items []string, total int) string {
	shown := FirstN(items, maxNamed)
	named := make([]string, len(shown))
	for i, it := range shown {
		named[i] = pathName(it)
	}
	s := strings.Join(named, ", ")
	if total > len(shown) {
		s += fmt.Sprintf(" and %d more", total-len(shown))
	}
	return s
}

// pathName returns a name, quoted if it could pass for more than a name: a file name may
// contain line breaks and look like a notice.
func pathName(name string) string {
	if len(name) > maxPathName {
		name = fmt.Sprintf("%s…%s (%d bytes)", name[:maxPathName/3], name[len(name)-maxPathName/3:], len(name))
	}
	if utf8.ValidString(name) && !strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return name
	}
	return strconv.Quote(name)
}

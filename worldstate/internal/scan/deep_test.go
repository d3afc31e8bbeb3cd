package scan

import (
	"strings"
	"testing"

	"anamnesis/worldstate/internal/tree"
)

// TestTooDeep: a directory is left out if a file in it would be beyond the limits of a snapshot.
func TestTooDeep(t *testing.T) {
	most := tree.MaxPathBytes - tree.MaxNameBytes - 1 // of a directory
	for _, tt := range []struct {
		name  string
		path  int // its bytes
		deep  int
		bytes int // of the name
		want  bool
	}{
		{"at the top", 0, 0, tree.MaxNameBytes, false},
		{"the deepest", 9, tree.MaxDepth - 2, 1, false},
		{"deeper", 9, tree.MaxDepth - 1, 1, true},
		{"the longest", most - 11, 5, 10, false},
		{"longer", most - 11, 5, 11, true},
	} {
		v := &visit{path: strings.Repeat("x", tt.path), deep: tt.deep}
		if got := v.tooDeep(strings.Repeat("y", tt.bytes)); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

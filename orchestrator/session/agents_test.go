package session

import (
	"slices"
	"testing"

	"anamnesis/opstream/op"
)

// TestInstructionNews: files that are new, changed or gone are named.
func TestInstructionNews(t *testing.T) {
	file := func(path, hash string) op.SourceFile { return op.SourceFile{Path: path, Hash: hash} }
	got := instructionNews([]op.SourceFile{file("a", "1"), file("b", "1"), file("c", "1")},
		[]op.SourceFile{file("d", "1"), file("b", "2"), file("a", "1")})
	if want := []string{"d (new)", "b (changed)", "c (gone)"}; !slices.Equal(got, want) {
		t.Errorf("news %q, want %q", got, want)
	}
}

package gitfmt_test

import (
	"testing"

	"anamnesis/worldstate/ignore"
	"anamnesis/worldstate/internal/gitfmt"
)

func FuzzCommit(f *testing.F) {
	objects, _ := ignore.ParsePattern("*.o")
	c := &gitfmt.Commit{Message: "step 1: x", World: "w", Partial: true,
		Skips:    []gitfmt.Skip{{Path: "a\n", Reason: "fifo"}},
		Rules:    []gitfmt.FrozenRule{{Up: "u", Base: "b", Patterns: []ignore.Pattern{objects}}},
		Trailers: [][2]string{{"Seq", "1"}}}
	c.Tree[0] = 1
	f.Add(c.Encode())
	f.Add([]byte("tree \n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := gitfmt.DecodeCommit(gitfmt.Hash{}, data)
		if err != nil {
			return
		}
		again, err := gitfmt.DecodeCommit(gitfmt.Hash{}, c.Encode())
		if err != nil || !again.SameFacts(c) {
			t.Errorf("not the same again: %v\n%q\n%q", err, data, c.Encode())
		}
	})
}

// FuzzTree: any tree object either decodes or is an error.
func FuzzTree(f *testing.F) {
	f.Add(gitfmt.EncodeTree([]gitfmt.TreeItem{{Mode: "100644", Name: "a", Hash: gitfmt.Hash{1}},
		{Mode: "40000", Name: "b", Hash: gitfmt.Hash{2}}}, 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		items, err := gitfmt.DecodeTree(data)
		if err == nil && len(items) > 0 && len(data) < 23*len(items) {
			t.Errorf("%d items of %d bytes", len(items), len(data))
		}
	})
}

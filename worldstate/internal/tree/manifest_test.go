package tree_test

import (
	"testing"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/tree"
)

func FuzzManifest(f *testing.F) {
	f.Add([]byte("anamnesis-manifest 1 file=0644 exec=0755 dir=0755\nmode 0600 \"a\"\nempty 0755 \"e/f\"\nname \".anamnesis-name-git%7e1\" \"git~1\"\n"))
	f.Add([]byte("anamnesis-manifest 1 file=0644 exec=0755 dir=0755\nmode 0600 \"../a\"\n"))
	f.Add([]byte("anamnesis-manifest 2 file=0644 exec=0755 dir=0755\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := tree.DecodeManifest(data)
		if err != nil {
			return
		}
		for p := range m.Modes {
			if !fsys.ValidPath(p) {
				t.Errorf("path %q", p)
			}
		}
		for p, n := range m.Names {
			if !fsys.ValidPath(p) || !fsys.ValidName(n) {
				t.Errorf("name %q for %q", n, p)
			}
		}
	})
}

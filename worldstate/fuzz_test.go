package worldstate

import (
	"bytes"
	"testing"

	"anamnesis/worldstate/ignore"
	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/restore"
	"anamnesis/worldstate/internal/scan"
	"anamnesis/worldstate/internal/tree"
	"anamnesis/worldstate/internal/usergit"
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

func FuzzJournal(f *testing.F) {
	j := &restore.Journal{World: "0123", Nonce: "0123456789abcdef", Actions: []restore.Action{
		{Path: "a\nb", Before: tree.State{Kind: tree.KindFile, Perm: 0o600, Hash: gitfmt.Hash{1}}, After: tree.State{}},
		{Path: "d", Before: tree.State{Kind: tree.KindDir, Perm: 0o755}, After: tree.State{Kind: tree.KindLink, Hash: gitfmt.Hash{2}}},
	}}
	f.Add(j.Encode())
	f.Add(j.Encode()[:40])
	f.Add([]byte("anamnesis-journal 1\nsum \n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		j, err := restore.DecodeJournal(data)
		if err != nil {
			return
		}
		if !bytes.Equal(j.Encode(), data) {
			t.Errorf("%q became %q", data, j.Encode())
		}
		for _, a := range j.Actions {
			if !fsys.ValidPath(a.Path) {
				t.Errorf("path %q", a.Path)
			}
		}
	})
}

func FuzzStatCache(f *testing.F) {
	objects, _ := ignore.ParsePattern("*.o")
	file := tree.Item{Name: "a", State: tree.State{Kind: tree.KindFile, Perm: 0o644, Hash: gitfmt.Hash{3}}, Size: 1}
	sub := tree.Seal([]tree.Item{file}, &tree.Sighting{Items: []fsys.Sight{{Stamp: fsys.Stamp{Size: 1, Mtime: 2, Nlink: 1}, Racy: true}}})
	f.Add(scan.EncodeCache(&scan.Knowledge{Packs: []string{"pack-1.idx"}, Repo: &usergit.Repository{Sources: []fsys.Source{{Path: "/p/.git"}}}, Root: tree.Seal(
		[]tree.Item{{Name: "d", State: tree.State{Kind: tree.KindDir, Perm: 0o755}, Sub: sub}},
		&tree.Sighting{Items: []fsys.Sight{{OnlyTracked: true}}, Others: []tree.Other{{Name: "x.o", Why: "", IsDir: false}, {Name: "y", Why: tree.ReasonFIFO, IsDir: false}}, Rules: ignore.Rules{Patterns: []ignore.Pattern{objects}}},
	)}))
	f.Add([]byte(scan.CacheMagic))
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := scan.DecodeCache(data)
		if err != nil {
			return
		}
		first := scan.EncodeCache(k)
		again, err := scan.DecodeCache(first)
		if err != nil || !bytes.Equal(scan.EncodeCache(again), first) {
			t.Errorf("not the same again: %v", err)
		}
	})
}

func FuzzCommit(f *testing.F) {
	objects, _ := ignore.ParsePattern("*.o")
	c := &gitfmt.Commit{Message: "step 1: x", World: "w", Partial: true, Skips: []Skip{{Path: "a\n", Reason: "fifo"}},
		Rules: []gitfmt.FrozenRule{{Up: "u", Base: "b", Patterns: []ignore.Pattern{objects}}}, Trailers: [][2]string{{"Seq", "1"}}}
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
	f.Add(gitfmt.EncodeTree([]gitfmt.TreeItem{{Mode: "100644", Name: "a", Hash: gitfmt.Hash{1}}, {Mode: "40000", Name: "b", Hash: gitfmt.Hash{2}}}, 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		items, err := gitfmt.DecodeTree(data)
		if err == nil && len(items) > 0 && len(data) < 23*len(items) {
			t.Errorf("%d items of %d bytes", len(items), len(data))
		}
	})
}

package scan_test

import (
	"bytes"
	"testing"

	"anamnesis/worldstate/ignore"
	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/scan"
	"anamnesis/worldstate/internal/tree"
	"anamnesis/worldstate/internal/usergit"
)

func FuzzStatCache(f *testing.F) {
	objects, _ := ignore.ParsePattern("*.o")
	file := tree.Item{Name: "a", State: tree.State{Kind: tree.KindFile, Perm: 0o644, Hash: gitfmt.Hash{3}}, Size: 1}
	sub := tree.Seal([]tree.Item{file},
		&tree.Sighting{Items: []fsys.Sight{{Stamp: fsys.Stamp{Size: 1, Mtime: 2, Nlink: 1}, Racy: true}}})
	f.Add(scan.EncodeCache(&scan.Knowledge{Packs: []string{"pack-1.idx"},
		Repo: &usergit.Repository{Sources: []fsys.Source{{Path: "/p/.git"}}}, Root: tree.Seal(
			[]tree.Item{{Name: "d", State: tree.State{Kind: tree.KindDir, Perm: 0o755}, Sub: sub}},
			&tree.Sighting{
				Items: []fsys.Sight{{OnlyTracked: true}},
				Others: []tree.Other{{Name: "x.o", Why: "", IsDir: false},
					{Name: "y", Why: tree.ReasonFIFO, IsDir: false}},
				Rules: ignore.Rules{Patterns: []ignore.Pattern{objects}},
			},
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

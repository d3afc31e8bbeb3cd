package restore_test

import (
	"bytes"
	"testing"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/restore"
	"anamnesis/worldstate/internal/tree"
)

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

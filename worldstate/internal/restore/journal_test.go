package restore_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/restore"
	"anamnesis/worldstate/internal/tree"
)

// TestJournalFile: a journal is read as it was written; one of another world, or damaged, is corrupt, and none is no
// journal.
func TestJournalFile(t *testing.T) {
	f := restore.File{World: "0123", Path: filepath.Join(t.TempDir(), "journal")}
	if j, err := f.Read(); j != nil || err != nil {
		t.Errorf("none: %+v, %v", j, err)
	}
	if there, err := f.Exists(); there || err != nil {
		t.Errorf("none exists: %v, %v", there, err)
	}
	for world, want := range map[string]bool{"0123": true, "4567": false} {
		if err := f.Write(&restore.Journal{World: world, Nonce: "0123456789abcdef"}); err != nil {
			t.Fatal(err)
		}
		j, err := f.Read()
		if want && (err != nil || j.World != world) ||
			!want && (!errors.Is(err, gitfmt.ErrCorrupt) || !strings.Contains(err.Error(), "another world")) {
			t.Errorf("of the world %s: %+v, %v", world, j, err)
		}
		if there, err := f.Exists(); !there || err != nil {
			t.Errorf("it exists: %v, %v", there, err)
		}
	}
	if err := os.WriteFile(f.Path, []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Read(); !errors.Is(err, gitfmt.ErrCorrupt) {
		t.Errorf("damaged: %v", err)
	}
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

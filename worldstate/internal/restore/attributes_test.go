package restore_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/restore"
	"anamnesis/worldstate/internal/tree"
)

// site is a directory with a store, for an executor.
type site struct {
	*testing.T
	dir   string
	store *objects.Store
	root  int
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{T: t, dir: t.TempDir(), store: objects.New(t.TempDir())}
	s.must(os.MkdirAll(s.store.PackDir(), 0o755))
	t.Cleanup(s.store.Close)
	var err error
	s.root, err = fsys.Openat(unix.AT_FDCWD, s.dir, fsys.DirFlags, 0)
	s.must(err)
	t.Cleanup(func() { fsys.CloseFD(s.root) })
	return s
}

func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *site) path(name string) string { return filepath.Join(s.dir, name) }

func (s *site) write(name, text string, mode fs.FileMode) {
	s.Helper()
	s.must(os.WriteFile(s.path(name), []byte(text), 0o600))
	s.must(os.Chmod(s.path(name), mode))
}

// file returns the state of a file with this content, which the store holds afterwards.
func (s *site) file(text string, perm uint32) tree.State {
	s.Helper()
	h := gitfmt.HashObject(gitfmt.BlobObject, []byte(text))
	if !s.store.Owns(h) {
		w := objects.NewWriter(s.store.PackDir(), func(string) {}, new(objects.Pool))
		s.must(w.Add(h, gitfmt.BlobObject, []byte(text)))
		s.must(s.store.Publish(w, 0))
	}
	return tree.State{Kind: tree.KindFile, Perm: perm, Hash: h}
}

// run carries out actions in a new executor.
func (s *site) run(actions ...restore.Action) *restore.Executor {
	s.Helper()
	x := s.executor(false, actions...)
	s.must(x.Run(actions))
	return x
}

// executor returns an executor for actions.
func (s *site) executor(resumed bool, actions ...restore.Action) *restore.Executor {
	j := &restore.Journal{Nonce: fsys.NewNonce(), Actions: actions}
	env := restore.Effects{Objects: s.store, Hook: func(string) {}}
	if resumed {
		return restore.Resume(env, s.root, j)
	}
	return restore.New(env, s.root, j)
}

// text returns a file's permissions and content.
func (s *site) text(name string) string {
	s.Helper()
	info, err := os.Stat(s.path(name))
	if err != nil {
		return err.Error()
	}
	data, err := os.ReadFile(s.path(name))
	s.must(err)
	return info.Mode().String() + " " + string(data)
}

// TestRestoreKeepsSpecialBits: a file that is there keeps its setuid and setgid bits, whichever
// way it is written.
func TestRestoreKeepsSpecialBits(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	was, now := s.file("was\n", 0o755), s.file("now\n", 0o755)
	plain, other := s.file("was\n", 0o640), s.file("now\n", 0o644)
	s.write("replaced", "now\n", 0o755|fs.ModeSetuid|fs.ModeSetgid)
	s.write("in-place", "now\n", 0o644|fs.ModeSetuid)
	s.write("mode", "was\n", 0o700|fs.ModeSetuid)
	x := s.run(
		restore.Action{Path: "in-place", Before: other, After: plain},
		restore.Action{Path: "mode", Before: s.file("was\n", 0o700), After: was},
		restore.Action{Path: "replaced", Before: now, After: was})
	for name, want := range map[string]fs.FileMode{
		"replaced": 0o755 | fs.ModeSetuid | fs.ModeSetgid, "in-place": 0o640 | fs.ModeSetuid, "mode": 0o755 | fs.ModeSetuid,
	} {
		if info, err := os.Stat(s.path(name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v, want %v", name, info.Mode(), err, want)
		}
	}
	if len(x.Kept)+len(x.Lost) > 0 {
		t.Errorf("kept %v, lost %v", x.Kept, x.Lost)
	}
}

// TestRestoreCopiesXattrs: a replaced file keeps its extended attributes.
func TestRestoreCopiesXattrs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.write("f", "now\n", 0o755)
	if err := unix.Setxattr(s.path("f"), "user.origin", []byte("here"), 0); err != nil {
		t.Logf("no extended attributes here: %v", err)
		return
	}
	x := s.run(restore.Action{Path: "f", Before: s.file("now\n", 0o755), After: s.file("was\n", 0o755)})
	value := make([]byte, 10)
	n, err := unix.Getxattr(s.path("f"), "user.origin", value)
	if err != nil || string(value[:n]) != "here" || len(x.Lost) > 0 {
		t.Errorf("the attribute is %q, %v; lost %v", value[:max(n, 0)], err, x.Lost)
	}
}

// TestRestoreListsLostAttributes: a hard link that is replaced is listed, and so is what the
// target had and a file that was created anew lacks.
func TestRestoreListsLostAttributes(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	was, now := s.file("was\n", 0o644), s.file("now\n", 0o644)
	s.write("linked", "now\n", 0o644)
	s.must(os.Link(s.path("linked"), s.path("twin")))
	actions := []restore.Action{
		{Path: "linked", Before: now, After: was},
		{Path: "removed", After: s.file("was\n", 0o755)},
	}
	x := s.run(actions...)
	x.ListMissing(actions, []gitfmt.Skip{
		{Path: "linked", Reason: "hard link to its other names"},
		{Path: "removed", Reason: "setuid bit, hard link to its other names"},
		{Path: "untouched", Reason: "setuid bit"},
	})
	want := []gitfmt.Skip{
		{Path: "linked", Reason: "hard link to its other names"},
		{Path: "removed", Reason: "setuid bit, hard link to its other names"},
	}
	if !slices.Equal(x.Lost, want) {
		t.Errorf("lost %v, want %v", x.Lost, want)
	}
	if data, err := os.ReadFile(s.path("twin")); err != nil || string(data) != "now\n" {
		t.Errorf("the other name holds %q, %v", data, err)
	}
}

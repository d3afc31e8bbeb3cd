package restore_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/restore"
	"anamnesis/worldstate/internal/tree"
)

// link returns the state of a link, whose target the store holds afterwards.
func (s *site) link(target string) tree.State {
	s.Helper()
	return tree.State{Kind: tree.KindLink, Hash: s.file(target, 0).Hash}
}

func dir(perm uint32) tree.State { return tree.State{Kind: tree.KindDir, Perm: perm} }

// look describes the whole directory in one line.
func (s *site) look() string {
	s.Helper()
	var out []string
	s.must(filepath.WalkDir(s.dir, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(s.dir, path)
		if err != nil || rel == "." {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		word := rel
		switch {
		case d.IsDir():
			word += fmt.Sprintf("/(%o)", info.Mode().Perm())
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			word += ">" + target
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			word += fmt.Sprintf("=%s(%o)", data, info.Mode().Perm())
		}
		out = append(out, word)
		return nil
	}))
	return strings.Join(out, " ")
}

// TestRun: each action ends in its state, and a path that another program changed since the plan
// is kept and listed.
func TestRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		now     func(s *site)
		actions func(s *site) []restore.Action
		want    string
		kept    string
	}{
		{"nothing there", func(*site) {}, func(s *site) []restore.Action {
			return []restore.Action{
				{Path: "d", After: dir(0o711)}, {Path: "d/f", After: s.file("1", 0o640)},
				{Path: "l", After: s.link("d/f")},
			}
		}, "d/(711) d/f=1(640) l>d/f", ""},
		{"done already", func(s *site) { s.write("f", "1", 0o644) }, func(s *site) []restore.Action {
			return []restore.Action{
				{Path: "f", Before: s.file("0", 0o644), After: s.file("1", 0o644)},
				{Path: "g", Before: s.file("0", 0o644)},
			}
		}, "f=1(644)", ""},
		{"another kind", func(s *site) {
			s.write("f", "1", 0o644)
			s.must(os.Symlink("x", s.path("l")))
			s.must(os.Mkdir(s.path("d"), 0o755))
			s.write("d/in", "1", 0o644)
		}, func(s *site) []restore.Action {
			return []restore.Action{
				{Path: "d", Before: dir(0o755), After: s.file("2", 0o644)}, {Path: "d/in", Before: s.file("1", 0o644)},
				{Path: "f", Before: s.file("1", 0o644), After: dir(0o755)}, {Path: "f/in", After: s.link("y")},
				{Path: "l", Before: s.link("x"), After: s.file("3", 0o600)},
			}
		}, "d=2(644) f/(755) f/in>y l=3(600)", ""},
		{"modes", func(s *site) {
			s.must(os.Mkdir(s.path("d"), 0o755))
			s.write("d/f", "1", 0o644)
			s.must(os.Chmod(s.path("d"), 0o555))
		}, func(s *site) []restore.Action {
			return []restore.Action{
				{Path: "d", Before: dir(0o555), After: dir(0o500)},
				{Path: "d/f", Before: s.file("1", 0o644), After: s.file("2", 0o755)},
			}
		}, "d/(500) d/f=2(755)", ""},
		{"the mode of a hard link", func(s *site) {
			s.write("f", "1", 0o644)
			s.must(os.Link(s.path("f"), s.path("other")))
		}, func(s *site) []restore.Action {
			return []restore.Action{{Path: "f", Before: s.file("1", 0o644), After: s.file("1", 0o600)}}
		}, "f=1(600) other=1(644)", ""},
		{"changed meanwhile", func(s *site) {
			s.write("removed", "edit", 0o644)
			s.write("written", "edit", 0o644)
			s.write("mode", "1", 0o600)
			s.write("came", "edit", 0o644)
		}, func(s *site) []restore.Action {
			return []restore.Action{
				{Path: "came", After: s.file("1", 0o644)}, {Path: "mode", Before: s.file("1", 0o644), After: s.file("2", 0o644)},
				{Path: "removed", Before: s.file("1", 0o644)}, {Path: "written", Before: s.file("1", 0o644), After: s.file("2", 0o644)},
			}
		}, "came=edit(644) mode=1(600) removed=edit(644) written=edit(644)", "came mode removed written"},
		{"a directory with something new", func(s *site) {
			s.must(os.Mkdir(s.path("d"), 0o755))
			s.write("d/new", "edit", 0o644)
		}, func(*site) []restore.Action { return []restore.Action{{Path: "d", Before: dir(0o755)}} },
			"d/(755) d/new=edit(644)", "d"},
		{"a file became a directory", func(s *site) { s.must(os.Mkdir(s.path("f"), 0o755)) }, func(s *site) []restore.Action {
			return []restore.Action{{Path: "f", Before: s.file("1", 0o644)}}
		}, "f/(755)", "f"},
		{"a directory became a file", func(s *site) { s.write("d", "edit", 0o644) }, func(s *site) []restore.Action {
			return []restore.Action{{Path: "d", After: dir(0o755)}, {Path: "d/in", After: s.file("1", 0o644)}}
		}, "d=edit(644)", "d d/in"},
		{"a directory became a link", func(s *site) {
			s.must(os.Mkdir(s.path("outside"), 0o755))
			s.must(os.Symlink("outside", s.path("d")))
		}, func(s *site) []restore.Action { return []restore.Action{{Path: "d/in", After: s.file("1", 0o644)}} },
			"d>outside outside/(755)", "d/in"},
		{"a FIFO", func(s *site) { s.must(unix.Mkfifo(s.path("f"), 0o600)) }, func(s *site) []restore.Action {
			return []restore.Action{{Path: "f", After: s.file("1", 0o644)}}
		}, "f", "f"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			t.Cleanup(func() { os.Chmod(s.path("d"), 0o755) })
			c.now(s)
			actions := c.actions(s)
			x := s.run(actions...)
			s.must(x.Compare(actions))
			s.must(x.Sync())
			if got := s.look(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if got := paths(x.Kept); got != c.kept {
				t.Errorf("kept %q, want %q", got, c.kept)
			}
		})
	}
}

// paths returns the paths of a list, sorted, and reports one that is there twice.
func paths(list []gitfmt.Skip) string {
	seen := map[string]bool{}
	var out []string
	for _, k := range list {
		if seen[k.Path] {
			out = append(out, "twice:")
		}
		seen[k.Path] = true
		out = append(out, k.Path)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// TestCompare: what changes after its action is listed.
func TestCompare(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.write("a", "1", 0o644)
	actions := []restore.Action{
		{Path: "a", Before: s.file("1", 0o644), After: s.file("2", 0o644)}, {Path: "b", After: s.file("2", 0o644)},
		{Path: "c", Before: s.file("0", 0o644)},
	}
	x := s.run(actions...)
	s.write("a", "edit", 0o644)
	s.must(os.Remove(s.path("b")))
	s.write("c", "new", 0o644)
	s.must(x.Compare(actions))
	if got := paths(x.Kept); got != "a b c" {
		t.Errorf("kept %q", got)
	}
}

// TestFilesRemoved: an interrupted restore is dropped only if all its files are gone, and something
// that it did not remove.
func TestFilesRemoved(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	one, two := s.file("1", 0o644), s.file("2", 0o644)
	source := tree.NewListing([]tree.Entry{{Path: "a", State: one}, {Path: "kept", State: one}})
	actions := []restore.Action{{Path: "a", Before: one, After: two}, {Path: "b", After: two}}
	for _, c := range []struct {
		files string
		want  bool
	}{{"a kept", false}, {"kept", false}, {"b", false}, {"a", false}, {"", true}, {"other", true}} {
		for f := range strings.FieldsSeq(c.files) {
			s.write(f, "1", 0o644)
		}
		if got := restore.FilesRemoved(s.root, source, actions); got != c.want {
			t.Errorf("with %q: %t, want %t", c.files, got, c.want)
		}
		for f := range strings.FieldsSeq(c.files) {
			s.must(os.Remove(s.path(f)))
		}
	}
	if restore.FilesRemoved(s.root, tree.NewListing([]tree.Entry{{Path: "a", State: one}}), []restore.Action{{Path: "a", Before: one}}) {
		t.Error("a restore that removes the only file has removed it: nothing else is missing")
	}
}

// TestOverlay: a listing gets the paths of the actions, and the directories that they need.
func TestOverlay(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	one, two := s.file("1", 0o644), s.file("2", 0o644)
	from := tree.NewListing([]tree.Entry{{Path: "a", State: one}, {Path: "b", State: one}, {Path: "gone", State: one}})
	want := tree.NewListing([]tree.Entry{{Path: "a", State: two}, {Path: "b", State: two},
		{Path: "d", State: dir(0o700)}, {Path: "d/in", State: two}})
	got := restore.Overlay(from, want,
		[]restore.Action{{Path: "a", Before: one, After: two}, {Path: "d/in", After: two}, {Path: "gone", Before: one}})
	expected := tree.NewListing([]tree.Entry{{Path: "a", State: two}, {Path: "b", State: one},
		{Path: "d", State: dir(0o700)}, {Path: "d/in", State: two}})
	if tree.ID(got) != tree.ID(expected) {
		for e := range got.All() {
			t.Logf("%s %s", e.Path, e.State)
		}
		t.Error("not the base with the restored paths")
	}
}

// TestWithReadOnlyDirs: a read-only directory in which something changes gets an action without a
// change, so that recovery knows its mode.
func TestWithReadOnlyDirs(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	one := s.file("1", 0o644)
	now := tree.NewListing([]tree.Entry{
		{Path: "open", State: dir(0o755)}, {Path: "open/f", State: one}, {Path: "ro", State: dir(0o555)}, {Path: "ro/f", State: one}, {Path: "ro/g", State: one},
		{Path: "same", State: dir(0o555)}, {Path: "same/f", State: one}, {Path: "planned", State: dir(0o555)}, {Path: "planned/f", State: one},
	})
	var got []string
	for _, a := range restore.WithReadOnlyDirs([]restore.Action{
		{Path: "open/f", Before: one}, {Path: "planned", Before: dir(0o555), After: dir(0o755)}, {Path: "planned/f", Before: one}, {Path: "ro/f", Before: one}, {Path: "ro/g", Before: one},
	}, now) {
		got = append(got, a.Path)
		if a.Path == "ro" && (a.Before != dir(0o555) || a.After != a.Before) {
			t.Errorf("ro: %s to %s", a.Before, a.After)
		}
	}
	if want := "open/f planned planned/f ro ro/f ro/g"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

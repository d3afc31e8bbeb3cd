package worldstate

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/restore"
)

// TestChangesFollowNoLink: a link that is put in a path's place between the look
// at it and its change leads nowhere. What it points at keeps its mode and owner,
// and the path is listed as kept.
func TestChangesFollowNoLink(t *testing.T) {
	tests := []struct {
		name, point, victim string
		make, change        func(b *bench)
	}{
		{"file", "chmod looked", "file",
			func(b *bench) { b.write("p", "1"); b.must(os.Chmod(b.path("p"), 0o666)) },
			func(b *bench) { b.must(os.Chmod(b.path("p"), 0o640)) }},
		{"directory", "chmod looked", "dir",
			func(b *bench) { b.must(os.Mkdir(b.path("p"), 0o777)); b.must(os.Chmod(b.path("p"), 0o777)) },
			func(b *bench) { b.must(os.Chmod(b.path("p"), 0o750)) }},
		{"new file", "temp filled", "file",
			func(b *bench) { b.write("p", "1"); b.must(os.Chmod(b.path("p"), 0o777)) },
			func(b *bench) { b.must(os.Remove(b.path("p"))) }},
		{"new file, written", "temp written", "file",
			func(b *bench) { b.write("p", "1"); b.must(os.Chmod(b.path("p"), 0o777)) },
			func(b *bench) { b.must(os.Remove(b.path("p"))) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var swap func()
			at := func(point string) {
				if point == tt.point && swap != nil {
					swap()
					swap = nil
				}
			}
			b := newBench(t, &Options{Hook: at})
			b.w.track.Before = func(op, _ string) error { at(op); return nil }
			victim := filepath.Join(filepath.Dir(b.dir), tt.victim)
			if b.must(os.Mkdir(victim, 0o700)); tt.victim == "file" {
				b.must(os.Remove(victim))
				b.must(os.WriteFile(victim, []byte("1"), 0o600))
			}
			before, err := os.Lstat(victim)
			b.must(err)
			tt.make(b)
			first := b.save()
			tt.change(b)
			b.save()
			swap = func() {
				at := b.path("p")
				if list, err := filepath.Glob(b.path(".anamnesis-*")); err == nil && len(list) == 1 {
					at = list[0]
				}
				b.must(os.RemoveAll(at))
				b.must(os.Symlink(victim, at))
			}
			res := b.jump(first.ID)
			after, err := os.Lstat(victim)
			b.must(err)
			if after.Mode() != before.Mode() {
				t.Errorf("the link was followed: mode %v, was %v", after.Mode(), before.Mode())
			}
			if info, err := os.Lstat(b.path("p")); err != nil || info.Mode()&fs.ModeSymlink == 0 {
				t.Fatalf("the swap did not happen: %v %v", info, err)
			}
			if len(res.Kept) != 1 || strings.TrimSuffix(res.Kept[0].Path, "/") != "p" ||
				res.Kept[0].Reason != gitfmt.KeepRaced || res.Exact {
				t.Errorf("%+v", res)
			}
		})
	}
}

// TestChmodUnreadable: a mode changes on files and directories that nobody but
// root could open.
func TestChmodUnreadable(t *testing.T) {
	b := newBench(t, nil)
	b.write("f", "1")
	b.must(os.Mkdir(b.path("d"), 0o755))
	first := b.save()
	for _, p := range []string{"f", "d"} {
		st, err := fsys.Lstatat(unix.AT_FDCWD, b.path(p))
		b.must(err)
		b.must(os.Chmod(b.path(p), 0))
		if _, err := restore.ChmodAt(unix.AT_FDCWD, b.path(p), st, 0o700); err != objects.ErrContentChanged {
			t.Errorf("%s: %v, want that its mode changed meanwhile", p, err)
		}
		st, err = fsys.Lstatat(unix.AT_FDCWD, b.path(p))
		b.must(err)
		if now, err := restore.ChmodAt(unix.AT_FDCWD, b.path(p), st, 0o750); err != nil || now.Mode&0o777 != 0o750 {
			t.Errorf("%s: mode %o, %v", p, now.Mode, err)
		}
	}
	b.jump(first.ID)
}

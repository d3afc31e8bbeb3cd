package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

// TestDirGone: a directory that is missing can be made again; what else is in its place is named.
func TestDirGone(t *testing.T) {
	root := t.TempDir()
	at := func(name string) string { return filepath.Join(root, name) }
	if err := errors.Join(os.Mkdir(at("dir"), 0o755), os.WriteFile(at("file"), nil, 0o644), os.Symlink(at("nowhere"), at("dangling")), os.Symlink(at("dir"), at("link")), os.Symlink(at("loop"), at("loop"))); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		gone bool
		err  string
	}{
		"dir": {}, "link": {}, "missing": {gone: true}, "dangling": {err: "dangling link"}, "file": {err: "a file is in"}, "loop": {err: "loop"},
	} {
		gone, err := DirGone("t", at(name))
		if gone != tt.gone || (err == nil) != (tt.err == "") ||
			err != nil && (!errors.Is(err, ErrNoDirectory) || !strings.Contains(err.Error(), tt.err)) {
			t.Errorf("%s: gone %v, %v", name, gone, err)
		}
		if err := WantDir("t", at(name)); errors.Is(err, ErrNoDirectory) != (tt.gone || tt.err != "") {
			t.Errorf("%s is wanted: %v", name, err)
		}
	}
	for _, name := range []string{"missing/deep", "dir", "file"} {
		if err := RecreateDir(at(name)); err != nil {
			t.Errorf("make %s: %v", name, err)
		}
	}
	if info, err := os.Stat(at("missing/deep")); err != nil || !info.IsDir() {
		t.Errorf("made: %v", err)
	}
	if err := RecreateDir(at("file/deep")); err != nil {
		t.Errorf("opening reports it: %v", err)
	}
}

// TestLocate: a task continues in its own directory, if that was named in this home and leads where it did, or in
// the one that the user names.
func TestLocate(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := taskdir.Home{State: filepath.Join(root, "home"), Data: filepath.Join(root, "home"),
		Config: filepath.Join(root, "home")}
	dir, other, link := filepath.Join(root, "dir"), filepath.Join(root, "other"), filepath.Join(root, "link")
	for _, d := range []string{h.State, dir, other} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(other, link); err != nil {
		t.Fatal(err)
	}
	here, elsewhere := filepath.Join(h.State, "worlds", "x.git"), filepath.Join(root, "there", "worlds", "x.git")
	for name, tt := range map[string]struct {
		own, store, named string
		want              string
		moved             []string
		err               error
	}{
		"its own":               {own: dir, store: here, want: dir},
		"its own, gone":         {own: dir + "/gone", store: here, want: dir + "/gone"},
		"its own, a link now":   {own: link, store: here, err: ErrNoDirectory},
		"of another home":       {own: dir, store: elsewhere, err: taskdir.ErrElsewhere},
		"named":                 {own: dir, store: elsewhere, named: link, want: other, moved: []string{"before", dir}},
		"named as it is":        {own: dir, store: here, named: dir, want: dir, moved: []string{"before"}},
		"named, missing":        {own: dir, store: here, named: dir + "/gone", err: worldstate.ErrNoDirectory},
		"named, in the program": {own: dir, store: here, named: h.State, err: worldstate.ErrRefused},
	} {
		st := &state.State{Opened: op.TaskOpened{Task: "t", Dir: tt.own, Store: tt.store}, Moved: []string{"before"}}
		err := Locate(h, st, tt.named)
		if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil &&
			(st.Opened.Dir != tt.want ||
				tt.named != "" && (st.Opened.Store != here || !slices.Equal(st.Moved, tt.moved))) {
			t.Errorf("%s: %s, store %s, moved %q", name, st.Opened.Dir, st.Opened.Store, st.Moved)
		}
	}
}

// TestWhichChanges: paths are compared without the slash of a folder.
func TestWhichChanges(t *testing.T) {
	list := func(paths ...string) (out []worldstate.Change) {
		for _, p := range paths {
			out = append(out, worldstate.Change{Path: p})
		}
		return out
	}
	names := func(list []worldstate.Change) (out []string) {
		for _, c := range list {
			out = append(out, c.Path)
		}
		return out
	}
	if got := names(InBoth(list("a", "d/", "b"), list("d", "a", "c"))); !slices.Equal(got, []string{"a", "d/"}) {
		t.Errorf("in both: %q", got)
	}
	if got := names(onlyPaths(list("a", "b"), nil)); len(got) != 2 {
		t.Errorf("without paths: %q", got)
	}
	if got := names(onlyPaths(list("a", "b"), []string{"b"})); !slices.Equal(got, []string{"b"}) {
		t.Errorf("only b: %q", got)
	}
	skips := Unreadable([]worldstate.Skip{{Path: "a", Reason: "kept"}},
		[]worldstate.Skip{{Path: "b", Reason: "mode"}, {Path: "a", Reason: "mode"}})
	if got := fmt.Sprint(skips); len(skips) != 2 || skips[0].Reason != "kept" || skips[1].Path != "b" {
		t.Errorf("stay: %s", got)
	}
	var a authors
	a.add(list("a", "d/"), 1)
	a.add(list("d"), often)
	if fmt.Sprint(a.others) != "map[a:1 d:3]" {
		t.Errorf("others changed %v", a.others)
	}
}

// TestBaseOf: with overwriting, what the user changed before the jump does not count as an edit.
func TestBaseOf(t *testing.T) {
	for want, j := range map[string]op.JumpIntended{
		"from": {FromCommit: "from"}, "base": {FromCommit: "from", Base: "base"}, "over": {FromCommit: "over", Base: "base", Overwrite: true},
	} {
		if got := BaseOf(&state.Jumping{JumpIntended: j}); string(got) != want {
			t.Errorf("%+v: %s, want %s", j, got, want)
		}
	}
	if err := NotRestorable(3, nil); err != nil {
		t.Error(err)
	}
	for _, tt := range []struct {
		err     error
		corrupt bool
	}{{worldstate.ErrUnknown, true}, {worldstate.ErrCorrupt, true}, {os.ErrPermission, false}} {
		if err := NotRestorable(3, tt.err); !errors.Is(err, tt.err) ||
			errors.Is(err, worldstate.ErrCorrupt) != tt.corrupt {
			t.Errorf("%v: %v", tt.err, err)
		}
	}
	if !Lost(worldstate.Snapshot{}) || Lost(worldstate.Snapshot{Files: 1}) {
		t.Error("a world without files is lost")
	}
	for dir, want := range map[string]string{".": "", "..": "", "../above": "", "sub": "sub: "} {
		if got := GitIn(dir); got != want {
			t.Errorf("%q: %q", dir, got)
		}
	}
}

// TestIgnoredGone: an ignored path that a step removed is named unless it is there again.
func TestIgnoredGone(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "back"), "x")
	got := IgnoredGone(dir, []op.Op{
		{Body: &op.WorldSaved{IgnoredGone: []string{"z", "back"}}}, {Body: &op.UserSaid{}},
		{Body: &op.WorldSaved{IgnoredGone: []string{"a", "z"}}},
	})
	if !slices.Equal(got, []string{"a", "z"}) {
		t.Errorf("gone %q", got)
	}
}

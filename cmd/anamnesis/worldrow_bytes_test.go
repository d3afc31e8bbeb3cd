//go:build unix

package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/cmd/internal/exit"
	"anamnesis/worldstate"
	"anamnesis/worldstate/worldtest"
)

// TestRow08Modes: permissions of files and directories, read-only ones
// included, come back; a setuid bit stays on a file that is there.
func TestRow08Modes(t *testing.T) {
	t.Parallel()
	heavy(t)
	eachFace(t, func(w *rowWorld) {
		modes := []fs.FileMode{0o600, 0o644, 0o640, 0o755, 0o700, 0o400, 0o444, 0o555, 0o000, 0o777}
		for _, m := range modes {
			name := fmt.Sprintf("f%04o", m)
			w.write(name, "1")
			w.must(os.Chmod(w.path(name), m))
			w.write(fmt.Sprintf("d%04o/in", m), "1")
		}
		w.must(os.MkdirAll(w.path("empty/er/est"), 0o755))
		w.must(os.Chmod(w.path("empty/er"), 0o710))
		w.write("suid", "#!/bin/true")
		w.must(os.Chmod(w.path("suid"), 0o755|fs.ModeSetuid))
		for _, m := range modes {
			w.must(os.Chmod(w.path(fmt.Sprintf("d%04o", m)), m))
		}
		need(w, os.Geteuid() == 0, "root, to look into directories of mode 0")
		first := w.saved()
		if len(first.Notes) != 1 || first.Notes[0].Path != "suid" ||
			!strings.Contains(first.Notes[0].Reason, "setuid") {
			w.Errorf("notes: %+v", first.Notes)
		}
		want := w.look().Whats()
		for _, m := range modes {
			w.must(os.Chmod(w.path(fmt.Sprintf("f%04o", m)), 0o666))
			w.write(fmt.Sprintf("d%04o/in", m), "2")
			w.write(fmt.Sprintf("d%04o/more", m), "2")
		}
		w.write("suid", "#!/bin/false")
		w.remove("empty", "d0555", "d0700")
		res := w.back(first)
		worldtest.RequireEqual(w, w.look().Whats(), want, "modes")
		if info, err := os.Lstat(w.path("suid")); err != nil || info.Mode() != 0o755|fs.ModeSetuid {
			w.Errorf("suid came back as %v %v", info.Mode(), err)
		}
		if len(res.Kept) != 0 {
			w.Errorf("kept %+v", res.Kept)
		}
		w.whole()
	})
}

// TestRow08ReadOnly is the same for a user who is not root: read-only
// directories are opened for the restore's time and closed again.
func TestRow08ReadOnly(t *testing.T) {
	t.Parallel()
	heavy(t)
	w := strangersWorld(t)
	mine := func(rels ...string) {
		for _, rel := range rels {
			w.must(os.Chown(w.path(rel), stranger, stranger))
		}
	}
	w.write("ro/f", "1")
	w.write("ro/gone", "1")
	w.write("ro/sub/g", "1")
	mine("ro", "ro/f", "ro/gone", "ro/sub", "ro/sub/g")
	for rel, m := range map[string]fs.FileMode{"ro/f": 0o400, "ro/sub": 0o500, "ro": 0o555} {
		w.must(os.Chmod(w.path(rel), m))
	}
	first := w.saved()
	want := w.look().Whats()
	w.write("ro/f", "2")
	w.write("ro/new", "2")
	w.write("ro/sub/g", "2")
	w.remove("ro/gone")
	mine("ro/new")
	w.back(first)
	worldtest.RequireEqual(t, w.look().Whats(), want, "read-only directories")
}

// TestRow08Bytes: no attribute, filter, line ending or keyword changes a byte,
// and nothing of the user's configuration runs.
func TestRow08Bytes(t *testing.T) {
	t.Parallel()
	eachFace(t, func(w *rowWorld) {
		ran := w.top + "/ran"
		git(w, w.dir, "init", "-q")
		for key, value := range map[string]string{
			"core.autocrlf": "true", "core.eol": "crlf", "core.safecrlf": "true", "core.fsmonitor": "touch " + ran, "core.hooksPath": w.top + "/hooks",
			"filter.spy.clean": "touch " + ran, "filter.spy.smudge": "touch " + ran, "filter.spy.process": "touch " + ran, "filter.spy.required": "true",
			"filter.lfs.smudge": "touch " + ran, "filter.lfs.process": "touch " + ran, "diff.external": "touch " + ran, "core.attributesFile": w.top + "/attributes",
		} {
			git(w, w.dir, "config", key, value)
		}
		w.must(os.Mkdir(w.top+"/hooks", 0o755))
		for _, hook := range []string{"post-checkout", "pre-commit", "post-index-change", "reference-transaction"} {
			w.must(os.WriteFile(filepath.Join(w.top, "hooks", hook), []byte("#!/bin/sh\ntouch "+ran+"\n"), 0o755))
		}
		w.must(os.WriteFile(w.top+"/attributes", []byte("* filter=spy\n"), 0o644))
		w.write(".gitattributes",
			"* text=auto ident eol=crlf filter=spy working-tree-encoding=UTF-16\n*.bin filter=lfs diff=lfs merge=lfs -text\n")
		for p, text := range map[string]string{
			"crlf": "one\r\ntwo\r\n", "lf": "one\ntwo\n", "mixed": "one\r\ntwo\nthree\r", "id": "$Id$ $Id: 123 $\n", "bom": "\xef\xbb\xbftext\n", "none": "",
			"utf16": "\xff\xfeh\x00i\x00", "nul": "a\x00b", "trail": "no newline",
			"big.bin": "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n",
		} {
			w.write(p, text)
		}
		first := w.saved()
		want := worldtest.Without(w.look().Whats(), ".git")
		for p := range want {
			w.write(p, "spoiled\r\n")
		}
		w.back(first)
		worldtest.RequireEqual(w, worldtest.Without(w.look().Whats(), ".git"), want, "bytes")
		if _, err := os.Stat(ran); !os.IsNotExist(err) {
			w.Errorf("something of the user's configuration ran: %v", err)
		}
	})
}

// TestRow09OthersAlone: one changed file is written and every other keeps its
// inode and time (each restore checks that); what is there already is a notice.
func TestRow09OthersAlone(t *testing.T) {
	t.Parallel()
	eachFace(t, func(w *rowWorld) {
		for i := range 50 {
			w.write(fmt.Sprintf("d%d/%d", i%5, i), "x")
		}
		w.must(os.Symlink("x", w.path("link")))
		first := w.saved()
		w.write("d3/3", "changed")
		if res := w.back(first); fmt.Sprint(res.Written, res.Deleted) != "[d3/3] []" {
			w.Errorf("%+v", res)
		}
		again := w.restored(first, noOptions)
		if len(again.Written)+len(again.Deleted)+len(again.Kept) != 0 || !again.Exact {
			w.Errorf("an identical world: %+v", again)
		}
		p, err := w.plan(first.ID, worldstate.PlanOptions{})
		if err != nil || len(p.Write)+len(p.Delete)+len(p.Keep) != 0 || p.Source != first.ID {
			w.Errorf("a plan of nothing: %+v %v", p, err)
		}
		if f, ok := w.face.(programFace); ok {
			out, err := f.command("restore", string(first.ID)).Output()
			if err != nil || !strings.HasPrefix(string(out), "nothing was moved\n") {
				w.Errorf("%q %v", out, err)
			}
		}
	})
}

// TestRow09Empty: an empty world is a world, too: it is saved, and going back
// to it removes only what a snapshot holds.
func TestRow09Empty(t *testing.T) {
	t.Parallel()
	eachFace(t, func(w *rowWorld) {
		first := w.saved()
		if first.Files != 0 || !first.Complete {
			w.Errorf("%+v", first)
		}
		w.write("a/b", "1")
		second := w.saved()
		w.back(first)
		if got := w.look(); len(got) != 0 {
			w.Errorf("left: %v", got)
		}
		w.back(second)
		w.holds("a/b", "1")
		w.whole()
	})
}

// TestRow10PersonsEdits: what a user did since the last snapshot is found,
// kept, and in any case saved first.
func TestRow10PersonsEdits(t *testing.T) {
	t.Parallel()
	eachFace(t, func(w *rowWorld) {
		for _, p := range []string{"agent", "edited", "gone", "typed", "d/in"} {
			w.write(p, "1")
		}
		first := w.saved()
		for _, p := range []string{"agent", "edited", "typed", "d/in"} {
			w.write(p, "2")
		}
		w.saved()
		w.write("edited", "by hand")
		w.write("created/deep", "by hand")
		w.remove("gone", "typed", "d")
		w.must(os.Symlink("by hand", w.path("typed")))
		w.write("d", "by hand")
		before := w.look().Whats()
		res := w.restoredKeeping(first)
		w.holds("agent", "1")
		for p, what := range map[string]string{"edited": "by hand", "created/deep": "by hand", "d": "by hand"} {
			w.holds(p, what)
		}
		var kept []string
		for _, k := range res.Kept {
			kept = append(kept, k.Path)
		}
		if got := strings.Join(kept, " "); got != "created/ created/deep d d/in edited gone typed" {
			w.Errorf("kept %s", got)
		}
		w.saved() // from now on they are the world's, and can be reverted
		w.restored(first, noOptions)
		w.holds("edited", "1")
		forward := w.restored(worldstate.Snapshot{ID: res.Source, Tree: w.treeOf(res.Source)}, noOptions)
		worldtest.RequireEqual(w, w.look().Whats(), before, "the edits as they were saved before the restore")
		if len(forward.Kept) != 0 {
			w.Errorf("kept %+v", forward.Kept)
		}
		w.write("edited", "again")
		w.restored(first, worldstate.RestoreOptions{PlanOptions: worldstate.PlanOptions{OverwriteEdits: true}})
		w.holds("edited", "1")
		w.whole()
	})
}

// restoredKeeping restores without a save before or after, so that edits stay
// edits.
func (w *rowWorld) restoredKeeping(target worldstate.Snapshot) worldstate.Result {
	w.Helper()
	before := w.look()
	res, err := w.restore(target.ID, noOptions)
	w.must(err)
	worldtest.Untouched(w, before, w.look(), append(append([]string{}, res.Written...), res.Deleted...), "a restore")
	return res
}

func (w *rowWorld) treeOf(id worldstate.ID) string {
	w.Helper()
	return strings.TrimSpace(git(w, w.top, "--git-dir="+w.store, "rev-parse", string(id)+"^{tree}"))
}

// TestRow10StalePlan: a plan that was seen and no longer holds moves nothing.
func TestRow10StalePlan(t *testing.T) {
	t.Parallel()
	eachFace(t, func(w *rowWorld) {
		w.write("a", "1")
		first := w.saved()
		w.write("a", "2")
		w.saved()
		p, err := w.plan(first.ID, worldstate.PlanOptions{})
		w.must(err)
		w.write("b", "by hand")
		before := w.look()
		_, err = w.restore(first.ID, worldstate.RestoreOptions{PlanHash: p.Hash})
		w.refused(err, exit.Refused, "stale", "plan again")
		worldtest.Untouched(w, before, w.look(), nil, "a stale plan")
		if p, err = w.plan(first.ID, worldstate.PlanOptions{}); err != nil || len(p.Keep) != 1 {
			w.Fatalf("%+v %v", p, err)
		}
		if _, err := w.restore(first.ID, worldstate.RestoreOptions{PlanHash: p.Hash}); err != nil {
			w.Error(err)
		}
		w.holds("a", "1")
		w.holds("b", "by hand")
	})
}

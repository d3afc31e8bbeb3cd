package worldstate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestIgnoredSurvive: what is ignored at either end is never touched.
func TestIgnoredSurvive(t *testing.T) {
	b := newBench(t, nil)
	b.write("main.go", "1")
	first := b.save()
	b.write(".gitignore", ".env\nnode_modules/\n/out\n")
	b.write(".env", "SECRET=1")
	b.write("node_modules/x/y.js", "y")
	b.write("out", "binary")
	b.write("main.go", "2")
	second := b.save()
	if second.Files != 2 {
		t.Fatalf("%d files held, want .gitignore and main.go", second.Files)
	}
	res := b.jump(first.ID) // the ignore file itself goes: its files stay
	for _, p := range []string{".env", "node_modules/x/y.js", "out"} {
		if _, err := os.Stat(b.path(p)); err != nil {
			t.Errorf("%s is gone", p)
		}
	}
	want := []Skip{{".env", keepIgnoredNow}, {"node_modules/", keepIgnoredNow}, {"out", keepIgnoredNow}}
	if fmt.Sprint(res.Kept) != fmt.Sprint(want) || res.Exact {
		t.Errorf("kept %v exact %v, want %v", res.Kept, res.Exact, want)
	}
	b.jump(second.ID)
	b.jump(first.ID) // now they were saved without the rule, and stay by the target's
	if _, err := os.Stat(b.path(".env")); err != nil {
		t.Error(".env is gone after a jump back and forth")
	}
}

// TestUserRepository: the user's .git is byte-identical before and after, and
// what its index tracks is captured although ignored.
func TestUserRepository(t *testing.T) {
	b := newBench(t, nil)
	git(t, b.dir, "init", "-q")
	b.write("a", "1")
	b.write("tracked.log", "held")
	git(t, b.dir, "add", ".")
	git(t, b.dir, "commit", "-qm", "c")
	b.write(".gitignore", "*.log\n")
	b.write("untracked.log", "not held")
	b.write("a", "staged")
	git(t, b.dir, "add", "a")
	gitBefore := look(t, b.path(".git"))
	first := b.save()
	if got := lookAtSnapshot(t, b.w, first.ID); got["tracked.log"] == "" || got["untracked.log"] != "" {
		t.Fatalf("held: %v", got)
	}
	b.write("a", "2")
	b.write("tracked.log", "changed")
	b.jump(first.ID)
	sameWorld(t, look(t, b.path(".git")), gitBefore, "the user's .git")
	if data, _ := os.ReadFile(b.path("tracked.log")); string(data) != "held" {
		t.Errorf("tracked.log is %q", data)
	}
}

// TestSubdirectoryOfRepository: rules above the world apply and are frozen.
func TestSubdirectoryOfRepository(t *testing.T) {
	b := newBench(t, nil)
	git(t, b.dir, "init", "-q")
	b.write(".gitignore", "/sub/out/\n*.o\n")
	b.write("sub/x.o", "o")
	b.write("sub/out/y", "y")
	b.write("sub/z", "z")
	w, err := Open(b.path("sub"), b.store+"2", nil)
	b.must(err)
	defer w.Close()
	s, err := w.SaveNext(context.Background(), "")
	b.must(err)
	got := lookAtSnapshot(t, w, s.ID)
	if len(got) != 1 || got["z"] == "" {
		t.Fatalf("held: %v", got)
	}
	c, err := w.byID(s.ID)
	b.must(err)
	l, err := w.tree(c.tree)
	b.must(err)
	p, err := w.policyOf(c, l)
	b.must(err)
	if !p.ignored("out/y", false) || !p.ignored("d/x.o", false) || p.ignored("z", false) {
		t.Errorf("frozen rules: %+v", c.rules)
	}
}

// TestNestedRepositories: inner files are ordinary files; inner .git is never
// touched, not even where its directory should go.
func TestNestedRepositories(t *testing.T) {
	b := newBench(t, nil)
	git(t, b.dir, "init", "-q")
	b.write("inner/f", "1")
	git(t, b.path("inner"), "init", "-q")
	git(t, b.path("inner"), "add", ".")
	git(t, b.path("inner"), "commit", "-qm", "inner")
	b.write(".gitmodules", "[submodule \"broken")
	first := b.save()
	before := look(t, b.path("inner/.git"))
	b.write("inner/f", "2")
	b.write("other/g", "g")
	b.must(os.MkdirAll(b.path("other/.git"), 0o755))
	b.write("other/.git/HEAD", "ref")
	res := b.jump(first.ID)
	sameWorld(t, look(t, b.path("inner/.git")), before, "inner .git")
	if data, _ := os.ReadFile(b.path("inner/f")); string(data) != "1" {
		t.Errorf("inner/f is %q", data)
	}
	if _, err := os.Stat(b.path("other/.git/HEAD")); err != nil || len(res.Kept) != 1 || res.Kept[0].Path != "other/" {
		t.Errorf("other/.git: %v, kept %v", err, res.Kept)
	}
	b.fsck()
}

// TestHostileNames: every name comes back, and git's own checks are content.
func TestHostileNames(t *testing.T) {
	b := newBench(t, nil)
	names := []string{
		"git~1", "GIT~1", ".GIT", ".git ", ".git.", ".Gitmodules", ".gitmodules", "gitmod~1", "GI7EBA~1", ".gitattributes", ".g\u200cit",
		`back\slash`, ".git::$INDEX_ALLOCATION", "new\nline", "tab\t", `quo"te`, "\xff\xfe", "aux", "con.txt", "CON", "a b", "-x",
		manifestName, storedPrefix + "x", "%", "é", "ÿ", ".gitignore~", "mailmap", ".mailmap",
	}
	for _, n := range names {
		b.must(os.WriteFile(b.path(n), []byte("[bad "+n), 0o644))
		if n != ".gitattributes" && n != manifestName {
			b.must(os.MkdirAll(b.path("d/"+n), 0o755))
			b.must(os.WriteFile(b.path("d/"+n+"/"+n), []byte(n), 0o600))
		}
		b.must(os.MkdirAll(b.path("e/"+n), 0o700))
		b.must(os.MkdirAll(b.path("l"), 0o700))
		b.must(os.Symlink("a/b", b.path("l/"+n)))
	}
	b.must(os.WriteFile(b.path("d/.gitattributes"), []byte(strings.Repeat("x", 5000)), 0o644))
	before := look(t, b.dir)
	first := b.save()
	b.fsck()
	git(t, b.dir, "--git-dir="+b.store, "log", "-p", "--all")
	b.must(os.RemoveAll(b.path("d")))
	b.must(os.RemoveAll(b.path("e")))
	for _, n := range names {
		b.must(os.Remove(b.path(n)))
	}
	b.write("one", "1")
	b.jump(first.ID)
	sameWorld(t, look(t, b.dir), before, "hostile names")
}

// TestSpecialFiles: no hang, listed, left alone; the snapshot is complete.
func TestSpecialFiles(t *testing.T) {
	b := newBench(t, nil)
	b.write("a", "1")
	first := b.save()
	b.must(unix.Mkfifo(b.path("fifo"), 0o600))
	l, err := net.Listen("unix", b.path("sock"))
	b.must(err)
	defer l.Close()
	b.write("a", "2")
	s := b.save()
	if !s.Complete || fmt.Sprint(s.Skipped) != fmt.Sprint([]Skip{{"fifo", reasonFIFO}, {"sock", reasonSocket}}) {
		t.Fatalf("%+v", s)
	}
	res := b.jump(first.ID)
	if res.Tree != first.Tree || !res.Exact {
		t.Errorf("the tree is not the target's: %+v", res)
	}
	for _, p := range []string{"fifo", "sock"} {
		if _, err := os.Lstat(b.path(p)); err != nil {
			t.Errorf("%s is gone", p)
		}
	}
}

// TestUnreadable: the snapshot is partial, says what is missing, and nothing
// is deleted at or beneath the place, then or later.
func TestUnreadable(t *testing.T) {
	b := newBench(t, nil)
	b.write("a", "1")
	b.write("locked/in", "x")
	b.write("secret", "s")
	b.w.fault = func(op, path string) error {
		if op == "readdir" && path == "locked" || op == "read" && path == "secret" {
			return fs.ErrPermission
		}
		return nil
	}
	partial := b.save()
	if partial.Complete || len(partial.Skipped) != 2 || partial.Skipped[0].Path != "locked" || !strings.Contains(partial.Skipped[1].Reason, "permission") {
		t.Fatalf("%+v", partial)
	}
	b.w.fault = nil
	b.write("locked/person", "made by hand")
	b.write("a", "2")
	res := b.jump(partial.ID)
	for _, p := range []string{"locked/in", "locked/person", "secret"} {
		if _, err := os.Stat(b.path(p)); err != nil {
			t.Errorf("%s was deleted (kept %v)", p, res.Kept)
		}
	}
	if data, _ := os.ReadFile(b.path("a")); string(data) != "1" {
		t.Errorf("a is %q", data)
	}
}

// TestChangesWhileRead: a file that never holds still is listed, one that
// does at last is held.
func TestChangesWhileRead(t *testing.T) {
	b := newBench(t, nil)
	b.write("f", "1")
	n := 0
	b.w.fault = func(op, path string) error {
		if op == "reread" && path == "f" {
			if n++; n < 3 {
				return errContentChanged
			}
		}
		return nil
	}
	if s := b.save(); !s.Complete || s.Files != 1 || n != 3 {
		t.Fatalf("%+v after %d tries", s, n)
	}
	b.write("f", "2")
	n = -100
	if s := b.save(); s.Complete || fmt.Sprint(s.Skipped) != fmt.Sprint([]Skip{{"f", errContentChanged.Error()}}) {
		t.Fatalf("%+v", s)
	}
}

// TestSameSizeSameTime: a rewrite that keeps size and mtime is noticed, and so
// is one in the very tick of the save.
func TestSameSizeSameTime(t *testing.T) {
	b := newBench(t, nil)
	old := time.Now().Add(-time.Hour)
	b.write("f", "aaaa")
	b.must(os.Chtimes(b.path("f"), old, old))
	b.save()
	b.write("f", "bbbb")
	b.must(os.Chtimes(b.path("f"), old, old))
	if s := b.save(); s.Changed != 1 {
		t.Error("a rewrite with a kept mtime was missed")
	}
	for i := range 50 {
		b.write("f", fmt.Sprintf("%04d", i))
		if s := b.save(); s.Changed != 1 {
			t.Fatalf("rewrite %d in the tick of the save was missed", i)
		}
	}
}

func TestRacy(t *testing.T) {
	now := time.Unix(1_000_000, 500_000_000)
	for _, c := range []struct {
		age  time.Duration
		want bool
	}{{0, true}, {50 * time.Millisecond, true}, {101 * time.Millisecond, false}, {-time.Hour, true}, {500 * time.Millisecond, true}, {2500 * time.Millisecond, false}} {
		at := now.Add(-c.age).UnixNano() // 500 ms before is a whole second: a coarse clock
		if got := racy(stamp{mtime: at, ctime: at}, now); got != c.want {
			t.Errorf("age %v: racy %v", c.age, got)
		}
	}
}

// TestUntouchedStay: restoring one file leaves every other mtime and inode.
func TestUntouchedStay(t *testing.T) {
	b := newBench(t, nil)
	for i := range 20 {
		b.write(fmt.Sprintf("d/%d", i), "x")
	}
	first := b.save()
	b.write("d/7", "changed")
	b.must(os.Chmod(b.path("d/8"), 0o600))
	stamps := func() map[string]string {
		m := map[string]string{}
		for i := range 20 {
			var st unix.Stat_t
			b.must(unix.Lstat(b.path(fmt.Sprintf("d/%d", i)), &st))
			m[fmt.Sprint(i)] = fmt.Sprint(st.Ino, st.Mtim)
		}
		return m
	}
	before := stamps()
	res := b.jump(first.ID)
	after := stamps()
	delete(before, "7")
	delete(after, "7") // 8 changed its mode only: the same inode and mtime
	if fmt.Sprint(before) != fmt.Sprint(after) || len(res.Written) != 2 {
		t.Errorf("before %v\nafter %v\n%v", before, after, res.Written)
	}
	if again := b.jump(first.ID); len(again.Written)+len(again.Deleted) != 0 || !again.Exact {
		t.Errorf("a second jump moved %+v", again)
	}
}

// TestPersonsEdits: found, kept by default, saved in any case.
func TestPersonsEdits(t *testing.T) {
	ctx := context.Background()
	b := newBench(t, nil)
	b.write("a", "1")
	b.write("b", "1")
	b.write("gone", "1")
	first := b.save()
	b.write("a", "2")
	b.write("b", "2")
	b.save()
	b.write("b", "by hand")
	b.write("new", "by hand")
	b.must(os.Remove(b.path("gone")))
	plan, err := b.w.Plan(ctx, first.ID, nil)
	b.must(err)
	if fmt.Sprint(plan.Write, plan.Delete) != "[a] []" || fmt.Sprint(plan.Keep) != fmt.Sprint([]Skip{{"b", keepEdited}, {"gone", keepDeleted}, {"new", keepCreated}}) {
		t.Fatalf("%+v", plan)
	}
	res, err := b.w.RestoreTo(ctx, first.ID, RestoreOptions{PlanHash: plan.Hash})
	b.must(err)
	if data, _ := os.ReadFile(b.path("b")); string(data) != "by hand" {
		t.Errorf("b is %q", data)
	}
	if got := lookAtSnapshot(t, b.w, res.Source); got["new"] == "" {
		t.Error("the edit was not saved before")
	}
	// still edits the second time
	res, err = b.w.RestoreTo(ctx, first.ID, RestoreOptions{})
	b.must(err)
	if len(res.Written) != 0 || len(res.Kept) != 3 {
		t.Errorf("second time: %+v", res)
	}
	res, err = b.w.RestoreTo(ctx, first.ID, RestoreOptions{PlanOptions: PlanOptions{OverwriteEdits: true}})
	b.must(err)
	if !res.Exact || res.Tree != first.Tree {
		t.Errorf("overwrite: %+v", res)
	}
	// an edit between a task's save and its plan is kept, too
	b.write("a", "agent")
	b.save()
	b.write("b", "by hand again")
	plan, err = b.w.Plan(ctx, first.ID, nil)
	b.must(err)
	if fmt.Sprint(plan.Write) != "[a]" || len(plan.Keep) != 1 {
		t.Errorf("%+v", plan)
	}
}

// TestSubset restores some paths; what was edited elsewhere stays an edit,
// what was restored does not become one.
func TestSubset(t *testing.T) {
	ctx := context.Background()
	b := newBench(t, nil)
	b.write("d/a", "1")
	b.write("e", "1")
	first := b.save()
	b.must(os.RemoveAll(b.path("d")))
	b.write("e", "2")
	b.save()
	b.write("e", "by hand")
	res, err := b.w.RestoreTo(ctx, first.ID, RestoreOptions{PlanOptions: PlanOptions{Paths: []string{"d/a"}}})
	b.must(err)
	if fmt.Sprint(res.Written) != "[d/ d/a]" {
		t.Fatalf("%+v", res)
	}
	if data, _ := os.ReadFile(b.path("e")); string(data) != "by hand" {
		t.Errorf("e is %q", data)
	}
	p, err := b.w.Plan(ctx, first.ID, nil)
	b.must(err)
	if fmt.Sprint(p.Keep) != fmt.Sprint([]Skip{{"e", keepEdited}}) || !p.Empty() {
		t.Errorf("%+v", p)
	}
	if _, err := b.w.Plan(ctx, first.ID, &PlanOptions{Paths: []string{"../x"}}); !errors.Is(err, ErrRefused) {
		t.Errorf("a path outside: %v", err)
	}
	b.fsck()
}

// TestStalePlan: a plan that no longer holds moves nothing.
func TestStalePlan(t *testing.T) {
	ctx := context.Background()
	b := newBench(t, nil)
	b.write("a", "1")
	first := b.save()
	b.write("a", "2")
	b.save()
	p, err := b.w.Plan(ctx, first.ID, nil)
	b.must(err)
	b.write("a", "3")
	before := look(t, b.dir)
	if _, err := b.w.Restore(ctx, p); !errors.Is(err, ErrStale) {
		t.Fatalf("got %v", err)
	}
	if _, err := b.w.Restore(ctx, Plan{Target: first.ID}); !errors.Is(err, ErrStale) {
		t.Fatalf("a plan of nobody's: %v", err)
	}
	sameWorld(t, look(t, b.dir), before, "a refused restore")
	if p, err := b.w.Plan(ctx, first.ID, nil); err != nil || len(p.Keep) != 1 {
		t.Errorf("a refused restore made the edit a base: %+v %v", p, err)
	}
}

// TestMissingAndRotten: refused before the first byte moves, naming the object.
func TestMissingAndRotten(t *testing.T) {
	ctx := context.Background()
	for _, kind := range []string{"rotten", "missing"} {
		t.Run(kind, func(t *testing.T) {
			b := newBench(t, nil)
			b.write("a", strings.Repeat("1", 1000))
			first := b.save()
			pack, _ := filepath.Glob(b.store + "/objects/pack/*.pack")
			b.write("a", "2")
			b.save()
			before := look(t, b.dir)
			h := hashObject(blobObject, []byte(strings.Repeat("1", 1000)))
			if kind == "rotten" {
				p, off := b.w.objects.lookup(h)
				data, err := os.ReadFile(p.path)
				b.must(err)
				data[off+8] ^= 0x55
				b.must(os.Chmod(p.path, 0o600))
				b.must(os.WriteFile(p.path, data, 0o600))
			} else {
				b.must(os.Remove(pack[0]))
				b.must(os.Remove(strings.TrimSuffix(pack[0], ".pack") + ".idx"))
			}
			_, err := b.w.Plan(ctx, first.ID, nil)
			var m *MissingObjectError
			if kind == "rotten" && (!errors.As(err, &m) || m.Object != h.String() || m.Path != "a") {
				t.Errorf("plan: %v", err)
			}
			if !errors.Is(err, ErrCorrupt) {
				t.Errorf("plan: %v", err)
			}
			if _, err := b.w.RestoreTo(ctx, first.ID, RestoreOptions{}); err == nil {
				t.Error("restore: no error")
			}
			sameWorld(t, look(t, b.dir), before, "refused")
			r, err := b.w.Verify(ctx)
			if err != nil || r.OK || len(r.Problems) == 0 {
				t.Errorf("verify: %+v %v", r, err)
			}
		})
	}
}

// TestAfterGitRepack: what git itself made of the store reads as before.
func TestAfterGitRepack(t *testing.T) {
	b := newBench(t, nil)
	b.write("big", strings.Repeat("line\n", 20000))
	first := b.save()
	b.write("big", strings.Repeat("line\n", 20000)+"more")
	b.save()
	git(t, b.dir, "--git-dir="+b.store, "gc", "--quiet", "--aggressive", "--prune=now")
	if err := b.w.Has(context.Background(), first.ID); err != nil {
		t.Fatal(err)
	}
	if res := b.jump(first.ID); !res.Exact {
		t.Errorf("%+v", res)
	}
	b.fsck()
}

// TestRefused: directories and stores nobody should open.
func TestRefused(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "w")
	if err := os.MkdirAll(filepath.Join(dir, "in"), 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(top, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, dir, store string
		want             error
	}{
		{"root", "/", top + "/s", ErrRefused},
		{"home", dir, top + "/s", ErrRefused},
		{"home by a link", link, top + "/s", ErrRefused},
		{"inside its store", dir + "/in", dir, ErrRefused},
		{"absent", top + "/absent", top + "/s", ErrNoDirectory},
		{"store holds other things", dir + "/in", top, ErrRefused},
	} {
		if _, err := Open(c.dir, c.store, &Options{Home: dir}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestTwoWorlds: snapshots of one directory are not restored into another
// that holds something.
func TestTwoWorlds(t *testing.T) {
	ctx := context.Background()
	b := newBench(t, nil)
	b.write("a", "1")
	first := b.save()
	other := filepath.Join(t.TempDir(), "other")
	b.must(os.Mkdir(other, 0o755))
	w, err := Open(other, b.store, nil)
	b.must(err)
	defer w.Close()
	if _, err := w.RestoreTo(ctx, first.ID, RestoreOptions{}); err != nil {
		t.Errorf("into an empty directory: %v", err)
	}
	b.must(os.WriteFile(filepath.Join(other, "mine"), nil, 0o644))
	if _, err := w.RestoreTo(ctx, first.ID, RestoreOptions{}); !errors.Is(err, ErrRefused) {
		t.Errorf("into another world: %v", err)
	}
}

// TestStoreInside: a store in its own world is not part of it.
func TestStoreInside(t *testing.T) {
	b := newBench(t, nil)
	w, err := Open(b.dir, b.path("state/store"), &Options{Exclude: []string{b.path("mine")}})
	b.must(err)
	defer w.Close()
	b.write("a", "1")
	b.write("mine/x", "1")
	s, err := w.SaveNext(context.Background(), "")
	b.must(err)
	if s.Files != 1 {
		t.Errorf("%d files", s.Files)
	}
}

// TestLimit: at the cap nothing is saved, and the store is as it was.
func TestLimit(t *testing.T) {
	b := newBench(t, nil)
	b.write("a", "1")
	first := b.save()
	b.w.opts.SizeLimitBytes = 4000
	data := make([]byte, 20000)
	for i := range data {
		data[i] = byte(i * i >> 3 * 7)
	}
	b.must(os.WriteFile(b.path("big"), append(data, fmt.Sprint(time.Now())...), 0o644))
	b.w.opts.SizeLimitBytes = 1000
	var le *LimitError
	if _, err := b.w.SaveNext(context.Background(), ""); !errors.As(err, &le) {
		t.Fatalf("got %v", err)
	}
	if last, err := b.w.Last(context.Background()); err != nil || last != first.ID {
		t.Errorf("last is %s, %v", last, err)
	}
	b.fsck()
}

// TestModes: modes and read-only directories come back, setuid is said.
func TestModes(t *testing.T) {
	b := newBench(t, nil)
	b.write("ro/f", "1")
	b.write("s", "1")
	b.must(os.Chmod(b.path("ro/f"), 0o400))
	b.must(os.Chmod(b.path("ro"), 0o555))
	b.must(os.Chmod(b.path("s"), 0o755|fs.ModeSetuid))
	t.Cleanup(func() { os.Chmod(b.path("ro"), 0o755) })
	first := b.save()
	if len(first.Notes) != 1 || first.Notes[0].Path != "s" {
		t.Errorf("notes %v", first.Notes)
	}
	want := look(t, b.dir)
	b.must(os.Chmod(b.path("ro"), 0o755))
	b.must(os.RemoveAll(b.path("ro")))
	b.jump(first.ID)
	sameWorld(t, look(t, b.dir), want, "modes")
}

// TestManySavers: eight worlds and one world, at once, in one store.
func TestManySavers(t *testing.T) {
	ctx := context.Background()
	b := newBench(t, nil)
	b.write("shared", "x")
	var wg sync.WaitGroup
	ids := make([]ID, 8)
	for i := range ids {
		wg.Go(func() {
			dir := b.dir
			if i%2 == 0 {
				dir = filepath.Join(t.TempDir(), "w")
				if err := os.Mkdir(dir, 0o755); err != nil {
					t.Error(err)
					return
				}
			}
			w, err := Open(dir, b.store, &Options{Task: fmt.Sprintf("t%d", i), LockWait: time.Minute})
			if err != nil {
				t.Error(err)
				return
			}
			defer w.Close()
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d", i)), []byte(fmt.Sprint(i)), 0o644); err != nil {
				t.Error(err)
				return
			}
			s, err := w.Save(ctx, SaveOptions{Ref: "1", Trailers: [][2]string{{"Seq", "1"}}})
			if err != nil {
				t.Error(err)
			}
			ids[i] = s.ID
		})
	}
	wg.Wait()
	for i, id := range ids {
		if err := b.w.Has(ctx, id); err != nil {
			t.Errorf("snapshot %d: %v", i, err)
		}
	}
	b.fsck()
}

// TestLocked: the loser is told who holds the store.
func TestLocked(t *testing.T) {
	b := newBench(t, &Options{LockWait: time.Millisecond})
	lock, err := acquireLock(context.Background(), b.store, time.Second)
	b.must(err)
	_, err = b.w.SaveNext(context.Background(), "")
	var le *LockedError
	if !errors.As(err, &le) || !strings.Contains(le.Holder, fmt.Sprint(os.Getpid())) {
		t.Fatalf("got %v", err)
	}
	lock.release()
	b.save()
}

func TestResolve(t *testing.T) {
	ctx := context.Background()
	b := newBench(t, nil)
	b.write("a", "1")
	first := b.save()
	for _, name := range []string{"1", string(first.ID), string(first.ID[:7])} {
		if id, err := b.w.Resolve(ctx, name); err != nil || id != first.ID {
			t.Errorf("%q: %s %v", name, id, err)
		}
	}
	for _, name := range []string{"", "2", string(first.ID[:6]), strings.Repeat("0", 40), "zzzzzzz"} {
		if id, err := b.w.Resolve(ctx, name); !errors.Is(err, ErrUnknown) {
			t.Errorf("%q: %s %v", name, id, err)
		}
	}
}

// TestLargeFile streams, in and out.
func TestLargeFile(t *testing.T) {
	b := newBench(t, nil)
	data := make([]byte, wholeFileBytes+12345)
	for i := range data {
		data[i] = byte(i*i>>7) ^ byte(i)
	}
	b.must(os.WriteFile(b.path("big"), data, 0o644))
	want := look(t, b.dir)
	first := b.save()
	b.must(os.Remove(b.path("big")))
	b.write("other", "x")
	b.jump(first.ID)
	sameWorld(t, look(t, b.dir), want, "a large file")
	b.fsck()
}

// TestDiffAndPatch shows each kind of change once.
func TestDiffAndPatch(t *testing.T) {
	ctx := context.Background()
	b := newBench(t, nil)
	b.write("mod", "one\ntwo\n")
	b.write("del", "x\n")
	b.write("mode", "x\n")
	b.write("type", "x\n")
	b.write("bin", "\x00\x01")
	first := b.save()
	b.write("mod", "one\nTWO\n")
	b.must(os.Remove(b.path("del")))
	b.must(os.Chmod(b.path("mode"), 0o755))
	b.must(os.Remove(b.path("type")))
	b.must(os.Symlink("mod", b.path("type")))
	b.write("bin", "\x00\x02")
	b.write("add/new", "x\n")
	b.must(os.Mkdir(b.path("empty"), 0o755))
	second := b.save()
	changes, err := b.w.Diff(ctx, first.ID, second.ID)
	b.must(err)
	var got []string
	for _, c := range changes {
		got = append(got, string(c.Kind)+" "+c.Path)
	}
	want := "[added add/new modified bin deleted del added empty/ modified mod mode mode type type]"
	if fmt.Sprint(got) != want {
		t.Errorf("got %v", got)
	}
	var patch strings.Builder
	b.must(b.w.Patch(ctx, &patch, changes))
	for _, line := range []string{"-two", "+TWO", "Binary files", "new file mode 120000", "deleted file mode 100644", "new mode 100755"} {
		if !strings.Contains(patch.String(), line) {
			t.Errorf("no %q in\n%s", line, patch.String())
		}
	}
}

func TestLog(t *testing.T) {
	ctx := context.Background()
	b := newBench(t, nil)
	var last ID
	for i := range 3 {
		b.write("a", fmt.Sprint(i))
		s, err := b.w.Save(ctx, SaveOptions{Message: fmt.Sprintf("step %d: x", i), Parent: last, Ref: fmt.Sprint(i), Trailers: [][2]string{{"Seq", fmt.Sprint(i)}}})
		b.must(err)
		last = s.ID
	}
	s, err := b.w.Save(ctx, SaveOptions{Message: "nothing", Parent: last, Ref: "3"})
	b.must(err)
	if s.ID != last || s.Changed != 0 {
		t.Errorf("an unchanged world: %+v", s)
	}
	list, err := b.w.Log(ctx)
	b.must(err)
	if len(list) != 3 || list[0].ID != last || fmt.Sprint(list[0].Steps) != "[2 3]" || !list[0].Current || list[2].Message != "step 0: x" ||
		fmt.Sprint(list[0].Trailers) != "[[Seq 2]]" || list[1].Parents[0] != list[2].ID {
		t.Errorf("%+v", list)
	}
	if _, err := b.w.Save(ctx, SaveOptions{Trailers: [][2]string{{trailerWorld, "x"}}}); err == nil {
		t.Error("a reserved trailer was taken")
	}
}

package worldstate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/worldtest"
)

// The child of the kill tests: it does one operation on a world and kills
// itself, as kill -9 would, at the n-th crash point.
const childEnv = "ANAMNESIS_WORLDSTATE_CHILD"

func TestMain(m *testing.M) {
	if spec := os.Getenv(childEnv); spec != "" {
		os.Exit(child(spec))
	}
	os.Exit(m.Run())
}

// testPacks: so many packs may be there before a child puts some together.
const testPacks = 6

// child returns 0 when the operation ended before the n-th point.
func child(spec string) int {
	f := strings.Split(spec, "|")
	var n int
	fmt.Sscan(f[4], &n)
	w, err := Open(f[0], f[1], &Options{Hook: func(string) {
		if n--; n < 0 {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	w.objects.MaxPacks = testPacks
	ctx := context.Background()
	switch f[2] {
	case "restore":
		_, err = w.RestoreTo(ctx, ID(f[3]), RestoreOptions{PlanOptions: PlanOptions{OverwriteEdits: true}})
		err = errors.Join(err, w.Sync())
	case "recover":
		_, err = w.Recover(ctx)
	case "gc":
		_, err = GC(ctx, f[1], &GCOptions{Hook: w.opts.Hook})
	case "save":
		_, err = w.SaveNext(ctx, "child")
	case "fork":
		_, err = w.Fork(ctx, ID(f[3]), f[1]+"-forked")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// killed runs the child; false when it ended by itself.
func (b *bench) killed(op string, id ID, n int) bool {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%s|%s|%s|%d", childEnv, b.dir, b.store, op, id, n))
	out, err := cmd.CombinedOutput()
	if err == nil {
		return false
	}
	var ee *exec.ExitError
	if !errors.As(err, &ee) || ee.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		b.Fatalf("child: %v\n%s", err, out)
	}
	return true
}

// messy makes a world whose restore needs every kind of step, and the
// snapshots of both ends.
func messy(t *testing.T) (b *bench, first, second ID, one, two map[string]string) {
	b = newBench(t, nil)
	b.write(".gitignore", "*.log\nnode_modules/\n")
	b.write("keep.log", "precious")
	b.write("node_modules/m/index.js", "precious")
	b.write("a", "one")
	b.write("dir/x", "x")
	b.write("dir/sub/y", "y")
	b.write("swap", "a file")
	b.must(os.Symlink("a", b.path("link")))
	b.must(os.MkdirAll(b.path("empty/er"), 0o750))
	b.write("exec", "#!")
	b.must(os.Chmod(b.path("exec"), 0o700))
	b.write("grows", "0123456789")
	b.write("shrinks", "the quick brown fox")
	b.write("closes", "for all to read")
	b.write("bare", "")
	b.write("twin", "two names")
	b.must(os.Link(b.path("twin"), b.path("twin2")))
	b.write("fixed", "nobody writes")
	b.must(os.Chmod(b.path("fixed"), 0o444))
	first, one = b.save().ID, look(t, b.dir)
	b.write("grows", "0123456789 and on")
	b.write("shrinks", "The dog")
	b.write("closes", "for my eyes only")
	b.must(os.Chmod(b.path("closes"), 0o600))
	b.write("bare", "dressed")
	b.must(os.Remove(b.path("twin2")))
	b.write("twin2", "on its own")
	b.must(os.Remove(b.path("fixed")))
	b.write("fixed", "somebody writes")
	b.must(os.Chmod(b.path("fixed"), 0o444))
	b.write("a", "two")
	b.must(os.RemoveAll(b.path("dir")))
	b.write("dir", "now a file")
	b.must(os.Remove(b.path("swap")))
	b.write("swap/inner", "now a directory")
	b.must(os.Remove(b.path("link")))
	b.must(os.Symlink("elsewhere", b.path("link")))
	b.must(os.RemoveAll(b.path("empty")))
	b.must(os.Chmod(b.path("exec"), 0o644))
	b.write("new/deep/file", "new")
	second, two = b.save().ID, look(t, b.dir)
	return b, first, second, one, two
}

// killEvery is from one crash point that a child is killed at to the next.
func killEvery() int {
	if *nightly {
		return 1
	}
	return 3
}

// TestKillRestore kills a restore at every third crash point, at each in the nightly
// run, and the recovery after it at some: the tree ends at one of the two ends.
func TestKillRestore(t *testing.T) {
	worldtest.Heavy(t)
	b, first, second, one, two := messy(t)
	kills, every := 0, killEvery()
	for n := 0; ; n += every {
		if !b.killed("restore", first, n) {
			break
		}
		kills++
		for m := n % 7; b.killed("recover", "", m); m += 7 {
			kills++
		}
		b.settled(one, two, fmt.Sprintf("killed at point %d", n))
		b.jump(second)
		sameWorld(t, look(t, b.dir), two, "back to the second snapshot")
	}
	t.Logf("%d kills", kills)
	if kills < 150/every {
		t.Errorf("only %d kills: the crash points are gone", kills)
	}
	sameWorld(t, look(t, b.dir), one, "the restore that was not killed")
	b.fsck()
	for _, d := range []string{b.store, b.packDir(), b.store + "/" + fsys.StateDir} {
		list, err := os.ReadDir(d)
		b.must(err)
		for _, e := range list {
			if strings.HasPrefix(e.Name(), fsys.TempPrefix) || strings.HasPrefix(e.Name(), "journal") {
				t.Errorf("left behind: %s/%s", d, e.Name())
			}
		}
	}
}

// settled checks that nothing is half done any more.
func (b *bench) settled(one, two map[string]string, when string) {
	b.Helper()
	r, err := b.w.Recover(context.Background())
	b.must(err)
	if r != nil && len(r.Kept) != 0 {
		b.Fatalf("%s: recovery kept %v", when, r.Kept)
	}
	now := look(b, b.dir)
	if fmt.Sprint(now) != fmt.Sprint(one) && fmt.Sprint(now) != fmt.Sprint(two) {
		sameWorld(b, now, one, when+": neither end")
	}
}

// TestKillSave kills a save at every crash point: the snapshots before it
// are, and the next save succeeds.
func TestKillSave(t *testing.T) {
	b := newBench(t, nil)
	b.write("a", "0")
	first := b.save()
	for n := 0; ; n++ {
		b.write("a", fmt.Sprint(n+1))
		if !b.killed("save", "", n) {
			break
		}
		if err := b.w.Has(context.Background(), first.ID); err != nil {
			t.Fatal(err)
		}
		s := b.save()
		if err := b.w.Has(context.Background(), s.ID); err != nil {
			t.Fatal(err)
		}
	}
	b.fsck()
}

// TestRollBack makes each step of a restore fail in turn: the world is as it
// was, and the error says so.
func TestRollBack(t *testing.T) {
	b, first, _, _, two := messy(t)
	full := errors.New("no space left")
	for n := 0; ; n++ {
		left := n
		b.w.track.Before = func(op, _ string) error {
			if op == "remove" || op == "mkdir" || op == "write" || op == "chmod" || op == "overwrite" {
				if left--; left == -1 {
					return full
				}
			}
			return nil
		}
		_, err := b.w.RestoreTo(context.Background(), first, RestoreOptions{})
		if err == nil {
			if n < 8 {
				t.Fatalf("only %d steps", n)
			}
			break
		}
		var re *RestoreError
		if !errors.As(err, &re) || !re.RolledBack || !errors.Is(err, full) {
			t.Fatalf("step %d: %v", n, err)
		}
		sameWorld(t, look(t, b.dir), two, fmt.Sprintf("rolled back at step %d", n))
	}
}

// TestRollBackFails: when not even the way back works, the journal stays,
// nothing else goes on, and Recover ends it.
func TestRollBackFails(t *testing.T) {
	b, first, _, one, two := messy(t)
	left := 3
	b.w.track.Before = func(op, _ string) error {
		if op == "read" || op == "readdir" || op == "reread" {
			return nil
		}
		if left--; left < 0 {
			return errors.New("no space left")
		}
		return nil
	}
	_, err := b.w.RestoreTo(context.Background(), first, RestoreOptions{})
	var re *RestoreError
	if !errors.As(err, &re) || re.RolledBack {
		t.Fatalf("got %v", err)
	}
	if _, err := b.w.SaveNext(context.Background(), ""); !errors.Is(err, ErrUnfinished) {
		t.Fatalf("save over a half-done restore: %v", err)
	}
	b.w.track.Before = nil
	r, err := b.w.Recover(context.Background())
	if err != nil || r == nil || !r.Finished {
		t.Fatalf("%+v %v", r, err)
	}
	b.settled(one, two, "recovered")
}

// TestEditDuringRestore: what somebody changes while a restore runs is left as
// it is and listed, whether it was to be written or removed.
func TestEditDuringRestore(t *testing.T) {
	var b *bench
	b = newBench(t, &Options{Hook: func(point string) {
		if point == "journal after" {
			b.write("changed", "by hand")
			b.write("removed", "by hand")
			b.write("fresh", "by hand")
		}
	}})
	b.write("changed", "1")
	b.write("fresh", "1")
	b.write("other", "1")
	first := b.save()
	b.write("changed", "2")
	b.write("other", "2")
	b.write("removed", "2")
	b.must(os.Remove(b.path("fresh")))
	res := b.jump(first.ID)
	want := []Skip{
		{Path: "removed", Reason: gitfmt.KeepRaced}, {Path: "changed", Reason: gitfmt.KeepRaced},
		{Path: "fresh", Reason: gitfmt.KeepRaced},
	}
	if fmt.Sprint(res.Kept) != fmt.Sprint(want) || res.Exact || fmt.Sprint(res.Written) != "[other]" ||
		len(res.Deleted) != 0 {
		t.Errorf("%+v", res)
	}
	for _, p := range []string{"changed", "removed", "fresh"} {
		if data, _ := os.ReadFile(b.path(p)); string(data) != "by hand" {
			t.Errorf("%s is %q", p, data)
		}
	}
}

package worldstate

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/worldtest"
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
	if second.Files != 3 {
		t.Fatalf("%d files held, want .gitignore, main.go and the secret .env", second.Files)
	}
	res := b.jump(first.ID) // the ignore file itself goes: its files stay
	for _, p := range []string{".env", "node_modules/x/y.js", "out"} {
		if _, err := os.Stat(b.path(p)); err != nil {
			t.Errorf("%s is gone", p)
		}
	}
	want := []Skip{
		{Path: ".env", Reason: gitfmt.KeepIgnoredNow}, {Path: "node_modules/", Reason: gitfmt.KeepIgnoredNow},
		{Path: "out", Reason: gitfmt.KeepIgnoredNow},
	}
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
	worldtest.Git(t, b.dir, "init", "-q")
	b.write("a", "1")
	b.write("tracked.log", "held")
	worldtest.Git(t, b.dir, "add", ".")
	worldtest.Git(t, b.dir, "commit", "-qm", "c")
	b.write(".gitignore", "*.log\n")
	b.write("untracked.log", "not held")
	b.write("a", "staged")
	worldtest.Git(t, b.dir, "add", "a")
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
	worldtest.Git(t, b.dir, "init", "-q")
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
	l, err := w.tree(c.Tree)
	b.must(err)
	p, err := w.policyOf(c, l)
	b.must(err)
	if !p.Ignored("out/y", false) || !p.Ignored("d/x.o", false) || p.Ignored("z", false) {
		t.Errorf("frozen rules: %+v", c.Rules)
	}
}

// TestNestedRepositories: inner files are ordinary files; inner .git is never
// touched, not even where its directory should go.
func TestNestedRepositories(t *testing.T) {
	b := newBench(t, nil)
	worldtest.Git(t, b.dir, "init", "-q")
	b.write("inner/f", "1")
	worldtest.Git(t, b.path("inner"), "init", "-q")
	worldtest.Git(t, b.path("inner"), "add", ".")
	worldtest.Git(t, b.path("inner"), "commit", "-qm", "inner")
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

// TestSplitIndex: what a split index lists is not read. The snapshot says so, and how the
// index is joined; then what it lists is held although it is ignored.
func TestSplitIndex(t *testing.T) {
	b := newBench(t, nil)
	worldtest.Git(t, b.dir, "init", "-q")
	b.write("in.log", "1")
	worldtest.Git(t, b.dir, "add", "in.log")
	worldtest.Git(t, b.dir, "update-index", "--split-index")
	b.write(".gitignore", "*.log\n")
	s := b.save()
	if len(s.Notes) != 1 || s.Notes[0].Path != ".git/index" ||
		!strings.Contains(s.Notes[0].Reason, "'git update-index --no-split-index'") {
		t.Errorf("notes are %+v", s.Notes)
	}
	b.holdsPaths("a split index", s.ID, map[string]bool{"in.log": false})
	worldtest.Git(t, b.dir, "update-index", "--no-split-index")
	b.holdsPaths("joined", b.save().ID, map[string]bool{"in.log": true})
}

// TestRequestedPathsExplained: a requested path at which nothing is done has a reason.
func TestRequestedPathsExplained(t *testing.T) {
	b := newBench(t, nil)
	b.write(".gitignore", "*.log\n")
	b.write("same", "1")
	b.write("sub/same", "1")
	b.write("x.log", "1")
	first := b.save()
	b.write("changed", "1")
	b.save()
	plan, err := b.w.Plan(context.Background(), first.ID,
		&PlanOptions{Paths: []string{"same", "sub", "x.log", "changed"}})
	want := []Skip{
		{Path: "same", Reason: gitfmt.SameAsTarget}, {Path: "sub", Reason: gitfmt.SameAsTarget},
		{Path: "x.log", Reason: gitfmt.NeverHeld},
	}
	if err != nil || fmt.Sprint(plan.Unchanged) != fmt.Sprint(want) || fmt.Sprint(plan.Delete) != "[changed]" {
		t.Errorf("%v, %v, %v; want %v", plan.Unchanged, plan.Delete, err, want)
	}
}

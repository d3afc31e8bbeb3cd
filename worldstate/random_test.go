package worldstate

import (
	"context"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/worldtest"
)

var (
	nightly  = flag.Bool("nightly", false, "run the heavy counts")
	seedFlag = flag.Uint64("seed", 0, "the seed of the random tests; 0 takes another one each time")
)

// randomSeed returns a run's seed and logs it.
func randomSeed(t testing.TB) uint64 {
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("again with -seed=%d", seed)
	return seed
}

// randomOps is how many operations a random run does.
func randomOps() int {
	if *nightly {
		return 10_000
	}
	if testing.Short() || os.Getenv("ANAMNESIS_CI") == "" {
		return 200
	}
	return 400
}

// changer does random changes to a tree by the plainest means.
type changer struct {
	testing.TB
	r        *rand.Rand
	root     string
	ignoring bool // .gitignore files come, go and change
}

func (c *changer) pick(from ...string) string { return from[c.r.IntN(len(from))] }

func (c *changer) name() string {
	return c.pick("a", "b", "c", "git~1", "n\nl", "\xff\xfe", "x.o", ".gitmodules", ".gitattributes", "A")
}

// place is a path at most two deep; what is on the way may be anything.
func (c *changer) place() string {
	p := c.root
	for range c.r.IntN(3) {
		p = filepath.Join(p, c.pick("d", "e", "f.o"))
	}
	return p
}

// folder is a directory that is there.
func (c *changer) folder() string {
	d := c.place()
	for d != c.root {
		if info, err := os.Lstat(d); err == nil && info.IsDir() {
			break
		}
		d = filepath.Dir(d)
	}
	return d
}

// change does one operation; one that is not possible just now does nothing.
func (c *changer) change() {
	file := filepath.Join(c.folder(), c.name())
	content := []byte(strings.Repeat(fmt.Sprint(c.r.IntN(5)), c.r.IntN(4)))
	info, err := os.Lstat(file)
	regular := err == nil && info.Mode().IsRegular()
	switch c.r.IntN(14) {
	case 0, 1, 2, 3: // create or edit
		if err == nil && !regular {
			os.RemoveAll(file)
		}
		os.WriteFile(file, content, 0o644)
	case 4:
		os.RemoveAll(file)
	case 5:
		os.MkdirAll(c.place(), 0o755)
	case 6:
		os.Rename(file, filepath.Join(c.folder(), c.name()))
	case 7:
		os.RemoveAll(file)
		os.Symlink(c.pick("a", "/etc/passwd", "d", "../.."), file)
	case 8:
		modes := []os.FileMode{0o600, 0o644, 0o755, 0o700, 0o444, 0o555}
		if err == nil && info.Mode()&fs.ModeSymlink == 0 {
			os.Chmod(file, modes[c.r.IntN(len(modes))])
		}
	case 9: // a whole directory goes, or becomes a file
		if d := c.place(); d != c.root {
			os.RemoveAll(d)
			if c.r.IntN(2) == 0 {
				os.WriteFile(d, content, 0o644)
			}
		}
	case 10:
		if c.ignoring {
			lines := make([]string, 1+c.r.IntN(3))
			for i := range lines {
				lines[i] = c.pick("*.o", "a", "/d/", "!x.o", "e/*", "**/b", "!/d/e", ".gitignore", "c", "!c", "/e/f.o/")
			}
			os.WriteFile(filepath.Join(c.folder(), ".gitignore"), []byte(strings.Join(lines, "\n")+"\n"), 0o644)
		}
	case 11: // a repository inside
		if d := c.folder(); d != c.root && c.r.IntN(4) == 0 {
			os.MkdirAll(filepath.Join(d, ".git"), 0o755)
			os.WriteFile(filepath.Join(d, ".git", "HEAD"), content, 0o644)
		}
	case 12: // a hard link
		if regular {
			os.Link(file, filepath.Join(c.folder(), c.name()))
		}
	case 13: // the same size and, as far as it can be set, the same time
		if regular && info.Size() > 0 {
			os.WriteFile(file, []byte(strings.Repeat("9", int(info.Size()))), 0o644)
			os.Chtimes(file, info.ModTime(), info.ModTime())
		}
	}
}

// point is a snapshot with the plain copy that it must equal.
type point struct {
	id   ID
	tree string
	look map[string]string
	copy string // where the copy is kept, if it is
}

// TestRandomJumps compares the world after random jumps back and forward,
// whole and in part, with plain looks taken at the saves. Nothing is ignored
// here; nested repositories are there.
func TestRandomJumps(t *testing.T) {
	seed := randomSeed(t)
	b := newBench(t, nil)
	c := &changer{TB: t, r: rand.New(rand.NewPCG(seed, 1)), root: b.dir}
	var points []point
	counts := map[string]int{}
	for i := range randomOps() {
		when := fmt.Sprintf("-seed=%d, operation %d", seed, i)
		switch k := c.r.IntN(20); {
		case k < 15:
			counts["change"]++
			c.change()
		case k < 17 || len(points) == 0:
			counts["save"]++
			before := look(t, b.dir)
			s := b.save()
			sameWorld(t, look(t, b.dir), before, when+": a save changed the world")
			points = append(points, point{id: s.ID, tree: s.Tree, look: worldtest.Without(before, ".git")})
		case k < 19:
			counts["jump"]++
			wholeJump(t, b, points[c.r.IntN(len(points))], when)
		default:
			counts["part"]++
			partJump(t, b, points[c.r.IntN(len(points))], c.pick("d", "e", "a", "d/e"), when)
		}
	}
	b.fsck()
	t.Logf("%v", counts)
}

// wholeJump goes to a point by a plan, which must say what is then done.
func wholeJump(t testing.TB, b *bench, p point, when string) {
	t.Helper()
	before := worldtest.Snapshot(t, b.dir)
	b.save()
	plan, err := b.w.Plan(context.Background(), p.id, nil)
	b.must(err)
	sameWorld(t, look(t, b.dir), before.Whats(), when+": a plan changed the world")
	res, err := b.w.Restore(context.Background(), plan)
	b.must(err)
	if !slices.Equal(plan.Write, res.Written) || !slices.Equal(plan.Delete, res.Deleted) ||
		!slices.Equal(plan.Keep, res.Kept) {
		t.Fatalf("%s: planned %v %v %v, done %+v", when, plan.Write, plan.Delete, plan.Keep, res)
	}
	after := worldtest.Snapshot(t, b.dir)
	worldtest.Untouched(t, before, after, append(slices.Clone(res.Written), res.Deleted...), when)
	checkNothingLost(t, b, before.Whats(), after.Whats(), res, when)
	if len(res.Kept) == 0 {
		sameWorld(t, worldtest.Without(after.Whats(), ".git"), p.look, when+": jump to "+string(p.id))
		if res.Tree != p.tree || !res.Exact {
			t.Fatalf("%s: tree %s, want %s", when, res.Tree, p.tree)
		}
	}
	for _, k := range res.Kept { // only a nested .git may be in the way
		if k.Reason != gitfmt.KeepBlocked && k.Reason != gitfmt.KeepHolds {
			t.Fatalf("%s: kept %+v", when, k)
		}
	}
}

// partJump brings one path back, and nothing else.
func partJump(t testing.TB, b *bench, p point, path, when string) {
	t.Helper()
	b.save()
	before := worldtest.Snapshot(t, b.dir)
	o := RestoreOptions{PlanOptions: PlanOptions{Paths: []string{path}}}
	res, err := b.w.RestoreTo(context.Background(), p.id, o)
	after := worldtest.Snapshot(t, b.dir)
	_, there := before[path]
	_, then := p.look[path]
	if !there && !then {
		worldtest.Untouched(t, before, after, nil, when+": a path that is nowhere")
		return
	}
	b.must(err)
	worldtest.Untouched(t, before, after, append(slices.Clone(res.Written), res.Deleted...), when)
	for q, was := range before {
		if !fsys.Beneath(q, path) && !fsys.Beneath(path, q) && after[q] != was && after[q].What != was.What {
			t.Fatalf("%s: bringing back %q moved %q", when, path, q)
		}
	}
	if len(res.Kept) > 0 {
		return
	}
	part := func(m map[string]string) map[string]string {
		out := map[string]string{}
		for q, what := range m {
			if fsys.Beneath(q, path) {
				out[q] = what
			}
		}
		return out
	}
	sameWorld(t, part(worldtest.Without(after.Whats(), ".git")), part(p.look), when+": "+path+" brought back")
}

// checkNothingLost: every path that changed was in the source snapshot just
// as it was, and every path that is not the target's was there before.
func checkNothingLost(t testing.TB, b *bench, before, after map[string]string, res Result, when string) {
	t.Helper()
	source, target := lookAtSnapshot(t, b.w, res.Source), lookAtSnapshot(t, b.w, res.Target)
	kept := map[string]bool{}
	for _, k := range res.Kept {
		kept[strings.TrimSuffix(k.Path, "/")] = true
	}
	for p, was := range before {
		if after[p] == was {
			continue
		}
		if source[p] != was {
			t.Fatalf("%s: %q was %q, is %q, and the source snapshot has %q", when, p, was, after[p], source[p])
		}
	}
	for p, is := range after {
		if is != before[p] && is != target[p] {
			t.Fatalf("%s: %q is %q, was %q, the target has %q", when, p, is, before[p], target[p])
		}
	}
	for p, want := range target {
		if after[p] != want && !kept[p] {
			t.Fatalf("%s: %q is %q, the target has %q, and it is not listed: %+v", when, p, after[p], want, res.Kept)
		}
	}
}

// TestRandomIgnores lets .gitignore files come, go and change, and edits are
// unsaved: nothing a snapshot does not hold is ever lost, and what git itself
// calls ignored at either end, asked of plain copies of both, is not deleted.
func TestRandomIgnores(t *testing.T) {
	worldtest.Heavy(t)
	seed := randomSeed(t)
	ignoresHold(t, seed, randomOps())
}

// FuzzIgnores looks for a history in which the rules at the two ends differ and
// a path is deleted that one of them hides.
func FuzzIgnores(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { ignoresHold(t, seed, 60) })
}

func ignoresHold(t testing.TB, seed uint64, ops int) {
	b := newBench(t, nil)
	worldtest.Git(t, b.dir, "init", "-q")
	c := &changer{TB: t, r: rand.New(rand.NewPCG(seed, 2)), root: b.dir, ignoring: true}
	var points []point
	asked := 0
	for i := range ops {
		when := fmt.Sprintf("-seed=%d, operation %d", seed, i)
		switch k := c.r.IntN(20); {
		case k < 15:
			c.change()
		case k < 17 || len(points) == 0:
			points = append(points, point{id: b.save().ID, copy: plainCopy(t, b.dir)})
		default:
			p := points[c.r.IntN(len(points))]
			o := RestoreOptions{PlanOptions: PlanOptions{OverwriteEdits: c.r.IntN(2) == 0}}
			if c.r.IntN(2) == 0 {
				b.save()
			}
			before, now := look(t, b.dir), plainCopy(t, b.dir)
			res, err := b.w.RestoreTo(context.Background(), p.id, o)
			b.must(err)
			checkNothingLost(t, b, before, look(t, b.dir), res, when)
			for _, end := range []string{now, p.copy} {
				if hidden := ignoredByGit(t, end, res.Deleted); len(hidden) > 0 {
					t.Fatalf("%s: deleted %q, which the rules at %s hide", when, hidden, end)
				}
			}
			asked += len(res.Deleted)
			os.RemoveAll(now)
		}
	}
	b.fsck()
	t.Logf("git was asked of %d deleted paths", asked)
}

// plainCopy copies a world without its repositories, and makes it one of its
// own, for git to be asked in.
func plainCopy(t testing.TB, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v\n%s", err, out)
	}
	err := filepath.WalkDir(to, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != ".git" || filepath.Dir(path) == to {
			return err
		}
		if err := os.RemoveAll(path); err != nil {
			return err
		}
		if d.IsDir() {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return to
}

// ignoredByGit returns those of some paths that git calls ignored. It judges no
// path beyond a link.
func ignoredByGit(t testing.TB, dir string, paths []string) (hidden []string) {
	t.Helper()
	ask := func(paths ...string) (string, int) {
		cmd := exec.Command("git", "check-ignore", "--no-index", "-z", "--stdin")
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(strings.Join(paths, "\x00")+"\x00")
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		out, err := cmd.Output()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	const none, fatal = 1, 128
	if len(paths) == 0 {
		return nil
	}
	var ends []string
	for _, p := range paths {
		info, err := os.Lstat(filepath.Join(dir, p))
		if err == nil && info.IsDir() && !strings.HasSuffix(p, "/") {
			continue // a directory there: what hides it need not hide the file
		}
		ends = append(ends, strings.TrimSuffix(p, "/")) // with the slash "e/*" would match "e/" itself
	}
	if paths = ends; len(paths) == 0 {
		return nil
	}
	out, code := ask(paths...)
	if code == fatal {
		out = ""
		for _, p := range paths {
			if one, code := ask(p); code != fatal && code != none {
				out += one
			}
		}
	}
	return strings.FieldsFunc(out, func(r rune) bool { return r == 0 })
}

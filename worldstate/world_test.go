package worldstate

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/worldstate/worldtest"
)

// look reads a directory: path → type, permissions and content.
func look(t testing.TB, root string) map[string]string {
	t.Helper()
	return worldtest.Look(t, root).Whats()
}

// sameWorld fails the test with the paths in which two looks differ.
func sameWorld(t testing.TB, got, want map[string]string, when string) {
	t.Helper()
	worldtest.Same(t, got, want, when)
}

// bench is a world and its store in fresh directories.
type bench struct {
	testing.TB
	dir, store string
	w          *World
}

func newBench(t testing.TB, o *Options) *bench {
	t.Helper()
	top := t.TempDir()
	b := &bench{TB: t, dir: filepath.Join(top, "world"), store: filepath.Join(top, "store")}
	if err := os.Mkdir(b.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	b.open(o)
	return b
}

func (b *bench) open(o *Options) {
	b.Helper()
	w, err := Open(b.dir, b.store, o)
	if err != nil {
		b.Fatal(err)
	}
	b.w = w
	b.Cleanup(func() { w.Close() })
}

func (b *bench) path(rel string) string { return filepath.Join(b.dir, rel) }

func (b *bench) write(rel, content string) {
	b.Helper()
	b.must(os.MkdirAll(filepath.Dir(b.path(rel)), 0o755))
	b.must(os.WriteFile(b.path(rel), []byte(content), 0o644))
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) save() Snapshot {
	b.Helper()
	s, err := b.w.SaveNext(context.Background(), "test")
	b.must(err)
	return s
}

// jump is what a task does: save, plan, restore.
func (b *bench) jump(target ID) Result {
	b.Helper()
	b.save()
	p, err := b.w.Plan(context.Background(), target, nil)
	b.must(err)
	res, err := b.w.Restore(context.Background(), p)
	b.must(err)
	return res
}

// git runs the real git, and skips loudly where there is none (CI has it).
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("git is not installed: CI must have it")
		}
		t.Skip("NOT CHECKED: git is not installed")
	}
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@localhost", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@localhost")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// fsck checks the store with git and with Verify.
func (b *bench) fsck() {
	b.Helper()
	if out := git(b, b.dir, "--git-dir="+b.store, "fsck", "--strict", "--full"); strings.Contains(out, "error") || strings.Contains(out, "warning") || strings.Contains(out, "missing") {
		b.Fatalf("git fsck --strict: %s", out)
	}
	r, err := b.w.Verify(context.Background())
	b.must(err)
	if !r.OK || r.Unfinished {
		b.Fatalf("verify: %+v", r)
	}
}

// randomWorld does one random change to the tree.
func randomChange(t testing.TB, r *rand.Rand, root string, ignoring bool) {
	t.Helper()
	names := []string{"a", "b", "c", "git~1", "n\nl", "\xff\xfe", "x.o", ".gitmodules", ".gitattributes", "A"}
	path := func() string {
		p := root
		for range r.IntN(3) {
			p = filepath.Join(p, []string{"d", "e", "f.o"}[r.IntN(3)])
		}
		return p
	}
	dirOf := func() string {
		d := path()
		for d != root {
			if info, err := os.Lstat(d); err == nil && info.IsDir() {
				break
			}
			d = filepath.Dir(d)
		}
		return d
	}
	file := filepath.Join(dirOf(), names[r.IntN(len(names))])
	content := []byte(strings.Repeat(fmt.Sprint(r.IntN(5)), r.IntN(4)))
	switch r.IntN(12) {
	case 0, 1, 2, 3:
		if info, err := os.Lstat(file); err == nil && !info.Mode().IsRegular() {
			os.RemoveAll(file)
		}
		os.WriteFile(file, content, 0o644)
	case 4:
		os.RemoveAll(file)
	case 5:
		os.MkdirAll(path(), 0o755)
	case 6:
		os.Rename(file, filepath.Join(dirOf(), names[r.IntN(len(names))]))
	case 7:
		os.RemoveAll(file)
		os.Symlink([]string{"a", "/etc/passwd", "d", "../.."}[r.IntN(4)], file)
	case 8:
		modes := []os.FileMode{0o600, 0o644, 0o755, 0o700, 0o444, 0o555}
		if info, err := os.Lstat(file); err == nil && info.Mode()&fs.ModeSymlink == 0 {
			os.Chmod(file, modes[r.IntN(len(modes))])
		}
	case 9:
		d := path()
		if d != root {
			os.RemoveAll(d)
			if r.IntN(2) == 0 {
				os.WriteFile(d, content, 0o644)
			}
		}
	case 10:
		if ignoring {
			lines := []string{"*.o", "a", "/d/", "!x.o", "e/*", "**/b", "!/d/e", ".gitignore"}
			os.WriteFile(filepath.Join(dirOf(), ".gitignore"), []byte(lines[r.IntN(len(lines))]+"\n"+lines[r.IntN(len(lines))]+"\n"), 0o644)
		}
	case 11:
		if d := dirOf(); d != root {
			os.MkdirAll(filepath.Join(d, ".git"), 0o755)
			os.WriteFile(filepath.Join(d, ".git", "HEAD"), content, 0o644)
		}
	}
}

// randomOps is how many operations a random run does; the nightly run sets
// ANAMNESIS_RANDOM_OPS.
func randomOps(t testing.TB) int {
	n := 500 // each of two runs
	if s := os.Getenv("ANAMNESIS_RANDOM_OPS"); s != "" {
		if _, err := fmt.Sscan(s, &n); err != nil {
			t.Fatal(err)
		}
	}
	return n
}

// withoutGit drops what no snapshot holds.
func withoutGit(m map[string]string) map[string]string { return worldtest.Without(m, ".git") }

// TestRandomJumps compares the world after random jumps with plain copies
// made at the saves. Nothing is ignored here; nested repositories are there.
func TestRandomJumps(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	b := newBench(t, nil)
	type point struct {
		id   ID
		tree string
		look map[string]string
	}
	var points []point
	for i := range randomOps(t) {
		switch k := r.IntN(10); {
		case k < 7:
			randomChange(t, r, b.dir, false)
		case k < 8 || len(points) == 0:
			before := look(t, b.dir)
			s := b.save()
			sameWorld(t, look(t, b.dir), before, fmt.Sprintf("seed %d op %d: a save changed the world", seed, i))
			points = append(points, point{s.ID, s.Tree, withoutGit(before)})
		default:
			p := points[r.IntN(len(points))]
			before := look(t, b.dir)
			res := b.jump(p.id)
			after := look(t, b.dir)
			checkNothingLost(t, b, before, after, res, fmt.Sprintf("seed %d op %d", seed, i))
			if len(res.Kept) == 0 {
				sameWorld(t, withoutGit(after), p.look, fmt.Sprintf("seed %d op %d: jump to %s", seed, i, p.id))
				if res.Tree != p.tree || !res.Exact {
					t.Fatalf("seed %d op %d: tree %s, want %s", seed, i, res.Tree, p.tree)
				}
			} else {
				for _, k := range res.Kept { // only a nested .git may be in the way
					if k.Reason != keepBlocked && k.Reason != keepHolds {
						t.Fatalf("seed %d op %d: kept %+v", seed, i, k)
					}
				}
			}
		}
	}
	b.fsck()
}

// checkNothingLost: every path that changed stood in the source snapshot just
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

// lookAtSnapshot gives a snapshot in the form of look.
func lookAtSnapshot(t testing.TB, w *World, id ID) map[string]string {
	t.Helper()
	c, err := w.byID(id)
	if err != nil {
		t.Fatal(err)
	}
	l, err := w.objects.loadTree(c.tree, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for e := range l.all() {
		if e.kind == kindDir {
			out[e.path] = fmt.Sprintf("dir %o", e.perm)
			continue
		}
		data, err := w.objects.read(e.hash, blobObject, e.path)
		if err != nil {
			t.Fatal(err)
		}
		if e.kind == kindLink {
			out[e.path] = "link " + string(data)
		} else {
			out[e.path] = fmt.Sprintf("file %o %x", e.perm, sha256.Sum256(data))
		}
	}
	return out
}

// TestRandomIgnores lets .gitignore files come, go and change, and edits stand
// unsaved: nothing a snapshot does not hold may be lost, ever.
func TestRandomIgnores(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	b := newBench(t, nil)
	var points []ID
	for i := range randomOps(t) {
		switch k := r.IntN(10); {
		case k < 7:
			randomChange(t, r, b.dir, true)
		case k < 8 || len(points) == 0:
			points = append(points, b.save().ID)
		default:
			id := points[r.IntN(len(points))]
			when := fmt.Sprintf("seed %d op %d", seed, i)
			before := look(t, b.dir)
			var res Result
			var err error
			switch r.IntN(3) {
			case 0:
				res = b.jump(id)
			case 1:
				res, err = b.w.RestoreTo(context.Background(), id, RestoreOptions{PlanOptions: PlanOptions{OverwriteEdits: r.IntN(2) == 0}})
			default:
				res, err = b.w.RestoreTo(context.Background(), id, RestoreOptions{PlanOptions: PlanOptions{Paths: []string{"d"}}})
				if errors.Is(err, ErrNoPath) {
					sameWorld(t, look(t, b.dir), before, when+": refused")
					continue
				}
				if err == nil { // what was not asked for is not touched
					after := look(t, b.dir)
					for p, was := range before {
						if !beneath(p, "d") && after[p] != was {
							t.Fatalf("%s: subset moved %q", when, p)
						}
					}
					for p := range after {
						if _, had := before[p]; !had && !beneath(p, "d") {
							t.Fatalf("%s: subset made %q", when, p)
						}
					}
					continue
				}
			}
			b.must(err)
			checkNothingLost(t, b, before, look(t, b.dir), res, when)
		}
	}
	b.fsck()
}

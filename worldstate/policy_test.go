package worldstate

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/tree"
	"anamnesis/worldstate/worldtest"
)

// ruleMaker makes ignore files, and trees for them to be about.
type ruleMaker struct{ *rand.Rand }

func (r *ruleMaker) line() string {
	parts := []string{
		"a", "b", "ab", "*", "**", "?", "[ab]", "[!a]", "c.o", "*.o", `\a`, "a*", "***", "[a-", "d ", `d\ `,
		"[[:alpha:]]", "#x", `\#x`, `\!y`,
	}
	var s []string
	for range 1 + r.IntN(3) {
		s = append(s, parts[r.IntN(len(parts))])
	}
	p := strings.Join(s, "/")
	if r.IntN(4) == 0 {
		p = "/" + p
	}
	if r.IntN(3) == 0 {
		p += "/"
	}
	if r.IntN(3) == 0 {
		p = "!" + p
	}
	if r.IntN(10) == 0 {
		p += "\r"
	}
	return p
}

func (r *ruleMaker) file() []byte {
	var b strings.Builder
	for range 1 + r.IntN(4) {
		b.WriteString(r.line())
		b.WriteString("\n")
	}
	return []byte(strings.TrimSuffix(b.String(), strings.Repeat("\n", r.IntN(2))))
}

// tree fills a world with directories, files and rules.
func (r *ruleMaker) tree(b *bench) {
	names := []string{"a", "b", "ab", "c.o", "d", "d ", "#x", "!y", "x.o"}
	b.must(os.WriteFile(b.path(".git/info/exclude"), r.file(), 0o644))
	dirs := []string{""}
	for range 10 {
		d := fsys.Join(dirs[r.IntN(len(dirs))], names[r.IntN(len(names))])
		if os.MkdirAll(b.path(d), 0o755) == nil {
			dirs = append(dirs, d)
		}
	}
	for _, d := range dirs {
		for range 4 {
			p := b.path(fsys.Join(d, names[r.IntN(len(names))]))
			if _, err := os.Lstat(p); err != nil {
				b.must(os.WriteFile(p, []byte("x"), 0o644))
			}
		}
		if r.IntN(2) == 0 {
			b.must(os.WriteFile(b.path(fsys.Join(d, ".gitignore")), r.file(), 0o644))
		}
	}
}

// TestIgnoreAsGit makes random trees with random ignore files and asks git,
// path by path, whether the scanner and the frozen policy agree with it.
func TestIgnoreAsGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		worldtest.Git(t, ".")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 3))
	g := &ruleMaker{r}
	for round := range 40 {
		b := newBench(t, nil)
		worldtest.Git(t, b.dir, "init", "-q")
		g.tree(b)
		want := strings.Split(strings.TrimSuffix(worldtest.Git(t, b.dir, "-c", "core.quotePath=false", "ls-files", "-z",
			"--others", "--exclude-standard"), "\x00"), "\x00")
		if len(want) == 1 && want[0] == "" {
			want = nil
		}
		sort.Strings(want)
		s := b.save()
		c, err := b.w.byID(s.ID)
		b.must(err)
		l, err := tree.Load(b.w.objects, c.Tree, nil)
		b.must(err)
		var got []string
		for e := range l.All() {
			if e.Kind != tree.KindDir {
				got = append(got, e.Path)
			}
		}
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Fatalf("seed %d round %d (%s):\ngot  %q\nwant %q", seed, round, b.dir, got, want)
		}
		p, err := b.w.policyOf(c, l)
		b.must(err)
		held := map[string]bool{}
		for _, path := range want {
			held[path] = true
		}
		b.must(filepath.WalkDir(b.dir, func(path string, d os.DirEntry, err error) error {
			rel, _ := filepath.Rel(b.dir, path)
			if err == nil && d.Type().IsRegular() && !fsys.Beneath(rel, ".git") && p.Ignored(rel, false) == held[rel] {
				t.Errorf("seed %d round %d: frozen policy says ignored=%v of %q", seed, round, !held[rel], rel)
			}
			return err
		}))
		b.w.Close()
	}
}

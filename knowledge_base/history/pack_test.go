package history

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"pgregory.net/rapid"

	"anamnesis/knowledge_base/history/internal/gitdir"
)

// packsOf returns the pack files and the bytes of all objects.
func packsOf(t *testing.T, r *Repo) (packs []string, size int64) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(r.git, "objects"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if size += info.Size(); strings.HasSuffix(path, ".pack") {
			packs = append(packs, path)
		} else if !strings.HasSuffix(path, ".idx") {
			t.Errorf("neither pack nor index: %s", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return packs, size
}

func gitIn(t *testing.T, r *Repo, args ...string) string {
	t.Helper()
	out, err := exec.Command("git", append([]string{"-C", r.dir}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// A commit of one card in a large month costs about what the card does, and git
// agrees with every object.
func TestSingleCommitsStaySmall(t *testing.T) {
	r := newRepo(t)
	files := make(map[string][]byte)
	name := func(i int) string {
		return fmt.Sprintf("2026-01/%03d-a-card-about-something-that-failed-%d.md", i*7919%1000, i)
	}
	for i := range 1000 {
		files[name(i)] = fmt.Appendf(nil, "card %d", i)
	}
	commit(t, r, "many", files)
	_, before := packsOf(t, r)
	const more = 60
	for i := range more {
		change := map[string][]byte{name(1000 + i): fmt.Appendf(nil, "card %d", 1000+i)}
		switch i % 10 {
		case 3:
			change[name(i)] = fmt.Appendf(nil, "edited %d", i)
		case 7:
			change[name(i)] = nil
		}
		commit(t, r, fmt.Sprint("card ", i), change)
	}
	packs, size := packsOf(t, r)
	if each := (size - before) / more; each > 1500 {
		t.Errorf("%d bytes a commit of one card, want at most 1,500: is the tree of the month written whole?", each)
	}
	if len(packs) > 2 {
		t.Errorf("%d packs for %d commits", len(packs), more)
	}
	if out := gitIn(t, r, "fsck", "--full", "--strict"); strings.Contains(out, "error") || strings.Contains(out, "warning") {
		t.Errorf("git fsck: %s", out)
	}
	for _, p := range packs {
		for line := range strings.Lines(gitIn(t, r, "verify-pack", "-v", p)) {
			if depth, ok := strings.CutPrefix(line, "chain length = "); ok && depth[0] > '0'+gitdir.MaxChain {
				t.Errorf("a chain too long: %s", line)
			}
		}
	}
	if n := strings.Count(gitIn(t, r, "ls-tree", "-r", "HEAD~30"), "\n"); n != 1000+30-3 {
		t.Errorf("%d files in a commit in between", n)
	}
	gitIn(t, r, "gc", "--quiet", "--prune=now")
	commit(t, r, "after gc", map[string][]byte{"2026-01/a.md": []byte("a")})
	gitIn(t, r, "multi-pack-index", "write")
	commit(t, r, "after a multi-pack-index", map[string][]byte{"2026-01/b.md": []byte("b")})
	commit(t, r, "again", map[string][]byte{"2026-01/c.md": []byte("c")})
	gitIn(t, r, "fsck", "--full", "--strict")
}

// A pack that is damaged, or was left by a dead writer, is not added to.
func TestDamagedPackIsLeftAlone(t *testing.T) {
	r := newRepo(t)
	commit(t, r, "one", map[string][]byte{"a/1": []byte("1")})
	packs, _ := packsOf(t, r)
	data, err := os.ReadFile(packs[0])
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-30] ^= 1
	if err := os.Remove(packs[0]); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(packs[0], data, 0o400); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(filepath.Dir(packs[0]), gitdir.TempPrefix+"1")
	if err := os.WriteFile(left, nil, 0o400); err != nil {
		t.Fatal(err)
	}
	_, _, _ = r.Commit(Commit{Message: "two", Files: map[string][]byte{"b/1": []byte("1")}})
	if got, err := os.ReadFile(packs[0]); err != nil || !bytes.Equal(got, data) {
		t.Errorf("the damaged pack was replaced: %v", err)
	}
	if gitdir.Exists(left) {
		t.Error("what a dead writer left is there still")
	}
}

// The difference between two trees makes the one of the other.
func TestTreeDelta(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tree := func(label string) []byte {
			var out []byte
			for i := range rapid.IntRange(0, 40).Draw(rt, label) {
				if rapid.IntRange(0, 3).Draw(rt, "in") > 0 {
					mode := rapid.SampledFrom([]string{"100644", "40000"}).Draw(rt, "mode")
					id := bytes.Repeat([]byte{byte(rapid.IntRange(0, 2).Draw(rt, "id"))}, 20)
					out = append(fmt.Appendf(out, "%s name%02d\x00", mode, i), id...)
				}
			}
			return out
		}
		was, is := tree("was"), tree("is")
		got, err := packfile.PatchDelta(was, gitdir.TreeDelta(was, is))
		if len(was) > 0 && len(is) > 0 && (err != nil || !bytes.Equal(got, is)) {
			rt.Fatalf("%q to %q: %q, %v", was, is, got, err)
		}
	})
}

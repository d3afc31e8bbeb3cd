package worldstate

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anamnesis/worldstate/worldtest"
)

// TestRenamesAsGit: one file moves and changes; git and Renames agree on
// whether it is a rename, and on how similar it is.
func TestRenamesAsGit(t *testing.T) {
	ctx := context.Background()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 4))
	renamed := 0
	for round := range 60 {
		b := newBench(t, nil)
		line := func() string { // random letters: git's chunk hash knows only the last ones of a chunk
			b := make([]byte, 10+r.IntN(140))
			for i := range b {
				b[i] = byte('a' + r.IntN(26))
			}
			return string(b) + "\n"
		}
		var before, after strings.Builder
		kept := 1 + r.IntN(3) // lines of four: a rename, hardly ever one
		for range 1 + r.IntN(30) {
			l := line()
			before.WriteString(l)
			if r.IntN(4) < kept {
				after.WriteString(l)
			}
			if r.IntN(4) == 0 {
				after.WriteString(line())
			}
		}
		if gitConfuses(before.String() + after.String()) {
			b.w.Close()
			continue
		}
		b.write("a", before.String())
		first := b.save()
		b.must(os.Remove(b.path("a")))
		b.write("b", after.String())
		second := b.save()
		changes, err := b.w.Diff(ctx, first.ID, second.ID)
		b.must(err)
		changes, err = b.w.Renames(ctx, changes)
		b.must(err)
		got := "no rename"
		if changes[0].Kind == Renamed {
			renamed++
			got = fmt.Sprintf("similarity index %d%%", changes[0].Similarity)
		}
		want := "no rename"
		for l := range strings.SplitSeq(worldtest.Git(t, b.dir, "--git-dir="+b.store, "diff", "-M", string(first.ID), string(second.ID)), "\n") {
			if strings.HasPrefix(l, "similarity") {
				want = l
			}
		}
		if got != want {
			t.Errorf("seed %d round %d: %s, git says %s", seed, round, got, want)
		}
		b.w.Close()
	}
	if renamed == 0 || renamed == 60 {
		t.Errorf("%d of 60 rounds were renames: nothing was compared", renamed)
	}
}

// gitConfuses reports whether git takes two different chunks of text for one: its rename
// detection (diffcore-delta.c) knows a chunk, a line or 64 bytes of it, by a hash
// below 107927.
func gitConfuses(text string) bool {
	known := map[uint32]string{}
	var one, two uint32
	start := 0
	for i := range len(text) {
		one, two = one<<7^two>>25, two<<7^one>>25
		one += uint32(text[i])
		if i+1-start < 64 && text[i] != '\n' {
			continue
		}
		hash, chunk := (one+two*0x61)%107927, text[start:i+1]
		if other, ok := known[hash]; ok && other != chunk {
			return true
		}
		known[hash] = chunk
		one, two, start = 0, 0, i+1
	}
	return false
}

// TestPatchApplies: git takes a patch between two random worlds, odd names,
// renames and missing last newlines included, and comes to the second.
func TestPatchApplies(t *testing.T) {
	worldtest.Heavy(t)
	ctx := context.Background()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 5))
	names := []string{"a", "b b", "c\nd", `e"f`, "é", "\xff", "d/a", "d/b", `g\h`}
	for round := range 25 {
		b := newBench(t, nil)
		mix := func() {
			for _, n := range names {
				switch r.IntN(3) {
				case 0:
					b.must(os.RemoveAll(b.path(n)))
				case 1:
					var s strings.Builder
					for range r.IntN(12) {
						fmt.Fprintf(&s, "line %d\n", r.IntN(9))
					}
					b.write(n, strings.TrimSuffix(s.String(), strings.Repeat("\n", r.IntN(2))))
				}
			}
		}
		b.write("keep", "1")
		mix()
		first := b.save()
		plain := filepath.Join(t.TempDir(), "plain")
		_, err := b.w.Fork(ctx, first.ID, plain)
		b.must(err)
		mix()
		second := b.save()
		changes, err := b.w.Diff(ctx, first.ID, second.ID)
		b.must(err)
		changes, err = b.w.Renames(ctx, changes)
		b.must(err)
		var patch strings.Builder
		b.must(b.w.Patch(ctx, &patch, changes))
		if patch.Len() > 0 {
			b.must(os.WriteFile(plain+".patch", []byte(patch.String()), 0o600))
			worldtest.Git(t, plain, "apply", "--whitespace=nowarn", plain+".patch")
		}
		got := look(t, plain)
		for p, what := range lookAtSnapshot(t, b.w, second.ID) {
			if !strings.HasPrefix(what, "dir ") && got[p] != what {
				t.Fatalf("seed %d round %d: %q is %q, want %q\n%s", seed, round, p, got[p], what, patch.String())
			}
		}
		b.w.Close()
	}
}

// TestRead: a snapshot's paths, with their bytes, long after they changed.
func TestRead(t *testing.T) {
	ctx := context.Background()
	b := newBench(t, nil)
	b.write("d/f", "content")
	b.write("d/..odd", "x")
	b.must(os.Symlink("d/f", b.path("link")))
	b.must(os.Mkdir(b.path("empty"), 0o700))
	s := b.save()
	b.must(os.RemoveAll(b.path("d")))
	b.save()
	for path, want := range map[string]string{"": "d empty link", ".": "d empty link", "d/": "d/..odd d/f", "./d": "d/..odd d/f", "d/f": "d/f", "empty": ""} {
		items, err := b.w.List(ctx, s.ID, path)
		b.must(err)
		var got []string
		for _, it := range items {
			got = append(got, it.Path)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q holds %q, want %q", path, got, want)
		}
	}
	for path, want := range map[string]string{"d/f": "content", "link": "d/f", "d/..odd": "x"} {
		var out strings.Builder
		b.must(b.w.Content(ctx, s.ID, path, &out))
		it, err := b.w.Stat(ctx, s.ID, path)
		if out.String() != want || err != nil || it.SizeBytes != int64(len(want)) {
			t.Errorf("%q: %q, %+v, %v", path, out.String(), it, err)
		}
	}
	for _, path := range []string{"absent", "../world/d", "/d/f", "d/f/g"} {
		if _, err := b.w.Stat(ctx, s.ID, path); !errors.Is(err, ErrNoPath) {
			t.Errorf("%q: %v", path, err)
		}
	}
	if err := b.w.Content(ctx, s.ID, "d", &strings.Builder{}); !errors.Is(err, ErrNoPath) {
		t.Errorf("a directory's content: %v", err)
	}
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
		s, err := b.w.Save(ctx, SaveOptions{
			Message: fmt.Sprintf("step %d: x", i), Parent: last, Ref: fmt.Sprint(i),
			Trailers: [][2]string{{"Seq", fmt.Sprint(i)}},
		})
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
	if len(list) != 3 || list[0].ID != last || fmt.Sprint(list[0].Steps) != "[2]" || !list[0].Current ||
		list[2].Message != "step 0: x" ||
		fmt.Sprint(list[0].Trailers) != "[[Seq 2]]" || list[1].Parents[0] != list[2].ID {
		t.Errorf("%+v", list)
	}
}

// TestLogOfWorlds: a log holds what its own world and task reached, or what all tasks did.
func TestLogOfWorlds(t *testing.T) {
	one := newBench(t, &Options{Task: "one"})
	two := &bench{TB: t, dir: one.dir + "-two", store: one.store}
	two.must(os.Mkdir(two.dir, 0o755))
	two.open(&Options{Task: "two"})
	one.write("a", "1")
	mine := one.save().ID
	step, err := one.w.Save(t.Context(), SaveOptions{Message: "step", Parent: mine, Ref: "1"})
	one.must(err)
	two.write("b", "2")
	theirs := two.save().ID
	log := func(b *bench, o *Options) (ids []ID, steps int) {
		t.Helper()
		b.open(o)
		list, err := b.w.Log(t.Context())
		b.must(err)
		for _, c := range list {
			ids = append(ids, c.ID)
			if c.Steps == nil || slices.Contains(c.Steps, "") {
				t.Errorf("steps %q", c.Steps)
			}
			steps += len(c.Steps)
		}
		slices.Sort(ids)
		return ids, steps
	}
	both := []ID{mine, theirs}
	slices.Sort(both)
	for _, tt := range []struct {
		name  string
		b     *bench
		o     Options
		want  []ID
		steps int
	}{
		{"a world", one, Options{Task: "none"}, []ID{mine}, 0},
		{"the other world", two, Options{Task: "none"}, []ID{theirs}, 0},
		{"and another task", two, Options{Task: "one"}, both, 1},
		{"all tasks", two, Options{Task: "none", AllTasks: true}, both, 2},
	} {
		if got, steps := log(tt.b, &tt.o); !slices.Equal(got, tt.want) || steps != tt.steps {
			t.Errorf("%s: %q with %d steps, want %q with %d; the step is %s", tt.name, got, steps, tt.want,
				tt.steps, step.ID)
		}
	}
}

package worldstate

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
)

// spoil changes a byte of a file, counted from its end where at is negative.
func (b *bench) spoil(path string, at int) {
	b.Helper()
	data, err := os.ReadFile(path)
	b.must(err)
	if at < 0 {
		at += len(data)
	}
	data[at] ^= 1
	b.must(os.WriteFile(path, data, 0o600))
}

// TestVerifyBesideGC: a collection that drops a task and puts packs together while a
// store is verified makes no problems; damage that stays is told all the same, however
// often the store changes meanwhile, and so is a damaged copy of what is intact
// elsewhere.
func TestVerifyBesideGC(t *testing.T) {
	b := newBench(t, nil)
	ids := b.steps(2)
	for _, c := range []struct {
		name, content string
		damaged, copy int
	}{
		{"whole", "of a task that stays", 0, 0},        // the removed packs are still open
		{"copy", "of a task that stays", 0, 1},         // the commit is saved twice, under one name
		{"object", "of another task that stays", 1, 1}, // the copy is still there
	} {
		b.taskOf("gone", 5)
		b.write("f", "of the task that is gone, "+c.name)
		_, err := b.w.Save(b.Context(), SaveOptions{Ref: "1", Parent: ids[0]})
		b.must(err)
		b.taskOf("cli", 6)
		b.write("f", c.content)
		var saved Snapshot
		files := b.packsOf(func() {
			saved, err = b.w.Save(b.Context(), SaveOptions{Ref: "stays-" + strings.Replace(c.name, "copy", "whole", 1), Parent: ids[0]}) // the other is no ancestor
			b.must(err)
		})
		looks := 0
		verifier := &bench{TB: t, dir: b.dir, store: b.store}
		verifier.open(&Options{Hook: func(at string) {
			if at != "verify-listed" {
				return
			}
			looks++
			switch {
			case c.name == "whole":
				r := b.gc(&GCOptions{Live: func(task string) bool { return task != "gone" }, MaxBytes: 1})
				if len(r.Dropped) != 1 {
					t.Errorf("dropped are %v: nothing is tested", r.Dropped)
				}
			case c.name != "whole":
				b.steps(1)
			}
		}})
		var pack *objects.Pack
		if c.name != "whole" {
			for _, f := range files {
				if p, err := objects.OpenPack(f); err == nil {
					pack = p
				}
			}
			h, _ := gitfmt.ParseHash(string(saved.ID))
			off, ok := pack.Find(h)
			if pack.Close(); !ok {
				t.Fatalf("%s: the commit is not in the pack", c.name)
			}
			b.spoil(pack.Path, int(off)+3)
		}
		r, err := verifier.w.Verify(b.Context())
		b.must(err)
		if r.OK != (c.damaged == 0) || looks != 1 || len(r.Problems) != c.damaged || len(r.DamagedCopies) != c.copy {
			t.Errorf("%s: looked %d times: %+v", c.name, looks, r)
		}
		b.must(verifier.w.Close())
	}
}

// TestVerifyDamagedCopy: an object that is damaged in one pack and intact in another is
// no problem, and named all the same, whether a ref leads to it or not, as git fsck does;
// a collection removes the copy. Bytes of a pack that belong to no object are checked, too.
func TestVerifyDamagedCopy(t *testing.T) {
	b := newBench(t, nil)
	b.write("f", "saved twice")
	b.save()
	nobodys := gitfmt.HashObject(gitfmt.BlobObject, []byte("of nobody"))
	two := func() *objects.Pack { // a pack of f and of a blob that nothing leads to
		out := objects.NewWriter(b.packDir(), func(string) {}, &objects.Pool{})
		defer out.Abort()
		b.must(out.Add(gitfmt.HashObject(gitfmt.BlobObject, []byte("saved twice")), gitfmt.BlobObject,
			[]byte("saved twice")))
		b.must(out.Add(nobodys, gitfmt.BlobObject, []byte("of nobody")))
		idx, err := out.Finish()
		b.must(err)
		p, err := objects.OpenPack(idx)
		b.must(err)
		t.Cleanup(p.Close)
		return p
	}
	first, second := two(), two()
	check := func(want string, problems, copies int) {
		t.Helper()
		b.open(nil)
		r, err := b.w.Verify(b.Context())
		b.must(err)
		if len(r.Problems) != problems || len(r.DamagedCopies) != copies || r.OK != (problems == 0) {
			t.Errorf("%s: %+v", want, r)
		}
		out, err := exec.Command("git", "--git-dir="+b.store, "fsck").CombinedOutput()
		if (err != nil) != (problems+copies > 0) {
			t.Errorf("%s: git fsck: %v: %s", want, err, out)
		}
	}
	check("whole", 0, 0)
	items := first.Entries()
	for i, it := range items {
		b.spoil(first.Path, int(it.Off)+3)
		check("copies", 0, i+1)
	}
	off, _ := second.Find(nobodys)
	b.spoil(second.Path, int(off)+3)
	check("no intact copy of what nothing leads to", 2, 1)
	b.gc(nil)
	check("collected", 0, 0)
	third := two()
	b.spoil(third.Path, 11) // the count of objects in its head
	check("a pack's head", 1, 0)
	b.spoil(third.Path, 11)
	check("a pack's head, mended", 0, 0)
	b.spoil(third.Path, -1)
	check("a pack's end", 1, 0)
}

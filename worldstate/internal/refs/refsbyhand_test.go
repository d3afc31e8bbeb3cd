package refs

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/worldtest"
)

// TestRefsByHand: what a user sets with git and packs counts as what they set and
// do not pack, and so does that they remove a ref that was packed before. One that
// was made since comes back, for it looks as after a power cut. What is saved next
// counts again, whatever then becomes of the loose files.
func TestRefsByHand(t *testing.T) {
	s := emptyRefs(t)
	worldtest.Git(t, s.Dir, "init", "-q", "--bare", ".")
	tree := strings.TrimSpace(worldtest.Git(t, s.Dir, "hash-object", "-w", "-t", "tree", os.DevNull))
	var ids [4]gitfmt.Hash
	for i := range ids {
		ids[i], _ = gitfmt.ParseHash(strings.TrimSpace(worldtest.Git(t, s.Dir, "commit-tree", "-m", fmt.Sprint(i), tree)))
	}
	want := make(map[string]gitfmt.Hash)
	update := func(set map[string]gitfmt.Hash) {
		t.Helper()
		s.cache.checked = false // another operation
		if err := s.Update(set); err != nil {
			t.Fatal(err)
		}
		maps.Copy(want, set)
	}
	check := func(when string) {
		t.Helper()
		maps.DeleteFunc(want, func(_ string, h gitfmt.Hash) bool { return h.IsZero() })
		s.cache.checked = false
		for who, store := range map[string]*Store{"this process": s, "a new one": {Dir: s.Dir}} {
			if got, err := store.All(); err != nil || sameRefs(got, want) != nil {
				t.Errorf("%s, %s: %v, %v", when, who, err, sameRefs(got, want))
			}
		}
	}
	old, young := make(map[string]gitfmt.Hash), make(map[string]gitfmt.Hash)
	for _, what := range []string{"set", "gone", "again"} {
		for _, name := range []string{"refs/heads/" + what, WorldPrefix + what, TaskPrefix + what + "/1"} {
			old[name], young[name+"-young"] = ids[0], ids[1]
		}
	}
	update(old)
	for i := range MaxRefUpdates - 1 {
		update(map[string]gitfmt.Hash{fmt.Sprintf("%st/%d", TaskPrefix, i): ids[0]})
	}
	if s.cache.tail.updates != 0 {
		t.Fatal("nothing was packed: nothing is tested")
	}
	for name := range old {
		update(map[string]gitfmt.Hash{name: ids[1]})
	}
	update(young)
	worldtest.Git(t, s.Dir, "pack-refs", "--all")
	check("packed as they were")
	by := func(name string) {
		switch {
		case strings.Contains(name, "gone"):
			worldtest.Git(t, s.Dir, "update-ref", "-d", name)
			if want[name] = (gitfmt.Hash{}); strings.Contains(name, "-young") {
				want[name] = ids[1]
			}
		case strings.Contains(name, "again"):
			worldtest.Git(t, s.Dir, "update-ref", "-d", name)
			fallthrough
		default:
			worldtest.Git(t, s.Dir, "update-ref", name, ids[2].String())
			want[name] = ids[2]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !strings.HasPrefix(name, TaskPrefix+"t/") {
			by(name)
		}
	}
	check("set")
	worldtest.Git(t, s.Dir, "pack-refs", "--all")
	check("packed")
	for name := range want {
		if strings.Contains(name, "again") {
			want[name] = ids[0] // as it was, once
			if strings.Contains(name, "-young") {
				want[name] = ids[1]
			}
			worldtest.Git(t, s.Dir, "update-ref", name, want[name].String())
		}
	}
	check("set once more")
	update(map[string]gitfmt.Hash{TaskPrefix + "t/3": ids[3]})
	check("after another update")
	for name := range old {
		update(map[string]gitfmt.Hash{name: ids[3], name + "-young": ids[3]})
	}
	check("saved")
	if err := os.RemoveAll(filepath.Join(s.Dir, "refs")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(s.Dir, "refs"), 0o700); err != nil {
		t.Fatal(err)
	}
	check("without loose files")
	for i := range 2 * MaxRefUpdates {
		update(map[string]gitfmt.Hash{fmt.Sprintf("%st/%d", TaskPrefix, 1000+i): ids[0]})
	}
	check("packed by us")
}

// TestRefByHandBeforeCrash: what a user has set and a save then sets anew is not
// the user's again where a power cut leaves their file.
func TestRefByHandBeforeCrash(t *testing.T) {
	for _, name := range []string{Latest, TaskPrefix + "t/1"} {
		s := emptyRefs(t)
		for i := range 3 {
			byHand := []byte(refID(100+i).String() + "\n")
			path := filepath.Join(s.Dir, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, byHand, 0o600)); err != nil {
				t.Fatal(err)
			}
			s.cache.forget()
			if got, err := s.All(); err != nil || got[name] != refID(100+i) {
				t.Errorf("%s set by hand: %v, %v", name, got, err)
			}
			if err := errors.Join(s.Update(map[string]gitfmt.Hash{name: refID(i)}), os.WriteFile(path, byHand, 0o600)); err != nil {
				t.Fatal(err)
			}
			if got, err := (&Store{Dir: s.Dir}).All(); err != nil || got[name] != refID(i) {
				t.Errorf("%s saved: %v, %v", name, got, err)
			}
		}
	}
}

// TestRefLogOfBefore: a line without what the refs were, as they once were written,
// counts whatever is packed.
func TestRefLogOfBefore(t *testing.T) {
	s := emptyRefs(t)
	for _, name := range []string{Latest, TaskPrefix + "t/1"} {
		rest := name + " " + refID(2).String()
		packed := "# pack-refs with: peeled fully-peeled sorted \n" + refID(1).String() + " " + name + "\n"
		if err := errors.Join(os.WriteFile(s.LogPath(), []byte(refLineCRC(rest)+" "+rest+"\n"), 0o600), os.WriteFile(s.PackedPath(), []byte(packed), 0o600)); err != nil {
			t.Fatal(err)
		}
		for _, when := range []string{"packed", "not packed"} {
			if got, err := (&Store{Dir: s.Dir}).All(); err != nil || got[name] != refID(2) {
				t.Errorf("%s, %s: %v, %v", name, when, got, err)
			}
			if err := os.RemoveAll(s.PackedPath()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestRefsPackedUnsorted: what stands in a packed-refs file that is not in the order
// of its names, as not every tool writes it, is not taken for removed.
func TestRefsPackedUnsorted(t *testing.T) {
	s := emptyRefs(t)
	names := []string{WorldPrefix + "w", Latest, TaskPrefix + "t/2", TaskPrefix + "t/1"}
	for i := range MaxRefUpdates + 2 {
		s.cache.checked = false
		set := map[string]gitfmt.Hash{names[i%2]: refID(i), names[2+i%2]: refID(i)}
		if err := s.Update(set); err != nil {
			t.Fatal(err)
		}
	}
	want, err := s.All()
	if err != nil || s.cache.tail.updates != 2 || len(want) != len(names) {
		t.Fatalf("%d updates since the refs were packed, %v: nothing is tested", s.cache.tail.updates, err)
	}
	byHand := "# pack-refs with: peeled \n"
	for _, name := range names {
		byHand += want[name].String() + " " + name + "\n"
	}
	loose := filepath.Join(s.Dir, "refs")
	if err := errors.Join(os.Remove(s.PackedPath()), os.WriteFile(s.PackedPath(), []byte(byHand), 0o600), os.RemoveAll(loose), os.Mkdir(loose, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"packed", "saved"} {
		s.cache.checked = false
		for who, store := range map[string]*Store{"this process": s, "a new one": {Dir: s.Dir}} {
			if got, err := store.All(); err != nil || !maps.Equal(got, want) {
				t.Errorf("%s, %s: %v, want %v, %v", when, who, got, want, err)
			}
		}
		want[names[0]] = refID(100)
		if err := s.Update(map[string]gitfmt.Hash{names[0]: refID(100)}); err != nil {
			t.Fatal(err)
		}
	}
}

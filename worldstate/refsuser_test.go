package worldstate

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/refs"
	"anamnesis/worldstate/worldtest"
)

// TestPackedTag: a tag of a user's in the store leads to its snapshot after the
// refs were packed, by us or first by git, as before.
func TestPackedTag(t *testing.T) {
	b := newBench(t, nil)
	b.write("a", "1")
	first := b.save()
	worldtest.Git(t, b.dir, "--git-dir="+b.store, "tag", "-a", "-m", "this one", "mine", string(first.ID))
	want := string(first.ID) + " refs/tags/mine^{}\n"
	for _, by := range []string{"us", "git and us"} {
		b.steps(refs.MaxRefUpdates + 5)
		if data, err := os.ReadFile(b.w.refs.PackedPath()); err != nil || !strings.Contains(string(data), " refs/tags/mine\n") || !strings.Contains(string(data), refs.PackedSum) {
			t.Fatalf("the tag was not packed by us: %v\n%s", err, data)
		}
		if got := worldtest.Git(t, b.dir, "--git-dir="+b.store, "show-ref", "-d", "--tags"); !strings.HasSuffix(got, want) {
			t.Errorf("packed by %s: git shows %q, want at the end %q", by, got, want)
		}
		worldtest.Git(t, b.dir, "--git-dir="+b.store, "pack-refs", "--all")
	}
}

// TestGCKeepsRootsUnread: a collection that cannot read all refs ends, and
// removes nothing.
func TestGCKeepsRootsUnread(t *testing.T) {
	b := newBench(t, nil)
	ids := b.steps(refs.MaxRefUpdates + 5)
	path := b.w.refs.PackedPath()
	whole, err := os.ReadFile(path)
	b.must(err)
	packs := b.packs()
	lines := bytes.SplitAfter(whole, []byte("\n"))
	for n, cut := range [][]byte{
		whole[:len(whole)-1], bytes.Join(lines[:len(lines)-2], nil), nil, lines[0], bytes.Join(lines[:5], nil),
		bytes.Replace(whole, []byte(refs.TaskPrefix), []byte(refs.WorldPrefix), 1),
	} {
		b.must(os.WriteFile(path, cut, 0o600))
		if _, err := GC(b.Context(), b.store, nil); !errors.Is(err, gitfmt.ErrCorrupt) {
			t.Errorf("%d: %v", n, err)
		}
	}
	b.must(os.WriteFile(path, whole, 0o600))
	if b.packs() != packs {
		t.Errorf("%d packs, were %d", b.packs(), packs)
	}
	b.gc(nil)
	b.hasAll(ids)
	b.fsck()
}

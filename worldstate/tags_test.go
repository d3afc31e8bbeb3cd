package worldstate

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"anamnesis/worldstate/internal/gitfmt"

	"anamnesis/worldstate/worldtest"
)

// TestTagsOfPerson: what a user's tags in a store lead to, a snapshot or not, is
// kept by a collection and read by Verify.
func TestTagsOfPerson(t *testing.T) {
	for _, packed := range []bool{false, true} {
		b := newBench(t, nil)
		ids := b.steps(3)
		run := func(args ...string) string {
			t.Helper()
			return strings.TrimSpace(worldtest.Git(t, b.dir, append([]string{"--git-dir=" + b.store}, args...)...))
		}
		run("tag", "-a", "-m", "this one", "step", string(ids[1]))
		run("tag", "-a", "-m", "that tag", "again", "step")
		own := run("commit-tree", "-m", "mine", "-p", string(ids[0]), string(ids[2])+"^{tree}")
		run("tag", "-a", "-m", "my own", "own", own)
		b.write("notes", "of mine")
		run("tag", "file", run("hash-object", "-w", b.path("notes")))
		run("tag", "tree", string(ids[0])+"^{tree}")
		if packed {
			run("gc", "-q")
		}
		for _, id := range append(ids[:3:3], ID(own)) {
			if got, err := b.w.Resolve(b.Context(), string(id[:12])); err != nil || got != id {
				t.Errorf("packed %v: %.12s is %s, %v; want %s", packed, id, got, err, id)
			}
		}
		if got, err := b.w.Resolve(b.Context(), run("rev-parse", "again")[:12]); !errors.Is(err, ErrUnknown) {
			t.Errorf("packed %v: a tag is the snapshot %s, %v", packed, got, err)
		}
		before := run("show-ref", "--tags", "-d")
		tagged := false
		late := func(at string) {
			if at == "gathered" && !tagged {
				run("tag", "-a", "-m", "late", "zz-late", "step")
				before, tagged = run("show-ref", "--tags", "-d"), true
			}
		}
		for range 2 {
			b.fsck()
			b.gc(&GCOptions{Live: func(string) bool { return false }, MaxBytes: 1, Hook: late})
		}
		b.fsck()
		if after := run("show-ref", "--tags", "-d"); after != before {
			t.Errorf("packed %v: tags\n%s\nwere\n%s", packed, after, before)
		}
		if got := run("show", "file") + run("log", "-1", "--format=%s", "own"); got != "of mine"+"mine" {
			t.Errorf("packed %v: %q", packed, got)
		}
	}
}

// TestTagsOfPersonGone: what a user's tag leads to and is gone or rotten is a problem of
// that tag, and no collection is made of the rest.
func TestTagsOfPersonGone(t *testing.T) {
	b := newBench(t, nil)
	id := b.save().ID
	run := func(args ...string) string {
		t.Helper()
		return strings.TrimSpace(worldtest.Git(t, b.dir, append([]string{"--git-dir=" + b.store}, args...)...))
	}
	run("tag", "-a", "-m", "this one", "step", string(id))
	run("tag", "-a", "-m", "that tag", "again", "step")
	b.write("notes", "of mine")
	run("tag", "file", run("hash-object", "-w", b.path("notes")))
	loose := func(object string) string { return filepath.Join(b.store, "objects", object[:2], object[2:]) }
	b.write("others", "of another")
	file := loose(run("rev-parse", "file"))
	b.must(os.Rename(loose(run("hash-object", "-w", b.path("others"))), file)) // it has rotted
	b.must(os.Remove(loose(run("rev-parse", "step"))))
	r, err := b.w.Verify(b.Context())
	b.must(err)
	if r.OK || len(r.Problems) != 2 || r.Problems[0].Path != "refs/tags/again" || r.Problems[1].Path != "refs/tags/file" {
		t.Errorf("problems are %+v", r.Problems)
	}
	remedy := func(ref string) string {
		return "'git --git-dir=" + b.store + " update-ref -d " + ref + "' removes that ref"
	}
	if got, err := b.w.Resolve(b.Context(), string(id[:12])); err != nil || got != id {
		t.Errorf("beside broken tags %.12s is %s, %v", id, got, err)
	}
	if _, err := b.w.Resolve(b.Context(), "0000000"); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), " leads there; 'git --git-dir="+b.store+" update-ref -d refs/tags/") {
		t.Errorf("an id that nothing has: %v", err)
	}
	var removed []string
	for range 2 { // whichever it comes upon first
		_, err := GC(b.Context(), b.store, nil)
		if !errors.Is(err, gitfmt.ErrCorrupt) {
			t.Fatalf("a collection: %v", err)
		}
		_, ref, _ := strings.Cut(err.Error(), " update-ref -d ")
		ref, _, _ = strings.Cut(ref, "'")
		if !strings.HasSuffix(err.Error(), ": "+ref+" leads there; "+remedy(ref)) {
			t.Fatalf("a collection: %v", err)
		}
		run("update-ref", "-d", ref)
		removed = append(removed, ref)
	}
	slices.Sort(removed)
	if fmt.Sprint(removed) != "[refs/tags/again refs/tags/step]" {
		t.Errorf("removed were %v", removed)
	}
	b.gc(nil)
	b.must(b.w.Has(b.Context(), id))
}

// TestTagWhileCollecting: a tag whose ref comes when the collection has looked for the
// last time is there all the same, and so is what lies about loose: it is git's.
func TestTagWhileCollecting(t *testing.T) {
	b := newBench(t, nil)
	id := string(b.save().ID)
	run := func(args ...string) string {
		t.Helper()
		return strings.TrimSpace(worldtest.Git(t, b.dir, append([]string{"--git-dir=" + b.store}, args...)...))
	}
	b.write("notes", "long ago")
	old := run("hash-object", "-w", b.path("notes"))
	file := filepath.Join(b.store, "objects", old[:2], old[2:])
	b.must(os.Chtimes(file, time.Now().AddDate(-1, 0, 0), time.Now().AddDate(-1, 0, 0)))
	b.gc(&GCOptions{Hook: func(at string) {
		if at == "repacked" {
			run("tag", "-a", "-m", "late", "late", id)
		}
	}})
	b.gc(nil)
	if got := run("rev-parse", "late^{commit}"); got != id {
		t.Errorf("the tag is of %s, want %s", got, id)
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("a loose object is gone: %v", err)
	}
	b.fsck()
}

// TestSeedBesideLost: what was borrowed is copied beside another
// directory's snapshot that is lost.
func TestSeedBesideLost(t *testing.T) {
	b := newBench(t, nil)
	b.write("f", "committed")
	b.repositoryOf()
	b.w.adopts = &adopting{done: make(chan struct{})} // so that nothing is copied yet
	id := b.save().ID
	other := &bench{TB: t, dir: t.TempDir(), store: b.store}
	other.open(nil)
	other.w.adopts = b.w.adopts
	b.lose(b.packsOf(func() { other.save() }))
	close(b.w.adopts.done)
	b.w.adopts, other.w.adopts = nil, nil
	b.save()
	b.waitAdopted()
	b.must(os.RemoveAll(b.path(".git")))
	b.open(nil)
	b.must(b.w.Has(b.Context(), id))
}

// TestSeedBesideTags: what was borrowed is copied beside a user's tag, too; it
// would go with their repository.
func TestSeedBesideTags(t *testing.T) {
	b := newBench(t, nil)
	b.write("f", "committed")
	b.repositoryOf()
	b.w.adopts = &adopting{done: make(chan struct{})} // so that nothing is copied yet
	id := b.save().ID
	worldtest.Git(t, b.dir, "--git-dir="+b.store, "tag", "-a", "-m", "this one", "step", string(id))
	close(b.w.adopts.done)
	b.w.adopts = nil
	b.save()
	b.waitAdopted()
	b.must(os.RemoveAll(b.path(".git")))
	b.open(nil)
	b.must(b.w.Has(b.Context(), id))
	b.fsck()
}

package gc_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gc"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/refs"
)

const (
	stepA, stepB, stepC = refs.TaskPrefix + "a/1", refs.TaskPrefix + "b/1", refs.TaskPrefix + "c/1"
	world               = refs.WorldPrefix + "w"
)

// stored is a store with one pack a snapshot: of the task a, of b, which is the oldest, and of c,
// which is the newest and the latest.
type stored struct {
	dir     string
	commits map[string]gitfmt.Hash // by the ref of the step
	bytes   int64                  // of one snapshot's objects
}

func newStored(t *testing.T, worldAt string) *stored {
	t.Helper()
	st := &stored{dir: t.TempDir(), commits: make(map[string]gitfmt.Hash)}
	for _, d := range []string{"refs/heads", "objects/pack", fsys.StateDir} {
		if err := os.MkdirAll(filepath.Join(st.dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	named := &refs.Store{Dir: st.dir}
	err := errors.Join(os.WriteFile(filepath.Join(st.dir, "HEAD"), []byte("ref: refs/heads/latest\n"), 0o600),
		named.UpgradeFormat())
	s := objects.New(st.dir)
	defer s.Close()
	for i, step := range []string{stepB, stepA, stepC} {
		w := objects.NewWriter(s.PackDir(), func(string) {}, &objects.Pool{})
		add := func(kind gitfmt.ObjectType, data []byte) gitfmt.Hash {
			h := gitfmt.HashObject(kind, data)
			err = errors.Join(err, w.Add(h, kind, data))
			return h
		}
		text := make([]byte, 4000) // more than an index takes; it does not compress
		rand.NewChaCha8([32]byte{byte(i)}).Read(text)
		blob := add(gitfmt.BlobObject, text)
		tree := add(gitfmt.TreeObject, gitfmt.EncodeTree([]gitfmt.TreeItem{{Mode: "100644", Name: "f", Hash: blob}}, 0))
		c := gitfmt.Commit{Tree: tree, Time: time.Unix(int64(1000+i), 0), Message: step, World: "w"}
		st.commits[step] = add(gitfmt.CommitObject, c.Encode())
		err = errors.Join(err, s.Publish(w, 0))
		var bytes int64
		for _, h := range []gitfmt.Hash{blob, tree, st.commits[step]} {
			_, it := s.Locate(h)
			bytes += it.Size
		}
		st.bytes = max(st.bytes, bytes)
	}
	set := maps.Clone(st.commits)
	set[refs.Latest], set[world] = st.commits[stepC], st.commits[worldAt]
	if err := errors.Join(err, named.Update(set)); err != nil {
		t.Fatal(err)
	}
	return st
}

// left returns the refs and the snapshots that are there, and the number of packs.
func (st *stored) left(t *testing.T) (names, snapshots []string, packs int) {
	t.Helper()
	all, err := (&refs.Store{Dir: st.dir}).All()
	files, _ := filepath.Glob(filepath.Join(st.dir, "objects/pack/*.pack"))
	s := objects.New(st.dir)
	defer s.Close()
	if err := errors.Join(err, s.Refresh()); err != nil {
		t.Fatal(err)
	}
	for _, step := range []string{stepA, stepB, stepC} {
		if c, err := s.Commit(st.commits[step]); err == nil && s.Has(c.Tree) {
			snapshots = append(snapshots, step)
		}
	}
	return slices.Sorted(maps.Keys(all)), snapshots, len(files)
}

// short replaces the prefixes of refs.
func short(names []string) string {
	return strings.NewReplacer(refs.TaskPrefix, "", refs.Latest, "latest", world, "world", "/1",
		"").Replace(strings.Join(names, " "))
}

// TestRun: tasks that exist keep their snapshots, those that no longer exist as far as they fit,
// the newest first.
func TestRun(t *testing.T) {
	t.Parallel()
	live := func(tasks string) func(string) bool {
		return func(task string) bool { return strings.Contains(tasks, task) }
	}
	for _, tt := range []struct {
		name      string
		world     string // the step at which the world is known
		opts      func(st *stored) gc.Options
		dropped   string
		kept      string
		refs      string
		snapshots string
		packs     int
		over      bool
	}{
		{"all tasks exist", stepA, func(*stored) gc.Options { return gc.Options{} },
			"", "", "a b c latest world", "a b c", 1, false},
		{"no cap", stepA, func(*stored) gc.Options { return gc.Options{Live: live("a")} },
			"", "b c", "a b c latest world", "a b c", 1, false},
		{"one does not fit", stepA, func(st *stored) gc.Options { return gc.Options{Live: live("a"), MaxBytes: st.bytes*2 + 3000} },
			"b", "c", "a c latest world", "a c", 1, false},
		{"none fits", stepA, func(*stored) gc.Options { return gc.Options{Live: live("a"), MaxBytes: 1} },
			"b c", "", "a world", "a", 1, true},
		{"a named snapshot stays", stepA, func(st *stored) gc.Options {
			return gc.Options{Live: live("a"), MaxBytes: 1, Keep: []gitfmt.ID{gitfmt.ID(st.commits[stepB].String())}}
		}, "b c", "", "a world", "a b", 1, true},
		{"a world's snapshot stays", stepB, func(*stored) gc.Options { return gc.Options{Live: live("a"), MaxBytes: 1} },
			"b c", "", "a world", "a b", 1, true},
		{"nothing to restore", stepA, func(*stored) gc.Options { return gc.Options{Live: live(""), MaxBytes: 1} },
			"a b c", "", "", "", 0, false},
		{"a dry run", stepA, func(*stored) gc.Options { return gc.Options{Live: live("a"), MaxBytes: 1, DryRun: true} },
			"b c", "", "a b c latest world", "a b c", 3, true},
	} {
		st := newStored(t, tt.world)
		opts := tt.opts(st)
		opts.Hook = func(string) {}
		r, err := gc.Run(t.Context(), st.dir, opts, func() ([]gitfmt.Hash, error) { return nil, nil })
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		names, snapshots, packs := st.left(t)
		if strings.Join(r.Dropped, " ") != tt.dropped || strings.Join(r.Kept, " ") != tt.kept || r.Over != tt.over {
			t.Errorf("%s: %+v", tt.name, r)
		}
		if short(names) != tt.refs || short(snapshots) != tt.snapshots || packs != tt.packs {
			t.Errorf("%s: %s, of %s, in %d packs; want %s, of %s, in %d", tt.name, short(names), short(snapshots),
				packs, tt.refs, tt.snapshots, tt.packs)
		}
	}
}

// TestRunAgain: a store that was collected stays as it is.
func TestRunAgain(t *testing.T) {
	t.Parallel()
	st := newStored(t, stepA)
	for range 2 {
		opts := gc.Options{Hook: func(string) {}}
		if r, err := gc.Run(t.Context(), st.dir, opts, func() ([]gitfmt.Hash, error) { return nil, nil }); err != nil ||
			r.Objects != 9 || r.Snapshots != 3 {
			t.Fatalf("%+v, %v", r, err)
		}
		if names, snapshots, packs := st.left(t); len(names) != 5 || len(snapshots) != 3 || packs != 1 {
			t.Errorf("%q, of %q, in %d packs", names, snapshots, packs)
		}
	}
}

// TestRunRefuses: a store that a user's git works in is not collected.
func TestRunRefuses(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"worktrees", "logs", "index", "HEAD"} {
		st := newStored(t, stepA)
		if err := os.WriteFile(filepath.Join(st.dir, name), []byte(st.commits[stepA].String()+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := gc.Run(t.Context(), st.dir, gc.Options{Hook: func(string) {}},
			func() ([]gitfmt.Hash, error) { return nil, nil })
		if _, _, packs := st.left(t); !errors.Is(err, gitfmt.ErrRefused) || packs != 3 {
			t.Errorf("with %s: %v, %d packs", name, err, packs)
		}
	}
}

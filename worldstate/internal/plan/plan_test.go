package plan_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/plan"
	"anamnesis/worldstate/internal/scan"
	"anamnesis/worldstate/internal/tree"
)

// A world is text: paths and contents, "a=1 d/b=2 e/", where a directory ends in a slash and a
// link is "l>target".

// site is a directory with a store for plans.
type site struct {
	testing.TB
	dir     string
	objects *objects.Store
	track   *scan.Tracker
}

func newSite(t testing.TB) *site {
	t.Helper()
	s := &site{TB: t, dir: t.TempDir(), objects: objects.New(t.TempDir())}
	s.must(os.MkdirAll(s.objects.PackDir(), 0o755))
	t.Cleanup(s.objects.Close)
	s.track = scan.New(s.dir, filepath.Join(t.TempDir(), "cache"), s.objects, map[string]bool{"excluded": true},
		scan.Options{FileLimitBytes: 100})
	t.Cleanup(s.track.Close)
	return s
}

func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// write makes the directory a world.
func (s *site) write(world string) {
	s.Helper()
	for word := range strings.FieldsSeq(world) {
		switch path, text, isFile := strings.Cut(word, "="); {
		case isFile:
			s.must(os.MkdirAll(filepath.Dir(filepath.Join(s.dir, path)), 0o755))
			s.must(os.WriteFile(filepath.Join(s.dir, path), []byte(text), 0o644))
		case strings.Contains(word, ">"):
			path, target, _ := strings.Cut(word, ">")
			s.must(os.Symlink(target, filepath.Join(s.dir, path)))
		default:
			s.must(os.MkdirAll(filepath.Join(s.dir, word), 0o755))
		}
	}
}

// listing returns a world's listing, whose contents the store holds afterwards.
func (s *site) listing(world string) *tree.Listing {
	s.Helper()
	out := objects.NewWriter(s.objects.PackDir(), func(string) {}, &objects.Pool{})
	entries := map[string]tree.Entry{}
	put := func(path, text string, kind tree.Kind, perm uint32) {
		h := gitfmt.HashObject(gitfmt.BlobObject, []byte(text))
		if !s.objects.Owns(h) {
			s.must(out.Add(h, gitfmt.BlobObject, []byte(text)))
		}
		entries[path] = tree.Entry{Path: path, State: tree.State{Kind: kind, Perm: perm, Hash: h}}
	}
	for word := range strings.FieldsSeq(world) {
		path, text, isFile := strings.Cut(word, "=")
		link, target, isLink := strings.Cut(word, ">")
		switch {
		case isFile:
			put(path, text, tree.KindFile, 0o644)
		case isLink:
			path = link
			put(path, target, tree.KindLink, 0)
		default:
			path = strings.TrimSuffix(word, "/")
			entries[path] = tree.Entry{Path: path, State: tree.State{Kind: tree.KindDir, Perm: 0o755}}
		}
		fsys.Ancestors(path, func(d string) bool {
			entries[d] = tree.Entry{Path: d, State: tree.State{Kind: tree.KindDir, Perm: 0o755}}
			return true
		})
	}
	s.must(s.objects.Publish(out, 0))
	var list []tree.Entry
	for _, e := range entries {
		list = append(list, e)
	}
	return tree.NewListing(list)
}

// wanted is what a plan is asked for.
type wanted struct {
	now    string
	target string
	base   string // "" for the present
	skips  []gitfmt.Skip
	o      plan.Options
	edits  []string // worlds "0", "1" and so on; unless o has edits, each leads from one to the next
}

func (s *site) make(w wanted) (plan.Plan, error) {
	s.Helper()
	root, err := fsys.OpenRoot(s.dir)
	s.must(err)
	defer root.Close()
	now, err := s.track.Rescan(context.Background(), root, nil)
	s.must(err)
	worlds := map[gitfmt.ID]*tree.Listing{}
	in := plan.Input{
		Root: root.Fd, Now: now, Track: s.track, Objects: s.objects,
		Target: &gitfmt.Commit{Id: gitfmt.Hash{1}, Skips: w.skips},
		Want:   s.listing(w.target), Base: now.Listing, Options: w.o,
		Listing: func(id gitfmt.ID) (*tree.Listing, error) { return worlds[id], nil },
	}
	in.Options.Base = "base"
	if w.base != "" {
		in.Base = s.listing(w.base)
	}
	for i, world := range w.edits {
		id := gitfmt.ID(fmt.Sprint(i))
		worlds[id] = s.listing(world)
		if i > 0 && len(w.o.Edits) == 0 {
			in.Options.Edits = append(in.Options.Edits, plan.Edit{From: gitfmt.ID(fmt.Sprint(i - 1)), To: id})
		}
	}
	in.Policy, err = tree.LoadPolicy(in.Target, in.Want, func(path string, st tree.State) ([]byte, error) {
		return s.objects.Read(st.Hash, gitfmt.BlobObject, path)
	})
	s.must(err)
	return plan.Make(context.Background(), in)
}

// described returns a plan in one line.
func described(p plan.Plan) string {
	var out []string
	for _, path := range p.Write {
		out = append(out, "write "+path)
	}
	for _, path := range p.Delete {
		out = append(out, "delete "+path)
	}
	for _, k := range p.Keep {
		out = append(out, "keep "+k.Path+" ("+k.Reason+")")
	}
	for _, path := range p.Conflicts {
		out = append(out, "conflict "+path)
	}
	for _, u := range p.Unchanged {
		out = append(out, "unchanged "+u.Path+" ("+u.Reason+")")
	}
	if p.Lost {
		out = append(out, "lost")
	}
	return strings.Join(out, "; ")
}

func TestPlan(t *testing.T) {
	t.Parallel()
	const all = "a=1 d/b=2 e/"
	for _, c := range []struct {
		name string
		wanted
		want string
	}{
		{"the same", wanted{now: all, target: all}, ""},
		{"content, a removed and a new file", wanted{now: "a=2 c=3 e/ d/", target: all}, "write a; write d/b; delete c"},
		{"a directory with its content", wanted{now: "a=1 d/b=2 e/ n/x=1 n/y=1", target: all}, "delete n/; delete n/x; delete n/y"},
		{"a file where the target has a directory", wanted{now: "a=1 d=2 e/", target: all}, "write d/; write d/b"},
		{"a directory where the target has a file", wanted{now: "a/x=1 d/b=2 e/", target: all}, "write a; delete a/x"},
		{"a link", wanted{now: "l>here", target: "l>there"}, "write l"},

		// Changes since the base are a user's.
		{"edited", wanted{now: "a=2 d/b=9", target: "a=1 d/b=1", base: "a=1 d/b=9"}, "write d/b; keep a (" + gitfmt.KeepEdited + ")"},
		{"created", wanted{now: "a=1 n=1", target: "a=2", base: "a=1"}, "write a; keep n (" + gitfmt.KeepCreated + ")"},
		{"deleted", wanted{now: "a=1", target: "a=2 b=2", base: "a=1 b=1"}, "write a; keep b (" + gitfmt.KeepDeleted + ")"},
		{"overwritten", wanted{now: "a=2 n=1", target: "a=1", base: "a=1", o: plan.Options{OverwriteEdits: true}}, "write a; delete n"},
		{"all files gone", wanted{now: "", target: "a=1", base: "a=1"}, "write a; lost"},
		{"a created file keeps its directory", wanted{now: "d/b=1 d/n=1", target: "a=1", base: "d/b=1"},
			"write a; delete d/b; keep d/ (" + gitfmt.KeepHolds + "); keep d/n (" + gitfmt.KeepCreated + ")"},
		{"a created file in the way", wanted{now: "d=1 x=1", target: "d/b=1 x=1", base: "x=1"},
			"keep d (" + gitfmt.KeepCreated + "); keep d/b (" + gitfmt.KeepBlocked + ")"},

		{"a deleted directory that the target needs", wanted{now: "a=1", target: "a=1 d/b=1", base: "a=1 d/"}, "write d/; write d/b"},

		// Some paths only.
		{"a path", wanted{now: "a=2 b=2", target: "a=1 b=1", o: plan.Options{Paths: []string{"b"}}}, "write b"},
		{"a path in a missing directory", wanted{now: "a=1", target: all, o: plan.Options{Paths: []string{"d/b"}}}, "write d/; write d/b"},
		{"an unchanged path", wanted{now: "a=1 b=2", target: "a=1 b=1", o: plan.Options{Paths: []string{"a"}}}, "unchanged a (" + gitfmt.SameAsTarget + ")"},

		// Ignored, excluded and unread paths.
		{"ignored at both ends", wanted{now: ".gitignore=x a=2 x=1", target: ".gitignore=x a=1"}, "write a"},
		{"ignored by the target", wanted{now: "a=1 x=1", target: ".gitignore=x a=1"}, "write .gitignore; keep x (" + gitfmt.KeepIgnored + ")"},
		{"ignored now", wanted{now: ".gitignore=x x=1", target: "a=1"}, "write a; delete .gitignore; keep x (" + gitfmt.KeepIgnoredNow + ")"},
		{"ignored now, and the target has it", wanted{now: ".gitignore=x x=2", target: "x=1"}, "delete .gitignore; keep x (" + gitfmt.KeepNoBytes + ")"},
		{"ignored now, gone, and the target has it", wanted{now: ".gitignore=x", target: "x=1"}, "write x; delete .gitignore"},
		{"an ignored path, asked for", wanted{now: ".gitignore=x x=2", target: ".gitignore=x", o: plan.Options{Paths: []string{"x"}}}, "unchanged x (" + gitfmt.NeverHeld + ")"},
		{"ignored in a directory", wanted{now: ".gitignore=x d/x=1 d/b=1", target: ".gitignore=x"}, "delete d/b; keep d/ (" + gitfmt.KeepHolds + ")"},
		{"excluded", wanted{now: "a=1 excluded/x=1", target: "a=2"}, "write a"},
		{"excluded, and the target has it", wanted{now: "a=1", target: "a=2 excluded/x=1"}, "write a"},
		{"a file that is ignored where the target has a directory", wanted{now: ".gitignore=d d=1", target: "d/b=1"},
			"delete .gitignore; keep d (" + gitfmt.KeepNoBytes + "); keep d/b (" + gitfmt.KeepBlocked + ")"},
		{"ignored now, not asked for", wanted{now: ".gitignore=x a=2 x=1", target: "a=1", o: plan.Options{Paths: []string{"a"}}}, "write a"},
		{"a repository in a directory", wanted{now: "d/.git/HEAD=x d/b=1", target: "a=1"}, "write a; delete d/b; keep d/ (" + gitfmt.KeepHolds + ")"},
		{"not read when the target was saved", wanted{now: "d/b=1", target: "a=1", skips: []gitfmt.Skip{{Path: "d", Reason: "unreadable"}}},
			"write a; keep d/ (" + gitfmt.KeepUnread + "); keep d/b (" + gitfmt.KeepUnread + ")"},
		{"too large now", wanted{now: "a=" + strings.Repeat("x", 101), target: "a=1"}, "keep a (larger than the limit of 100 bytes)"},

		// Changes of a user between the target and now.
		{"an edit stands", wanted{now: "a=2 b=9", target: "a=1 b=1", edits: []string{"a=1 b=1", "a=2 b=1"}}, "write b; keep a (" + gitfmt.KeepMade + ")"},
		{"an edit, changed again", wanted{now: "a=3", target: "a=1", edits: []string{"a=1", "a=2"}}, "write a; keep a (" + gitfmt.KeepConflict + "); conflict a"},
		{"a deletion stands", wanted{now: "b=1", target: "a=1 b=1", edits: []string{"a=1 b=1", "b=1"}}, "keep a (" + gitfmt.KeepMade + ")"},
		{"a deletion stands, of the path that is asked for", wanted{now: "b=1", target: "a=1 b=1", edits: []string{"a=1 b=1", "b=1"},
			base: "b=1", o: plan.Options{Paths: []string{"a"}}}, "keep a (" + gitfmt.KeepMade + ")"},
		{"an edit undone by the user", wanted{now: "a=2", target: "a=1", edits: []string{"a=1", "a=2", "a=1"}}, "write a"},
		{"the later edit wins", wanted{now: "a=3", target: "b=1", edits: []string{"b=1", "a=2 b=1", "b=1 a=3"}}, "write b; keep a (" + gitfmt.KeepMade + ")"},
		{"an edit needs its directory", wanted{now: "", target: "b=1", edits: []string{"b=1", "b=1 d/n=1"}, base: "b=1"},
			"write b; write d/; write d/n; keep d/n (" + gitfmt.KeepMade + "); lost"},
		{"an edit of an ignored path", wanted{now: ".gitignore=x b=1 x=2", target: "b=1", edits: []string{"b=1", "b=1 x=2"}},
			"delete .gitignore; keep x (" + gitfmt.KeepMade + ")"},
		{"an edit made a file in the way", wanted{now: "d=1", target: "d/b=1", edits: []string{"", "d=1"}},
			"keep d (" + gitfmt.KeepMade + "); keep d/b (" + gitfmt.KeepBlocked + ")"},
		{"edits that exclude each other", wanted{now: "b=1", target: "b=1", edits: []string{"b=1", "b=1 d=1", "b=1 d/n=1"},
			o: plan.Options{Edits: []plan.Edit{{From: "0", To: "1"}, {From: "0", To: "2"}}}},
			"write d/; write d/n; keep d/n (" + gitfmt.KeepConflict + "); conflict d/n"},
		{"edits that exclude each other, the other way round", wanted{now: "b=1", target: "b=1", edits: []string{"b=1", "b=1 d=1", "b=1 d/n=1"},
			o: plan.Options{Edits: []plan.Edit{{From: "0", To: "2"}, {From: "0", To: "1"}}}},
			"write d; keep d (" + gitfmt.KeepConflict + "); conflict d"},
		{"a file that a later edit needs as a directory", wanted{now: "b=1", target: "b=1", edits: []string{"b=1", "b=1 d=1", "b=1 d/n=1"},
			o: plan.Options{Edits: []plan.Edit{{From: "0", To: "1"}, {From: "0", To: "2", Only: []string{"d/n"}}}}},
			"write d/; write d/n; keep d/n (" + gitfmt.KeepConflict + "); conflict d/n"},
		{"an interrupted restore is no edit", wanted{now: "a=2", target: "a=1", edits: []string{"a=1", "a=2", "a=2"},
			o: plan.Options{Edits: []plan.Edit{{From: "0", To: "1", Or: "2"}}}}, "write a"},
		{"an edit of some paths", wanted{now: "a=2 b=2", target: "a=1 b=1", edits: []string{"a=1 b=1", "a=2 b=2"},
			o: plan.Options{Edits: []plan.Edit{{From: "0", To: "1", Only: []string{"a"}}}}},
			"write b; keep a (" + gitfmt.KeepMade + ")"},
		{"an unsaved edit", wanted{now: "a=2", target: "a=1", base: "a=1", o: plan.Options{Edits: []plan.Edit{{}}}}, "keep a (" + gitfmt.KeepMade + ")"},
		{"an edit by nobody knows whom", wanted{now: "a=2", target: "a=1", base: "a=1", o: plan.Options{Edits: []plan.Edit{{Unknown: true}}}},
			"keep a (" + gitfmt.KeepUnsure + ")"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.write(c.now)
			p, err := s.make(c.wanted)
			s.must(err)
			if got := described(p); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if again, err := s.make(c.wanted); err != nil || again.Hash != p.Hash {
				t.Errorf("planned again: hash %s, %v, want %s", again.Hash, err, p.Hash)
			}
		})
	}
}

// TestPlanHash: a plan of other actions has another hash.
func TestPlanHash(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.write("a=1 b=1")
	hashes := map[string]string{}
	for _, target := range []string{"a=1 b=1", "a=2 b=1", "a=3 b=1", "a=1", "a=1 b=1 c=1"} {
		p, err := s.make(wanted{target: target})
		s.must(err)
		if other, twice := hashes[p.Hash]; twice {
			t.Errorf("%q and %q have one hash", target, other)
		}
		hashes[p.Hash] = target
	}
}

// TestPlanRefused: a path that exists in neither end, and content that the store lacks, are errors.
func TestPlanRefused(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.write("a=1")
	if _, err := s.make(wanted{target: "a=2", o: plan.Options{Paths: []string{"b"}}}); !errors.Is(err, plan.ErrNoPath) {
		t.Errorf("a path that does not exist: %v", err)
	}
	packs := s.objects.PackNames()
	for _, name := range slices.Clone(packs) {
		s.must(os.Truncate(filepath.Join(s.objects.PackDir(), strings.TrimSuffix(name, ".idx")+".pack"), 12))
	}
	var missing *gitfmt.MissingObjectError
	if _, err := s.make(wanted{target: "a=2"}); !errors.As(err, &missing) || missing.Path != "a" {
		t.Errorf("content that the store lacks: %v", err)
	}
}

func TestRelativePaths(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	for _, c := range []struct {
		in   []string
		want []string
		ok   bool
	}{
		{nil, nil, true},
		{[]string{"b", "a/"}, []string{"a", "b"}, true},
		{[]string{"."}, nil, true},
		{[]string{"a", dir}, nil, true},
		{[]string{filepath.Join(dir, "x")}, []string{"x"}, true},
		{[]string{""}, nil, false},
		{[]string{"../x"}, nil, false},
		{[]string{"/etc"}, nil, false},
		{[]string{".git/config"}, nil, false},
	} {
		got, err := plan.RelativePaths(dir, c.in)
		if !slices.Equal(got, c.want) || (err == nil) != c.ok {
			t.Errorf("%q: %q, %v; want %q, accepted: %t", c.in, got, err, c.want, c.ok)
		}
		if !c.ok && !errors.Is(err, gitfmt.ErrRefused) {
			t.Errorf("%q: %v, want ErrRefused", c.in, err)
		}
	}
}

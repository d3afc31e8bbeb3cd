package worldstate

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/worldtest"
)

// repositoryOf makes the world a user's repository with everything in packs,
// and its index old enough to be relied on.
func (b *bench) repositoryOf(config ...string) {
	b.Helper()
	worldtest.Git(b, b.dir, "init", "-q")
	for _, c := range config {
		key, value, _ := strings.Cut(c, "=")
		worldtest.Git(b, b.dir, "config", key, value)
	}
	worldtest.Git(b, b.dir, "add", "-A")
	worldtest.Git(b, b.dir, "commit", "-q", "-m", "all")
	worldtest.Git(b, b.dir, "repack", "-adq")
	b.settleIndex()
}

// settleIndex makes every tracked file older than the index, as it is some
// seconds after a checkout, and git read all of them again.
func (b *bench) settleIndex() {
	b.Helper()
	old := time.Now().Add(-time.Hour)
	for _, p := range strings.Split(strings.TrimRight(worldtest.Git(b, b.dir, "ls-files", "-z"), "\x00"), "\x00") {
		if info, err := os.Lstat(b.path(p)); err == nil && info.Mode().IsRegular() {
			b.must(os.Chtimes(b.path(p), old, old))
		}
	}
	worldtest.Git(b, b.dir, "update-index", "-q", "--really-refresh")
}

// reads makes the world count the files a scan reads.
func (b *bench) reads() func() []string {
	var mu sync.Mutex
	var read []string
	b.w.track.Before = func(op, path string) error {
		mu.Lock()
		defer mu.Unlock()
		if op == "read" {
			read = append(read, path)
		}
		return nil
	}
	return func() []string { slices.Sort(read); return read }
}

// plainTree is the tree of the same world saved without a look at .git.
func (b *bench) plainTree() string {
	b.Helper()
	hidden := b.path(".git") + "-aside"
	b.must(os.Rename(b.path(".git"), hidden))
	defer os.Rename(hidden, b.path(".git"))
	other, err := Open(b.dir, b.TempDir(), &Options{Exclude: []string{hidden}})
	b.must(err)
	defer other.Close()
	s, err := other.SaveNext(context.Background(), "plain")
	b.must(err)
	return s.Tree
}

func (b *bench) waitAdopted() {
	b.Helper()
	if a := b.w.adopts; a != nil {
		<-a.done
	}
	if b.w.objects.Lending() != nil {
		b.Fatal("something is still borrowed")
	}
}

// TestSeed: a first save beside a repository reads nothing that is committed,
// is the snapshot it would be otherwise, and needs the repository no more once
// the copying has ended.
func TestSeed(t *testing.T) {
	for _, version := range []string{"2", "4"} {
		t.Run("index version "+version, func(t *testing.T) {
			b := newBench(t, nil)
			for i := range 40 {
				b.write(fmt.Sprintf("d%d/f%d", i%5, i), strings.Repeat(fmt.Sprint(i), 100))
			}
			b.write("big", strings.Repeat("0123456789abcdef", objects.WholeFileBytes/8))
			b.write("empty", "")
			b.repositoryOf("index.version=" + version)
			b.write("mine", "not committed")
			b.write("d1/f1", "changed since")
			read := b.reads()
			s := b.save()
			if got := fmt.Sprint(read()); got != "[d1/f1 mine]" {
				t.Errorf("read %s", got)
			}
			if !s.Borrowed {
				t.Error("the snapshot does not say that it borrows")
			}
			b.w.track.Before = nil
			b.waitAdopted()
			if tree := b.plainTree(); tree != s.Tree {
				t.Errorf("tree %s, unseeded %s", s.Tree, tree)
			}
			b.must(os.RemoveAll(b.path(".git")))
			b.open(nil)
			if err := b.w.Has(context.Background(), s.ID); err != nil {
				t.Fatal(err)
			}
			b.fsck()
			if again := b.save(); again.Borrowed || again.Tree != s.Tree {
				t.Errorf("%+v", again)
			}
		})
	}
}

// TestSeedNotTrusted: where a file may differ from its blob, or was changed
// behind git's back, it is read.
func TestSeedNotTrusted(t *testing.T) {
	for _, c := range []struct {
		name   string
		files  map[string]string
		config []string
		then   func(b *bench)
	}{
		{name: "line endings", files: map[string]string{"f": "a\r\nb\r\n"}, config: []string{"core.autocrlf=true"}},
		{name: "text attribute", files: map[string]string{"f": "a\r\n", ".gitattributes": "* text=auto\n"}},
		{name: "ident", files: map[string]string{"f": "$Id: x $\n", ".gitattributes": "* ident\n"}},
		{name: "encoding", files: map[string]string{"f": "\xff\xfea\x00", ".gitattributes": "f working-tree-encoding=UTF-16\n"}},
		{name: "filter of the same length", files: map[string]string{"f": "hello", ".gitattributes": "f filter=rot\n"},
			config: []string{"filter.rot.clean=tr a-z n-za-m"}},
		{name: "filter by info/attributes", files: map[string]string{"f": "hello"}, config: []string{"filter.rot.clean=tr a-z n-za-m"},
			then: func(b *bench) {
				b.must(os.WriteFile(b.path(".git/info/attributes"), []byte("f filter=rot\n"), 0o644))
				b.must(os.Remove(b.path(".git/index")))
				worldtest.Git(b, b.dir, "add", "-A")
				b.settleIndex()
			}},
		{name: "assumed unchanged", files: map[string]string{"f": "hello"}, then: func(b *bench) {
			worldtest.Git(b, b.dir, "update-index", "--assume-unchanged", "f")
			b.write("f", "HELLO")
		}},
		{name: "skip-worktree", files: map[string]string{"f": "hello"}, then: func(b *bench) {
			worldtest.Git(b, b.dir, "update-index", "--skip-worktree", "f")
			b.write("f", "HELLO")
		}},
		{name: "same size and time", files: map[string]string{"f": "hello"}, then: func(b *bench) {
			info, err := os.Stat(b.path("f"))
			b.must(err)
			b.write("f", "HELLO")
			b.must(os.Chtimes(b.path("f"), info.ModTime(), info.ModTime()))
		}},
		{name: "as young as the index", files: map[string]string{"f": "hello"}, then: func(b *bench) {
			info, err := os.Stat(b.path(".git/index"))
			b.must(err)
			b.must(os.Chtimes(b.path("f"), info.ModTime(), info.ModTime()))
			worldtest.Git(b, b.dir, "update-index", "--refresh")
			b.must(os.Chtimes(b.path(".git/index"), info.ModTime(), info.ModTime()))
		}},
		{name: "intent to add", files: map[string]string{"g": "x"}, then: func(b *bench) {
			b.write("f", "")
			worldtest.Git(b, b.dir, "add", "-N", "f")
		}},
		{name: "split index", files: map[string]string{"f": "hello"}, then: func(b *bench) { worldtest.Git(b, b.dir, "update-index", "--split-index") }},
		{name: "an object that is gone", files: map[string]string{"f": "hello"}, then: func(b *bench) {
			b.must(os.RemoveAll(b.path(".git/objects/pack")))
			b.must(os.Mkdir(b.path(".git/objects/pack"), 0o755))
		}},
		{name: "loose objects", files: map[string]string{"g": "x"}, then: func(b *bench) {
			b.write("f", "hello")
			worldtest.Git(b, b.dir, "add", "f")
			b.settleIndex()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, nil)
			for path, content := range c.files {
				b.write(path, content)
			}
			b.repositoryOf(c.config...)
			if c.then != nil {
				c.then(b)
			}
			b.readsF()
		})
	}
}

// readsF has the next save read f itself, whatever the index says of it.
func (b *bench) readsF() {
	b.Helper()
	read := b.reads()
	s := b.save()
	if !slices.Contains(read(), "f") {
		b.Errorf("f was not read, but %v", read())
	}
	b.w.track.Before = nil
	if tree := b.plainTree(); tree != s.Tree {
		b.Errorf("tree %s, unseeded %s", s.Tree, tree)
	}
}

// TestSeedVanishes: what the user's gc drops before it was copied is named
// by Verify, and the next save reads the file again.
func TestSeedVanishes(t *testing.T) {
	b := newBench(t, nil)
	b.write("f", "hello")
	b.write("g", "there")
	b.repositoryOf()
	b.w.adopts = &adopting{done: make(chan struct{})} // so that nothing is copied
	first := b.save()
	packs, err := filepath.Glob(b.path(".git/objects/pack/pack-*"))
	b.must(err)
	for _, p := range packs {
		b.must(os.Remove(p))
	}
	close(b.w.adopts.done)
	b.w.adopts = nil
	b.open(nil)
	r, err := b.w.Verify(context.Background())
	b.must(err)
	if r.OK || len(r.Problems) != 2 {
		t.Errorf("%+v", r)
	}
	b.write("new", "so that there is something to save")
	again := b.save()
	if err := b.w.Has(context.Background(), again.ID); err != nil {
		t.Error(err)
	}
	if err := b.w.Has(context.Background(), first.ID); err != nil {
		t.Errorf("what was read again does not help the first snapshot: %v", err)
	}
}

// TestAdoptKilled kills the first save and the copying after it at points, at every one in
// the nightly run: the next process continues.
func TestAdoptKilled(t *testing.T) {
	worldtest.Heavy(t)
	for n := 0; ; n += killEvery() {
		b := newBench(t, nil)
		for i := range 10 {
			b.write(fmt.Sprint("f", i), strings.Repeat(fmt.Sprint(i), 50))
		}
		b.repositoryOf()
		if !b.killed("seed", "", n) {
			if n < 9 {
				t.Errorf("only %d points", n)
			}
			return
		}
		s := b.save()
		b.waitAdopted()
		b.must(os.RemoveAll(b.path(".git")))
		b.open(nil)
		if err := b.w.Has(context.Background(), s.ID); err != nil {
			t.Fatalf("killed at %d: %v", n, err)
		}
		b.fsck()
	}
}

func FuzzIndex(f *testing.F) {
	dir := f.TempDir()
	worldtest.Git(f, dir, "init", "-q")
	for i := range 5 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file%d", i*1000)), []byte{byte(i)}, 0o644); err != nil {
			f.Fatal(err)
		}
	}
	worldtest.Git(f, dir, "add", "-A")
	for _, version := range []string{"2", "3", "4"} {
		worldtest.Git(f, dir, "update-index", "--index-version", version)
		data, err := os.ReadFile(filepath.Join(dir, ".git/index"))
		if err != nil {
			f.Fatal(err)
		}
		list, err := gitfmt.DecodeIndex(data)
		if err != nil || len(list) != 5 || list[4].Path != "file4000" {
			f.Fatalf("version %s: %v %v", version, list, err)
		}
		f.Add(data)
		f.Add(bytes.Clone(data[:len(data)/2]))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if n := len(data); n > 20 { // past the checksum
			data = append(data[:n-20:n-20], make([]byte, 20)...)
		}
		list, err := gitfmt.DecodeIndex(data)
		if err == nil && len(list)*gitfmt.IndexFixed > len(data) {
			t.Fatal("more entries than bytes")
		}
	})
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

package worldstate

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
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
	b.w.track.Fault = func(op, path string) error {
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

// TestSeed: a first save beside a repository reads nothing that is committed,
// is the snapshot it would be otherwise, and does not need the repository.
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
			b.w.track.Fault = nil
			if tree := b.plainTree(); tree != s.Tree {
				t.Errorf("tree %s, unseeded %s", s.Tree, tree)
			}
			b.must(os.RemoveAll(b.path(".git")))
			b.open(nil)
			if err := b.w.Has(context.Background(), s.ID); err != nil {
				t.Fatal(err)
			}
			b.fsck()
			if again := b.save(); again.Tree != s.Tree {
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
	b.w.track.Fault = nil
	if tree := b.plainTree(); tree != s.Tree {
		b.Errorf("tree %s, unseeded %s", s.Tree, tree)
	}
}

// TestSeedDifferences: what the user's packs hold as differences is copied with what they
// start from, though the index names that no more.
func TestSeedDifferences(t *testing.T) {
	b := newBench(t, nil)
	r := rand.New(rand.NewPCG(41, 42))
	text := func(n int) string {
		var lines strings.Builder
		for range n {
			fmt.Fprintf(&lines, "line %d\n", r.Uint64())
		}
		return lines.String()
	}
	common := text(300)
	for i := range 20 {
		b.write(fmt.Sprint("f", i), common+text(i))
	}
	b.write("gone", common+text(40))
	worldtest.Git(t, b.dir, "init", "-q")
	worldtest.Git(t, b.dir, "add", "-A")
	worldtest.Git(t, b.dir, "commit", "-qm", "before")
	b.must(os.Remove(b.path("gone")))
	b.repositoryOf("repack.useDeltaBaseOffset=true")
	read := b.reads()
	files := b.packsOf(func() { b.save() })
	if got := read(); len(got) != 0 {
		t.Errorf("read %v", got)
	}
	count, _ := b.kinds(strings.TrimSuffix(files[0], filepath.Ext(files[0])))
	if count[gitfmt.RefDelta] < 10 {
		t.Errorf("the pack holds %v: nothing is tested", count)
	}
	b.w.track.Fault = nil
	tree := b.plainTree()
	b.must(os.RemoveAll(b.path(".git")))
	b.open(nil)
	s := b.save()
	if b.must(b.w.Has(b.Context(), s.ID)); s.Tree != tree {
		t.Errorf("tree %s, unseeded %s", s.Tree, tree)
	}
	b.fsck()
	b.gc(nil)
	b.must(b.w.Has(b.Context(), s.ID))
	b.fsck()
}

// TestSeedDamaged: a file whose blob is damaged in the user's pack is read.
func TestSeedDamaged(t *testing.T) {
	b := newBench(t, nil)
	b.write("f", "hello")
	b.write("g", "there")
	b.repositoryOf()
	packs, err := filepath.Glob(b.path(".git/objects/pack/pack-*.pack"))
	b.must(err)
	p, err := objects.OpenPack(strings.TrimSuffix(packs[0], ".pack") + ".idx")
	b.must(err)
	defer p.Close()
	off, _ := p.Find(gitfmt.HashObject(gitfmt.BlobObject, []byte("hello")))
	b.must(os.Chmod(packs[0], 0o600))
	b.spoil(packs[0], int(off)+4)
	b.readsF()
	b.hasAll([]ID{b.save().ID})
}

// TestBorrowed: of a store that an older program left while it borrowed from a user's
// repository, snapshots are read, and a collection copies what they need.
func TestBorrowed(t *testing.T) {
	b := newBench(t, nil)
	b.write("f", "hello")
	b.repositoryOf()
	id := b.save().ID
	alternates := b.w.objects.AlternatesPath()
	lent := b.path("lent/objects/pack")
	b.must(os.MkdirAll(lent, 0o700))
	mine, err := filepath.Glob(b.store + "/objects/pack/pack-*")
	b.must(err)
	for _, name := range mine {
		b.must(os.Rename(name, filepath.Join(lent, filepath.Base(name))))
	}
	b.must(os.WriteFile(alternates, []byte(b.path("lent/objects")+"\n"), 0o600))
	b.open(nil)
	b.must(b.w.Has(b.Context(), id))
	b.gc(nil)
	if _, err := os.Stat(alternates); !os.IsNotExist(err) {
		t.Errorf("the store borrows still: %v", err)
	}
	b.must(os.RemoveAll(b.path("lent")))
	b.open(nil)
	b.must(b.w.Has(b.Context(), id))
	b.fsck()
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

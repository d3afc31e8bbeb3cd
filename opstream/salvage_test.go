package opstream

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"anamnesis/opstream/durable"
	"anamnesis/opstream/internal/wire"
)

// tree reads every file below a directory.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		out[path] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestSalvage damages a stream of several segments and blobs at one place
// after another: the copy is exactly the records before, its lines have their
// hashes, it can be written to, and the old stream is untouched.
func TestSalvage(t *testing.T) {
	const n = 12
	damages := map[string]struct {
		last   uint64
		damage func(t *testing.T, dir string)
	}{
		"none":            {n + 1, func(t *testing.T, dir string) {}},
		"a line":          {6, func(t *testing.T, dir string) { flip(t, dir, `"n":7`) }},
		"the first line":  {0, func(t *testing.T, dir string) { flip(t, dir, `"n":1,`) }},
		"a blob":          {3, func(t *testing.T, dir string) { removeBlobs(t, dir) }},
		"a whole segment": {6, func(t *testing.T, dir string) { dropSegment(t, dir, `"n":7`) }},
	}
	for name, tt := range damages {
		t.Run(name, func(t *testing.T) {
			dir, to := filepath.Join(t.TempDir(), "s"), filepath.Join(t.TempDir(), "copy")
			log, err := Open(dir, &Options{SegmentSizeBytes: 100})
			if err != nil {
				t.Fatal(err)
			}
			for i := 1; i <= n; i++ {
				body := fmt.Appendf(nil, `{"n":%d,"x":"y"}`, i)
				if i == 4 {
					body = fmt.Appendf(nil, `{"big":%q}`, bytes.Repeat([]byte("z"), wire.MaxInlineBytes))
				}
				if _, err := log.Append(t.Context(), Entry{Kind: "k", Step: i, Body: body}); err != nil {
					t.Fatal(err)
				}
			}
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
			whole := records(t, dir)
			tt.damage(t, dir)
			before := tree(t, dir)
			got, err := Salvage(t.Context(), dir, to)
			if err != nil || got.Records != tt.last || (got.Why == "") != (name == "none") {
				t.Fatalf("Salvage = %+v, %v; want %d records", got, err, tt.last)
			}
			if after := tree(t, dir); fmt.Sprint(after) != fmt.Sprint(before) {
				t.Error("the old stream was touched")
			}
			if have := records(t, to); fmt.Sprint(have) != fmt.Sprint(whole[:tt.last]) {
				t.Errorf("the copy differs:\n%v\n%v", have, whole[:tt.last])
			}
			again, err := Open(to, nil)
			if err != nil {
				t.Fatal(err)
			}
			if seq, err := again.Append(t.Context(), Entry{Kind: "k"}); err != nil || seq != tt.last+1 {
				t.Errorf("append to the copy: %d, %v", seq, err)
			}
			if err := again.Close(); err != nil {
				t.Error(err)
			}
			if r, err := Verify(t.Context(), to); err != nil || r.Has(SeverityCorrupt) || r.Has(SeverityTorn) {
				t.Errorf("the copy: %+v, %v", r, err)
			}
		})
	}
}

func TestSalvageRefusesPlaces(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	log, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	link, part := filepath.Join(t.TempDir(), "link"), filepath.Join(t.TempDir(), "half")
	if err := errors.Join(os.Symlink(dir, link), os.Mkdir(part+partSuffix, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{
		dir, filepath.Join(dir, "in"), filepath.Join(dir, "ops", "in"), t.TempDir(), link,
		filepath.Join(link, "in"), part,
		filepath.Join(t.TempDir(), "no", "parent"),
	} {
		if _, err := Salvage(t.Context(), dir, to); !errors.Is(err, wire.ErrInvalid) {
			t.Errorf("to %s: %v", to, err)
		}
	}
	if _, err := Salvage(t.Context(), t.TempDir(), filepath.Join(t.TempDir(), "x")); !errors.Is(err, ErrNotFound) {
		t.Errorf("no stream: %v", err)
	}
}

// TestSalvageInterrupted fails each operation of a salvage in turn, as a crash
// or a full disk would end it: a directory of the copy's name is whole or not
// there, and the old stream is as it was.
func TestSalvageInterrupted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "s")
	log, err := Open(dir, &Options{SegmentSizeBytes: 200})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		mustAppend(t, log, Entry{Kind: "k", Body: fmt.Appendf(nil, `{"$blob":%d}`, i%2)})
	}
	mustClose(t, log)
	before, want := tree(t, dir), records(t, dir)
	interrupted := 0
	for n := 1; ; n++ {
		to := filepath.Join(t.TempDir(), "copy")
		fsys := &failingFS{left: n}
		_, err := salvage(t.Context(), fsys, dir, to)
		if _, serr := os.Stat(to); serr == nil {
			if got := records(t, to); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("operation %d failed (%v), and the copy holds %d records of %d", n, err, len(got), len(want))
			}
		} else if err == nil {
			t.Fatal("no error, and no copy")
		}
		if after := tree(t, dir); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Fatal("the old stream was touched")
		}
		if err == nil {
			break
		}
		if !errors.Is(err, errInjected) {
			t.Fatal(err)
		}
		interrupted++
	}
	if interrupted < 50 {
		t.Errorf("only %d places to fail at", interrupted)
	}
	t.Logf("%d interrupted salvages left no copy that is not whole", interrupted)
}

// failingFS is the operating system's file system until an operation that
// changes something, counted down, fails, and all after it do.
type failingFS struct {
	durable.OS
	left int
}

func (f *failingFS) step() error {
	if f.left--; f.left <= 0 {
		return errInjected
	}
	return nil
}

// do does it, unless it is time to fail.
func (f *failingFS) do(op func() error) error {
	if err := f.step(); err != nil {
		return err
	}
	return op()
}

func (f *failingFS) Mkdir(name string) error {
	return f.do(func() error { return f.OS.Mkdir(name) })
}

func (f *failingFS) Rename(oldname, newname string) error {
	return f.do(func() error { return f.OS.Rename(oldname, newname) })
}

func (f *failingFS) Remove(name string) error {
	return f.do(func() error { return f.OS.Remove(name) })
}

func (f *failingFS) SyncDir(name string) error {
	return f.do(func() error { return f.OS.SyncDir(name) })
}

func (f *failingFS) Open(name string, flag int) (file durable.File, err error) {
	err = f.do(func() error { file, err = f.OS.Open(name, flag); return err })
	return failingFile{file, f}, err
}

type failingFile struct {
	durable.File
	fs *failingFS
}

func (f failingFile) WriteAt(p []byte, off int64) (n int, err error) {
	if err := f.fs.step(); err != nil {
		n, _ = f.File.WriteAt(p[:len(p)/2], off)
		return n, err
	}
	return f.File.WriteAt(p, off)
}

func (f failingFile) Sync() error { return f.fs.do(f.File.Sync) }

// records returns everything of a stream's records but whether a reader knows
// them durable.
func records(t *testing.T, dir string) []Record {
	t.Helper()
	r, err := OpenReader(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out := []Record{}
	for rec, err := range r.Since(0) {
		if err != nil {
			t.Fatal(err)
		}
		rec.Durable = false
		out = append(out, rec)
	}
	return out
}

// findText finds the segment that holds a text.
func findText(t *testing.T, dir, text string) (path string, data []byte, at int) {
	t.Helper()
	segs, err := filepath.Glob(filepath.Join(dir, "ops", "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range segs {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if at := bytes.Index(data, []byte(text)); at >= 0 {
			return path, data, at
		}
	}
	t.Fatalf("no segment holds %s", text)
	return "", nil, 0
}

func flip(t *testing.T, dir, text string) {
	t.Helper()
	path, data, at := findText(t, dir, text)
	data[at] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func dropSegment(t *testing.T, dir, text string) {
	t.Helper()
	path, _, _ := findText(t, dir, text)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func removeBlobs(t *testing.T, dir string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(dir, "blobs")); err != nil {
		t.Fatal(err)
	}
}

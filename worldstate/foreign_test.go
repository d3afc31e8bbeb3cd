package worldstate

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"anamnesis/worldstate/internal/gitfmt"
)

// TestBadRepository: what another program's repository holds can be damaged or made to do
// harm. Such an object is an error, and costs no more memory than a large one.
func TestBadRepository(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "objects", "pack"), 0o700); err != nil {
		t.Fatal(err)
	}
	put := func(text string) gitfmt.Hash {
		h := gitfmt.Hash(sha1.Sum([]byte(text)))
		var z bytes.Buffer
		w := zlib.NewWriter(&z)
		_, err := w.Write([]byte(text))
		name := filepath.Join(dir, "objects", h.String()[:2], h.String()[2:])
		if err = errors.Join(err, w.Close(), os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, z.Bytes(), 0o600)); err != nil {
			t.Fatal(err)
		}
		return h
	}
	r := OpenRepository(dir)
	good := put("blob 1\x00x")
	if data, err := r.Read(RepositoryFile{Object: good.String()}); string(data) != "x" || err != nil {
		t.Errorf("a file holds %q, %v", data, err)
	}
	for name, text := range map[string]string{
		"a negative size": "blob -1\x00x", "a long header": fmt.Sprintf("blob %05000d\x00x", 1), "no size": "blob \x00", "no type": "x 1\x00x",
		"no end": "blob 1", "a size past memory": "blob 9223372036854775807\x00x", "too short": "blob 2\x00x", "too long": "blob 0\x00x",
	} {
		var missing *MissingObjectError
		if data, err := r.Read(RepositoryFile{Object: put(text).String()}); !errors.As(err, &missing) {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}

	// 2 × 1,024 × 512 files in three trees.
	tree, mode := good, "100644"
	for _, n := range []int{512, 1024, 2} {
		var items []gitfmt.TreeItem
		for i := range n {
			items = append(items, gitfmt.TreeItem{Mode: mode, Name: fmt.Sprint(i), Hash: tree})
		}
		data := gitfmt.EncodeTree(items, 0)
		tree, mode = put(fmt.Sprintf("tree %d\x00%s", len(data), data)), gitfmt.TreeMode
	}
	if files, err := r.Files(tree.String(), ""); !errors.Is(err, gitfmt.ErrCorrupt) {
		t.Errorf("%d files, %v", len(files), err)
	}
}

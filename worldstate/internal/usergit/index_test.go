package usergit_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"anamnesis/worldstate/internal/usergit"
	"anamnesis/worldstate/worldtest"
)

// indexFiles are long enough for a path of version 4 to share a beginning.
func indexFiles() (names []string) {
	for i := range 5 {
		names = append(names, fmt.Sprintf("file%d", i*1000))
	}
	return names
}

// indexes returns an index of indexFiles in each version, as git writes it.
func indexes(t testing.TB) map[string][]byte {
	t.Helper()
	dir, out := t.TempDir(), map[string][]byte{}
	worldtest.Git(t, dir, "init", "-q")
	for _, name := range indexFiles() {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	worldtest.Git(t, dir, "add", "-A")
	for _, version := range []string{"2", "3", "4"} {
		if version == "3" { // git writes version 3 for an entry with extended flags only
			worldtest.Git(t, dir, "update-index", "--skip-worktree", "file1000")
		}
		worldtest.Git(t, dir, "update-index", "--index-version", version)
		data, err := os.ReadFile(filepath.Join(dir, ".git", "index"))
		if err != nil {
			t.Fatal(err)
		}
		out[version] = data
	}
	return out
}

func TestDecodeIndex(t *testing.T) {
	t.Parallel()
	for version, data := range indexes(t) {
		paths, err := usergit.DecodeIndex(data)
		if err != nil || !slices.Equal(paths, indexFiles()) {
			t.Errorf("version %s: %q, %v", version, paths, err)
		}
		damaged := bytes.Clone(data)
		damaged[len(damaged)/2] ^= 1
		if _, err := usergit.DecodeIndex(damaged); err == nil {
			t.Errorf("version %s: a damaged index is read", version)
		}
		if _, err := usergit.DecodeIndex(data[:len(data)/2]); err == nil {
			t.Errorf("version %s: half an index is read", version)
		}
		unsigned := append(data[:len(data)-20:len(data)-20], make([]byte, 20)...) // as with index.skipHash
		if paths, err := usergit.DecodeIndex(unsigned); err != nil || !slices.Equal(paths, indexFiles()) {
			t.Errorf("version %s without a checksum: %q, %v", version, paths, err)
		}
	}
}

func FuzzIndex(f *testing.F) {
	for _, data := range indexes(f) {
		f.Add(data)
		f.Add(bytes.Clone(data[:len(data)/2]))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if n := len(data); n > 20 { // past the checksum
			data = append(data[:n-20:n-20], make([]byte, 20)...)
		}
		paths, err := usergit.DecodeIndex(data)
		if err == nil && len(paths)*62 > len(data) {
			t.Fatal("more entries than bytes")
		}
	})
}

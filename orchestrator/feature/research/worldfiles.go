package research

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"
)

// Limits of a search of the world for a name.
const (
	maxWorldFiles = 5_000    // files
	maxWorldBytes = 64 << 20 // bytes of all
	maxWorldFile  = 1 << 20  // of one: larger ones are skipped
)

// listsPackage reports whether package.json of a directory names an npm package, or
// the package is installed there.
func listsPackage(root *os.Root, name string) bool {
	if _, err := root.Stat("node_modules/.bin/" + name); err == nil {
		return true
	}
	f, err := root.Open("package.json")
	if err != nil {
		return false
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxWorldFile))
	return err == nil && bytes.Contains(data, []byte(`"`+name+`"`))
}

var errFound = errors.New("found")

// treeNames reports whether a file of a tree contains a text, in any case. It reads a bounded part
// of a large tree.
func treeNames(tree fs.FS, text string) bool {
	want := []byte(strings.ToLower(text))
	files, left := 0, int64(maxWorldBytes)
	err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // skip unreadable files
		}
		if d.IsDir() && (path == ".git/objects" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if !d.Type().IsRegular() {
			return nil
		}
		if files++; files > maxWorldFiles || left <= 0 {
			return fs.SkipAll
		}
		f, err := tree.Open(path)
		if err != nil {
			return nil
		}
		defer f.Close()
		data, err := io.ReadAll(io.LimitReader(f, min(maxWorldFile+1, left)))
		left -= int64(len(data))
		if err == nil && len(data) <= maxWorldFile && bytes.Contains(bytes.ToLower(data), want) {
			return errFound
		}
		return nil
	})
	return errors.Is(err, errFound)
}

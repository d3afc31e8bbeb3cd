package tool

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// linkSearch bounds the search for a file's other names. A file whose names were
// not all found by then is refused.
const linkSearch = 700 * time.Millisecond

// StrayRefusal is why a file with a name elsewhere is refused.
const StrayRefusal = "has another name (hard link) that was not found in the world, so it may be somebody else's file; " +
	"a copy of it can be used, or the directory of its other names allowed (--writable DIR)"

// inode is what a file's names have in common.
type inode struct{ dev, ino uint64 }

// Links is the number of names a file has, as far as it is known.
func Links(info fs.FileInfo) uint64 {
	_, n := identity(info)
	return n
}

// Stray says of each file whether it has a name (hard link) that lies neither in
// the world nor in a directory of Beside: such a file is not the world's alone. It takes linkSearch at most, and no time where every file
// has one name. What cannot be told is said to be stray.
func (e *Env) Stray(files ...fs.FileInfo) []bool {
	out := make([]bool, len(files))
	missing := make(map[inode]int)
	for _, info := range files {
		if id, n := identity(info); n > 1 {
			missing[id] = int(n)
		}
	}
	if len(missing) == 0 {
		return out
	}
	places := append([]string{e.Dir}, e.Beside...)
	ctx, cancel := context.WithTimeout(context.Background(), linkSearch)
	defer cancel()
	findNames(ctx, places, missing)
	for i, info := range files {
		id, n := identity(info)
		out[i] = n > 1 && missing[id] > 0
	}
	return out
}

// findNames takes from what is missing of each file the names found below the
// places, and stops when nothing is missing.
func findNames(ctx context.Context, places []string, missing map[inode]int) {
	names := make(map[string]inode)
	left := 0
	for _, n := range missing {
		left += n
	}
	for _, place := range places {
		// A part that cannot be read has no names to offer.
		_ = filepath.WalkDir(place, func(path string, d fs.DirEntry, err error) error {
			switch {
			case ctx.Err() != nil || left == 0:
				return fs.SkipAll
			case err != nil || !d.Type().IsRegular():
				return nil
			}
			info, err := d.Info()
			if err != nil {
				return nil
			}
			id, n := identity(info)
			if _, known := names[path]; n > 1 && !known && missing[id] > 0 {
				names[path] = id
				missing[id]--
				left--
			}
			return nil
		})
	}
	// A directory that is moved during the walk is met twice: only names that
	// stand now count.
	for path, id := range names {
		info, err := os.Lstat(path)
		if err != nil {
			missing[id]++
		} else if now, _ := identity(info); now != id {
			missing[id]++
		}
	}
}

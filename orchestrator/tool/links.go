package tool

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// linkSearch bounds the search for a file's other names. A file with names not found by then
// is refused.
const linkSearch = 700 * time.Millisecond

// StrayRefusal is why a file with a name elsewhere is refused.
const StrayRefusal = "has another name (hard link) that was not found in the world, so it may be another " +
	"user's file; a copy of it can be used, or the directory of its other names allowed (setting writable)"

// inode identifies a file under all its names.
type inode struct{ dev, ino uint64 }

// Links returns the number of a file's names.
func Links(info fs.FileInfo) uint64 {
	_, n := identity(info)
	return n
}

// Stray reports for each file whether it has a name (hard link) outside the world and the
// directories of Beside: such a file is not the world's alone. It takes linkSearch at most,
// and no time if every file has one name. Unknown counts as stray.
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

// findNames subtracts the names found below the places from missing, and stops when nothing is
// missing.
func findNames(ctx context.Context, places []string, missing map[inode]int) {
	names := make(map[string]inode)
	left := 0
	for _, n := range missing {
		left += n
	}
	for _, place := range places {
		// Skip an unreadable part.
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
	// A directory that is moved during the walk is visited twice: only present names count.
	for path, id := range names {
		info, err := os.Lstat(path)
		if err != nil {
			missing[id]++
		} else if now, _ := identity(info); now != id {
			missing[id]++
		}
	}
}

func identity(info fs.FileInfo) (inode, uint64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return inode{}, 1
	}
	return inode{uint64(st.Dev), uint64(st.Ino)}, uint64(st.Nlink)
}

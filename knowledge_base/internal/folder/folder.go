package folder

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"anamnesis/knowledge_base/card"
	"anamnesis/opstream/durable"
)

// readers is how many files are read at once: a slow disk answers several
// requests in the time of one.
const readers = 8

// Folder is a folder of cards: <Dir>/<yyyy-mm>/*.md.
type Folder struct {
	Dir   string
	Index string   // the folder of what is derived
	Temp  []string // files beside the cards, still being written when they were listed last, or left by a dead writer
}

// Broken is a file or folder that cannot be read.
type Broken struct {
	Path string
	Err  error // a *[card.Error] where the text is to blame
}

// Read is what became of one file.
type Read struct {
	File *File
	Err  error
}

// isMonth reports whether a folder's name is a year and a month.
func isMonth(name string) bool {
	return len(name) == len("2006-01") && name[4] == '-' && strings.Trim(name[:4]+name[5:], "0123456789") == ""
}

// Months lists the folders that hold cards, sorted.
func (f *Folder) Months() ([]string, error) {
	entries, err := os.ReadDir(f.Dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() && isMonth(e.Name()) {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

// IsCardFile reports whether a path within the folder, with slashes, is a
// card's. It is asked of every file at every change.
func IsCardFile(path string) bool {
	month, name, ok := strings.Cut(path, "/")
	plain := !strings.Contains(name, "/") && !strings.HasPrefix(name, ".")
	return ok && plain && strings.HasSuffix(name, ".md") && isMonth(month)
}

// Names is Paths as names within the folder, with slashes. A month that cannot be listed is
// an error.
func (f *Folder) Names() ([]string, error) {
	paths, broken, err := f.Paths()
	if len(broken) > 0 {
		return nil, broken[0].Err
	}
	for i, path := range paths {
		paths[i] = strings.TrimPrefix(path, f.path(""))
	}
	return paths, err
}

// path returns where the file of a name within the folder is.
func (f *Folder) path(name string) string {
	return filepath.Clean(f.Dir) + string(filepath.Separator) + name
}

// Paths lists the files that hold cards, sorted, and the months that cannot be listed.
func (f *Folder) Paths() (paths []string, broken []Broken, err error) {
	months, err := f.Months()
	if err != nil {
		return nil, nil, err
	}
	f.Temp = nil
	for _, m := range months {
		entries, err := os.ReadDir(f.path(m))
		if err != nil {
			broken = append(broken, Broken{f.path(m), err})
			continue
		}
		for _, e := range entries {
			if name := m + "/" + e.Name(); IsCardFile(name) {
				paths = append(paths, f.path(name))
			} else if e.Type().IsRegular() && strings.HasPrefix(e.Name(), durable.TempPrefix) {
				f.Temp = append(f.Temp, f.path(name))
			}
		}
	}
	return paths, broken, nil
}

// Mark is a number that changes when a file beside the cards is changed, added or removed.
func (f *Folder) Mark() uint64 {
	h := fnv.New64a()
	months, _ := f.Months() // what cannot be listed is reported by who reads it
	for _, m := range months {
		entries, _ := os.ReadDir(f.path(m))
		for _, e := range entries {
			if info, err := e.Info(); err == nil {
				fmt.Fprintln(h, m, e.Name(), info.Size(), info.ModTime().UnixNano())
			}
		}
	}
	return h.Sum64()
}

// ReadAll reads files, several at once. A file with the bytes of a known one, which is keyed by
// path, is not parsed again.
func (f *Folder) ReadAll(ctx context.Context, paths []string, known map[string]*File) ([]Read, error) {
	out := make([]Read, len(paths))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(readers, len(paths)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(paths) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				out[i].File, out[i].Err = read(paths[i], known[paths[i]])
			}
		})
	}
	wg.Wait()
	return out, ctx.Err()
}

// Read reads one regular file of bounded size, as the file says it.
func (f *Folder) Read(path string) (*File, error) { return read(path, nil) }

func read(path string, known *File) (*File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: not a regular file", path)
	}
	src, err := readBounded(path)
	if err != nil {
		return nil, err
	}
	if known != nil && known.Sum == sha256.Sum256(src) {
		return known, nil
	}
	c, err := card.Parse(src)
	if err != nil {
		return nil, err
	}
	if c.ID == "" {
		return nil, card.Errorf(2, "id is missing; add 'id: %s'", card.NewID("file", string(src)))
	}
	return NewFile(c, path, src), nil
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// With one byte more than allowed, Parse refuses a longer file; its beginning alone would be another card.
	return io.ReadAll(io.LimitReader(f, card.MaxBytes+1))
}

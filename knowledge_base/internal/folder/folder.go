package folder

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/sealed"
	"anamnesis/opstream/durable"
)

const (
	// readers is how many files are read at once: a slow disk answers several
	// requests in the time of one.
	readers = 8
	// readRun is how many files a reader takes at a time, at most: mostly they are
	// only looked at, which takes less than passing each one on.
	readRun = 256
)

// Folder is a folder of cards: <Dir>/<yyyy-mm>/*.md.
type Folder struct {
	Dir   string
	Index string           // the folder of what is derived
	Clock func() time.Time // what the age of files is measured by
	Temp  []string         // files beside the cards, still being written when they were listed last, or left by a dead writer

	kept   *sealed.Reader // whose memory the cards of the cache are
	months atomic.Pointer[map[string]month]
}

// month is a folder of cards as it was listed.
type month struct {
	marks Marks
	paths []string // of the cards' files, sorted
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
	Same bool // File is the known one, and nothing was read
}

// IsMonth reports whether a folder's name is a year and a month.
func IsMonth(name string) bool {
	if len(name) != len("2006-01") || name[4] != '-' {
		return false
	}
	for i, c := range []byte(name) {
		if i != 4 && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// Months lists the folders that hold cards, sorted.
func (f *Folder) Months() ([]string, error) {
	entries, err := os.ReadDir(f.Dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if e.IsDir() && IsMonth(e.Name()) {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

// IsCardFile reports whether a path within the folder, with slashes, is a
// card's. It is asked of every file at every change.
func IsCardFile(path string) bool {
	month, name, ok := strings.Cut(path, "/")
	return ok && IsMonth(month) && !strings.Contains(name, "/") && !strings.HasPrefix(name, ".") && strings.HasSuffix(name, ".md")
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

// Paths lists the files that hold cards, sorted, and the months that cannot be listed. It
// reads the months, except those unchanged since they were listed.
func (f *Folder) Paths() (paths []string, broken []Broken, err error) {
	months, err := f.Months()
	if err != nil {
		return nil, nil, err
	}
	var known map[string]month
	if was := f.months.Load(); was != nil {
		known = *was
	}
	f.Temp = nil
	listed := make(map[string]month, len(months))
	for _, m := range months {
		now, err := MarksOfFolder(f.path(m), f.Clock())
		if was := known[m]; err == nil && was.marks.Vouch(now) {
			listed[m], paths = was, append(paths, was.paths...)
			continue
		}
		entries, err := os.ReadDir(f.path(m))
		if err != nil {
			broken = append(broken, Broken{f.path(m), err})
			continue
		}
		from, temp := len(paths), len(f.Temp)
		for _, e := range entries {
			if name := m + "/" + e.Name(); IsCardFile(name) {
				paths = append(paths, f.path(name))
			} else if e.Type().IsRegular() && strings.HasPrefix(e.Name(), durable.TempPrefix) {
				f.Temp = append(f.Temp, f.path(name))
			}
		}
		if temp == len(f.Temp) { // otherwise the next listing is to find them as well
			listed[m] = month{now, slices.Clone(paths[from:])}
		}
	}
	f.months.Store(&listed)
	return paths, broken, nil
}

// ReadAll reads files, several at once, except those unchanged since known, which is keyed by
// path. If progress is not nil, it receives how many files were read, and of how many.
func (f *Folder) ReadAll(ctx context.Context, paths []string, known map[string]*File, progress func(read, of int)) ([]Read, error) {
	out := make([]Read, len(paths))
	var next atomic.Int64
	var wg sync.WaitGroup
	done := make(chan int, readers)
	run := min(max(len(paths)/(2*readers), 1), readRun)
	for range min(readers, len(paths)) {
		wg.Go(func() {
			for from := int(next.Add(int64(run))) - run; from < len(paths) && ctx.Err() == nil; from = int(next.Add(int64(run))) - run {
				to := min(from+run, len(paths))
				f.readRun(paths[from:to], known, out[from:to])
				done <- to - from
			}
		})
	}
	go func() {
		wg.Wait()
		close(done)
	}()
	n := 0
	for some := range done {
		for range some {
			if n++; progress != nil {
				progress(n, len(paths))
			}
		}
	}
	return out, ctx.Err()
}

// readRun reads some files into out. Marks are looked up relative to the first file's
// folder, which takes half as long.
func (f *Folder) readRun(paths []string, known map[string]*File, out []Read) {
	at, prefix := unix.AT_FDCWD, ""
	if dir, err := os.Open(filepath.Dir(paths[0])); err == nil {
		defer dir.Close()
		at, prefix = int(dir.Fd()), filepath.Dir(paths[0])+string(filepath.Separator)
	}
	for i, path := range paths {
		from, name := at, strings.TrimPrefix(path, prefix)
		if name == path {
			from = unix.AT_FDCWD
		}
		if was := known[path]; was != nil {
			if now, err := MarksAt(from, name, f.Clock()); err == nil && was.Marks.Vouch(now) {
				out[i].File, out[i].Same = was, true
				continue
			}
		}
		out[i].File, out[i].Err = f.readNow(path, known[path])
	}
}

// readNow reads a card's file. If it holds the bytes of known, it returns a copy of known
// with the present marks.
func (f *Folder) readNow(path string, known *File) (*File, error) {
	st, err := f.Read(path)
	if err != nil {
		return nil, err
	}
	if known != nil && known.Sum == st.Sum {
		same := *known // one text in memory is enough: the index asks for that one
		same.Marks = st.Marks
		st = &same
	}
	return st, nil
}

// Read reads one regular file of bounded size, as the file says it.
func (f *Folder) Read(path string) (*File, error) {
	before, err := MarksOf(path, f.Clock())
	if err != nil {
		return nil, err
	}
	if !before.Regular {
		return nil, fmt.Errorf("read %s: not a regular file", path)
	}
	src, err := readBounded(path)
	if err != nil {
		return nil, err
	}
	c, err := card.Parse(src)
	if err != nil {
		return nil, err
	}
	if c.ID == "" {
		return nil, card.Errorf(2, "id is missing; add 'id: %s'", card.NewID("file", string(src)))
	}
	st := NewFile(c, path, src)
	// The marks say what was read only if they are the same before and after.
	if after, err := MarksOf(path, f.Clock()); err == nil && before.Vouch(after) {
		st.Marks = before
	}
	return st, nil
}

func readBounded(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, card.MaxBytes+1))
}

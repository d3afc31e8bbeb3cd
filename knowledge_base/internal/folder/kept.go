package folder

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unique"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/sealed"
	"anamnesis/opstream/durable"
)

// The cards as they were read are cached in .index, so that opening the folder
// reads only the files that changed since: a user waits for a search in a new process, and parsing
// thousands of cards takes a second. A cache file that is absent, damaged or of another version is
// ignored, and so is a failure to write one.
const (
	keptFile = "cards.bin"
	// The file is written again if at least KeptFew cards, and one in keptSlack, differ from it:
	// for fewer, writing costs more than it saves.
	KeptFew   = 64
	keptSlack = 20
)

func keptMagic() string { return fmt.Sprintf("anamnesis cards 5.%d\n", card.RecordVersion) }

func (f *Folder) keptPath() string { return filepath.Join(f.Index, keptFile) }

// Kept returns the cached cards by path. Close invalidates them.
func (f *Folder) Kept() map[string]*File {
	r, ok := sealed.Open(f.keptPath(), keptMagic())
	if !ok {
		return nil
	}
	f.kept = r
	n := r.Count()
	out, texts, paths := make(map[string]*File, n), make(map[string]string), make([]string, 0, n)
	var files []File              // in a few pieces: that takes less time than each by itself
	var dir unique.Handle[string] // of a month, whose files follow one another
	root := []byte(f.path(""))
	path := func() string { return string(append(root, r.Bytes(r.Int())...)) }
	for range n {
		if len(files) == 0 {
			files = make([]File, 256)
		}
		st, at := &files[0], path()
		files = files[1:]
		if d, _ := filepath.Split(at); len(paths) == 0 || d != dir.Value() {
			dir = unique.Make(d)
		}
		paths = append(paths, at)
		st.Marks, st.dir = ReadMarks(r), dir
		copy(st.Sum[:], r.Bytes(len(st.Sum)))
		copy(st.Lesson[:], r.Bytes(len(st.Lesson)))
		copy(st.Text[:], r.Bytes(len(st.Text)))
		st.Head = card.ReadHead(r, texts)
		st.name = string(r.Bytes(r.Count()))
		st.Whole = card.Packed(r.Bytes(r.Count())) // the file's memory
		if !r.OK() {
			return nil
		}
		out[at] = st
	}
	listed := make(map[string]month)
	for range r.Count() {
		name := r.Text()
		from, _ := slices.BinarySearch(paths, f.path(name)+"/")
		to, _ := slices.BinarySearch(paths, f.path(name)+string('/'+1))
		m := month{ReadMarks(r), slices.Clone(paths[from:to])}
		for range r.Count() {
			m.paths = append(m.paths, path())
		}
		slices.Sort(m.paths)
		listed[name] = m
	}
	if !r.OK() {
		return nil
	}
	f.months.Store(&listed)
	return out
}

// Keep writes the cards to the cache if enough differ from it: differ cards were added, changed
// or removed. A file too young for its marks to prove anything is left out.
func (f *Folder) Keep(fsys durable.FS, cards map[string]*File, differ int) {
	listed := f.months.Swap(nil) // the paths take memory, and the next listing is seldom
	if differ < KeptFew || differ*keptSlack < len(cards) {
		return
	}
	byPath := make(map[string]*File, len(cards))
	for _, st := range cards {
		if st.Marks.Settled {
			byPath[st.Path()] = st
		}
	}
	w := sealed.NewWriter(keptMagic())
	w.Uint(uint64(len(byPath)))
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		if !keepCard(w, f.Dir, path, byPath[path]) {
			return
		}
	}
	f.keepMonths(w, *listed, byPath)
	if data, err := w.Seal(); err == nil {
		_ = durable.WriteFile(fsys, f.keptPath(), data) // without it the next opening reads more
	}
}

// keepMonths adds the months that were listed, with the files that are not among the cards
// kept. The lists are of no more use.
func (f *Folder) keepMonths(w *sealed.Writer, listed map[string]month, kept map[string]*File) {
	maps.DeleteFunc(listed, func(_ string, m month) bool { return !m.marks.Settled })
	w.Uint(uint64(len(listed)))
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		m := listed[name]
		w.Text(name)
		m.marks.Write(w)
		others := slices.DeleteFunc(m.paths, func(path string) bool { return kept[path] != nil })
		w.Uint(uint64(len(others)))
		for _, path := range others {
			w.Text(strings.TrimPrefix(path, f.path("")))
		}
	}
}

// Close releases the cache.
func (f *Folder) Close() { f.kept.Close() }

// Forget removes the cache.
func (f *Folder) Forget() error {
	if err := os.Remove(f.keptPath()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// keepCard adds one card as its file says it.
func keepCard(w *sealed.Writer, dir, path string, st *File) bool {
	path, err := filepath.Rel(dir, path)
	if err != nil {
		return false
	}
	w.Text(filepath.ToSlash(path))
	st.Marks.Write(w)
	w.Bytes(st.Sum[:])
	w.Bytes(st.Lesson[:])
	w.Bytes(st.Text[:])
	head := st.Head
	if st.Claimed || st.Outside { // it counts as something else here
		head = Unpack(st.Whole).Head()
	}
	head.WriteRecord(w)
	w.Uint(uint64(len(st.name)))
	w.Bytes([]byte(st.name))
	w.Uint(uint64(len(st.Whole)))
	w.Bytes(st.Whole)
	return true
}

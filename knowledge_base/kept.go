package knowledgebase

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"unique"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/internal/disk"
	"anamnesis/knowledge_base/sealed"
)

// What reading the cards gave is kept in .index, so that opening the folder
// looks at each file's marks and reads those that changed. A file of it that
// is absent, damaged or of another version is as good as none, and one that
// cannot be written is not missed.
const (
	keptFile = "cards.bin"
	// The file is written when at least keptFew cards, and one in keptSlack, are
	// not in it as they are: for fewer it costs more than it spares.
	keptFew   = 64
	keptSlack = 20
)

func keptMagic() string { return fmt.Sprintf("anamnesis cards 4.%d\n", card.RecordVersion) }

func (s *Store) keptPath() string { return filepath.Join(s.dir, indexDir, keptFile) }

// keptCards returns what is kept, by path; as the files say it, see
// [Store.judge].
func (s *Store) keptCards() map[string]*stored {
	r, ok := sealed.Open(s.keptPath(), keptMagic())
	if !ok {
		return nil
	}
	n := r.Count()
	out, texts := make(map[string]*stored, n), make(map[string]string)
	for range n {
		path := filepath.Join(s.dir, filepath.FromSlash(r.Text()))
		st := &stored{marks: disk.ReadMarks(r)}
		copy(st.sum[:], r.Bytes(len(st.sum)))
		copy(st.lesson[:], r.Bytes(len(st.lesson)))
		copy(st.text[:], r.Bytes(len(st.text)))
		st.Head = card.ReadHead(r, texts)
		st.name = string(r.Bytes(r.Count()))
		st.whole = slices.Clone(card.Packed(r.Bytes(r.Count())))
		if !r.OK() {
			return nil
		}
		dir, _ := filepath.Split(path)
		st.dir = unique.Make(dir)
		out[path] = st
	}
	return out
}

// keepCards writes what was read, where enough of it is not among what was
// kept already: differ cards are not, or are no more. Files that may change yet
// without a mark of it are left out.
func (s *Store) keepCards(cards map[string]*stored, differ int) {
	if differ < keptFew || differ*keptSlack < len(cards) {
		return
	}
	byPath := make(map[string]*stored, len(cards))
	for _, st := range cards {
		if st.marks.Settled {
			byPath[st.path()] = st
		}
	}
	w := sealed.NewWriter(keptMagic())
	w.Uint(uint64(len(byPath)))
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		if !keepCard(w, s.dir, path, byPath[path]) {
			return
		}
	}
	if data, err := w.Seal(); err == nil {
		_ = disk.WriteAtomic(s.opts.fs, s.keptPath(), data) // without it the next opening reads more
	}
}

// forgetCards removes what is kept.
func (s *Store) forgetCards() error {
	if err := os.Remove(s.keptPath()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// keepCard adds one card as its file says it.
func keepCard(w *sealed.Writer, dir, path string, st *stored) bool {
	path, err := filepath.Rel(dir, path)
	if err != nil {
		return false
	}
	w.Text(filepath.ToSlash(path))
	st.marks.Write(w)
	w.Bytes(st.sum[:])
	w.Bytes(st.lesson[:])
	w.Bytes(st.text[:])
	head := st.Head
	if st.claimed || st.outside { // it counts as something else here
		head = unpack(st.whole).Head()
	}
	head.WriteRecord(w)
	w.Uint(uint64(len(st.name)))
	w.Bytes([]byte(st.name))
	w.Uint(uint64(len(st.whole)))
	w.Bytes(st.whole)
	return true
}

// readNow reads a card's file unless the one known is what it holds.
func (s *Store) readNow(path string, known *stored) (*stored, error) {
	if known != nil {
		if now, err := disk.MarksOf(path, s.opts.clock()); err == nil && known.marks.Vouch(now) {
			return s.judge(known), nil
		}
	}
	st, err := readCardFile(path, s.opts.clock)
	if err != nil {
		return nil, err
	}
	if known != nil && known.sum == st.sum {
		same := *known // one text in memory is enough: the index asks for that one
		same.marks = st.marks
		st = &same
	}
	return s.judge(st), nil
}

package knowledgebase

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"anamnesis/knowledge_base/history"
	"anamnesis/knowledge_base/internal/disk"
	"anamnesis/knowledge_base/internal/folder"
)

const (
	// changePrefix names a change that is being written: found after a crash,
	// it is carried to its end.
	changePrefix = "change-"
	// writtenPrefix names one whose files are written and whose commit the
	// history could not take yet.
	writtenPrefix = "written-"

	// MaxChangeBytes is how many bytes of cards one change may write.
	MaxChangeBytes = 64 << 20
	// maxWaiting is how many changes may wait for their commit; beyond it the
	// oldest will be committed as edits by hand.
	maxWaiting = 1000
)

// programName is whom the program's commits are by.
func programName() history.Person {
	return history.Person{Name: "anamnesis", Email: "anamnesis@localhost"}
}

// intent is a change as it stands on disk while it is being made.
type intent struct {
	V       int            `json:"v"`
	Message string         `json:"message"`
	Author  history.Person `json:"author"`
	At      time.Time      `json:"at"`
	Files   []intentFile   `json:"files"`
	// Of a sync: the remote's commit, and whether the branch only moves to it.
	Theirs  string `json:"theirs,omitempty"`
	Forward bool   `json:"forward,omitempty"`
	// Of a redaction: the mark of the rewritten history it belongs to. Without that
	// it is not carried out.
	Mark string `json:"mark,omitempty"`

	path string // where it stands
}

// intentFile is one file of it. Cards are UTF-8, so their bytes are text.
type intentFile struct {
	Path   string `json:"path"`   // with slashes, within the folder
	Before string `json:"before"` // SHA-256 of what is replaced; "" for a new file
	Data   string `json:"data"`
	Gone   bool   `json:"gone,omitempty"` // the file is removed instead
	Blob   string `json:"blob,omitempty"` // the file is left out: its id; nothing is written

	committed bool // the current commit holds Data
}

// sum is what the file's sum is once the intent is carried out.
func (f *intentFile) sum() string {
	if f.Gone {
		return ""
	}
	return fileSum([]byte(f.Data))
}

func fileSum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// carryOut writes a planned change. Both locks are held, and the folder is
// settled.
func (s *Store) carryOut(ch Change, todo []planned) error {
	if len(todo) == 0 {
		return nil
	}
	in := intent{V: 1, Message: ch.Message, Author: programName(), At: s.opts.Now().UTC()}
	if ch.By == Person {
		in.Author = s.person()
	}
	if in.Message == "" {
		in.Message = describe(todo)
	}
	size := 0
	for _, p := range todo {
		rel, err := filepath.Rel(s.dir, p.Path)
		if err != nil {
			return err
		}
		f := intentFile{Path: filepath.ToSlash(rel), Data: string(p.data)}
		if p.old != nil {
			f.Before = hex.EncodeToString(p.old.Sum[:])
			if err := s.keepReplaced(p.old); err != nil {
				return err
			}
		}
		in.Files = append(in.Files, f)
		if size += len(p.data); size > MaxChangeBytes {
			return fmt.Errorf("the change has more than %d bytes; make it in parts", MaxChangeBytes)
		}
	}
	if ch.By == Person {
		if err := s.noteReviews(todo); err != nil {
			return fmt.Errorf("note the review: %w", err)
		}
	}
	in.path = filepath.Join(s.dir, indexDir, fmt.Sprintf("%s%020d.json", changePrefix, in.At.UnixNano()))
	if err := s.writeIntent(&in); err != nil {
		return err
	}
	if err := s.writeFiles(todo); err != nil {
		return errors.Join(err, s.takeBack(todo, in.path))
	}
	if err := s.take(todo); err != nil {
		return err
	}
	s.histErr = s.commitIntent(&in)
	for i, p := range todo {
		if st := s.cards[p.ID]; in.Files[i].committed && st != nil && st.Sum == sha256.Sum256(p.data) {
			s.setCommitted(st, true)
		}
	}
	return nil
}

func (s *Store) writeIntent(in *intent) error {
	data, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return disk.WriteAtomic(s.opts.fs, in.path, data)
}

func (s *Store) writeFiles(todo []planned) error {
	for _, p := range todo {
		if err := disk.MakeDir(s.opts.fs, filepath.Dir(p.Path)); err != nil {
			return err
		}
		if err := disk.WriteAtomic(s.opts.fs, p.Path, p.data); err != nil {
			return err
		}
	}
	return nil
}

// takeBack undoes a change that could not be written whole. Where that fails,
// too, the intent stays, and the next opening carries the change to its end.
func (s *Store) takeBack(todo []planned, intentPath string) error {
	for _, p := range todo {
		now, err := os.ReadFile(p.Path)
		if err != nil || !bytes.Equal(now, p.data) {
			continue // not written
		}
		if p.old != nil {
			err = disk.WriteAtomic(s.opts.fs, p.Path, p.old.Card().Source())
		} else {
			err = os.Remove(p.Path)
		}
		if err != nil {
			return fmt.Errorf("the change stays half made until the knowledge base is opened again: %w", err)
		}
	}
	return os.Remove(intentPath)
}

// describe is the message of a change nobody worded.
func describe(todo []planned) string {
	var list []string
	verb := ""
	for _, p := range todo {
		v := "Edit"
		switch {
		case p.old == nil:
			v = "Add"
		case p.card.ParsedID() == "":
			v = "Write anew"
		}
		if verb != "" && verb != v {
			v = "Change"
		}
		verb = v
		list = append(list, p.card.Topic)
	}
	if len(list) == 1 {
		return verb + " card: " + list[0]
	}
	return fmt.Sprintf("%s %d cards\n\n- %s", verb, len(list), strings.Join(list, "\n- "))
}

// settle ends what dead writers left, and commits what people changed. It
// holds both locks. Only trouble with the files is an error; that of the
// history is kept for [Store.HistoryError].
func (s *Store) settle() error {
	if err := s.endPending(); err != nil || s.opts.NoHistory || s.histErr != nil {
		return err
	}
	if s.histErr = s.openHistory(); s.histErr == nil {
		s.histErr = s.commitHandEdits()
	}
	return nil
}

func (s *Store) openHistory() (err error) {
	if s.repo == nil {
		s.repo, err = history.Create(s.dir, "/"+indexDir+"/", "/"+replacedDir+"/", "/"+usageFile, "/"+reviewsFile, "/"+ownReviewsFile, disk.TempMark+"*")
	}
	return err
}

// endPending carries the changes of dead writers to their end and commits
// what waits for it.
func (s *Store) endPending() error {
	s.histErr = nil
	if err := history.Settle(s.dir); err != nil {
		return err
	}
	pending, err := s.intents()
	if err != nil {
		return err
	}
	if pending, err = s.endRedactions(pending); err != nil {
		return err
	}
	for i := range pending {
		if err := s.finish(&pending[i]); err != nil {
			return err
		}
	}
	if len(pending) > 0 && !s.opts.NoHistory {
		s.histErr = s.openHistory()
	}
	for i := range pending {
		if err := s.commitIntent(&pending[i]); err != nil {
			s.histErr = err
			return nil
		}
	}
	return nil
}

// intents reads what is under way, oldest first. One that cannot be read is
// set aside.
func (s *Store) intents() ([]intent, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, indexDir))
	if err != nil {
		return nil, err
	}
	var out []intent
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), changePrefix) && !strings.HasPrefix(e.Name(), writtenPrefix) {
			continue
		}
		path := filepath.Join(s.dir, indexDir, e.Name())
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		in := intent{path: path}
		if err := json.Unmarshal(data, &in); err != nil || in.V != 1 || !in.safe() {
			if err := os.Rename(path, filepath.Join(s.dir, indexDir, "unreadable-"+e.Name())); err != nil {
				return nil, err
			}
			continue
		}
		out = append(out, in)
	}
	slices.SortFunc(out, func(a, b intent) int { return a.At.Compare(b.At) })
	return out, nil
}

// safe reports whether the intent names card files only; a sync's may name
// others within the folder.
func (in *intent) safe() bool {
	return !slices.ContainsFunc(in.Files, func(f intentFile) bool {
		return !folder.IsCardFile(f.Path) && (in.Theirs == "" && in.Mark == "" || !filepath.IsLocal(f.Path) || strings.HasPrefix(f.Path, "."))
	})
}

// finish writes what a dead writer did not come to. A file that holds neither
// what was there nor what was to be is somebody's own: it stays.
func (s *Store) finish(in *intent) error {
	if strings.HasPrefix(filepath.Base(in.path), writtenPrefix) {
		return nil
	}
	for _, f := range in.Files {
		if f.Blob != "" {
			continue
		}
		path := filepath.Join(s.dir, filepath.FromSlash(f.Path))
		sum, err := sumOf(path)
		if err != nil {
			return err
		}
		if sum != f.Before || sum == f.sum() {
			continue
		}
		if f.Gone {
			if err := os.Remove(path); err != nil {
				return err
			}
			continue
		}
		if err := disk.MakeDir(s.opts.fs, filepath.Dir(path)); err != nil {
			return err
		}
		if err := disk.WriteAtomic(s.opts.fs, path, []byte(f.Data)); err != nil {
			return err
		}
		if st, err := s.readCard(path); err == nil && s.cards != nil {
			s.remember(st)
		}
	}
	return nil
}

// sumOf is a file's sum, "" where there is none.
func sumOf(path string) (string, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return fileSum(data), err
}

// commitIntent commits the files that hold what the intent says and forgets
// the intent; when the history cannot take it now, it waits.
func (s *Store) commitIntent(in *intent) error {
	if s.opts.NoHistory {
		return os.Remove(in.path)
	}
	if s.repo == nil {
		return s.wait(in, s.histErr)
	}
	files, leftOut := make(map[string][]byte), make(map[string]string)
	for i := range in.Files {
		f := &in.Files[i]
		if f.Blob != "" {
			leftOut[f.Path] = f.Blob
			continue
		}
		now, err := sumOf(filepath.Join(s.dir, filepath.FromSlash(f.Path)))
		switch {
		case err != nil || now != f.sum():
		case f.Gone:
			files[f.Path] = nil
		default:
			files[f.Path], f.committed = []byte(f.Data), true
		}
	}
	if err := s.commitFiles(in, files, leftOut); err != nil {
		for i := range in.Files {
			in.Files[i].committed = false
		}
		return s.wait(in, err)
	}
	return os.Remove(in.path)
}

func (s *Store) commitFiles(in *intent, files map[string][]byte, leftOut map[string]string) error {
	c := history.Commit{Message: in.Message, Author: in.Author, By: programName(), At: in.At, Files: files, LeftOut: leftOut}
	switch {
	case in.Forward:
		// Files a user changed meanwhile are theirs to commit, on top.
		return s.repo.Forward(in.Theirs, files, leftOut)
	case in.Theirs != "":
		c.Merged = []string{in.Theirs}
	case len(files) == 0:
		return nil
	}
	id, err := s.repo.Commit(c)
	if err != nil {
		return err
	}
	// On top of another commit than that one, the other cards may be others.
	if after, err := s.repo.Parent(id); err != nil || after != s.clean {
		s.clean = ""
		return nil
	}
	s.clean = id
	return nil
}

// wait keeps the intent for a commit later.
func (s *Store) wait(in *intent, why error) error {
	name := filepath.Base(in.path)
	if strings.HasPrefix(name, writtenPrefix) {
		return why
	}
	dir := filepath.Join(s.dir, indexDir)
	waiting, err := fs.Glob(os.DirFS(dir), writtenPrefix+"*")
	if err == nil && len(waiting) >= maxWaiting {
		slices.Sort(waiting)
		err = os.Remove(filepath.Join(dir, waiting[0]))
	}
	to := filepath.Join(dir, writtenPrefix+strings.TrimPrefix(name, changePrefix))
	return errors.Join(why, err, os.Rename(in.path, to))
}

// HistoryError tells why the last change, or what people changed before it,
// is not in the history yet; nil when it is. The files are written all the
// same, and the next change tries again.
func (s *Store) HistoryError() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.histErr
}

// user is whom reviews and edits by hand are by.
func (s *Store) person() history.Person {
	if s.opts.Person != (history.Person{}) {
		return s.opts.Person
	}
	return history.Whoami(s.dir)
}

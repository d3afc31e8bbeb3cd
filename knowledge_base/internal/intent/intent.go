// Package intent records what a change does to the files of the folder before it is made, so that
// after a crash the whole change is completed.
package intent

import (
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
	"anamnesis/knowledge_base/internal/folder"
	"anamnesis/opstream/durable"
)

const (
	// changePrefix names a change that is being written: found after a crash,
	// it is carried to its end.
	changePrefix = "change-"
	// writtenPrefix names one whose files are written and whose commit the
	// history could not take yet.
	writtenPrefix = "written-"
	// maxWaiting is how many changes may wait for their commit; beyond it the
	// oldest will be committed as edits by hand.
	maxWaiting = 1000
)

// Intent is a change as it is on disk while it is being made.
type Intent struct {
	V       int            `json:"v"`
	Message string         `json:"message"`
	Author  history.Person `json:"author"`
	At      time.Time      `json:"at"`
	Files   []File         `json:"files"`
	// Of a sync: the remote's commit, and whether the branch only moves to it.
	Theirs  string `json:"theirs,omitempty"`
	Forward bool   `json:"forward,omitempty"`
	// Of a redaction: any mark.
	Mark string `json:"mark,omitempty"`

	Path string `json:"-"` // the intent's own file
}

// File is one file of it. Cards are UTF-8, so their bytes are text.
type File struct {
	Path   string `json:"path"`   // with slashes, within the folder
	Before string `json:"before"` // SHA-256 of what is replaced; "" for a new file
	Data   string `json:"data"`
	Gone   bool   `json:"gone,omitempty"` // the file is removed instead
	// Blob is set by earlier versions for a file that did not arrive: nothing is written.
	Blob string `json:"blob,omitempty"`
}

// Sum is the file's sum once the intent is carried out.
func (f *File) Sum() string {
	if f.Gone {
		return ""
	}
	return Sum([]byte(f.Data))
}

func Sum(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// New returns an intent of a moment, to be stored in the folder index.
func New(index string, at time.Time) Intent {
	at = at.UTC()
	return Intent{V: 1, At: at, Path: filepath.Join(index, fmt.Sprintf("%s%020d.json", changePrefix, at.UnixNano()))}
}

// Write stores the intent, durably.
func (in *Intent) Write(fsys durable.FS) error {
	data, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return durable.WriteFile(fsys, in.Path, data)
}

// Pending reads the intents in the folder index, oldest first. One that cannot be read is
// set aside.
func Pending(index string) ([]Intent, error) {
	entries, err := os.ReadDir(index)
	if err != nil {
		return nil, err
	}
	var out []Intent
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), changePrefix) && !strings.HasPrefix(e.Name(), writtenPrefix) {
			continue
		}
		path := filepath.Join(index, e.Name())
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		in := Intent{Path: path}
		if err := json.Unmarshal(data, &in); err != nil || in.V != 1 || !in.safe() {
			// An error here would bar every later change of the folder.
			if err := os.Rename(path, filepath.Join(index, "unreadable-"+e.Name())); err != nil {
				return nil, err
			}
			continue
		}
		out = append(out, in)
	}
	// Of two changes of one file, the later begins with what the earlier wrote.
	slices.SortFunc(out, func(a, b Intent) int { return a.At.Compare(b.At) })
	return out, nil
}

// safe reports whether the intent names card files only; a sync's may name
// others within the folder.
func (in *Intent) safe() bool {
	ofSync := in.Theirs != "" || in.Mark != ""
	return !slices.ContainsFunc(in.Files, func(f File) bool {
		within := filepath.IsLocal(f.Path) && !strings.HasPrefix(f.Path, ".")
		return !folder.IsCardFile(f.Path) && !(ofSync && within)
	})
}

// Put adds a file that the change writes: before is its present content, data the new one; nil is no file.
func (in *Intent) Put(path string, before, data []byte) {
	f := File{Path: path, Data: string(data), Gone: data == nil}
	if before != nil {
		f.Before = Sum(before)
	}
	in.Files = append(in.Files, f)
}

// Replay writes or removes the files of a dead writer's intent in the folder dir that are not as it says yet, and
// reports the path of each. A file whose content is neither the former nor the new one was changed by another program
// and stays. When Replay returns nil, the intent's files survive a power cut.
func (in *Intent) Replay(fsys durable.FS, dir string, changed func(path string)) error {
	if strings.HasPrefix(filepath.Base(in.Path), writtenPrefix) { // since then a file may have been changed back
		return nil
	}
	dirs := make(map[string]bool)
	for _, f := range in.Files {
		if f.Blob != "" {
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		dirs[filepath.Dir(path)] = true
		sum, err := SumOf(path)
		if err != nil {
			return err
		}
		if sum != f.Before || sum == f.Sum() {
			continue
		}
		if f.Gone {
			if err := fsys.Remove(path); err != nil {
				return err
			}
			changed(path)
			continue
		}
		if err := durable.MakeDir(fsys, filepath.Dir(path)); err != nil {
			return err
		}
		if err := durable.WriteFile(fsys, path, []byte(f.Data)); err != nil {
			return err
		}
		changed(path)
	}
	// The caller removes the intent next: a removal that is not durable, also one by the dead writer, would be undone
	// by a power cut, and the file would then be committed as an edit by hand.
	for dir := range dirs {
		if err := fsys.SyncDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// SumOf is a file's sum, "" where there is none.
func SumOf(path string) (string, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return Sum(data), err
}

// Wait keeps the intent for a commit later; why is returned.
func (in *Intent) Wait(why error) error {
	name := filepath.Base(in.Path)
	if strings.HasPrefix(name, writtenPrefix) {
		return why
	}
	dir := filepath.Dir(in.Path)
	waiting, err := fs.Glob(os.DirFS(dir), writtenPrefix+"*")
	if err == nil && len(waiting) >= maxWaiting {
		slices.Sort(waiting)
		err = os.Remove(filepath.Join(dir, waiting[0]))
	}
	to := filepath.Join(dir, writtenPrefix+strings.TrimPrefix(name, changePrefix))
	return errors.Join(why, err, os.Rename(in.Path, to))
}

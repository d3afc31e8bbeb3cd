package facts

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"anamnesis/opstream/durable"
)

const (
	version      = 1
	maxTasks     = 1_000 // the last ones are kept
	maxFileBytes = 64 << 20
)

// Errors of a repository's file. Nothing of it is believed, and it stays as it is.
var (
	ErrNewer   = errors.New("facts of a newer program")
	ErrDamaged = errors.New("facts that cannot be read")
)

// Repo is the tasks of one repository, on the disk. It is read when it is opened; Add and Correct read it again.
type Repo struct {
	Tasks []Task
	Lines map[string]string // a user's words by the ID of a fact; empty: the fact is not told
	dir   string
	ids   []string
	first func() string
}

// file is what the file of a repository holds. Another name of it has a file that names the first.
type file struct {
	V     int               `json:"v"`
	Same  string            `json:"same,omitempty"`
	IDs   []string          `json:"ids,omitempty"`
	Lines map[string]string `json:"lines,omitempty"`
	Tasks []Task            `json:"tasks,omitempty"`
}

// Open reads the facts of the repository that has these identities. Dir is the folder of all repositories'
// facts; it need not exist. first returns one more identity, at a cost: it is asked where the others are not
// known, and once when the repository's first task is added.
func Open(dir string, ids []string, first func() string) (*Repo, error) {
	r := &Repo{dir: dir, ids: ids, first: sync.OnceValue(first)}
	_, f, err := r.read()
	r.Tasks, r.Lines = f.Tasks, f.Lines
	return r, err
}

func (r *Repo) path(id string) string {
	sum := sha256.Sum256([]byte(id))
	return filepath.Join(r.dir, hex.EncodeToString(sum[:8])+".json")
}

// read returns the repository's file and its path.
func (r *Repo) read() (path string, f file, err error) {
	for _, id := range r.ids {
		if path, f, err = readFile(r.path(id)); !errors.Is(err, fs.ErrNotExist) {
			return path, f, err
		}
	}
	if id := r.first(); id != "" {
		r.ids = append(r.ids, id)
		if path, f, err = readFile(r.path(id)); !errors.Is(err, fs.ErrNotExist) {
			return path, f, err
		}
	}
	if len(r.ids) == 0 {
		return "", file{}, errors.New("a repository without an identity")
	}
	return r.path(r.ids[0]), file{}, nil
}

// readFile reads a repository's file, or the one that it names.
func readFile(path string) (string, file, error) {
	for hop := 0; ; hop++ {
		var f file
		data, err := durable.ReadFile(path, maxFileBytes)
		if errors.Is(err, fs.ErrNotExist) {
			return path, f, err
		}
		if err == nil {
			err = json.Unmarshal(data, &f)
		}
		switch {
		case f.V > version:
			return path, file{}, fmt.Errorf("%w: %s; use the newer program", ErrNewer, path)
		case err != nil || f.V < 1 || hop > 0 && f.Same != "":
			return path, file{}, fmt.Errorf("%w: %s: %v", ErrDamaged, path, cmp.Or(err, errors.New("not such a file")))
		case f.Same == "":
			return path, f, nil
		}
		path = filepath.Join(filepath.Dir(path), filepath.Base(f.Same))
	}
}

// change applies do to what the file holds now. A damaged file is kept under another name.
func (r *Repo) change(do func(f *file)) error {
	if err := os.MkdirAll(r.dir, durable.DirMode); err != nil {
		return err
	}
	lock, err := durable.Lock(filepath.Join(r.dir, "lock"))
	if err != nil {
		return err
	}
	defer lock.Close()
	path, f, err := r.read()
	if errors.Is(err, ErrDamaged) {
		f, err = file{}, os.Rename(path, path+".damaged-"+time.Now().UTC().Format("20060102T150405"))
	}
	if err != nil {
		return err
	}
	if id := r.first(); len(f.IDs) == 0 && id != "" && !slices.Contains(r.ids, id) {
		r.ids = append(r.ids, id)
	}
	f.V = version
	do(&f)
	f.Tasks = f.Tasks[max(0, len(f.Tasks)-maxTasks):]
	had := f.IDs
	for _, id := range r.ids {
		if !slices.Contains(f.IDs, id) {
			f.IDs = append(f.IDs, id)
		}
	}
	if err := write(path, &f); err != nil {
		return err
	}
	for _, id := range f.IDs[len(had):] {
		if other := r.path(id); other != path {
			if err := write(other, &file{V: version, Same: filepath.Base(path)}); err != nil {
				return err
			}
		}
	}
	r.Tasks, r.Lines = f.Tasks, f.Lines
	return nil
}

func write(path string, f *file) error {
	data, err := json.Marshal(f)
	if err != nil {
		return err
	}
	return durable.WriteFile(durable.OS{}, path, append(data, '\n'))
}

// Add counts tasks in. One that was counted before is replaced.
func (r *Repo) Add(tasks ...Task) error {
	return r.change(func(f *file) {
		for _, t := range tasks {
			f.Tasks = slices.DeleteFunc(f.Tasks, func(o Task) bool { return o.ID == t.ID })
			at, _ := slices.BinarySearchFunc(f.Tasks, t, func(a, b Task) int { return a.Ended.Compare(b.Ended) })
			for at < len(f.Tasks) && f.Tasks[at].Ended.Equal(t.Ended) {
				at++
			}
			f.Tasks = slices.Insert(f.Tasks, at, t)
		}
	})
}

// Correct sets the line that is told instead of a fact; with an empty one nothing is told of it.
func (r *Repo) Correct(id, line string) error {
	return r.change(func(f *file) {
		if f.Lines == nil {
			f.Lines = map[string]string{}
		}
		f.Lines[id] = line
	})
}

// Facts returns what the tasks bear out, as the user corrected it.
func (r *Repo) Facts() []Fact {
	var out []Fact
	for _, f := range Count(r.Tasks) {
		line, corrected := r.Lines[f.ID()]
		if f.Line = line; !corrected || line != "" {
			out = append(out, f)
		}
	}
	return out
}

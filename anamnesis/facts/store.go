package facts

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/durable"
)

const (
	version      = 1
	maxTasks     = 1_000 // the last ones are kept
	maxFileBytes = 64 << 20
	MaxLine      = 200 // of a user's words for a fact: all facts share 150 tokens
)

// Errors of a repository's file. Nothing of it is believed, and it is kept.
var (
	ErrNewer   = errors.New("facts of a newer program")
	ErrDamaged = errors.New("facts that cannot be read")
)

// Repo is the tasks of one repository, on the disk. Add and Correct read them again.
type Repo struct {
	file
	dir   string
	at    string // where the reader is, relative to the top of the repository
	ids   []string
	first func() string
}

type file struct {
	V     int               `json:"v"`
	IDs   []string          `json:"ids,omitempty"`   // of the repository; links of these names lead here
	Lines map[string]string `json:"lines,omitempty"` // a user's words by the ID of a fact; empty: it is not told
	Tasks []Task            `json:"tasks,omitempty"`
}

// Open reads the facts of the repository that has these identities, for a reader who is at a path within it. Dir is
// the folder of all repositories' facts; it need not exist. first returns one more identity, at a cost: it is asked
// where the others are not known, and once when the repository's first task is added.
func Open(dir, at string, ids []string, first func() string) (*Repo, error) {
	r := &Repo{dir: dir, at: at, ids: ids, first: sync.OnceValue(first)}
	_, err := r.read()
	return r, err
}

func (r *Repo) path(id string) string {
	sum := sha256.Sum256([]byte(id))
	return filepath.Join(r.dir, hex.EncodeToString(sum[:8])+".json")
}

// askFirst adds the identity that is known at a cost.
func (r *Repo) askFirst() {
	if id := r.first(); id != "" {
		r.ids = append(r.ids, id)
	}
}

// read reads the repository's file and returns its path.
func (r *Repo) read() (string, error) {
	known := func(id string) bool { _, err := os.Stat(r.path(id)); return err == nil }
	at := slices.IndexFunc(r.ids, known)
	if at < 0 {
		r.askFirst()
		// A repository that has no file yet gets one under its first identity.
		at = max(0, slices.IndexFunc(r.ids, known))
	}
	r.file = file{}
	path := r.path(r.ids[at])
	// Further identities are links to the file. Writing replaces a name by a new file, so it must not replace a link.
	if to, err := filepath.EvalSymlinks(path); err == nil {
		path = to
	}
	data, err := durable.ReadFile(path, maxFileBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &r.file)
	}
	switch v := r.V; {
	case v > version:
		r.file = file{}
		return path, fmt.Errorf("%w: %s; use the newer program", ErrNewer, path)
	case err != nil || v < 1:
		r.file = file{}
		return path, fmt.Errorf("%w: %s: %v", ErrDamaged, path, err)
	}
	return path, nil
}

// change applies do to what the file holds now. A damaged file is kept under another name.
func (r *Repo) change(do func()) error {
	if err := os.MkdirAll(r.dir, durable.DirMode); err != nil {
		return err
	}
	lock, err := durable.Lock(filepath.Join(r.dir, "lock"))
	if err != nil {
		return err
	}
	defer lock.Close()
	path, err := r.read()
	if errors.Is(err, ErrDamaged) {
		err = os.Rename(path, path+".damaged-"+time.Now().UTC().Format("20060102T150405"))
	}
	if err != nil {
		return err
	}
	if len(r.IDs) == 0 {
		r.askFirst()
	}
	r.V = version
	do()
	r.Tasks = r.Tasks[max(0, len(r.Tasks)-maxTasks):]
	for _, id := range r.ids {
		if !slices.Contains(r.IDs, id) {
			r.IDs = append(r.IDs, id)
		}
	}
	data, err := json.Marshal(r.file)
	if err == nil {
		err = durable.WriteFile(durable.OS{}, path, append(data, '\n'))
	}
	// Each ID of the repository leads to the file by a link, so that another clone finds it.
	for _, id := range r.ids {
		if err == nil {
			// Links follow the file: after a crash between, only a link is missing, which the next change adds.
			if err = os.Symlink(filepath.Base(path), r.path(id)); errors.Is(err, fs.ErrExist) {
				err = nil
			}
		}
	}
	return err
}

// Add counts tasks in. One that was counted before is replaced.
func (r *Repo) Add(tasks ...Task) error {
	return r.change(func() {
		for _, t := range tasks {
			r.Tasks = slices.DeleteFunc(r.Tasks, func(o Task) bool { return o.ID == t.ID })
			r.Tasks = append(r.Tasks, t)
		}
		slices.SortStableFunc(r.Tasks, func(a, b Task) int { return a.Ended.Compare(b.Ended) })
	})
}

// Correct sets the line that is told instead of a fact; with an empty one nothing is told of it.
func (r *Repo) Correct(id, line string) error {
	return r.change(func() {
		if r.Lines == nil {
			r.Lines = map[string]string{}
		}
		r.Lines[id] = line
	})
}

// Facts returns what the tasks bear out, as the user corrected it. A user's line stays when they do no more.
func (r *Repo) Facts() []Fact {
	var out []Fact
	lines := maps.Clone(r.Lines)
	for _, f := range Count(r.Tasks) {
		line, corrected := lines[f.ID()]
		delete(lines, f.ID())
		if f.Kind == Works || f.Kind == Never {
			f.Dir = relative(r.at, f.Dir)
		}
		if f.Line = oneLine(line); !corrected || line != "" {
			out = append(out, f)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(lines)) {
		if kind, match, _ := strings.Cut(id, ":"); lines[id] != "" {
			out = append(out, Fact{Kind: Kind(kind), Match: match, Line: oneLine(lines[id])})
		}
	}
	return out
}

func oneLine(s string) string { return quote.Shorten(s, MaxLine) }

// relative returns a fact's directory as seen from another one; both are within the repository, or it is absolute.
func relative(from, dir string) string {
	switch rel, err := filepath.Rel(from, cmp.Or(dir, ".")); {
	case err != nil:
		return dir
	case rel == ".":
		return ""
	default:
		return rel
	}
}

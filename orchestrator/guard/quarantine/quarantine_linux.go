package quarantine

import (
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

	"anamnesis/orchestrator/statefile"
)

// Quarantine keeps git in a world from running, outside the sandbox, what commands wrote. The
// gitFiles that exist when a command starts are read-only for it; new or changed ones are
// moved, when it ends, into a directory of the program's state, except for inert settings.
//
// While commands overlap, the tree before the first of them is the base for comparison. A task
// whose process died is compared when it continues.
type Quarantine struct {
	dir      string // where files are moved to; its record lies in it
	world    string
	skip     []string // the program's own directories
	writable []string // where commands may write freely

	mu      sync.Mutex
	known   map[string]plainDir
	limit   int // of directories
	running int
	record  gitRecord
	lost    bool // record.Before is of a process that died, or of a command whose files were not all examined
	earlier string
}

// gitRecord is stored between commands, and processes.
type gitRecord struct {
	// Own are the git directories, with their inode, and the files that lead to one, which
	// this task's commands made. They stay writable while they are inert.
	Own map[string]string `json:"own,omitempty"`
	// Before is the tree before the running commands; nil: none runs.
	Before *gitTree `json:"before,omitempty"`
}

// maxQuarantineLines bounds the files that a report names.
const maxQuarantineLines = 10

// Options configure a Quarantine.
type Options struct {
	Dir      string // where files are moved to
	World    string
	Skip     []string // directories of the world that are the program's own
	Writable []string // where commands may write freely
}

// Open reads the record of an earlier process and, if that died while a command ran, examines
// what the command left.
func Open(o Options) (*Quarantine, error) {
	q := &Quarantine{limit: maxGitDirs, dir: o.Dir, world: o.World, skip: o.Skip, writable: o.Writable}
	data, err := os.ReadFile(q.file())
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("read what git directories there were: %w", err)
	case json.Unmarshal(data, &q.record) != nil: // half written: nothing is known, so nothing is writable
		q.record = gitRecord{}
	}
	if q.record.Own == nil {
		q.record.Own = map[string]string{}
	}
	if q.lost = q.record.Before != nil; q.lost {
		q.earlier = q.check()
		q.lost = true // until a command begins: a process of the earlier one may still write
	}
	return q, nil
}

func (q *Quarantine) file() string { return filepath.Join(q.dir, "git.json") }

func (q *Quarantine) scan() (tree gitTree, err error) {
	tree, q.known, err = scanGit(q.world, q.skip, q.known, q.limit)
	return tree, err
}

// Begin is called before a command starts and returns what it must not write.
func (q *Quarantine) Begin() ([]string, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lost {
		q.earlier = JoinNotes(q.earlier, q.check())
		if q.lost {
			err := errors.New(q.earlier)
			q.earlier = ""
			return nil, err
		}
	}
	if q.running == 0 {
		now, err := q.scan()
		if err != nil {
			return nil, err
		}
		q.record.Before = &now
		q.forgetOwn(now)
		if err := q.keep(); err != nil {
			return nil, err
		}
	}
	q.running++
	return q.closed(), nil
}

// End is called when no process of a command is alive any more. It returns what was
// quarantined, for the user and the model.
func (q *Quarantine) End() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	note := JoinNotes(q.earlier, q.check())
	q.earlier = ""
	if q.running--; q.running == 0 && !q.lost {
		q.record.Before = nil
	}
	if err := q.keep(); err != nil {
		note = JoinNotes(note, err.Error())
	}
	return note
}

// JoinNotes joins the notes that are not empty.
func JoinNotes(notes ...string) string {
	return strings.Join(slices.DeleteFunc(notes, func(n string) bool { return n == "" }), "]\n[")
}

func (q *Quarantine) keep() error {
	data, err := json.Marshal(q.record)
	if err == nil {
		err = statefile.Replace(q.file(), data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("keep what git directories there are: %w", err)
	}
	return nil
}

// closed lists what the next command must not write.
func (q *Quarantine) closed() []string {
	var out []string
	add := func(rel string) { out = append(out, filepath.Join(q.world, rel)) }
	for dir := range q.record.Before.Dirs {
		if _, own := q.record.Own[dir]; !own {
			add(filepath.Join(dir, "hooks"))
		}
	}
	for rel := range q.record.Before.Files {
		if !leads(rel) && !isConfig(rel) {
			continue // hooks are closed as a whole; a rebase that continues writes its state
		}
		_, own := q.record.Own[rel]
		if _, in := q.record.Own[gitDirOf(rel)]; !own && !in {
			add(rel)
		}
	}
	slices.Sort(out)
	return out
}

// gitDirOf returns the git directory that contains a file.
func gitDirOf(rel string) string {
	dir := filepath.Dir(rel)
	if slices.Contains(gitStateDirs, strings.ToLower(filepath.Base(dir))) {
		return filepath.Dir(dir)
	}
	return dir
}

// forgetOwn drops from Own what is gone, and what the user has since changed in a way that is
// not inert.
func (q *Quarantine) forgetOwn(now gitTree) {
	for rel, inode := range q.record.Own {
		f, isFile := now.Files[rel]
		if now.Dirs[rel] != inode && (!isFile || f.Inode != inode) {
			delete(q.record.Own, rel)
		}
	}
	for rel, f := range now.Files {
		if q.judge(now, rel, f, gitFile{}).move {
			delete(q.record.Own, rel)
			delete(q.record.Own, gitDirOf(rel))
		}
	}
}

// verdict is the decision on a file.
type verdict struct {
	move    bool
	kept    string   // its replacement; empty: none
	dropped []string // of a configuration: what is removed
}

// judge decides on a new or changed file. Its earlier content counts as the user's.
func (q *Quarantine) judge(now gitTree, rel string, f, was gitFile) verdict {
	base := strings.ToLower(filepath.Base(rel))
	before := was.Text
	if was.Kind != "file" {
		before = ""
	}
	switch {
	case f.Kind != "other" && leads(rel):
		to := f.Leads
		in, err := filepath.Rel(q.world, to)
		_, known := now.Dirs[in]
		given := slices.ContainsFunc(q.writable, func(dir string) bool { return Within(to, dir) })
		return verdict{move: to == "" || err != nil || !known && !given, kept: before}
	case f.Kind != "file" || f.Large:
	case isStateFile(rel) && !isConfig(rel):
		return verdict{kept: before, move: !inertState(base, f.Text, before)}
	case isConfig(rel):
		place := configPlace{dir: filepath.Dir(filepath.Join(q.world, rel)), world: q.world, own: q.skip, trusted: configLines(before), led: was.Leads}
		kept, dropped := place.inert(f.Text)
		return verdict{move: len(dropped) > 0, kept: kept, dropped: dropped}
	}
	return verdict{move: true, kept: before}
}

// check compares the world with the tree before and quarantines what is new or changed. It
// returns a report; empty: nothing was.
func (q *Quarantine) check() string {
	now, err := q.scan() // a partial result also counts
	q.lost = err != nil
	before := q.record.Before
	moved := map[string]string{} // earlier files, by inode
	for rel, f := range before.Files {
		moved[f.Inode+filepath.Base(rel)] = f.Sum
	}
	var lines []string
	if err != nil {
		lines = append(lines, err.Error()+"; what git would run in the others was not looked at, and no command starts until it is")
	}
	into := ""
	for _, rel := range sortedKeys(now.Files) {
		f, was := now.Files[rel], before.Files[rel]
		same := was.Sum == f.Sum || moved[f.Inode+filepath.Base(rel)] == f.Sum
		if same && (f.Links == 1 || f.Links <= was.Links) || q.isWritable(rel) {
			continue
		}
		v := q.judge(now, rel, f, was)
		if !same && v.move {
			line, err := q.move(rel, v, &into)
			if err != nil {
				line = fmt.Sprintf("%s can make git run programs outside the sandbox and could not be taken away: %v; do not use git there", rel, err)
			}
			lines = append(lines, line)
			continue
		}
		if f.Links > 1 && f.Kind == "file" { // writes through its other name would go unnoticed
			if err := q.replace(rel, f.Text); err != nil {
				lines = append(lines, fmt.Sprintf("%s has another name and could not be parted from it: %v; do not use git there", rel, err))
			}
		}
		if leads(rel) && was.Sum == "" {
			q.record.Own[rel] = f.Inode
		}
	}
	lines = append(lines, q.lostRepositories(*before, now)...)
	known := map[string]bool{}
	for _, inode := range before.Dirs {
		known[inode] = true
	}
	for rel, inode := range now.Dirs {
		if !known[inode] {
			q.record.Own[rel] = inode
		}
	}
	if n := len(lines) - maxQuarantineLines; n > 0 {
		lines = append(lines[:maxQuarantineLines], fmt.Sprintf("quarantine: %d more files are in %s", n, into))
	}
	return JoinNotes(lines...)
}

// lostRepositories reports repositories that existed before the task and are missing.
// Snapshots do not hold .git, so no jump restores one.
func (q *Quarantine) lostRepositories(before, now gitTree) []string {
	var lines []string
	for _, rel := range slices.Sorted(maps.Keys(before.Heads)) {
		if _, own := q.record.Own[rel]; own || now.Heads[rel] || strings.Contains(rel, ".git/worktrees/") {
			continue
		}
		at := ""
		for to, inode := range now.Dirs {
			if inode == before.Dirs[rel] && to != rel && now.Heads[to] {
				at = to
			}
		}
		if at == "" {
			lines = append(lines, fmt.Sprintf("the git repository %s is missing or has no HEAD: snapshots do not contain it, and no jump restores it", rel))
		} else {
			lines = append(lines, fmt.Sprintf("the git repository %s was moved to %s: a jump does not move it back", rel, at))
		}
	}
	return lines
}

func sortedKeys(m map[string]gitFile) []string { return slices.Sorted(maps.Keys(m)) }

func (q *Quarantine) isWritable(rel string) bool {
	abs := filepath.Join(q.world, rel)
	return slices.ContainsFunc(q.writable, func(dir string) bool { return Within(abs, dir) })
}

// move moves a file out of the world and reports it. into is the directory for everything one
// command leaves; it is created on first use.
func (q *Quarantine) move(rel string, v verdict, into *string) (string, error) {
	if *into == "" {
		var err error
		if *into, err = os.MkdirTemp(q.dir, time.Now().UTC().Format("20060102-150405-")); err != nil {
			return "", err
		}
	}
	to := filepath.Join(*into, rel)
	root, err := os.OpenRoot(q.world) // no link leads out of it, even one swapped in meanwhile
	if err != nil {
		return "", err
	}
	defer root.Close()
	beside := ""
	if v.kept != "" || v.dropped != nil { // written before the old one is removed
		if beside, err = writeBeside(root, rel, v.kept); err != nil {
			beside = ""
		}
	}
	written := err
	err = os.MkdirAll(filepath.Dir(to), 0o700)
	if err == nil {
		err = takeOut(root, rel, to)
	}
	if err != nil { // no space, or too long a path: keep it there, under a name that git ignores
		if to, err = disarm(root, rel); err != nil {
			return "", err
		}
		to = filepath.Join(q.world, to)
	}
	if beside != "" {
		if err := root.Rename(beside, rel); err != nil {
			return "", err
		}
	}
	if to == q.world {
		return fmt.Sprintf("quarantine: %s was removed, because git could run a program by it, outside the sandbox, and it could not be kept", firstLine(rel)), nil
	}
	if written != nil {
		return fmt.Sprintf("quarantine: %s was removed, and its earlier content could not be written: %v; that is in %s, and the removed file in %s", firstLine(rel), written, q.file(), shellQuote(to)), nil
	}
	what := "moved out of the directory, because git could run a program by it, outside the sandbox"
	switch {
	case v.dropped != nil:
		what = "rewritten without settings by which git could run a program or use other files: " + strings.Join(v.dropped[:min(len(v.dropped), maxQuarantineLines)], ", ")
	case v.kept != "":
		what = "set back to what it was, because git could run a program by it, outside the sandbox"
	}
	return fmt.Sprintf("quarantine: %s was %s. It is kept; a user who wants it back runs: cp -P %s %s", firstLine(rel), what, shellQuote(to), shellQuote(filepath.Join(q.world, rel))), nil
}

func shellQuote(s string) string {
	if strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(firstLine(s), "'", `'\''`) + "'"
}

// firstLine shows control characters as question marks.
func firstLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, s)
}

// Look quarantines what a running command has left so far, and returns a report; empty:
// nothing.
func (q *Quarantine) Look() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running == 0 {
		return ""
	}
	note := JoinNotes(q.earlier, q.check())
	q.earlier = ""
	if err := q.keep(); err != nil {
		note = JoinNotes(note, err.Error())
	}
	return note
}

// Earlier reports what was quarantined of a command whose program died; empty: nothing.
func (q *Quarantine) Earlier() string { return q.earlier }

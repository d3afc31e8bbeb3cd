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

	"anamnesis/anamnesis/shell"
	"anamnesis/opstream/durable"
)

// Quarantine keeps git in a world from running, outside the sandbox, what commands wrote. The
// gitFiles that exist when a command starts are read-only for it; new or changed ones are
// moved, as they appear and when it ends, into a directory of the program's state, except for
// inert settings.
//
// While commands overlap, the tree before the first of them is the base for comparison. What a
// process that died left is compared by the next that opens the directory; see Recover.
type Quarantine struct {
	o Options // its record lies in Dir

	mu      sync.Mutex
	now     gitTree // as of the newest scan
	known   map[string]plainDir
	limit   int // of directories
	running int
	record  gitRecord
	lost    bool     // record.Before is of a process that died, or of a command whose files were not all examined
	run     *os.File // its record in runs, locked; nil: no command runs
	watcher *watcher // nil: no command runs
	idle    *watcher // for the next command
	notes   []string // of what was taken out while commands run
	into    string   // where it is
	takes   int
}

// gitRecord is stored between commands, and processes.
type gitRecord struct {
	// Own are the git directories, with their inode, and the files that lead to one, which
	// this task's commands made. They stay writable while they are inert.
	Own map[string]string `json:"own,omitempty"`
	// Before is the tree before the running commands; nil: none runs.
	Before *gitTree `json:"before,omitempty"`
	// Earlier is a report that no command's result has shown yet.
	Earlier string `json:"earlier,omitempty"`
}

const (
	// maxQuarantineLines bounds the files that a report names.
	maxQuarantineLines = 10
	// maxTakes is how often files are moved to a directory of their own while commands run.
	// Later a newer version replaces an older one.
	maxTakes = 100
)

// keptText ends the part of a report that is the same for the same change.
const keptText = ". It is kept"

// Options configure a Quarantine.
type Options struct {
	Dir      string // where files are moved to
	World    string
	Skip     []string // directories of the world that are the program's own
	Writable []string // where commands may write freely
	// Runs is where running commands are recorded, for Recover; empty: they are not.
	Runs string
}

// Open reads the record of an earlier process and, if that died while a command ran, examines
// what the command left.
func Open(o Options) (*Quarantine, error) {
	q, err := load(o)
	if err == nil && q.record.Before != nil {
		q.record.Earlier = JoinNotes(q.record.Earlier, q.check())
		q.lost = true // until a command begins: a process of the earlier one may still write
	}
	return q, err
}

func load(o Options) (*Quarantine, error) {
	q := &Quarantine{limit: maxGitDirs, o: o}
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
	return q, nil
}

func (q *Quarantine) file() string { return filepath.Join(q.o.Dir, "git.json") }

// Begin is called before a command starts and returns what it must not write.
func (q *Quarantine) Begin() ([]string, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lost {
		note := q.check()
		q.record.Earlier = JoinNotes(q.record.Earlier, note)
		if q.lost {
			q.record.Earlier = ""
			return nil, errors.New(note)
		}
	}
	if q.running == 0 {
		if err := q.begin(); err != nil {
			return nil, err
		}
	}
	q.running++
	return q.closed(), nil
}

// begin records the tree before the first command, and watches it.
func (q *Quarantine) begin() (err error) {
	w := q.idle
	if q.idle = nil; w == nil {
		w = newWatcher(q.o.World)
	}
	// What happened between commands is the user's: the scan takes it as it is.
	if w != nil {
		w.drain()
		w.stop.Store(false)
		w.done = make(chan struct{})
	}
	q.watcher = w
	defer func() {
		if err != nil {
			q.watcher, q.idle = nil, w
		}
	}()
	if err := q.scanAll(nil); err != nil {
		return err
	}
	q.now.Named = q.namedPaths(q.now)
	q.scanNamed()
	before := q.now.clone()
	q.record.Before = &before
	q.forgetOwn(q.now)
	q.notes, q.into, q.takes = nil, "", 0
	if err := q.keep(durable.Rewrite); err != nil {
		return err
	}
	if err := q.recordRun(); err != nil {
		return err
	}
	if w != nil {
		go q.follow(w)
	}
	return nil
}

// End is called when no process of a command is alive any more. It returns what was
// quarantined, for the user and the model.
func (q *Quarantine) End() string {
	q.mu.Lock()
	var w *watcher
	if q.running == 1 {
		w, q.watcher = q.watcher, nil
	}
	if w != nil {
		q.mu.Unlock() // follow, which end waits for, takes the lock
		w.end()
		q.mu.Lock()
	}
	defer q.mu.Unlock()
	note := q.report()
	if q.running--; q.running == 0 {
		if !q.lost {
			q.record.Before = nil
			q.forgetRun()
		}
		q.idle = w
	}
	if err := q.keep(durable.Replace); err != nil {
		note = JoinNotes(note, err.Error())
	}
	return note
}

// Around runs move, which changes files of the world without a command, and quarantines what git
// would run by them. It returns a report as End does.
func (q *Quarantine) Around(move func() error) (note string, err error) {
	if _, err := q.Begin(); err != nil {
		return err.Error(), move()
	}
	q.mu.Lock() // nothing is taken out before all files are there
	err = move()
	q.mu.Unlock()
	return q.End(), err
}

// JoinNotes joins the notes that are not empty.
func JoinNotes(notes ...string) string {
	return strings.Join(slices.DeleteFunc(notes, func(n string) bool { return n == "" }), "]\n[")
}

func (q *Quarantine) keep(write func(string, []byte, fs.FileMode) error) error {
	data, _ := json.Marshal(q.record) // texts always encode
	if err := write(q.file(), data, 0o600); err != nil {
		return fmt.Errorf("keep what git directories there are: %w", err)
	}
	return nil
}

// clone copies a tree whose files the following scans add and remove.
func (t gitTree) clone() gitTree {
	t.Dirs, t.Heads, t.Files = maps.Clone(t.Dirs), maps.Clone(t.Heads), maps.Clone(t.Files)
	return t
}

// closed lists what the next command must not write.
func (q *Quarantine) closed() []string {
	var out []string
	add := func(rel string) { out = append(out, filepath.Join(q.o.World, rel)) }
	for rel := range q.record.Before.Named {
		add(rel)
	}
	for dir := range q.record.Before.Dirs {
		if _, own := q.record.Own[dir]; !own {
			add(filepath.Join(dir, "hooks"))
		}
	}
	for rel := range q.record.Before.Files {
		if isStateFile(rel) && !isConfig(rel) {
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

func gitDirOf(path string) string {
	if isStateFile(path) {
		path = filepath.Dir(path)
	}
	return filepath.Dir(path)
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
		if q.judge(rel, f, gitFile{}, false).move {
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

// judge decides on a new or changed file. Its earlier content counts as the user's. While
// commands run (live), what is unfinished or needs another step of the user's stays.
func (q *Quarantine) judge(rel string, f, was gitFile, live bool) verdict {
	base := strings.ToLower(filepath.Base(rel))
	before := was.Text
	if was.Kind != "file" {
		before = ""
	}
	switch {
	case f.Kind != "other" && leads(rel):
		to := f.Leads
		in, err := filepath.Rel(q.o.World, to)
		_, known := q.now.Dirs[in]
		if live && base != "commondir" && (to == "" || Within(to, q.o.World)) {
			return verdict{} // a repository there is one of now.Dirs, or is not complete
		}
		given := WithinAny(to, q.o.Writable)
		return verdict{move: to == "" || err != nil || !known && !given, kept: before}
	case live && f.Kind == "link" && !strings.Contains(f.Text, "/") && !exists(f.Leads):
		return verdict{} // a trial by git, a lock of Mercurial
	case live && isStateFile(rel) && !slices.Contains(gitRunDirs, strings.ToLower(filepath.Base(filepath.Dir(rel)))):
		return verdict{} // of a rebase that runs; git runs it when the user continues it
	case f.Kind != "file" || f.Large:
	case isStateFile(rel) && !isConfig(rel):
		return verdict{kept: before, move: !inertState(base, f.Text, before)}
	case isConfig(rel) || q.now.Named[rel] == namedConfig:
		place := configPlace{dir: filepath.Dir(filepath.Join(q.o.World, rel)), world: q.o.World, own: q.o.Skip,
			trusted: configLines(before), led: was.Leads}
		kept, dropped := place.inert(f.Text)
		return verdict{move: len(dropped) > 0, kept: kept, dropped: dropped}
	}
	return verdict{move: true, kept: before}
}

// check compares the world with the tree before and quarantines what is new or changed. It
// returns a report; empty: nothing was.
func (q *Quarantine) check() string {
	before := q.record.Before
	err := q.scanAll(before.Named) // a partial result also counts
	q.lost = err != nil
	var lines []string
	if err != nil {
		lines = append(lines, err.Error()+"; what git would run in the others was not looked at, and no command "+
			"starts until it is")
	}
	q.examine(sortedKeys(q.now.Files), false)
	lines = append(lines, q.notes...)
	q.notes = nil
	lines = append(lines, q.lostRepositories(*before, q.now)...)
	known := map[string]bool{}
	for _, inode := range before.Dirs {
		known[inode] = true
	}
	for rel, inode := range q.now.Dirs {
		if !known[inode] {
			q.record.Own[rel] = inode
		}
	}
	if n := len(lines) - maxQuarantineLines; n > 0 {
		lines = append(lines[:maxQuarantineLines], fmt.Sprintf("quarantine: %d more files are in %s", n, q.into))
	}
	return JoinNotes(lines...)
}

// examine quarantines files of the newest scan that are new or changed, and notes it.
func (q *Quarantine) examine(files []string, live bool) {
	before := q.record.Before
	moved := map[string]string{} // earlier files, by inode
	for rel, f := range before.Files {
		moved[f.Inode+filepath.Base(rel)] = f.Sum
	}
	if q.takes < maxTakes {
		q.into = ""
	}
	for _, rel := range files {
		f, ok := q.now.Files[rel]
		was := before.Files[rel]
		same := was.Sum == f.Sum || moved[f.Inode+filepath.Base(rel)] == f.Sum
		writable := WithinAny(filepath.Join(q.o.World, rel), q.o.Writable)
		if !ok || same && (f.Links == 1 || f.Links <= was.Links) || writable {
			continue
		}
		v := q.judge(rel, f, was, live)
		if !same && v.move {
			line, err := q.move(rel, v)
			if err != nil && !exists(filepath.Join(q.o.World, rel)) {
				continue // the command removed it
			}
			if err != nil {
				line = fmt.Sprintf("%s can make git run programs outside the sandbox and could not be taken away: %v; "+
					"do not use git there", rel, err)
			}
			q.takes++
			what, _, _ := strings.Cut(line, keptText)
			noted := func(n string) bool { return strings.HasPrefix(n, what+keptText) }
			if len(q.notes) < maxTakes && !slices.ContainsFunc(q.notes, noted) {
				q.notes = append(q.notes, line)
			}
			delete(q.now.Files, rel)
			q.scan(q.now, nil, nil).add(rel)
			continue
		}
		if f.Links > 1 && f.Kind == "file" { // writes through its other name would go unnoticed
			if err := q.replace(rel, f.Text); err != nil {
				q.notes = append(q.notes, fmt.Sprintf("%s has another name and could not be parted from it: %v; do "+
					"not use git there", rel, err))
			}
		}
		if leads(rel) && was.Sum == "" {
			q.record.Own[rel] = f.Inode
		}
	}
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
			lines = append(lines, fmt.Sprintf("the git repository %s is missing or has no HEAD: snapshots do not "+
				"contain it, and no jump restores it", rel))
		} else {
			lines = append(lines, fmt.Sprintf("the git repository %s was moved to %s: a jump does not move it back",
				rel, at))
		}
	}
	return lines
}

func sortedKeys(m map[string]gitFile) []string { return slices.Sorted(maps.Keys(m)) }

// move moves a file out of the world and reports it. A directory for what is moved at a time is
// created on first use.
func (q *Quarantine) move(rel string, v verdict) (string, error) {
	if q.into == "" {
		var err error
		if q.into, err = os.MkdirTemp(q.o.Dir, time.Now().UTC().Format("20060102-150405-")); err != nil {
			return "", err
		}
	}
	to := filepath.Join(q.into, rel)
	root, err := os.OpenRoot(q.o.World) // no link leads out of it, even one swapped in meanwhile
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
		_ = os.Remove(to) // an older version, if there were too many
		err = takeOut(root, rel, to)
	}
	if err != nil { // no space, or too long a path: keep it there, under a name that git ignores
		if to, err = disarm(root, rel); err != nil {
			return "", err
		}
		to = filepath.Join(q.o.World, to)
	}
	if beside != "" {
		if err := root.Rename(beside, rel); err != nil {
			return "", err
		}
	}
	name, from := firstLine(rel), shell.QuoteIfNeeded(firstLine(to))
	const because = "because git could run a program by it, outside the sandbox"
	if to == q.o.World {
		return fmt.Sprintf("quarantine: %s was removed, %s, and it could not be kept", name, because), nil
	}
	if written != nil {
		return fmt.Sprintf("quarantine: %s was removed, and its earlier content could not be written: %v; that is in "+
			"%s, and the removed file in %s", name, written, q.file(), from), nil
	}
	what := "moved out of the directory, " + because
	switch {
	case v.dropped != nil:
		what = "rewritten without settings by which git could run a program or use other files: " +
			strings.Join(v.dropped[:min(len(v.dropped), maxQuarantineLines)], ", ")
	case v.kept != "":
		what = "set back to what it was, " + because
	}
	return fmt.Sprintf("quarantine: %s was %s%s; a user who wants it back runs: cp -P %s %s", name, what, keptText,
		from, shell.QuoteIfNeeded(firstLine(filepath.Join(q.o.World, rel)))), nil
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

// Examine quarantines what a running command has left so far, and returns a report; empty:
// nothing.
func (q *Quarantine) Examine() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running == 0 {
		return ""
	}
	note := q.report()
	if err := q.keep(durable.Replace); err != nil {
		note = JoinNotes(note, err.Error())
	}
	return note
}

// report quarantines what commands left and returns what no result has shown yet.
func (q *Quarantine) report() string {
	note := JoinNotes(q.record.Earlier, q.check())
	q.record.Earlier = ""
	return note
}

// Earlier reports what was quarantined of a command whose program died; empty: nothing.
func (q *Quarantine) Earlier() string { return q.record.Earlier }

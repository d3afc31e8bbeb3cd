package beside

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/anamnesis/quote"
	"anamnesis/opstream"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/sessions"
)

// Sessions are the files that an import reads.
type Sessions struct {
	Paths []string
	Named []string // by the user, themselves or by their folder
	Here  string   // the directory in which a session must have begun; empty: any

	agent    sessions.Agent // whose sessions are read; empty: of all
	usual    bool           // the user named no file
	database bool           // opencode has one here, which is not read
}

const inDatabase = "opencode keeps its sessions in a database: write one to a file with 'opencode export ID > FILE' " +
	"and name the file"

// FindSessions lists the files that arguments name: an agent, and files or folders. all
// means the sessions of every directory.
func FindSessions(args []string, all bool, getenv func(string) string) (src Sessions, err error) {
	agents := sessions.Agents()
	if len(args) > 0 && slices.Contains(agents, sessions.Agent(args[0])) {
		src.agent = sessions.Agent(args[0])
		agents, args = []sessions.Agent{src.agent}, args[1:]
	}
	if len(args) > 0 && all {
		return src, session.Usagef("all and PATH exclude each other: name one of them")
	}
	if len(args) == 0 {
		if len(agents) == 1 && agents[0] == sessions.OpenCode {
			return src, session.Usagef(inDatabase)
		}
		for _, agent := range agents {
			found, err := sessions.Find(agent, getenv("HOME"), getenv)
			if err != nil {
				return src, err
			}
			src.Paths = append(src.Paths, found...)
		}
		if !all {
			src.Here, err = session.RealDir(".")
		}
		src.Named, src.usual = src.Paths, true
		// The database of opencode is not read: a note says how to export a session from it.
		data := cmp.Or(getenv("XDG_DATA_HOME"), filepath.Join(getenv("HOME"), ".local", "share"))
		if _, err := os.Stat(filepath.Join(data, "opencode", "opencode.db")); err == nil {
			src.database = len(agents) > 1
		}
		return src, err
	}
	for _, arg := range args {
		arg, err := filepath.Abs(arg)
		if err != nil {
			return src, session.Usagef("%v", err)
		}
		if _, err := os.Stat(arg); errors.Is(err, fs.ErrNotExist) {
			return src, session.Usagef("%s: no such file, and no agent; known are %s", arg, sessions.Names())
		}
		src.Named = append(src.Named, arg)
		err = filepath.WalkDir(arg, func(path string, d fs.DirEntry, err error) error {
			ext := filepath.Ext(strings.TrimSuffix(path, ".gz"))
			if err == nil && !d.IsDir() && (path == arg || ext == ".jsonl" || ext == ".json") {
				src.Paths = append(src.Paths, path)
			}
			return err
		})
		if err != nil {
			return src, session.Usagef("%v", err)
		}
	}
	return src, nil
}

type Batch struct {
	Todo      []SessionFile
	Known     int      // sessions without anything new
	Elsewhere int      // sessions that began in other directories
	Empty     int      // files without work
	Skipped   []string // files that cannot be read, and why
	Damaged   []string // files with new steps of which damaged parts are left out

	database bool // see Sessions
}

type SessionFile struct {
	Path  string
	agent sessions.Agent
	dir   string
	steps int // new ones
}

// maxDamage is how many damaged parts of a file are named; all are counted.
const maxDamage = 5

// Examine reads the files and reports which of them hold something new. progress is called
// with how many were read.
func (im *Importer) Examine(ctx context.Context, src Sessions, progress func(done, all int)) (Batch, error) {
	b := Batch{Skipped: []string{}, Damaged: []string{}, database: src.database}
	for i, path := range src.Paths {
		if err := ctx.Err(); err != nil {
			return b, err
		}
		progress(i, len(src.Paths))
		s, err := sessions.Read(path)
		switch named := slices.Contains(src.Named, path); {
		case errors.Is(err, sessions.ErrLeftOut) && (src.usual || !named):
			b.Empty++
			continue
		case errors.Is(err, sessions.ErrNotSession) && !named:
			continue
		case err != nil:
			b.Skipped = append(b.Skipped, err.Error())
			continue
		case src.agent != "" && s.Agent != src.agent:
			if named {
				b.Skipped = append(b.Skipped, fmt.Sprintf("%s: a session of %s, not of %s", path, s.Agent, src.agent))
			}
			continue
		}
		if src.Here != "" && s.Dir != src.Here && !strings.HasPrefix(s.Dir, src.Here+string(filepath.Separator)) {
			b.Elsewhere++
			continue
		}
		n, err := im.New(s)
		if errors.Is(err, opstream.ErrCorrupt) { // the others are imported
			b.Skipped = append(b.Skipped, fmt.Sprintf("%s: the task of an earlier import: %v", path, err))
			continue
		}
		if err != nil {
			return b, err
		}
		if n == 0 {
			b.Known++
			continue
		}
		b.Todo = append(b.Todo, SessionFile{path, s.Agent, s.Dir, n})
		if n := len(s.Damage); n > 0 {
			more := ""
			if n > maxDamage {
				more = fmt.Sprintf("; and %d more", n-maxDamage)
			}
			parts := strings.Join(s.Damage[:min(n, maxDamage)], "; ")
			b.Damaged = append(b.Damaged,
				fmt.Sprintf("%s: %s left out: %s%s", path, quote.Number(n, "damaged part"), parts, more))
		}
	}
	return b, nil
}

// String summarises what the import would read.
func (b Batch) String() string {
	var parts []string
	for _, agent := range sessions.Agents() {
		n, steps, dirs := 0, 0, map[string]bool{}
		for _, f := range b.Todo {
			if f.agent == agent {
				n, steps, dirs[f.dir] = n+1, steps+f.steps, true
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s: %s in %s, %s", agent, quote.Number(n, "session"),
				quote.Number(len(dirs), "directory"), quote.Number(steps, "new step")))
		}
	}
	add := func(n int, format string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf(format, n))
		}
	}
	parts = append(parts, fmt.Sprintf("imported or recorded before: %d", b.Known))
	add(b.Elsewhere, "begun in other directories, or here before this one was moved: %d (all reads them)")
	add(b.Empty, "without a reply of a model: %d")
	add(len(b.Skipped), "not read: %d")
	if b.database {
		parts = append(parts, inDatabase)
	}
	return strings.Join(parts, "; ")
}

type Report struct {
	Sessions []Imported `json:"sessions"`
	Skipped  []string   `json:"skipped"` // files that were not read, and why
	Damaged  []string   `json:"damaged"` // files that were read without their damaged parts
}

func (r Report) String() string {
	var all Imported
	for _, s := range r.Sessions {
		all.Steps, all.Repairs = all.Steps+s.Steps, all.Repairs+s.Repairs
	}
	return fmt.Sprintf("%s of %s imported, %s", quote.Number(all.Steps, "step"),
		quote.Number(len(r.Sessions), "session"),
		quote.Number(all.Repairs, "repair"))
}

// ImportAll imports a batch. progress is called with how many sessions were imported.
func (im *Importer) ImportAll(ctx context.Context, b Batch, progress func(done, all int)) (Report, error) {
	r := Report{Sessions: []Imported{}, Skipped: b.Skipped, Damaged: b.Damaged}
	for i, file := range b.Todo {
		progress(i, len(b.Todo))
		s, err := sessions.Read(file.Path)
		if err != nil {
			return r, err
		}
		done, err := im.Import(ctx, s, file.Path)
		if errors.Is(err, ErrChanged) {
			r.Skipped = append(r.Skipped, err.Error())
			continue
		}
		if err != nil {
			return r, fmt.Errorf("import stopped after %d of %d sessions, which stay; run it again to continue: %w", i,
				len(b.Todo), err)
		}
		r.Sessions = append(r.Sessions, done)
	}
	progress(len(b.Todo), len(b.Todo))
	return r, nil
}

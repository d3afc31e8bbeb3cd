// Package blame finds what wrote each line of a file: a step of a task with its call and request, another agent's
// call, the user, or a commit of their git.
//
// Snapshots decide, not the agent's word: 'git blame' walks them as git commits. What it cannot know is given to it
// as the parents of commits: a jump's snapshot continues its target, and the snapshot before it; a task's first
// one continues the last one of the task before; the very first one the commit that the user's git was at. An imported
// session has no snapshots: each of its edits that fits the file becomes a commit of a temporary repository, as does
// the present file where it differs from the last snapshot.
package blame

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

// Kind is who wrote a line.
type Kind string

// The kinds.
const (
	Step    Kind = "step"    // a step of a task or of an imported session
	User    Kind = "user"    // the user, between the calls of tasks
	Commit  Kind = "commit"  // before the first task: a commit of the user's git
	Before  Kind = "before"  // before the first task, in no commit
	Since   Kind = "since"   // after the last snapshot
	Unknown Kind = "unknown" // Why says what is known
)

// Op is an operation of a task's stream.
type Op struct {
	Seq  uint64 `json:"op"`
	Text string `json:"text"`
}

// Origin is what wrote some lines.
type Origin struct {
	Kind     Kind      `json:"kind"`
	Task     string    `json:"task,omitempty"`
	Agent    string    `json:"agent,omitempty"`     // another agent whose session the task is
	ReadOnly bool      `json:"read_only,omitempty"` // nothing jumps in the task: an imported session, or a subagent's
	Step     int       `json:"step"`
	Parent   int       `json:"parent"` // the step that it continues
	Time     time.Time `json:"time,omitzero"`
	Request  *Op       `json:"request,omitempty"`
	Reply    string    `json:"reply,omitempty"` // what the agent said with the calls
	// Calls has the call that wrote the lines; several, where the record does not tell which of them did.
	Calls  []Op   `json:"calls,omitempty"`
	Path   string `json:"path,omitempty"` // of the file then, if it was another
	Commit string `json:"commit,omitempty"`
	Author string `json:"author,omitempty"`
	Title  string `json:"title,omitempty"` // of the commit
	Why    string `json:"why,omitempty"`
}

// Line is a line of the file, and its place in Answer.Origins.
type Line struct {
	Number int    `json:"line"`
	Origin int    `json:"origin"`
	Text   string `json:"text"`
}

// Answer says what wrote the lines of a file.
type Answer struct {
	Path    string   `json:"path"` // in Dir
	Dir     string   `json:"dir"`
	File    string   `json:"file"` // as it was asked about
	Asked   bool     `json:"-"`    // about some lines, not about the file
	Lines   []Line   `json:"lines"`
	Origins []Origin `json:"origins"`
}

// Query names lines of a file.
type Query struct {
	Home        taskdir.Home
	World       *worldstate.World // with all tasks; nil: the directory has no snapshots
	Dir, Path   string            // the world's directory, and the file in it
	Tip         worldstate.ID     // the snapshot to begin at; empty: none
	Present     []byte            // the file; nil: as the tip has it
	First, Last int               // lines, from 1; 0: all
}

// Answer finds what wrote the lines.
func (q Query) Answer(ctx context.Context) (*Answer, error) {
	f := &finder{Query: q, streams: map[string]*stream{}, saved: map[string]*saved{}, wrote: map[string]*written{},
		made: map[string]Origin{}}
	defer f.close()
	if err := f.readLog(ctx); err != nil {
		return nil, err
	}
	repo, err := os.MkdirTemp("", "anamnesis-blame-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(repo)
	f.repo = repo
	if err := f.makeRepository(ctx); err != nil {
		return nil, err
	}
	out, err := f.blame(ctx)
	if err != nil && f.head != "" { // a shallow clone, say, or one with other hashes
		f.head = ""
		out, err = f.blame(ctx)
	}
	if err != nil {
		return nil, err
	}
	return f.read(out)
}

// finder is a query under way.
type finder struct {
	Query
	repo    string // the temporary repository
	streams map[string]*stream
	saved   map[string]*saved   // the snapshots, by commit
	wrote   map[string]*written // by commit and path
	made    map[string]Origin   // of the commits of the temporary repository
	edits   []edit              // of imported sessions
	first   string              // the commit without a parent that tip descends from
	tip     string              // the commit that git begins at
	head    string              // the commit that the user's git was at before the first; empty: none
}

// git runs git on the temporary repository. No configuration of the user is read.
func (f *finder) git(ctx context.Context, stdin string, args ...string) (string, error) {
	env := []string{"GIT_DIR=" + f.repo, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null"}
	git := worldstate.GitCommand{Top: f.repo, Stdin: stdin, Env: env}
	out, err := git.Run(ctx, append([]string{"-c", "core.attributesFile=/dev/null"}, args...)...)
	if err != nil {
		err = fmt.Errorf("find what wrote %s: %w", f.Path, err)
	}
	return out, err
}

// makeRepository makes a repository that reads the objects of the snapshots and of the user's git, and writes into it
// what neither has: the edits of imported sessions before the first snapshot, and what came after the last one.
func (f *finder) makeRepository(ctx context.Context) error {
	alternates, texts := "", make([]bytes.Buffer, 2)
	if f.World != nil {
		alternates = filepath.Join(f.World.Store(), "objects") + "\n"
		for i, id := range []string{f.first, string(f.Tip)} {
			if err := f.World.Content(ctx, worldstate.ID(id), f.Path, &texts[i]); err != nil &&
				!errors.Is(err, worldstate.ErrNoPath) {
				return err
			}
		}
	}
	if _, common, _ := worldstate.GitAround(filepath.Join(f.Dir, filepath.Dir(f.Path))); common != "" {
		alternates += filepath.Join(common, "objects") + "\n"
		f.head = f.headBefore(ctx)
	}
	err := errors.Join(os.MkdirAll(filepath.Join(f.repo, "objects", "info"), 0o700),
		os.Mkdir(filepath.Join(f.repo, "refs"), 0o700),
		os.WriteFile(filepath.Join(f.repo, "HEAD"), []byte("ref: refs/heads/blame\n"), 0o600),
		os.WriteFile(filepath.Join(f.repo, "objects", "info", "alternates"), []byte(alternates), 0o600))
	if err == nil {
		err = f.readEdits()
	}
	if err != nil {
		return err
	}
	f.tip = string(f.Tip)
	later := f.edits
	// Edits before the first snapshot become its parents, so that git's log continues to them.
	if s := f.saved[f.first]; s != nil {
		n, _ := slices.BinarySearchFunc(f.edits, s.at, func(e edit, at time.Time) int { return e.Time.Compare(at) })
		later = f.edits[n:]
		if n > 0 {
			if s.parents, err = f.write(ctx, replay(texts[0].String(), f.edits[:n]), ""); err != nil {
				return err
			}
			f.first = s.parents[0]
		}
	}
	if f.Present == nil || f.tip != "" && len(later) == 0 && bytes.Equal(f.Present, texts[1].Bytes()) {
		return nil
	}
	chain := replay(string(f.Present), later)
	if base := &chain[0].Origin; f.tip != "" && base.Kind == Before {
		*base = Origin{Kind: Since, Time: f.saved[f.tip].Time}
	}
	ids, err := f.write(ctx, chain, f.tip)
	if err == nil {
		f.first, f.tip = cmp.Or(f.first, ids[1]), ids[0]
	}
	return err
}

// write writes a chain of commits upon parent, if that is given, and returns the last one and the first one.
func (f *finder) write(ctx context.Context, chain []version, parent string) ([]string, error) {
	name := f.Path
	if strings.ContainsAny(name, "\"\n") {
		name = strconv.Quote(name)
	}
	var in strings.Builder
	for i, v := range chain {
		fmt.Fprintf(&in, "commit refs/heads/%d\nmark :%d\ncommitter a <a> 0 +0000\ndata 0\n", len(f.made), i+1)
		if i == 0 && parent != "" {
			fmt.Fprintf(&in, "from %s\n", parent)
		}
		fmt.Fprintf(&in, "M 100644 inline %s\ndata %d\n%s\nget-mark :%d\n", name, len(v.text), v.text, i+1)
	}
	out, err := f.git(ctx, in.String(), "fast-import", "--quiet", "--cat-blob-fd=1")
	if err != nil {
		return nil, err
	}
	ids := strings.Fields(out)
	for i, id := range ids {
		f.made[id] = chain[i].Origin
	}
	return []string{ids[len(ids)-1], ids[0]}, nil
}

// blame runs 'git blame' with the parents that commits do not name.
func (f *finder) blame(ctx context.Context) (string, error) {
	var grafts strings.Builder
	for id, s := range f.saved {
		if len(s.parents) != len(s.Parents) {
			fmt.Fprintln(&grafts, id, strings.Join(s.parents, " "))
		}
	}
	if f.head != "" {
		fmt.Fprintln(&grafts, f.first, f.head)
	}
	file := filepath.Join(f.repo, "grafts")
	if err := os.WriteFile(file, []byte(grafts.String()), 0o600); err != nil {
		return "", err
	}
	args := []string{"blame", "--line-porcelain", "-S", file}
	if f.First > 0 {
		args = append(args, fmt.Sprintf("-L%d,%d", f.First, f.Last))
	}
	return f.git(ctx, "", append(args, f.tip, "--", f.Path)...)
}

// read reads what 'git blame --line-porcelain' prints.
func (f *finder) read(out string) (*Answer, error) {
	a := &Answer{Path: f.Path, Dir: f.Dir, Asked: f.First > 0, Lines: []Line{}}
	place := make(map[string]int) // of an origin
	id, number, h := "", 0, Origin{}
	for line := range strings.SplitSeq(out, "\n") {
		if text, ok := strings.CutPrefix(line, "\t"); ok {
			o := f.origin(id, h, text)
			key := fmt.Sprint(id, o.Path, o.Calls)
			if _, ok := place[key]; !ok {
				place[key] = len(a.Origins)
				a.Origins = append(a.Origins, o)
			}
			a.Lines = append(a.Lines, Line{number, place[key], text})
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "author":
			h.Author = rest
		case "summary":
			h.Title = rest
		case "filename":
			h.Path = rest
			if path, err := strconv.Unquote(rest); err == nil {
				h.Path = path
			}
		case "author-time":
			seconds, _ := strconv.ParseInt(rest, 10, 64)
			h.Time = time.Unix(seconds, 0).UTC()
		default:
			if len(word) == 40 {
				id, h = word, Origin{}
				if _, err := fmt.Sscanf(rest, "%d %d", new(int), &number); err != nil {
					return nil, fmt.Errorf("read git's answer %q: %w", line, err)
				}
			}
		}
	}
	return a, nil
}

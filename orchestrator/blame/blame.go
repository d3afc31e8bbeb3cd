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
	Agent    string    `json:"agent,omitempty"` // another agent whose session the task is
	Imported bool      `json:"imported,omitempty"`
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
	File    string   `json:"file"`           // as it was asked about
	Live    string   `json:"live,omitempty"` // a running task that works in Dir
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
	f := &finder{Query: q, streams: map[string]*stream{}, made: map[string]Origin{}, heads: map[string]head{}, parents: map[string][]string{}}
	defer f.close()
	f.answer = &Answer{Path: q.Path, Dir: q.Dir, Lines: []Line{}, Origins: []Origin{}}
	if q.World != nil {
		if err := f.readLog(ctx); err != nil {
			return nil, err
		}
	}
	repo, err := os.MkdirTemp("", "anamnesis-blame-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(repo)
	if err := f.makeRepository(ctx, repo); err != nil {
		return nil, err
	}
	out, err := f.blame(ctx, repo)
	if err != nil && f.userHead != "" { // a repository of a form, or with objects, that cannot be read beside snapshots
		f.userHead = ""
		out, err = f.blame(ctx, repo)
	}
	if err != nil {
		return nil, err
	}
	return f.answer, f.read(out)
}

// finder is a query under way.
type finder struct {
	Query
	answer   *Answer
	commits  map[string]worldstate.Commit
	parents  map[string][]string // of commits, where they are not those that git reads
	first    string              // the commit without a parent that the tip descends from
	tip      string              // the commit that git begins at
	made     map[string]Origin   // of the commits of the temporary repository
	heads    map[string]head
	streams  map[string]*stream
	edits    []edit // of imported sessions
	userHead string // the commit that the user's git was at before the first commit
}

// head is what git says of a commit.
type head struct {
	author, title, path string
	time                time.Time
}

// git runs git on the temporary repository, and reads no configuration of the user.
func (f *finder) git(ctx context.Context, repo, stdin string, args ...string) (string, error) {
	git := worldstate.GitCommand{Top: repo, Stdin: stdin, Env: []string{"GIT_DIR=" + repo, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null"}}
	out, err := git.Run(ctx, append([]string{"-c", "core.attributesFile=/dev/null", "-c", "core.fsync=none"}, args...)...)
	if err != nil {
		err = fmt.Errorf("read who wrote %s: %w", f.Path, err)
	}
	return out, err
}

// makeRepository makes a repository that reads the objects of the snapshots and of the user's git, and
// writes the commits of what no snapshot holds into it.
func (f *finder) makeRepository(ctx context.Context, repo string) error {
	alternates := ""
	if f.World != nil {
		alternates = filepath.Join(f.World.Store(), "objects") + "\n"
	}
	if _, common, _ := worldstate.GitAround(filepath.Join(f.Dir, filepath.Dir(f.Path))); common != "" {
		alternates += filepath.Join(common, "objects") + "\n"
		f.userHead = f.headBefore(ctx)
	}
	err := errors.Join(os.MkdirAll(filepath.Join(repo, "objects", "info"), 0o700), os.Mkdir(filepath.Join(repo, "refs"), 0o700),
		os.WriteFile(filepath.Join(repo, "HEAD"), []byte("ref: refs/heads/blame\n"), 0o600),
		os.WriteFile(filepath.Join(repo, "objects", "info", "alternates"), []byte(alternates), 0o600))
	if err != nil {
		return err
	}
	base, tip, err := f.contents(ctx)
	if err != nil {
		return err
	}
	recorded, err := f.recordedEdits()
	if err != nil {
		return err
	}
	began := time.Now() // of the first snapshot
	if f.first != "" {
		began = f.stamp(f.commits[f.first])
	}
	below := slices.IndexFunc(recorded, func(e edit) bool { return e.began.After(began) })
	if below < 0 {
		below = len(recorded)
	}
	var chain []version
	if f.edits = recorded; f.first != "" && below > 0 {
		chain, recorded = replay(base, recorded[:below]), recorded[below:]
	}
	n := len(chain)
	if f.Present != nil {
		chain = append(chain, replay(string(f.Present), recorded)...)
		if last := chain[n:]; f.Tip != "" && len(last) == 1 && string(f.Present) == tip {
			chain = chain[:n]
		} else if f.Tip != "" && last[0].Kind == Before {
			last[0].Origin = Origin{Kind: Since, Time: f.commits[string(f.Tip)].Time}
		}
	}
	return f.write(ctx, repo, chain, n)
}

// contents returns the file's text in the first snapshot and in the last one; empty where it has none.
func (f *finder) contents(ctx context.Context) (first, last string, err error) {
	var text [2]strings.Builder
	for i, id := range []string{f.first, string(f.Tip)} {
		if id == "" {
			continue
		}
		err := f.World.Content(ctx, worldstate.ID(id), f.Path, &text[i])
		if err != nil && !errors.Is(err, worldstate.ErrNoPath) {
			return "", "", err
		}
	}
	return text[0].String(), text[1].String(), nil
}

// write adds commits: the first n below the first snapshot, the others above the last one.
func (f *finder) write(ctx context.Context, repo string, chain []version, n int) error {
	f.tip = string(f.Tip)
	if len(chain) == 0 {
		return nil
	}
	name := f.Path
	if strings.ContainsAny(name, "\"\n") {
		name = strconv.Quote(name)
	}
	var in strings.Builder
	for i, v := range chain {
		fmt.Fprintf(&in, "commit refs/heads/%t\nmark :%d\ncommitter a <a> 0 +0000\ndata 0\n", i < n, i+1)
		if i == n && f.Tip != "" {
			fmt.Fprintf(&in, "from %s\n", f.Tip)
		}
		fmt.Fprintf(&in, "M 100644 inline %s\ndata %d\n%s\nget-mark :%d\n", name, len(v.text), v.text, i+1)
	}
	out, err := f.git(ctx, repo, in.String(), "fast-import", "--quiet", "--cat-blob-fd=1")
	if err != nil {
		return err
	}
	ids := strings.Fields(out)
	for i, id := range ids {
		f.made[id] = chain[i].Origin
	}
	if n > 0 {
		f.parents[f.first] = ids[n-1 : n]
		f.first = ids[0]
	}
	if n < len(ids) {
		f.tip = ids[len(ids)-1]
		if f.Tip == "" {
			f.first = ids[n]
		}
	}
	return nil
}

// blame runs 'git blame'.
func (f *finder) blame(ctx context.Context, repo string) (string, error) {
	var grafts strings.Builder
	for id, parents := range f.parents {
		fmt.Fprintln(&grafts, id, strings.Join(parents, " "))
	}
	if f.userHead != "" {
		fmt.Fprintln(&grafts, f.first, f.userHead)
	}
	file := filepath.Join(repo, "grafts")
	if err := os.WriteFile(file, []byte(grafts.String()), 0o600); err != nil {
		return "", err
	}
	args := []string{"blame", "--porcelain", "-S", file}
	if f.First > 0 {
		args = append(args, fmt.Sprintf("-L%d,%d", f.First, f.Last))
	}
	return f.git(ctx, repo, "", append(args, f.tip, "--", f.Path)...)
}

// read reads what 'git blame --porcelain' prints.
func (f *finder) read(out string) error {
	known := make(map[string]int) // the place of an origin
	var id string
	var number int
	for line := range strings.Lines(out + "\n") {
		line = strings.TrimSuffix(line, "\n")
		if text, ok := strings.CutPrefix(line, "\t"); ok {
			o := f.origin(id, f.heads[id].path, text)
			key := fmt.Sprint(id, o.Path, o.Calls)
			if _, ok := known[key]; !ok {
				known[key] = len(f.answer.Origins)
				f.answer.Origins = append(f.answer.Origins, o)
			}
			f.answer.Lines = append(f.answer.Lines, Line{number, known[key], text})
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		h := f.heads[id]
		switch word {
		case "author":
			h.author = rest
		case "summary":
			h.title = rest
		case "filename":
			h.path = rest
			if path, err := strconv.Unquote(rest); err == nil {
				h.path = path
			}
		case "author-time":
			seconds, _ := strconv.ParseInt(rest, 10, 64)
			h.time = time.Unix(seconds, 0).UTC()
		default:
			if numbers := strings.Fields(rest); len(word) == 40 && len(numbers) > 1 {
				var err error
				if number, err = strconv.Atoi(numbers[1]); err != nil {
					return fmt.Errorf("read git's answer %q: %w", line, err)
				}
				id = word
			}
			continue
		}
		f.heads[id] = h
	}
	return nil
}

// Recorded reports whether a task, or a session, is known to have written in the file.
func (a *Answer) Recorded() bool {
	return slices.ContainsFunc(a.Origins, func(o Origin) bool { return o.Task != "" })
}

package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"anamnesis/opstream/durable"
	"anamnesis/orchestrator/blame"
	"anamnesis/orchestrator/remedy"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

// maxBlameBytes bounds a file whose lines are asked about.
const maxBlameBytes = 64 << 20

// Blame finds what wrote lines of a file, as it is now; with first 0, all. A relative path is in dir.
func (s *Service) Blame(ctx context.Context, dir, file string, first, last int) (*blame.Answer, error) {
	asked := file
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	switch info, err := os.Lstat(file); {
	case err != nil:
		return nil, Usagef("%w", err)
	case info.IsDir():
		return nil, Usagef("%s is a directory; name a file in it", file)
	case !info.Mode().IsRegular():
		return nil, Usagef("%s is no regular file; of a link, name what it points to", file)
	}
	data, err := durable.ReadFile(file, maxBlameBytes)
	if err == nil {
		err = checkLines(file, data, first, &last)
	}
	if err != nil {
		return nil, err
	}
	real, err := RealDir(filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	q := blame.Query{Home: s.Home, Dir: real, Path: filepath.Base(file), Present: data, First: first, Last: last}
	o := worldstate.Options{Exclude: s.Home.Excluded(), Home: s.Home.User, Secrets: s.Home.Secrets, AllTasks: true, StoreOnly: true}
	world, store, err := storeAround(s.Home, real, true, false, &o)
	if err == nil {
		if q.World, err = worldstate.Open(world, store, &o); err != nil {
			return nil, err
		}
		defer q.World.Close()
		rel, err := filepath.Rel(world, filepath.Join(real, q.Path))
		if err != nil {
			return nil, err
		}
		q.Dir, q.Path = world, filepath.ToSlash(rel)
		if q.Tip, err = q.World.Resolve(ctx, "@"); err != nil {
			return nil, err
		}
		if err := s.checkBlamable(ctx, &q); err != nil {
			return nil, err
		}
	}
	answer, err := q.Answer(ctx)
	if err == nil && q.World == nil && !answer.Recorded() {
		return nil, remedy.With(Usagef("no task has worked in %s or above it, and no imported session edited %s", real, q.Path), remedy.BlameNothing, "")
	}
	if err == nil {
		answer.File, answer.Live = asked, s.liveIn(q.Dir)
	}
	return answer, err
}

// checkLines refuses a text that has no such lines.
func checkLines(file string, data []byte, first int, last *int) error {
	lines := bytes.Count(data, []byte("\n"))
	if !bytes.HasSuffix(data, []byte("\n")) && len(data) > 0 {
		lines++
	}
	switch *last = min(max(*last, first), max(lines, first)); {
	case len(data) == 0:
		return Usagef("%s is empty", file)
	case bytes.IndexByte(data, 0) >= 0:
		return Usagef("%s is binary, and has no lines", file)
	case first > lines:
		return Usagef("%s has no line %d; its last is %d", file, first, lines)
	}
	return nil
}

// checkBlamable refuses a file that no snapshot has because git ignores it, or whose content is not shown.
func (s *Service) checkBlamable(ctx context.Context, q *blame.Query) error {
	item, err := q.World.Stat(ctx, q.Tip, q.Path)
	file := filepath.Join(q.Dir, filepath.FromSlash(q.Path))
	switch {
	case err == nil && item.Secret:
		return Usagef("%s is an ignored file, which snapshots hold for restores only: who wrote it is not known", file)
	case err == nil || !errors.Is(err, worldstate.ErrNoPath):
		return err
	}
	git := worldstate.GitCommand{Top: q.Dir, Env: []string{"GIT_DIR=" + q.World.Store(), "GIT_WORK_TREE=" + q.Dir}}
	if top, _, _ := worldstate.Identity(filepath.Dir(file)); top != "" {
		git = worldstate.GitCommand{Top: top}
	}
	if _, err := git.Run(ctx, "check-ignore", "-q", "--", file); err == nil {
		return Usagef("%s is ignored by git, so that no snapshot holds it: who wrote it is not known", file)
	}
	return nil
}

// liveIn returns a running task that works in a directory; empty if there is none.
func (s *Service) liveIn(dir string) string {
	ids, _ := fs.Glob(os.DirFS(s.Home.State), "live/*.json")
	for _, path := range ids {
		id := strings.TrimSuffix(filepath.Base(path), ".json")
		if taskdir.Live(s.Home, id) == 0 {
			continue
		}
		if st, err := taskdir.ReadState(s.Home, id); err == nil && st.Opened.Dir == dir {
			return id
		}
	}
	return ""
}

// BlameStep finds what wrote a line of a file as it was at a step's end.
func (s *Service) BlameStep(ctx context.Context, task string, step int, path string, line int) (*blame.Answer, error) {
	st, err := s.State(task)
	if err != nil {
		return nil, err
	}
	w, ends, _, err := s.StepWorlds(task, step)
	if err != nil {
		return nil, err
	}
	w.Close()
	if w, err = worldstate.Open(st.Opened.Dir, s.StoreOf(&st.Opened), &worldstate.Options{Home: s.Home.User, AllTasks: true, StoreOnly: true}); err != nil {
		return nil, err
	}
	defer w.Close()
	var data bytes.Buffer
	if err := w.Content(ctx, ends[0], path, &data); err != nil {
		return nil, err
	}
	last := line
	if err := checkLines(path, data.Bytes(), line, &last); err != nil {
		return nil, err
	}
	return blame.Query{Home: s.Home, World: w, Dir: st.Opened.Dir, Path: path, Tip: ends[0], First: line, Last: last}.Answer(ctx)
}

// ParseLines splits FILE:LINE and FILE:LINE-LINE. What is the name of a file as it stands has no lines.
func ParseLines(dir, arg string) (file string, first, last int, err error) {
	whole := arg
	if !filepath.IsAbs(whole) {
		whole = filepath.Join(dir, arg)
	}
	i := strings.LastIndexByte(arg, ':')
	if _, err := os.Lstat(whole); err == nil || i < 0 {
		return arg, 0, 0, nil
	}
	if n, _ := fmt.Sscanf(arg[i+1:], "%d-%d", &first, &last); n == 1 {
		last = first
	}
	text := fmt.Sprintf("%d-%d", first, last)
	if first < 1 || last < first || arg[i+1:] != text && arg[i+1:] != fmt.Sprint(first) {
		return "", 0, 0, Usagef("%q: want FILE, FILE:LINE or FILE:LINE-LINE, with lines from 1", arg)
	}
	return arg[:i], first, last, nil
}

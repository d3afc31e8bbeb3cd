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
	"anamnesis/worldstate"
)

// maxBlameBytes bounds a file whose lines are asked about.
const maxBlameBytes = 64 << 20

// Blame finds what wrote the lines that arg names, in a file as it is now: FILE, FILE:LINE or FILE:LINE-LINE. A
// relative path is in dir.
func (s *Service) Blame(ctx context.Context, dir, arg string) (*blame.Answer, error) {
	q := blame.Query{Home: s.Home}
	file, err := linesOf(dir, arg, &q)
	if err != nil {
		return nil, err
	}
	switch info, err := os.Lstat(file); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, Usagef("%s: no such file or directory; name a file that is there now", file)
	case err != nil:
		return nil, Usagef("%w", err)
	case info.IsDir():
		return nil, Usagef("%s is a directory; name a file in it", file)
	case !info.Mode().IsRegular():
		return nil, Usagef("%s is no regular file; of a link, name what it points to", file)
	}
	if q.Present, err = durable.ReadFile(file, maxBlameBytes); err != nil {
		return nil, err
	}
	if err := checkLines(file, q.Present, &q); err != nil {
		return nil, err
	}
	if q.Dir, err = RealDir(filepath.Dir(file)); err != nil {
		return nil, err
	}
	q.Path = filepath.Base(file)
	o := worldstate.Options{Home: s.Home.User, AllTasks: true, StoreOnly: true}
	if world, store, err := storeAround(s.Home, q.Dir, true, false, &o); err == nil {
		if q.World, err = worldstate.Open(world, store, &o); err != nil {
			return nil, err
		}
		defer q.World.Close()
		rel, _ := filepath.Rel(world, filepath.Join(q.Dir, q.Path)) // both are absolute
		q.Dir, q.Path = world, filepath.ToSlash(rel)
		if q.Tip, err = q.World.Resolve(ctx, "@"); err != nil {
			return nil, err
		}
		if err := checkKept(ctx, file, &q); err != nil {
			return nil, err
		}
	}
	a, err := q.Answer(ctx)
	if err != nil {
		return nil, err
	}
	if a.File = arg; q.First > 0 {
		a.File = arg[:strings.LastIndexByte(arg, ':')]
	}
	return a, nil
}

// linesOf reads FILE, FILE:LINE and FILE:LINE-LINE. What is the name of a file as it stands has no lines.
func linesOf(dir, arg string, q *blame.Query) (file string, err error) {
	if file = arg; !filepath.IsAbs(arg) {
		file = filepath.Join(dir, arg)
	}
	i := strings.LastIndexByte(file, ':')
	if _, err := os.Lstat(file); err == nil || i < 0 {
		return file, nil
	}
	name, lines := file[:i], file[i+1:]
	if n, _ := fmt.Sscanf(lines, "%d-%d", &q.First, &q.Last); n == 1 {
		q.Last = q.First
	}
	// Sscanf ignores what follows the numbers.
	whole := lines == fmt.Sprintf("%d-%d", q.First, q.Last) || lines == fmt.Sprint(q.First)
	if q.First < 1 || q.Last < q.First || !whole {
		return "", Usagef("%q: want FILE, FILE:LINE or FILE:LINE-LINE, with lines from 1", arg)
	}
	return name, nil
}

// checkLines refuses a text that does not have the lines.
func checkLines(file string, data []byte, q *blame.Query) error {
	lines := bytes.Count(data, []byte("\n"))
	if !bytes.HasSuffix(data, []byte("\n")) {
		lines++
	}
	q.Last = min(q.Last, lines)
	switch {
	case len(data) == 0:
		return Usagef("%s is empty", file)
	case bytes.IndexByte(data, 0) >= 0:
		return Usagef("%s is binary, and has no lines", file)
	case q.First > lines:
		return Usagef("%s has no line %d; its last is %d", file, q.First, lines)
	}
	return nil
}

// checkKept refuses a file that git ignores: no snapshot shows its content.
func checkKept(ctx context.Context, file string, q *blame.Query) error {
	item, err := q.World.Stat(ctx, q.Tip, q.Path)
	ignored := item.Secret
	if errors.Is(err, worldstate.ErrNoPath) {
		git := worldstate.GitCommand{Top: q.Dir, Env: []string{"GIT_DIR=" + q.World.Store(), "GIT_WORK_TREE=" + q.Dir}}
		_, err = git.Run(ctx, "check-ignore", "-q", "--", filepath.Join(q.Dir, filepath.FromSlash(q.Path)))
		ignored, err = err == nil, nil
	}
	if ignored {
		return Usagef("%s is ignored by git: no snapshot shows it, and what wrote it is not known", file)
	}
	return err
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
	defer w.Close()
	o := worldstate.Options{Home: s.Home.User, AllTasks: true, StoreOnly: true}
	all, err := worldstate.Open(st.Opened.Dir, s.Home.StoreOf(&st.Opened), &o)
	if err != nil {
		return nil, err
	}
	defer all.Close()
	q := blame.Query{Home: s.Home, World: all, Dir: st.Opened.Dir, Path: path, Tip: ends[0], First: line, Last: line}
	return q.Answer(ctx)
}

package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/tool"
)

const (
	// ripgrepFrom is the number of files from which on ripgrep is used. Starting it under the
	// supervisor costs as much as reading 300 to 600 files of 8 KB for a plain text, and 100
	// if case is ignored (BenchmarkRipgrepFrom).
	ripgrepFrom = 500
	// ripgrepTimeout bounds all runs of ripgrep in one search. The scan finds the rest.
	ripgrepTimeout = 10 * time.Second
	// maxBatchBytes bounds the names for one run, and so its output: some 5,000 files, well
	// below a system's limit of arguments.
	maxBatchBytes = 256 << 10
)

// accelerator configures how Grep uses ripgrep. Only tests change it.
type accelerator struct {
	find func(*tool.Env) (string, error) // the rg program
	from int                             // files from which on it is used
	wait bool                            // for its whole output, before the first file is read
}

// errNoRipgrep: there is no rg program.
var errNoRipgrep = errors.New("ripgrep (rg) is not on the PATH")

// findRipgrep returns the rg program for a search in the world of env, as an absolute path
// without links. It skips one that the agent's commands could have written: it could hide
// matches.
func findRipgrep(env *tool.Env) (string, error) {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if !filepath.IsAbs(dir) {
			continue
		}
		rg, err := exec.LookPath(filepath.Join(dir, "rg"))
		if err == nil {
			rg, err = filepath.EvalSymlinks(rg)
		}
		if err == nil && !withinReach(env, rg) {
			return rg, nil
		}
	}
	return "", errNoRipgrep
}

// withinReach reports whether commands may write to a path.
func withinReach(env *tool.Env, path string) bool {
	for _, dir := range append([]string{env.Dir}, env.Beside...) {
		if dir == "" {
			continue
		}
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		if rel, err := filepath.Rel(dir, path); err != nil || filepath.IsLocal(rel) {
			return true
		}
	}
	return false
}

// CheckRipgrep returns the rg program that Grep uses. It runs the program as Grep does,
// confined by box; an error says why it is not used. The results of Grep are the same with and
// without it.
func CheckRipgrep(ctx context.Context, box *guard.Sandbox, dir string) (string, error) {
	rg, err := findRipgrep(&tool.Env{})
	if err != nil {
		return "", err
	}
	for name, text := range map[string]string{"has": "needle\n", "not": "hay\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("try ripgrep: %w", err)
		}
	}
	l := lookup{rg: rg, world: dir, box: box.ReadOnly(), want: texts{any: []string{"needle"}}}
	holds, err := l.holding(ctx, []string{"has", "not"})
	switch {
	case err != nil:
		return "", fmt.Errorf("try %s: %w", rg, err)
	case !holds["has"] || holds["not"]:
		return "", fmt.Errorf("try %s: it does not find what is there", rg)
	}
	return rg, nil
}

// prefilter runs ripgrep beside a search: it looks for texts without which no line matches. It
// only rules files out: the walk decides which files count, and the scan which lines match, so
// that the results are the same without it. Nothing waits for it: it begins with the files
// that the scan reads last, and the scan reads a file that it has not reached.
type prefilter struct {
	cancel context.CancelFunc
	done   chan struct{}
	out    []atomic.Bool // by index of the file: no line matches
}

// start runs ripgrep on the files of a search; nil if it would not help.
func (a accelerator) start(ctx context.Context, env *tool.Env, want texts, files []found) *prefilter {
	if len(want.any) == 0 || len(files) < a.from || !sameDirectory(env) {
		return nil
	}
	rg, err := a.find(env)
	if err != nil {
		return nil // the results are the same without it
	}
	ctx, cancel := context.WithTimeout(ctx, ripgrepTimeout)
	p := &prefilter{cancel: cancel, done: make(chan struct{}), out: make([]atomic.Bool, len(files))}
	go func() {
		defer close(p.done)
		p.run(ctx, lookup{rg: rg, world: env.Dir, box: env.Sandbox.ReadOnly(), want: want}, files)
	}()
	if a.wait {
		<-p.done
	}
	return p
}

// sameDirectory reports whether the path of the world still leads to it.
func sameDirectory(env *tool.Env) bool {
	byPath, err := os.Stat(env.Dir)
	if err != nil {
		return false
	}
	held, err := env.Root.Stat(".")
	return err == nil && os.SameFile(byPath, held)
}

// stop ends the run and its processes. p may be nil.
func (p *prefilter) stop() {
	if p != nil {
		p.cancel()
		<-p.done
	}
}

// rulesOut reports whether it is known by now that no line of the i-th file matches. p may be
// nil.
func (p *prefilter) rulesOut(i int) bool { return p != nil && p.out[i].Load() }

// run examines the files batch by batch, the last ones first. It ignores the result of a batch
// with any oddity, such as an unreadable file.
func (p *prefilter) run(ctx context.Context, l lookup, files []found) {
	for end := len(files); end > 0 && ctx.Err() == nil; {
		var names []string
		begin := end
		for size := 0; begin > 0; begin-- {
			f := files[begin-1]
			if !askable(f) {
				continue
			}
			if size += len(f.rel) + len("./\x00"); size > maxBatchBytes && len(names) > 0 {
				break
			}
			names = append(names, f.rel)
		}
		if len(names) > 0 {
			holds, err := l.holding(ctx, names)
			if errors.Is(err, errNotRun) {
				return
			}
			for i := begin; i < end && err == nil; i++ {
				p.out[i].Store(askable(files[i]) && !holds[files[i].rel])
			}
		}
		end = begin
	}
}

// askable reports whether ripgrep examines a file. Its reader reports one over the limit, and
// a name that is not UTF-8 does not reach a command unchanged.
func askable(f found) bool { return f.info.Size() <= MaxFileBytes && utf8.ValidString(f.rel) }

// lookup is a question to ripgrep.
type lookup struct {
	rg, world string // absolute paths
	box       *guard.Sandbox
	want      texts
}

// errNotRun: the program could not be run, or not to its end.
var errNotRun = errors.New("ripgrep was not run")

// holding returns the files that contain one of the texts. It returns an error if ripgrep did
// anything but name them.
func (l lookup) holding(ctx context.Context, names []string) (map[string]bool, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var out bytes.Buffer
	odd := false
	done, err := guard.Run(ctx, guard.Command{
		Path: l.rg, Args: l.args(names), Dir: l.world, Env: []string{}, // it needs no environment, and no secrets
		Timeout: ripgrepTimeout, Sandbox: l.box,
		Output: func(s guard.Stream, data []byte) {
			if s != guard.Stdout || out.Len()+len(data) > maxBatchBytes {
				odd = true
				cancel()
				return
			}
			out.Write(data)
		},
	})
	switch {
	case odd:
		return nil, errors.New("ripgrep says what it was not asked")
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errNotRun, err)
	case done.TimedOut || done.Cut || done.NLeft > 0:
		return nil, errNotRun
	case done.Exit > 1:
		return nil, fmt.Errorf("ripgrep ended with %d", done.Exit)
	}
	holds, err := l.named(out.String(), names)
	if err == nil && (len(holds) > 0) != (done.Exit == 0) {
		err = fmt.Errorf("ripgrep ended with %d and named %d files", done.Exit, len(holds))
	}
	return holds, err
}

// args returns the command line. It makes ripgrep read exactly the named files as bytes,
// regardless of its configuration, its ignore rules, and its detection of binary files and
// encodings.
func (l lookup) args(names []string) []string {
	args := []string{"rg", "--no-config", "--no-messages", "--no-mmap", "--text", "--encoding", "none", "--no-ignore", "--hidden",
		"--fixed-strings", "--files-with-matches", "--null"}
	if l.want.anyCase {
		args = append(args, "--ignore-case")
	} else {
		args = append(args, "--case-sensitive")
	}
	for _, text := range l.want.any {
		args = append(args, "-e", text)
	}
	args = append(args, "--")
	for _, name := range names {
		args = append(args, "./"+name)
	}
	return args
}

// named reads a list of names, which must be among those asked about.
func (l lookup) named(list string, asked []string) (map[string]bool, error) {
	known := make(map[string]bool, len(asked))
	for _, name := range asked {
		known[name] = true
	}
	holds := make(map[string]bool)
	for rest := list; rest != ""; {
		name, after, ended := strings.Cut(rest, "\x00")
		name, here := strings.CutPrefix(name, "./")
		if !ended || !here || !known[name] {
			return nil, errors.New("ripgrep names a file that it was not asked about")
		}
		holds[name] = true
		rest = after
	}
	return holds, nil
}

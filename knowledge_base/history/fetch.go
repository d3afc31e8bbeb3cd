package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/config"

	"anamnesis/opstream/durable"
)

// Limits of what a remote may send.
const (
	// MaxBlobBytes is the longest file that a fetch accepts.
	MaxBlobBytes = 1 << 20
	// maxReceivedBytes limits every file that a git process writes, which includes the received
	// pack; maxGitMemoryBytes limits its memory.
	maxReceivedBytes  = 1 << 30
	maxGitMemoryBytes = 2 << 30
	// maxObjects and maxUnpackedBytes limit one fetch; maxTreeBytes is the longest tree or commit.
	maxObjects       = 1 << 20
	maxUnpackedBytes = 512 << 20
	maxTreeBytes     = 16 << 20
	// maxGitOutputBytes is how much of git's output is read.
	maxGitOutputBytes = 128 << 20
)

// ErrTooMuch is returned for a remote that sends more than a fetch accepts.
var ErrTooMuch = errors.New("the remote sends too much")

const scratchPrefix = "anamnesis-fetch-"

// scratch is a bare repository beside the folder's. git runs in it, with a configuration
// made here and none of the folder's, and reads the folder's objects as alternates. What it
// receives is checked before it is moved to the folder's objects.
type scratch struct {
	r   *Repo
	dir string
}

// newScratch makes one for a remote, a name or an address. The caller removes it.
func (r *Repo) newScratch(remote string) (*scratch, error) {
	dead, err := fs.Glob(os.DirFS(r.git), scratchPrefix+"*")
	if err != nil {
		return nil, err
	}
	for _, d := range dead {
		if err := os.RemoveAll(filepath.Join(r.git, d)); err != nil {
			return nil, err
		}
	}
	address, err := r.address(remote)
	if err != nil {
		return nil, err
	}
	_, head, err := r.head()
	if err != nil {
		return nil, err
	}
	git, err := filepath.Abs(r.git)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(git, scratchPrefix+"*")
	if err != nil {
		return nil, err
	}
	quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(address) + `"`
	files := map[string]string{
		"HEAD":                    "ref: refs/heads/in\n",
		"config":                  "[core]\n\trepositoryformatversion = 0\n\tbare = true\n[remote \"in\"]\n\turl = " + quoted + "\n",
		"objects/info/alternates": filepath.Join(git, "objects") + "\n",
	}
	if !head.IsZero() {
		files["refs/heads/have"] = head.String() + "\n"
	}
	for _, d := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(dir, filepath.FromSlash(d)), durable.DirMode))
	}
	for name, text := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(text), durable.FileMode))
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &scratch{r, dir}, nil
}

// remove deletes the repository. What stays after a failure is removed by the next newScratch.
func (s *scratch) remove() { _ = os.RemoveAll(s.dir) }

// address returns the address of a remote. For a name it is the one in the folder's
// configuration, of which nothing else is used.
func (r *Repo) address(remote string) (string, error) {
	f, err := os.Open(filepath.Join(r.git, "config"))
	if err == nil {
		defer f.Close()
		var c *config.Config
		if c, err = config.ReadConfig(f); err == nil && c.Remotes[remote] != nil && len(c.Remotes[remote].URLs) > 0 {
			remote = c.Remotes[remote].URLs[0]
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the configuration of %s: %w", r.git, err)
	}
	if strings.ContainsAny(remote, "\n\r\x00") || remote == "" {
		return "", fmt.Errorf("%q is no address of a remote", remote)
	}
	return remote, nil
}

// settings are those of every git process: it runs no hook and no program that the folder names.
func settings() []string {
	var out []string
	for _, s := range []string{
		"core.hooksPath=/dev/null", "core.fsmonitor=false", "core.alternateRefsCommand=true", "gc.auto=0", "maintenance.auto=false",
		"submodule.recurse=false", "fetch.recurseSubmodules=false", "fetch.writeCommitGraph=false", "transfer.unpackLimit=1",
		"core.bigFileThreshold=1m", "pack.threads=1",
	} {
		out = append(out, "-c", s)
	}
	return out
}

// run runs git in the scratch repository; relative addresses start at the folder. git asks for
// no password on the terminal: the user's credential helper or ssh agent answers.
func (s *scratch) run(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	path, err := exec.LookPath("git")
	if err != nil {
		return "", fmt.Errorf("git %s: %w", args[0], ErrNoGit)
	}
	// The limits hold for the processes that git starts as well. Not every system has the first.
	limits := fmt.Sprintf(`ulimit -v %d 2>/dev/null; ulimit -f %d; exec "$0" "$@"`, maxGitMemoryBytes>>10, maxReceivedBytes>>9)
	cmd := exec.CommandContext(ctx, "sh", slices.Concat([]string{"-c", limits, path, "--git-dir=" + s.dir}, settings(), args)...)
	cmd.Dir = s.r.dir
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_NAMESPACE",
			"GIT_TEMPLATE_DIR", "GIT_ALLOW_PROTOCOL", "GIT_TERMINAL_PROMPT":
		default:
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "GIT_ALLOW_PROTOCOL=file:git:http:https:ssh", "GIT_TERMINAL_PROMPT=0")
	out, problem := capped{most: maxGitOutputBytes}, capped{most: 64 << 10}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &problem
	if err := cmd.Run(); err != nil {
		text := strings.Join(strings.Fields(problem.String()), " ")
		if strings.Contains(text, "died of signal") || strings.Contains(text, "out of memory") || strings.Contains(text, "File too large") || strings.Contains(text, "SIGXFSZ") {
			err = fmt.Errorf("%w: at most %d MiB are received, with %d MiB of memory: %w", ErrTooMuch, maxReceivedBytes>>20, maxGitMemoryBytes>>20, err)
		}
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, text)
	}
	if out.cut {
		return "", fmt.Errorf("git %s: %w: it prints more than %d bytes", args[0], ErrTooMuch, maxGitOutputBytes)
	}
	return out.String(), nil
}

// capped stores the first bytes written to it.
type capped struct {
	bytes.Buffer
	most int
	cut  bool
}

func (c *capped) Write(p []byte) (int, error) {
	stored := min(len(p), c.most-c.Len())
	c.Buffer.Write(p[:stored])
	c.cut = c.cut || stored < len(p)
	return len(p), nil
}

// fetch receives a branch, checks it, and moves its objects to the folder's repository. It
// returns the branch's commit.
func (s *scratch) fetch(ctx context.Context, branch string) (string, error) {
	const in = "refs/heads/in"
	if _, err := s.run(ctx, nil, "fetch", "--quiet", "--no-tags", "in", "+"+branch+":"+in); err != nil {
		return "", err
	}
	at, err := os.ReadFile(filepath.Join(s.dir, filepath.FromSlash(in)))
	if err != nil {
		return "", err
	}
	since := []string{in}
	if _, err := os.Lstat(filepath.Join(s.dir, "refs", "heads", "have")); err == nil {
		since = append(since, "--not", "refs/heads/have")
	}
	if err := s.refuseReplaced(ctx, since); err != nil {
		return "", err
	}
	// Every received object, with a path for those that have one.
	list, err := s.run(ctx, nil, append([]string{"rev-list", "--objects"}, since...)...)
	if err != nil {
		return "", err
	}
	// Sizes come from the objects' headers, those of deltas from theirs: nothing is unpacked.
	sizes, err := s.run(ctx, strings.NewReader(list), "cat-file", "--batch-check=%(objecttype) %(objectsize) %(rest)")
	if err != nil {
		return "", err
	}
	if err := checkSizes(sizes); err != nil {
		return "", err
	}
	return strings.TrimSpace(string(at)), s.moveObjects()
}

// checkSizes checks lines of the form "type size path".
func checkSizes(list string) error {
	objects, total := 0, 0
	for line := range strings.Lines(list) {
		kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		number, path, _ := strings.Cut(rest, " ")
		size, err := strconv.Atoi(number)
		if err != nil {
			return fmt.Errorf("git cat-file: %q is no object", line)
		}
		if kind == "blob" && size > MaxBlobBytes {
			return fmt.Errorf("%w: %s has %d bytes, and a file may have %d; remove it there, from the history as well", ErrTooMuch, path, size, MaxBlobBytes)
		}
		objects, total = objects+1, total+size
		if size > maxTreeBytes || objects > maxObjects || total > maxUnpackedBytes {
			return fmt.Errorf("%w: at most %d objects of together %d MiB are accepted, and no folder or commit above %d MiB", ErrTooMuch, maxObjects, maxUnpackedBytes>>20, maxTreeBytes>>20)
		}
	}
	return nil
}

// refuseReplaced refuses a history that brings back a commit that was rewritten here.
func (s *scratch) refuseReplaced(ctx context.Context, since []string) error {
	replaced, err := s.r.replaced()
	if err != nil || len(replaced) == 0 {
		return err
	}
	ids, err := s.run(ctx, nil, append([]string{"rev-list"}, since...)...)
	if err != nil {
		return err
	}
	for id := range strings.Lines(ids) {
		if id = strings.TrimSpace(id); replaced[id] {
			return fmt.Errorf("%w: commit %s", ErrReplaced, id)
		}
	}
	return nil
}

// replaced returns the ids of the commits that a rewrite of the history replaced: git filter-repo
// lists them with their successors, and versions of this program that rewrote histories listed them
// alone.
func (r *Repo) replaced() (map[string]bool, error) {
	out := make(map[string]bool)
	for _, name := range []string{"filter-repo/commit-map", "anamnesis-replaced"} {
		data, err := os.ReadFile(filepath.Join(r.git, filepath.FromSlash(name)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for line := range strings.Lines(string(data)) {
			if f := strings.Fields(line); len(f) == 1 || len(f) == 2 && f[0] != f[1] {
				out[f[0]] = true
			}
		}
	}
	return out, nil
}

// moveObjects moves the received packs to the folder's objects. The index of a pack comes last,
// because git does not see a pack without it.
func (s *scratch) moveObjects() error {
	from := filepath.Join(s.dir, "objects", "pack")
	packs, err := fs.Glob(os.DirFS(from), "*.pack")
	if err != nil || len(packs) == 0 {
		return err
	}
	to := filepath.Join(s.r.git, "objects", "pack")
	if err := os.MkdirAll(to, durable.DirMode); err != nil {
		return err
	}
	for _, p := range packs {
		base := strings.TrimSuffix(p, ".pack")
		for _, ext := range []string{".pack", ".rev", ".idx"} {
			err := os.Rename(filepath.Join(from, base+ext), filepath.Join(to, base+ext))
			if err != nil && !(ext == ".rev" && errors.Is(err, fs.ErrNotExist)) {
				return err
			}
		}
	}
	return durable.Sync(to)
}

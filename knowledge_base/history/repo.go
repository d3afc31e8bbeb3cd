// Package history keeps a folder of files as a plain git repository, by means of the git
// program: after each commit made here `git status` is clean, and what people do there with
// git is respected.
//
// No command reads the folder's files: contents are handed over as they were checked, so that no
// filter and no change in between gets into a commit. The branch and the index are replaced
// here, under the lock that git takes, because a git process that dies leaves locks that cannot be
// distinguished from those of a user's git.
package history

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"anamnesis/opstream/durable"
)

const (
	// firstBranch is the branch of a repository made here.
	firstBranch = "refs/heads/main"
	// newName is what a repository is called while it is being made.
	newName = ".git-new"

	// Limits of each git process and of those that it starts: of memory, and of every file
	// written, which includes a received pack. Where a limit cannot be set, the system has a lower one, or none.
	maxGitMemoryBytes = 2 << 30
	maxGitFileBytes   = 1 << 30
	// maxGitOutputBytes is how much of git's output is read into memory.
	maxGitOutputBytes = 128 << 20
)

var (
	// ErrBusy says that git is in the middle of something in the folder: a
	// lock of another process, a merge, a rebase, a detached HEAD.
	ErrBusy = errors.New("the folder's git repository is busy")
	// ErrNoGit is returned if there is no git program.
	ErrNoGit = errors.New("the git program is not installed")
	// ErrTooMuch is returned for a remote that sends more than a fetch accepts.
	ErrTooMuch = errors.New("the remote sends too much")
)

// Person is the author or the committer of a commit.
type Person struct {
	Name  string `json:"name"`
	Email string `json:"email"`
}

// Repo is the repository of one folder. Reading is safe at any time and
// beside git; one process at a time may call what writes, which the caller
// ensures by a lock of its own. A Repo is not for concurrent use.
type Repo struct {
	dir       string // the folder
	git       string // its .git
	name      string // that within the folder
	protocols string // by which a remote may be reached

	listed   map[string]entry // of the commit listedAt: a change asks for it twice
	listedAt string
}

// Open opens the repository of a folder; [fs.ErrNotExist] when it has none.
func Open(dir string) (*Repo, error) {
	r := &Repo{dir: dir, git: filepath.Join(dir, ".git"), name: ".git", protocols: "none"}
	info, err := os.Lstat(r.git)
	if err != nil {
		return nil, fmt.Errorf("open git repository: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("open git repository: %s is not a folder: linked worktrees cannot be used; "+
			"clone the repository instead", r.git)
	}
	return r, nil
}

// Create opens the repository of a folder, and makes one where there is none.
// exclude are patterns that its .git/info/exclude is to hold: a repository
// that came from elsewhere gets them, too.
func Create(dir string, exclude ...string) (*Repo, error) {
	r, err := Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := create(dir); err != nil {
			return nil, fmt.Errorf("make a git repository in %s: %w", dir, err)
		}
		r, err = Open(dir)
	}
	if err != nil {
		return nil, err
	}
	if err := r.exclude(exclude); err != nil {
		return nil, fmt.Errorf("open git repository: %w", err)
	}
	return r, nil
}

// create makes a repository under another name and renames it, so that .git is always complete.
func create(dir string) error {
	temp := filepath.Join(dir, newName)
	err := os.RemoveAll(temp)
	for _, d := range []string{"objects", "refs"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(temp, d), durable.DirMode))
	}
	// Bytes are kept as they are, whatever the user's own settings say.
	for name, text := range map[string]string{
		"HEAD": "ref: " + firstBranch + "\n",
		"config": "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n" +
			"\tlogallrefupdates = true\n\tautocrlf = false\n\tsafecrlf = false\n",
	} {
		err = errors.Join(err, durable.WriteFile(durable.OS{}, filepath.Join(temp, name), []byte(text)))
	}
	if err != nil {
		return err
	}
	if err := os.Rename(temp, filepath.Join(dir, ".git")); err != nil {
		return err
	}
	return durable.Sync(dir)
}

func (r *Repo) exclude(patterns []string) error {
	path := filepath.Join(r.git, "info", "exclude")
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	before := len(lines)
	for _, p := range patterns {
		if !slices.Contains(lines, p) {
			lines = append(lines, p)
		}
	}
	if len(lines) == before {
		return nil
	}
	return r.replace("info/exclude", []byte(strings.TrimPrefix(strings.Join(lines, "\n"), "\n")+"\n"))
}

// tempPrefix is what git, too, calls objects it is writing, so that its gc
// removes those a crash left.
const tempPrefix = "tmp_obj_"

// replace puts data at a path of the repository by a rename, durably. The temporary file lies
// beside no refs, because git would read it as one.
func (r *Repo) replace(name string, data []byte) error {
	path := filepath.Join(r.git, filepath.FromSlash(name))
	if err := durable.MakeDir(durable.OS{}, filepath.Dir(path)); err != nil {
		return err
	}
	if err := durable.WriteVia(durable.OS{}, filepath.Join(r.git, tempPrefix+rand.Text()), path, data); err != nil {
		return err
	}
	return durable.Sync(filepath.Dir(path))
}

// settings are those of every git process: it runs no hook and no monitor, packs nothing
// without being asked, and syncs what it writes (git before 2.36 has only the second name).
func settings() []string {
	var out []string
	for _, s := range []string{
		"core.hooksPath=/dev/null", "core.fsmonitor=false", "core.alternateRefsCommand=true", "core.fsync=all",
		"core.fsyncObjectFiles=true", "core.bigFileThreshold=1m", "core.quotePath=false", "gc.auto=0",
		"maintenance.auto=false", "submodule.recurse=false", "log.showSignature=false",
		"fetch.recurseSubmodules=false", "fetch.writeCommitGraph=false", "fetch.unpackLimit=1", "pack.threads=1",
	} {
		out = append(out, "-c", s)
	}
	return out
}

// inherited matches the variables for git that its processes see: how to reach remotes, and where
// the user's settings are. The others would name another repository.
var inherited = regexp.MustCompile(`^GIT_(?:SSH|ASKPASS|CONFIG|SSL|HTTP|PROXY|CURL|TRACE|EXEC_PATH)`)

// command is a git process for the repository. Its variables are env and those of the user. It asks
// for no password on the terminal: the user's credential helper or ssh agent answers.
func (r *Repo) command(ctx context.Context, env []string, args ...string) (*exec.Cmd, error) {
	path, err := exec.LookPath("git")
	if err != nil {
		return nil, ErrNoGit
	}
	// ulimit counts memory in KiB and the size of files in blocks of 512 bytes.
	limits := fmt.Sprintf(`ulimit -v %d 2>/dev/null; ulimit -f %d 2>/dev/null; umask 077; exec "$0" "$@"`,
		maxGitMemoryBytes>>10, maxGitFileBytes>>9)
	first := []string{"-c", limits, path, "--git-dir=" + r.name, "--work-tree=."}
	cmd := exec.CommandContext(ctx, "sh", slices.Concat(first, settings(), args)...)
	cmd.Dir = r.dir
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") || inherited.MatchString(v) {
			cmd.Env = append(cmd.Env, v)
		}
	}
	// In another language, failure and Push would not recognise what git prints.
	cmd.Env = append(append(cmd.Env, "LC_ALL=C", "GIT_ALLOW_PROTOCOL="+r.protocols, "GIT_TERMINAL_PROMPT=0"), env...)
	return cmd, nil
}

// run runs git in the repository and returns its output.
func (r *Repo) run(ctx context.Context, env []string, stdin io.Reader, args ...string) (string, error) {
	cmd, err := r.command(ctx, env, args...)
	if err != nil {
		return "", err
	}
	out, problem := capped{most: maxGitOutputBytes}, capped{most: 64 << 10}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &problem
	if err := cmd.Run(); err != nil {
		return "", failure(args[0], cmp.Or(ctx.Err(), err), problem.String())
	}
	if out.cut {
		return "", fmt.Errorf("git %s: %w: it prints more than %d bytes", args[0], ErrTooMuch, maxGitOutputBytes)
	}
	return out.String(), nil
}

// failure is the error of a git process that printed problem.
func failure(verb string, err error, problem string) error {
	problem = strings.ReplaceAll(problem, "warning: core.fsyncObjectFiles is deprecated; use core.fsync instead\n", "")
	text := strings.Join(strings.Fields(problem), " ")
	for _, limit := range []string{"died of signal", "out of memory", "File too large", "SIGXFSZ"} {
		if strings.Contains(text, limit) {
			err = fmt.Errorf("%w: at most %d MiB are received, with %d MiB of memory: %w",
				ErrTooMuch, maxGitFileBytes>>20, maxGitMemoryBytes>>20, err)
			break
		}
	}
	return fmt.Errorf("git %s: %w: %s", verb, err, text)
}

func exitedWith(err error, code int) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == code
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

// Head returns the current commit; "" when there is none yet.
func (r *Repo) Head() (string, error) {
	_, at, err := r.head()
	return at, err
}

// head returns the branch and its commit, "" when it has none yet.
func (r *Repo) head() (branch, at string, err error) {
	data, err := os.ReadFile(filepath.Join(r.git, "HEAD"))
	if err != nil {
		return "", "", err
	}
	branch, on := strings.CutPrefix(strings.TrimSpace(string(data)), "ref: ")
	if !on {
		return "", "", fmt.Errorf("%w: HEAD of %s is detached; check a branch out", ErrBusy, r.dir)
	}
	at, err = r.run(context.Background(), nil, nil, "rev-parse", "--quiet", "--verify", branch)
	if exitedWith(err, 1) {
		// A branch that is there and cannot be read is not a new one: a commit would replace it.
		if _, lost := os.Lstat(filepath.Join(r.git, filepath.FromSlash(branch))); errors.Is(lost, fs.ErrNotExist) {
			return branch, "", nil
		}
		err = fmt.Errorf("%s of %s cannot be read", branch, r.git)
	}
	return branch, strings.TrimSpace(at), err
}

// ready reports, as [ErrBusy], what keeps commits from being made now.
func (r *Repo) ready() error {
	// Each is there while an operation of git that a user has begun is not finished.
	for _, name := range []string{"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply"} {
		if _, err := os.Lstat(filepath.Join(r.git, name)); err == nil {
			return fmt.Errorf("%w: %s has an unfinished %s; finish or abort it with git", ErrBusy, r.dir, name)
		}
	}
	return nil
}

package usergit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"anamnesis/worldstate/internal/fsys"
)

// State is the state of a user's repository: what is checked out, the refs and the index.
type State struct {
	Head   string // the branch that is checked out, such as refs/heads/main; empty: detached
	Commit string // of HEAD, hex; empty: the branch has none yet
	Refs   string // a line with name and commit for each branch, tag and the stash; only Head's above maxRefs
	Staged string // how the index differs from Commit, as lines for 'git update-index -z --index-info'
	Unread string // why Staged is unknown; empty: it is known
	During string // what the user is in the middle of, such as "rebase"; empty: nothing
}

const (
	maxRefs   = 200
	maxStaged = 256 << 10 // bytes
	// maxGitTime ends a command that waits, such as for a pipe in place of the index.
	maxGitTime = time.Minute
)

// Reader reads the state of one repository again and again, and runs git only if its files have changed.
// The zero value is ready.
type Reader struct {
	sources []fsys.Source // that state was read from
	state   State
}

// Read reads the state of the repository whose .git is at top. It changes nothing there.
func (r *Reader) Read(ctx context.Context, top string) (State, error) {
	gitDir, common, err := gitDirs(top)
	if err != nil {
		return State{}, err
	}
	now := []fsys.Source{fsys.StatSource(gitDir)} // git puts each file anew into its directory
	for _, dir := range []string{filepath.Join(common, "refs"), filepath.Join(common, "reftable"), common} {
		_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() { // otherwise it is gone
				now = append(now, fsys.StatSource(path))
			}
			// Of the shared directory only the files right in it count, such as packed-refs.
			if path == common {
				return filepath.SkipAll
			}
			return nil
		})
	}
	if len(r.sources) > 0 && slices.EqualFunc(r.sources, now, fsys.Source.Equal) {
		return r.state, nil
	}
	r.sources = now
	r.state, err = readState(ctx, top, gitDir)
	if err != nil || ctx.Err() != nil { // the next call tries again: the files need not change for it to succeed
		r.sources = nil
	}
	return r.state, err
}

func readState(ctx context.Context, top, gitDir string) (s State, err error) {
	git := Command{Top: top}
	if s.Head, err = git.Run(ctx, "symbolic-ref", "-q", "HEAD"); err != nil {
		s.Head = ""
	}
	if s.Commit, err = git.Run(ctx, "rev-parse", "-q", "--verify", "HEAD"); err != nil && s.Head == "" {
		return State{}, err
	}
	kinds := []string{"refs/heads", "refs/tags", "refs/stash"}
	for range 2 {
		list := []string{"for-each-ref", "--format=%(refname) %(objectname)"}
		if s.Refs, err = git.Run(ctx, append(list, kinds...)...); err != nil {
			return State{}, err
		}
		if strings.Count(s.Refs, "\n") < maxRefs {
			break
		}
		kinds = []string{cmp.Or(s.Head, "HEAD")}
	}
	s.During = during(gitDir)
	base := s.Commit
	if base == "" {
		// Before the first commit the index is compared with the empty tree, whose id depends on the hash in use.
		if base, err = git.Run(ctx, "hash-object", "-t", "tree", "/dev/null"); err != nil {
			return State{}, err
		}
	}
	raw, err := git.Run(ctx, "diff-index", "--cached", "--ita-invisible-in-index", "--raw", "-z", "--no-renames",
		"--no-abbrev", base, "--")
	fields, lines := strings.Split(raw, "\x00"), ""
	for i := 0; i+1 < len(fields); i += 2 {
		about := strings.Fields(fields[i]) // two modes, two hashes, a letter
		if len(about) == 5 && about[4] == "U" {
			err = errors.New("files in the index are unmerged; resolve them with 'git add'")
		} else if len(about) == 5 {
			lines += about[1] + " " + about[3] + "\t" + fields[i+1] + "\x00"
		}
	}
	switch s.Staged = lines; {
	case err != nil:
		s.Staged, s.Unread = "", err.Error()
	case len(lines) > maxStaged:
		s.Staged, s.Unread = "", fmt.Sprintf("over %d KiB of changes are staged", maxStaged>>10)
	}
	return s, nil
}

// Command is a git command in the repository whose .git is at Top. It runs no hook and no program that
// the repository's configuration names, and asks no remote.
type Command struct {
	Top, Stdin string
	Env        []string // beside the process's
}

// Run runs the command and returns what it prints. Its error has the first line of the standard error.
func (c Command) Run(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, maxGitTime)
	defer cancel()
	args = append([]string{"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false",
		"-c", "safe.bareRepository=explicit", "-c", "gc.auto=0", "-c", "submodule.recurse=false"}, args...)
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Stdin = c.Top, strings.NewReader(c.Stdin)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") || strings.HasPrefix(v, "GIT_CONFIG_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	// git must not fall back to a repository above Top, nor fetch missing objects of a partial clone: that would run a
	// command which the repository names.
	cmd.Env = append(cmd.Env, "GIT_CEILING_DIRECTORIES="+filepath.Dir(c.Top), "GIT_ALLOW_PROTOCOL=none",
		"GIT_NO_LAZY_FETCH=1", "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C",
		"GIT_AUTHOR_NAME=anamnesis", "GIT_AUTHOR_EMAIL=anamnesis@localhost",
		"GIT_COMMITTER_NAME=anamnesis", "GIT_COMMITTER_EMAIL=anamnesis@localhost")
	cmd.Env = append(cmd.Env, c.Env...)
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		line, _, _ := strings.Cut(strings.TrimSpace(string(exit.Stderr)), "\n")
		err = fmt.Errorf("git %s: %w: %s", args[0], err, line)
	}
	return strings.TrimSuffix(string(out), "\n"), err
}

// during names what the repository is in the middle of.
func during(gitDir string) string {
	for _, d := range [][2]string{
		{"rebase-merge", "rebase"}, {"rebase-apply/applying", "am"}, {"rebase-apply", "rebase"},
		{"MERGE_HEAD", "merge"}, {"CHERRY_PICK_HEAD", "cherry-pick"}, {"REVERT_HEAD", "revert"},
		{"sequencer", "cherry-pick"}, {"BISECT_LOG", "bisect"},
	} {
		if _, err := os.Lstat(filepath.Join(gitDir, filepath.FromSlash(d[0]))); err == nil {
			return d[1]
		}
	}
	return ""
}

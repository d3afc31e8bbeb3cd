package usergit

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"anamnesis/opstream/durable"
	"anamnesis/worldstate/internal/fsys"
)

// State is where a user's repository stands.
type State struct {
	Head   string // the branch that is checked out, such as refs/heads/main; empty: detached
	Commit string // of HEAD, hex; empty: the branch has none yet
	// Refs are the commits of branches, tags and the stash by name; if there are more than maxRefs,
	// only that of Head.
	Refs map[string]string
	// Staged is how the index differs from Commit, as 'git diff-index --raw -z' prints it; without a
	// Commit, from the empty tree.
	Staged string
	Unread string // why Staged is unknown; empty: it is known
	During string // what the user is in the middle of, such as "rebase"; empty: nothing
}

const (
	maxRefs   = 1000
	maxStaged = 256 << 10 // bytes
	maxHead   = 4 << 10   // bytes of HEAD and of a reference
	maxPacked = 64 << 20  // bytes of packed references
)

// Reader reads the state of one repository again and again; it runs git only if the index or HEAD has
// changed. The zero value is ready.
type Reader struct {
	index          fsys.Source
	commit         string
	staged, unread string
}

var commitID = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// Read reads the state of the repository whose .git is at top. It changes nothing there.
func (r *Reader) Read(ctx context.Context, top string) (State, error) {
	gitDir, common, err := gitDirs(top)
	if err != nil {
		return State{}, err
	}
	head, err := durable.ReadTail(filepath.Join(gitDir, "HEAD"), maxHead)
	if err != nil {
		return State{}, err
	}
	s := State{Refs: make(map[string]string), During: during(gitDir)}
	if ref, ok := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: "); ok {
		s.Head = ref
	} else if s.Commit = strings.TrimSpace(string(head)); !commitID.MatchString(s.Commit) {
		return State{}, errors.New("its HEAD names neither a branch nor a commit")
	}
	if s.Head == "refs/heads/.invalid" {
		return State{}, errors.New("its references are in a reftable, which this program does not read")
	}
	if err := s.readRefs(common); err != nil {
		return State{}, err
	}
	s.Commit = cmp.Or(s.Commit, s.Refs[s.Head])
	if len(s.Refs) > maxRefs {
		maps.DeleteFunc(s.Refs, func(name, _ string) bool { return name != s.Head })
	}
	if now := fsys.StatSource(filepath.Join(gitDir, "index")); r.index.Path == "" || !r.index.Equal(now) || r.commit != s.Commit {
		r.index, r.commit = now, s.Commit
		r.staged, r.unread = readStaged(ctx, top, s.Commit)
	}
	s.Staged, s.Unread = r.staged, r.unread
	return s, nil
}

// readRefs reads the references from their files.
func (s *State) readRefs(common string) error {
	packed, err := durable.ReadTail(filepath.Join(common, "packed-refs"), maxPacked)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.addRefs(packed)
	return filepath.WalkDir(filepath.Join(common, "refs"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil // gone meanwhile
		}
		id, err := durable.ReadTail(path, maxHead)
		if name, err2 := filepath.Rel(common, path); err == nil && err2 == nil {
			s.addRefs([]byte(strings.TrimSpace(string(id)) + " " + filepath.ToSlash(name)))
		}
		return nil
	})
}

// addRefs adds the branches, tags and the stash of lines with a commit and a name.
func (s *State) addRefs(lines []byte) {
	for sc := bufio.NewScanner(bytes.NewReader(lines)); sc.Scan(); {
		id, name, _ := strings.Cut(sc.Text(), " ")
		if commitID.MatchString(id) && (strings.HasPrefix(name, "refs/heads/") || strings.HasPrefix(name, "refs/tags/") || name == "refs/stash") {
			s.Refs[name] = id
		}
	}
}

func readStaged(ctx context.Context, top, commit string) (staged, unread string) {
	git := Command{Top: top}
	if commit == "" {
		var err error
		if commit, err = git.Run(ctx, "hash-object", "-t", "tree", "/dev/null"); err != nil {
			return "", err.Error()
		}
	}
	staged, err := git.Run(ctx, "diff-index", "--cached", "--ita-invisible-in-index", "--raw", "-z", "--no-renames", "--no-abbrev", commit, "--")
	switch {
	case err != nil:
		return "", err.Error()
	case len(staged) > maxStaged:
		return "", fmt.Sprintf("over %d KiB of changes are staged", maxStaged>>10)
	}
	return staged, ""
}

// IndexInfo returns the lines for 'git update-index -z --index-info' that make an index of State.Commit
// one with State.Staged.
func IndexInfo(staged string) string {
	var sb strings.Builder
	fields := strings.Split(staged, "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		if about := strings.Fields(fields[i]); len(about) == 5 { // modes, hashes, a letter
			fmt.Fprintf(&sb, "%s %s\t%s\x00", about[1], about[3], fields[i+1])
		}
	}
	return sb.String()
}

// Command is a git command in the repository whose .git is at Top. It runs no hook and no program that
// the repository's configuration names, and asks no remote.
type Command struct {
	Top, Stdin string
	Env        []string // beside the process's
}

// Run runs the command and returns what it prints. Its error has the first line of the standard error.
func (c Command) Run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false",
		"-c", "safe.bareRepository=explicit", "-c", "gc.auto=0", "-c", "submodule.recurse=false"}, args...)...)
	cmd.Dir, cmd.Stdin = c.Top, strings.NewReader(c.Stdin)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") || strings.HasPrefix(v, "GIT_CONFIG_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	// Above Top is another repository. A partial clone names a remote, and a command that fetches from it.
	cmd.Env = append(cmd.Env, "GIT_CEILING_DIRECTORIES="+filepath.Dir(c.Top), "GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1",
		"GIT_OPTIONAL_LOCKS=0", "LC_ALL=C", "GIT_AUTHOR_NAME=anamnesis",
		"GIT_AUTHOR_EMAIL=anamnesis@localhost", "GIT_COMMITTER_NAME=anamnesis", "GIT_COMMITTER_EMAIL=anamnesis@localhost")
	cmd.Env = append(cmd.Env, c.Env...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		line, _, _ := strings.Cut(strings.TrimSpace(string(exit.Stderr)), "\n")
		err = fmt.Errorf("git %s: %w: %s", args[0], err, line)
	}
	return strings.TrimSuffix(string(out), "\n"), err
}

// during names what the repository is in the middle of.
func during(gitDir string) string {
	for _, d := range [][2]string{
		{"rebase-merge", "rebase"}, {"rebase-apply/applying", "am"}, {"rebase-apply", "rebase"}, {"MERGE_HEAD", "merge"},
		{"CHERRY_PICK_HEAD", "cherry-pick"}, {"REVERT_HEAD", "revert"}, {"sequencer", "cherry-pick"}, {"BISECT_LOG", "bisect"},
	} {
		if _, err := os.Lstat(filepath.Join(gitDir, filepath.FromSlash(d[0]))); err == nil {
			return d[1]
		}
	}
	return ""
}

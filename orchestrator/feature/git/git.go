// Package git moves a user's git repositories to where they stood at the end of a step, with git's own
// commands, when the user asks for it with a jump. The agent cannot.
package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/workspace"
	"anamnesis/worldstate"
)

// Plan returns how the repositories of a world have to move to where they stood at the end of a step. It
// changes nothing in them. The error says why one of them cannot move.
func Plan(ctx context.Context, world string, s *state.State, stream interface {
	Get(seq uint64) (opstream.Record, error)
}, step int) (moves []op.GitMove, err error) {
	moves = []op.GitMove{}
	recorded := false
	for _, dir := range slices.Sorted(maps.Keys(s.Git)) {
		then, err := workspace.GitThen(stream, s, dir, step)
		if err != nil {
			return nil, err
		}
		if then.Seen == nil { // a later repository, or the step of an earlier version
			continue
		}
		recorded = true
		now := workspace.GitNow(ctx, world, dir, new(worldstate.GitReader))
		m := op.GitMove{Dir: dir, From: now.GitAt, To: then.GitAt}
		for _, name := range []string{then.Head, now.Head} {
			was, is := now.Refs[name], then.Refs[name]
			if was == is || name == now.Head && name != then.Head && is == "" { // a later branch stays
				continue
			}
			if m.Refs = append(m.Refs, op.GitRef{Name: name, Old: was, New: is}); then.Head == now.Head {
				break
			}
		}
		if m.From == m.To && len(m.Refs) == 0 {
			continue
		}
		if err := newRepo(world, m).check(ctx, step); err != nil {
			return nil, fmt.Errorf("git in %s: %w", filepath.Join(world, dir), err)
		}
		moves = append(moves, m)
	}
	if !recorded {
		return nil, fmt.Errorf("no git repository is recorded up to step %d; jump without git", step)
	}
	return moves, nil
}

// repo is a repository that moves.
type repo struct {
	op.GitMove
	top string
}

func newRepo(world string, m op.GitMove) repo { return repo{m, filepath.Join(world, m.Dir)} }

func (r repo) git(ctx context.Context, args ...string) (string, error) {
	return worldstate.GitCommand{Top: r.top}.Run(ctx, args...)
}

// remedies end what a repository can be in the middle of.
var remedies = map[string]string{"bisect": "git bisect reset"}

// check returns why the repository cannot move.
func (r repo) check(ctx context.Context, step int) error {
	switch {
	case r.To.Unread != "":
		return fmt.Errorf("where it stood at step %d is unknown: %s", step, r.To.Unread)
	case r.From.Unread != "":
		return fmt.Errorf("where it stands is unknown: %s", r.From.Unread)
	case r.To.During != "":
		return fmt.Errorf("step %d ended in the middle of a %s, which git cannot be moved into; jump to another step, or without git", step, r.To.During)
	case r.From.During != "":
		return fmt.Errorf("it is in the middle of a %s; finish it or run '%s', then jump again", r.From.During, cmp.Or(remedies[r.From.During], "git "+r.From.During+" --abort"))
	case unmerged(r.To.Staged):
		return fmt.Errorf("step %d ended with unmerged files in the index, which git cannot be moved into; jump to another step, or without git", step)
	case unmerged(r.From.Staged):
		return errors.New("files in its index are unmerged; resolve them with 'git add', then jump again")
	}
	dir, err := r.git(ctx, "rev-parse", "--absolute-git-dir")
	if err != nil {
		return err
	}
	for _, lock := range []string{"index.lock", "HEAD.lock"} {
		if _, err := os.Lstat(filepath.Join(dir, lock)); err == nil {
			return fmt.Errorf("%s exists: another git process works here, or one was killed; remove it if none does", filepath.Join(dir, lock))
		}
	}
	if r.To.Commit != "" {
		if _, err := r.git(ctx, "cat-file", "-e", r.To.Commit+"^{commit}"); err != nil {
			return fmt.Errorf("commit %.12s of step %d is no longer there; git removes what nothing refers to", r.To.Commit, step)
		}
	}
	if at, err := r.elsewhere(ctx); err != nil || at != "" {
		return cmp.Or(err, fmt.Errorf("a branch that would move is checked out in %s", at))
	}
	tmp, err := os.MkdirTemp("", "anamnesis-git-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	objects, err := r.git(ctx, "rev-parse", "--path-format=absolute", "--git-path", "objects")
	if err != nil {
		return err
	}
	if _, err := r.tree(ctx, r.To, "GIT_OBJECT_DIRECTORY="+tmp, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+objects); err != nil {
		return fmt.Errorf("what was staged at step %d is no longer there; git removes what nothing refers to: %w", step, err)
	}
	_, err = worldstate.GitCommand{Top: r.top, Stdin: "start\n" + r.updates() + "prepare\nabort\n"}.Run(ctx, "update-ref", "--stdin")
	return err
}

func unmerged(staged string) bool { return strings.Contains(staged, " U\x00") }

// elsewhere returns another worktree in which a branch is checked out that would move, or be checked out
// here; empty: none.
func (r repo) elsewhere(ctx context.Context) (at string, err error) {
	own, err := r.git(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return "", err
	}
	names := []string{r.To.Head}
	for _, ref := range r.Refs {
		names = append(names, ref.Name)
	}
	list, err := r.git(ctx, "worktree", "list", "--porcelain")
	for _, tree := range strings.Split(list, "\n\n") {
		path, rest, _ := strings.Cut(strings.TrimPrefix(tree, "worktree "), "\n")
		_, branch, _ := strings.Cut(rest, "\nbranch ")
		if branch, _, _ = strings.Cut(branch, "\n"); path != own && branch != "" && slices.Contains(names, branch) {
			return path, err
		}
	}
	return "", err
}

// tree returns the tree of an index, which it writes where env says.
func (r repo) tree(ctx context.Context, at op.GitAt, env ...string) (string, error) {
	tmp, err := os.MkdirTemp("", "anamnesis-git-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	git := worldstate.GitCommand{Top: r.top, Env: append(env, "GIT_INDEX_FILE="+filepath.Join(tmp, "index"))}
	if _, err := git.Run(ctx, "read-tree", cmp.Or(at.Commit, "--empty")); err != nil {
		return "", err
	}
	git.Stdin = worldstate.GitIndexInfo(at.Staged)
	if _, err := git.Run(ctx, "update-index", "-z", "--index-info"); err != nil {
		return "", err
	}
	return git.Run(ctx, "write-tree")
}

// updates are the lines of 'git update-ref --stdin' that move the branches.
func (r repo) updates() string {
	var sb strings.Builder
	for _, ref := range r.Refs {
		switch {
		case ref.New == "":
			fmt.Fprintf(&sb, "delete %s %s\n", ref.Name, ref.Old)
		case ref.Old == "":
			fmt.Fprintf(&sb, "create %s %s\n", ref.Name, ref.New)
		default:
			fmt.Fprintf(&sb, "update %s %s %s\n", ref.Name, ref.New, ref.Old)
		}
	}
	return sb.String()
}

// Words says what a move does, before it is made.
func Words(m op.GitMove) string {
	text := fmt.Sprintf("%sHEAD %s -> %s", workspace.GitIn(m.Dir), m.From, m.To)
	for _, ref := range m.Refs {
		if m.From.Head != m.To.Head {
			text += fmt.Sprintf("; %s %s -> %s", strings.TrimPrefix(ref.Name, "refs/heads/"), short(ref.Old), short(ref.New))
		}
	}
	if m.From.NStaged()+m.To.NStaged() > 0 {
		text += fmt.Sprintf("; index with %d staged files -> %d", m.From.NStaged(), m.To.NStaged())
	}
	return text
}

func short(id string) string { return cmp.Or(fmt.Sprintf("%.7s", id), "none") }

// Apply makes a move that a jump has recorded, and says how it ended. A killed one is completed by
// another call with the same left, which names what is kept of it.
func Apply(ctx context.Context, world string, m op.GitMove, left string) string {
	r := newRepo(world, m)
	kept, err := r.keep(ctx, "refs/anamnesis/left/"+left)
	if err == nil {
		err = r.move(ctx, "anamnesis: jump "+left)
	}
	text := fmt.Sprintf("%sHEAD is %s again; it was %s.", workspace.GitIn(m.Dir), m.To, m.From)
	if err != nil {
		text = fmt.Sprintf("%snot moved: %v.", workspace.GitIn(m.Dir), err)
	}
	if len(kept) > 0 {
		text += " What was left is kept as " + strings.Join(kept, " and ") + "."
	}
	return text
}

// keep makes references to the commits that no branch, tag or remote would have after the move, and to
// what is staged.
func (r repo) keep(ctx context.Context, name string) (kept []string, err error) {
	left := []op.GitRef{{Name: name, Old: r.From.Commit}}
	var after, excluded []string
	if r.To.Commit != "" {
		after = []string{r.To.Commit}
	}
	for _, ref := range r.Refs {
		if excluded = append(excluded, "--exclude="+strings.TrimPrefix(ref.Name, "refs/heads/")); ref.New != "" {
			after = append(after, ref.New)
		}
		if ref.Old != r.From.Commit {
			left = append(left, op.GitRef{Name: name + "-" + strings.TrimPrefix(ref.Name, "refs/heads/"), Old: ref.Old})
		}
	}
	for i, ref := range left {
		if _, err := r.git(ctx, "rev-parse", "-q", "--verify", ref.Name); err == nil { // by a process that was killed
			kept = append(kept, ref.Name)
			continue
		}
		id, staged := ref.Old, i == 0 && r.From.Staged != ""
		if id != "" {
			alone, err := r.git(ctx, slices.Concat([]string{"rev-list", "-n", "1", id, "--not"}, excluded, []string{"--branches", "--tags", "--remotes"}, after)...)
			if err != nil {
				return kept, err
			}
			if alone == "" && !staged {
				continue
			}
		}
		if staged {
			tree, err := r.tree(ctx, r.From)
			if err != nil {
				return kept, err
			}
			commit := []string{"commit-tree", "-m", "The index before a jump", tree}
			if id != "" {
				commit = append(commit, "-p", id)
			}
			if id, err = r.git(ctx, commit...); err != nil {
				return kept, err
			}
		}
		if id == "" {
			continue
		}
		if _, err := r.git(ctx, "update-ref", ref.Name, id, ""); err != nil {
			return kept, err
		}
		kept = append(kept, ref.Name)
	}
	return kept, nil
}

// move moves the branch, HEAD and the index, each from where the plan found it.
func (r repo) move(ctx context.Context, message string) error {
	now := workspace.GitNow(ctx, r.top, ".", new(worldstate.GitReader))
	from, err := r.tree(ctx, r.From)
	if err != nil {
		return err
	}
	to, err := r.tree(ctx, r.To)
	if err != nil {
		return err
	}
	index, err := r.git(ctx, "write-tree")
	if err != nil {
		return err
	}
	if at := now.Head; at != r.From.Head && at != r.To.Head || index != from && index != to {
		return errors.New("HEAD or the index was changed meanwhile")
	}
	moved := func(ref op.GitRef) bool { return now.Refs[ref.Name] == ref.New } // together: in one transaction
	if !slices.ContainsFunc(r.Refs, moved) {
		git := worldstate.GitCommand{Top: r.top, Stdin: r.updates()}
		if _, err := git.Run(ctx, "update-ref", "-m", message, "--stdin"); err != nil {
			return err
		}
	}
	switch {
	case r.To.Head != "":
		_, err = r.git(ctx, "symbolic-ref", "-m", message, "HEAD", r.To.Head)
	case now.Head != "" || now.Commit != r.To.Commit:
		_, err = r.git(ctx, "update-ref", "--no-deref", "-m", message, "HEAD", r.To.Commit, r.From.Commit)
	}
	if err == nil && index != to {
		_, err = r.git(ctx, "read-tree", "--reset", to)
	}
	return err
}

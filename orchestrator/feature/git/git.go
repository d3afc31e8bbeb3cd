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

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/workspace"
	"anamnesis/worldstate"
)

// Plan returns how the repositories of a world have to move to where they stood at the end of a step. It
// changes nothing in them. The error says why one of them cannot move.
func Plan(ctx context.Context, world string, s *state.State, stream taskdir.Stream, step int) ([]op.GitMove, error) {
	moves := []op.GitMove{}
	recorded := false
	for _, dir := range slices.Sorted(maps.Keys(s.Git)) {
		if s.Git[dir].Seen[0] > s.Steps.At(step).Last { // a later repository, or the step of an earlier version
			continue
		}
		recorded = true
		then, err := workspace.GitThen(stream, s, dir, step)
		if err != nil {
			return nil, err
		}
		r := repo{op.GitMove{Dir: dir, To: then}, filepath.Join(world, dir)}
		r.From = workspace.GitNow(ctx, r.top, new(worldstate.GitReader))
		for _, name := range []string{r.To.Head, r.From.Head} { // a branch that did not exist then stays
			to := r.To.Ref(name)
			if to != r.From.Ref(name) && (to != "" || name == r.To.Head) && !slices.Contains(r.Branches, name) {
				r.Branches = append(r.Branches, name)
			}
		}
		if len(r.Branches) == 0 && r.From.Head == r.To.Head && r.From.Commit == r.To.Commit &&
			r.From.Staged == r.To.Staged {
			continue
		}
		if err := r.check(ctx, step); err != nil {
			return nil, fmt.Errorf("git in %s: %w", r.top, err)
		}
		moves = append(moves, r.GitMove)
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

func (r repo) git(ctx context.Context, args ...string) (string, error) {
	return worldstate.GitCommand{Top: r.top}.Run(ctx, args...)
}

func (r repo) check(ctx context.Context, step int) error {
	switch busy := r.From.During; {
	case r.To.Unread+r.To.During != "":
		return fmt.Errorf("step %d ended with a state that git cannot be moved into (%s); jump to another step, "+
			"or without git", step, cmp.Or(r.To.During, r.To.Unread))
	case busy == "bisect":
		return errors.New("it is in the middle of a bisect; run 'git bisect reset', then jump again")
	case busy != "":
		return fmt.Errorf("it is in the middle of a %s; finish it or run 'git %s --abort', then jump again", busy, busy)
	case r.From.Unread != "":
		return fmt.Errorf("where it stands is unknown: %s", r.From.Unread)
	}
	paths, err := r.git(ctx, "rev-parse", "--path-format=absolute", "--show-toplevel", "--git-path", "index.lock",
		"--git-path", "objects")
	lines := strings.Split(paths, "\n")
	if err != nil || len(lines) != 3 {
		return fmt.Errorf("its paths are unknown: %w", cmp.Or(err, errors.New(paths)))
	}
	if _, err := os.Lstat(lines[1]); err == nil {
		return fmt.Errorf("%s exists: a git process works here, or one was killed; remove it if none does", lines[1])
	}
	for _, ref := range append(r.Branches, r.To.Head) {
		at, err := r.git(ctx, "for-each-ref", "--format=%(worktreepath)", cmp.Or(ref, "refs/none"))
		if err != nil || at != "" && at != lines[0] {
			return cmp.Or(err, fmt.Errorf("branch %s is checked out in %s", strings.TrimPrefix(ref, "refs/heads/"), at))
		}
	}
	tmp, err := os.MkdirTemp("", "anamnesis-git-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if _, err := r.target(ctx, "GIT_OBJECT_DIRECTORY="+tmp, "GIT_ALTERNATE_OBJECT_DIRECTORIES="+lines[2]); err != nil {
		return fmt.Errorf("a commit or staged file of step %d is gone; git removes what nothing names: %w", step, err)
	}
	// Prepare checks and locks the references as the jump will; abort leaves them as they are.
	trial := "start\x00" + r.updates() + "prepare\x00abort\x00"
	_, err = worldstate.GitCommand{Top: r.top, Stdin: trial}.Run(ctx, "update-ref", "--stdin", "-z")
	return err
}

// target writes the tree of the target's index, where env says.
func (r repo) target(ctx context.Context, env ...string) (string, error) {
	tmp, err := os.MkdirTemp("", "anamnesis-git-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	env = append(env, "GIT_INDEX_FILE="+filepath.Join(tmp, "index"))
	git := worldstate.GitCommand{Top: r.top, Stdin: r.To.Staged, Env: env}
	_, err = git.Run(ctx, "read-tree", cmp.Or(r.To.Commit, "--empty"))
	if err == nil {
		_, err = git.Run(ctx, "update-index", "-z", "--index-info")
	}
	if err != nil {
		return "", err
	}
	return git.Run(ctx, "write-tree")
}

// updates are the lines of 'git update-ref --stdin -z' that move the branches.
func (r repo) updates() string {
	var sb strings.Builder
	for _, name := range r.Branches {
		fmt.Fprintf(&sb, "update %s\x00%s\x00%s\x00", name, r.To.Ref(name), r.From.Ref(name))
	}
	return sb.String()
}

// Words says what a move does, before it is made.
func Words(m op.GitMove) string {
	text := fmt.Sprintf("%sHEAD %s -> %s", workspace.GitIn(m.Dir), m.From, m.To)
	for _, name := range m.Branches {
		text += fmt.Sprintf("; %s %.7s -> %.7s", strings.TrimPrefix(name, "refs/heads/"),
			cmp.Or(m.From.Ref(name), "none"), cmp.Or(m.To.Ref(name), "none"))
	}
	if m.From.Staged != m.To.Staged {
		text += fmt.Sprintf("; staged files %d -> %d", strings.Count(m.From.Staged, "\x00"),
			strings.Count(m.To.Staged, "\x00"))
	}
	return text
}

// Apply makes a move that a jump has recorded, and says how it ended. Another call with the same name of
// what is left completes one that was killed.
func Apply(ctx context.Context, world string, m op.GitMove, left string) string {
	r := repo{m, filepath.Join(world, m.Dir)}
	if err := r.move(ctx, "refs/anamnesis/left/"+left); err != nil {
		return fmt.Sprintf("%snot moved: %v.", workspace.GitIn(m.Dir), err)
	}
	return fmt.Sprintf("%sHEAD is %s again; it was %s. What was left is kept as refs/anamnesis/left/%s.",
		workspace.GitIn(m.Dir), m.To, m.From, left)
}

// move keeps what is left in one commit, of the index as it is with the commits of HEAD and of the
// branches as parents. Then it moves the branches, HEAD and the index.
func (r repo) move(ctx context.Context, left string) error {
	now := workspace.GitNow(ctx, r.top, new(worldstate.GitReader))
	if now.Head != r.From.Head && now.Head != r.To.Head {
		return errors.New("HEAD was moved meanwhile")
	}
	index, err := r.git(ctx, "write-tree")
	if err != nil {
		return err
	}
	keep := []string{"commit-tree", "-m", "The index and the branches before a jump", index}
	earlier, _ := r.git(ctx, "rev-parse", "-q", "--verify", left) // of a process that was killed
	parents := []string{earlier, now.Commit}
	for _, name := range r.Branches {
		parents = append(parents, r.From.Ref(name))
	}
	for _, id := range parents {
		if id != "" && !slices.Contains(keep, id) {
			keep = append(keep, "-p", id)
		}
	}
	kept, err := r.git(ctx, keep...)
	if err == nil {
		_, err = r.git(ctx, "update-ref", left, kept, earlier)
	}
	if err != nil {
		return err
	}
	moved := func(name string) bool { return now.Ref(name) == r.To.Ref(name) } // all are, or none: one transaction
	if !slices.ContainsFunc(r.Branches, moved) {
		git := worldstate.GitCommand{Top: r.top, Stdin: r.updates()}
		if _, err := git.Run(ctx, "update-ref", "-m", left, "--stdin", "-z"); err != nil {
			return err
		}
	}
	if r.To.Head != "" {
		_, err = r.git(ctx, "symbolic-ref", "-m", left, "HEAD", r.To.Head)
	} else {
		_, err = r.git(ctx, "update-ref", "--no-deref", "-m", left, "HEAD", r.To.Commit)
	}
	if err != nil {
		return err
	}
	tree, err := r.target(ctx)
	if err == nil {
		_, err = r.git(ctx, "read-tree", "--reset", tree)
	}
	return err
}

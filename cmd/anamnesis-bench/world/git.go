//go:build unix

package world

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// shadow is a git repository outside the tree it saves: what every agent that
// rewinds files with git does. Each command is a process, as there.
type shadow struct {
	repo, work string
	made       bool
}

func (s *shadow) info() info { return info{name: nameGit, reference: true} }
func (s *shadow) close()     {}

// git runs one command on the shadow repository.
func (s *shadow) git(ctx context.Context, args ...string) (string, error) {
	return git(ctx, s.work, append([]string{"--git-dir=" + s.repo, "--work-tree=" + s.work}, args...)...)
}

// git runs git without any configuration.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=bench", "GIT_AUTHOR_EMAIL=bench@localhost", "GIT_COMMITTER_NAME=bench", "GIT_COMMITTER_EMAIL=bench@localhost")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}

func gitVersion(ctx context.Context) (string, error) { return git(ctx, "/", "version") }

func (s *shadow) fresh(ctx context.Context) error {
	s.made = false
	if err := os.RemoveAll(s.repo); err != nil {
		return err
	}
	return s.make(ctx)
}

func (s *shadow) make(ctx context.Context) error {
	if s.made {
		return nil
	}
	if _, err := git(ctx, s.work, "init", "-q", "--bare", s.repo); err != nil {
		return err
	}
	s.made = true
	_, err := s.git(ctx, "config", "core.bare", "false")
	return err
}

func (s *shadow) save(ctx context.Context) (id, tree string, err error) {
	if err := s.make(ctx); err != nil {
		return "", "", err
	}
	if _, err := s.git(ctx, "add", "-A"); err != nil {
		return "", "", err
	}
	tree, err = s.git(ctx, "write-tree")
	return tree, tree, err
}

func (s *shadow) restore(ctx context.Context, id string) error {
	_, err := s.git(ctx, "read-tree", "--reset", "-u", id)
	return err
}

// resetting is the same repository as a shadow, restored by reset --hard.
type resetting struct{ *shadow }

func (r *resetting) info() info {
	return info{name: nameReset, reference: true, restoreOnly: true}
}

// save is not measured: reset needs a commit.
func (r *resetting) save(ctx context.Context) (id, tree string, err error) {
	if _, tree, err = r.shadow.save(ctx); err == nil {
		id, err = r.git(ctx, "commit-tree", "-m", "bench", tree)
	}
	return id, tree, err
}

func (r *resetting) restore(ctx context.Context, id string) error {
	_, err := r.git(ctx, "reset", "-q", "--hard", id)
	return err
}

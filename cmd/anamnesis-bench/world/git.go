//go:build unix

package world

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// shadow is a git repository outside the tree it saves: what every agent that
// rewinds files with git does. One process a command, as there.
type shadow struct {
	who        info
	repo, work string
	config     []string // key=value, set when the repository is made
	made       bool
}

func (s *shadow) info() info { return s.who }
func (s *shadow) close()     {}

// git runs one command on the shadow repository.
func (s *shadow) git(ctx context.Context, stdin []byte, args ...string) (string, error) {
	return git(ctx, s.work, stdin, append([]string{"--git-dir=" + s.repo, "--work-tree=" + s.work}, args...)...)
}

// git runs git without any configuration.
func git(ctx context.Context, dir string, stdin []byte, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=bench", "GIT_AUTHOR_EMAIL=bench@localhost", "GIT_COMMITTER_NAME=bench", "GIT_COMMITTER_EMAIL=bench@localhost")
	cmd.Stdin = bytes.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out)), nil
}

func gitVersion(ctx context.Context) (string, error) { return git(ctx, "/", nil, "version") }

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
	if _, err := git(ctx, s.work, nil, "init", "-q", "--bare", s.repo); err != nil {
		return err
	}
	s.made = true
	for _, kv := range append([]string{"core.bare=false"}, s.config...) {
		key, value, _ := strings.Cut(kv, "=")
		if _, err := s.git(ctx, nil, "config", key, value); err != nil {
			return err
		}
	}
	return nil
}

func (s *shadow) save(ctx context.Context) (string, error) {
	if err := s.make(ctx); err != nil {
		return "", err
	}
	if _, err := s.git(ctx, nil, "add", "-A"); err != nil {
		return "", err
	}
	return s.git(ctx, nil, "write-tree")
}

func (s *shadow) tree(_ context.Context, id string) (string, error)  { return id, nil }
func (s *shadow) point(_ context.Context, id string) (string, error) { return id, nil }

func (s *shadow) restore(ctx context.Context, point string) error {
	_, err := s.git(ctx, nil, "read-tree", "--reset", "-u", point)
	return err
}

// resetting is the same repository as a shadow, restored by reset --hard.
type resetting struct{ *shadow }

func (r *resetting) info() info {
	return info{name: nameReset, always: true, reference: true, restoreOnly: true}
}

func (r *resetting) point(ctx context.Context, id string) (string, error) {
	return r.git(ctx, nil, "commit-tree", "-m", "bench", id)
}

func (r *resetting) restore(ctx context.Context, point string) error {
	_, err := r.git(ctx, nil, "reset", "-q", "--hard", point)
	return err
}

// opencode runs the commands of its snapshot service (packages/opencode/src/
// snapshot/index.ts), without its leaving out of new files over 2 MiB.
type opencode struct{ shadow }

func (o *opencode) save(ctx context.Context) (string, error) {
	if err := o.make(ctx); err != nil {
		return "", err
	}
	own := filepath.Join(o.work, ".git")
	_, err := os.Stat(own)
	user := err == nil
	if user {
		if _, err := git(ctx, o.work, nil, "rev-parse", "--path-format=absolute", "--git-path", "info/exclude"); err != nil {
			return "", err
		}
	}
	list, err := o.candidates(ctx)
	if err != nil {
		return "", err
	}
	if list != "" {
		if user {
			// 1 means that nothing is ignored, which is no failure there.
			_, _ = git(ctx, o.work, []byte(list), "--git-dir="+own, "--work-tree="+o.work, "check-ignore", "--no-index", "--stdin", "-z")
		}
		var specs strings.Builder
		for path := range strings.SplitSeq(strings.TrimSuffix(list, "\x00"), "\x00") {
			specs.WriteString(":(top,literal)" + path + "\x00")
		}
		if _, err := o.git(ctx, []byte(specs.String()), "add", "--all", "--sparse", "--pathspec-from-file=-", "--pathspec-file-nul"); err != nil {
			return "", err
		}
	}
	return o.git(ctx, nil, "write-tree")
}

// candidates asks for changed and new paths at the same time.
func (o *opencode) candidates(ctx context.Context) (string, error) {
	type answer struct {
		list string
		err  error
	}
	others := make(chan answer, 1)
	go func() {
		list, err := o.git(ctx, nil, "ls-files", "--full-name", "--others", "--exclude-standard", "-z", "--", ".")
		others <- answer{list, err}
	}()
	changed, err := o.git(ctx, nil, "diff-files", "--name-only", "-z", "--", ".")
	other := <-others
	if err == nil {
		err = other.err
	}
	return changed + other.list, err
}

func (o *opencode) restore(ctx context.Context, point string) error {
	changed, err := o.git(ctx, nil, "diff", "--name-only", "-z", point, "--", ".")
	if err != nil || changed == "" {
		return err
	}
	if _, err := o.git(ctx, nil, "read-tree", point); err != nil {
		return err
	}
	_, err = o.git(ctx, nil, "checkout-index", "-a", "-f")
	return err
}

// gemini runs the commands of Gemini CLI's GitService (packages/core/src/
// services/gitService.ts), as simple-git spells them.
type gemini struct{ shadow }

func (g *gemini) save(ctx context.Context) (string, error) {
	if err := g.make(ctx); err != nil {
		return "", err
	}
	if _, err := g.git(ctx, nil, "add", "."); err != nil {
		return "", err
	}
	status, err := g.git(ctx, nil, "status", "--porcelain", "-b", "-u", "--null")
	if err != nil {
		return "", err
	}
	if strings.Count(status, "\x00") > 1 { // more than the branch's line
		if _, err := g.git(ctx, nil, "commit", "-q", "-m", "bench", "--no-verify"); err != nil {
			return "", err
		}
	}
	return g.git(ctx, nil, "rev-parse", "HEAD")
}

func (g *gemini) tree(context.Context, string) (string, error) { return "", nil }

func (g *gemini) restore(ctx context.Context, point string) error {
	if _, err := g.git(ctx, nil, "restore", "--source", point, "."); err != nil {
		return err
	}
	_, err := g.git(ctx, nil, "clean", "-f", "-d")
	return err
}

// roo runs the commands of Roo Code's ShadowCheckpointService (src/services/
// checkpoints), as simple-git spells them.
type roo struct{ shadow }

func (r *roo) save(ctx context.Context) (string, error) {
	if err := r.make(ctx); err != nil {
		return "", err
	}
	if _, err := r.git(ctx, nil, "add", "."); err != nil {
		return "", err
	}
	// It fails where there is nothing to commit, which is no failure there.
	_, _ = r.git(ctx, nil, "commit", "-q", "-m", "bench")
	return r.git(ctx, nil, "rev-parse", "HEAD")
}

func (r *roo) tree(context.Context, string) (string, error) { return "", nil }

func (r *roo) restore(ctx context.Context, point string) error {
	if _, err := r.git(ctx, nil, "clean", "-f", "-d", "-f"); err != nil {
		return err
	}
	_, err := r.git(ctx, nil, "reset", "-q", "--hard", point)
	return err
}

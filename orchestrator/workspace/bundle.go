package workspace

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
	"anamnesis/opstream/durable"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

// maxBundleBytes bounds a bundle of commits: who sends it has it in memory.
const maxBundleBytes = 64 << 20

// bundle puts the commits of a repository that are new since it was last recorded into a file beside the stream, and
// names it in b. Those of remotes are left out: another clone gets them from there.
func (p *Place) bundle(ctx context.Context, b *op.GitSeen) {
	base, err := p.bundleBase(b.Dir)
	if b.Unread != "" && b.Commit == "" {
		err = errors.New("where it stands is unknown")
	} else if err == nil && base != nil {
		b.Bundle, err = p.writeBundle(ctx, b, base)
	}
	if err != nil {
		b.Unbundled = err.Error()
	}
}

// bundleBase returns where a repository stood when its commits were bundled last, or else when the task began: nowhere,
// if the task made the repository. nil: the task begins.
func (p *Place) bundleBase(dir string) (*op.GitAt, error) {
	seen := p.State().Git[dir].Seen
	for _, seq := range slices.Backward(seen) {
		was, err := taskdir.ReadBody[*op.GitSeen](p.Journal.Log(), seq)
		if err != nil {
			return nil, err
		}
		if was.Unbundled == "" && (was.Unread == "" || was.Commit != "") {
			return &was.GitAt, nil
		}
	}
	switch {
	case len(seen) > 0:
		return nil, errors.New("git could not be read when the task began")
	case p.State().Steps.Next() == 0:
		return nil, nil
	}
	return new(op.GitAt), nil
}

func (p *Place) writeBundle(ctx context.Context, b *op.GitSeen, base *op.GitAt) (string, error) {
	was, now := tips(*base), tips(b.GitAt)
	known := slices.Sorted(maps.Values(was))
	maps.DeleteFunc(now, func(_, id string) bool { return slices.Contains(known, id) })
	if len(now) == 0 {
		return "", nil
	}
	// After a take-over the repository is another one, which may lack what is known.
	args := append([]string{"--ignore-missing"}, slices.Sorted(maps.Keys(now))...)
	args = append(append(append(args, "--not", "--remotes"), known...), "--")
	git := worldstate.GitCommand{Top: filepath.Join(p.Dir, b.Dir)}
	if n, err := git.Run(ctx, append([]string{"rev-list", "--count"}, args...)...); err != nil || n == "0" {
		return "", err
	}
	tmp, err := os.MkdirTemp("", "anamnesis-git-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	made := filepath.Join(tmp, "bundle")
	if _, err := git.Run(ctx, append([]string{"bundle", "create", "-q", made}, args...)...); err != nil {
		return "", err
	}
	info, err := os.Stat(made)
	if err == nil && info.Size() > maxBundleBytes {
		err = fmt.Errorf("they exceed %d MiB; push them", maxBundleBytes>>20)
	}
	if err != nil {
		return "", err
	}
	data, err := os.ReadFile(made)
	if err != nil {
		return "", err
	}
	seq, _ := p.Journal.Log().Last()
	name := fmt.Sprintf("%s%016d.bundle", bundlePrefix(b.Dir), seq+1)
	path := filepath.Join(p.Home.Task(p.ID), name)
	if err := durable.MakeDir(durable.OS{}, filepath.Dir(path)); err != nil {
		return "", err
	}
	return name, durable.WriteFile(durable.OS{}, path, data)
}

// bundlePrefix begins the names of a repository's bundles, which sort in the order of their making.
func bundlePrefix(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return fmt.Sprintf("%s/%x-", taskdir.BundlesName, sum[:4])
}

// tips returns the commits of a repository's references, and of a HEAD that is none of them, by name.
func tips(g op.GitAt) map[string]string {
	out := make(map[string]string)
	for line := range strings.Lines(g.Refs) {
		name, id, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		out[name] = id
	}
	if out[g.Head] == "" && g.Commit != "" {
		out["HEAD"] = g.Commit
	}
	return out
}

// bundledCommits says which commits of the task the repositories here lack, and how they are fetched from bundles:
// also those of subagents in the step under way, after whose end they are the task's.
func (p *Place) bundledCommits(ctx context.Context) (string, error) {
	text, err := p.lackedCommits(ctx, p.State(), p.Journal.Log())
	for _, c := range p.State().Subagents {
		if err != nil || c.Dir != "" || !c.Running && c.Step < p.State().Steps.Next() {
			continue
		}
		st, stream, failed := taskdir.OpenState(p.Home, c.Task)
		if failed != nil {
			return "", failed
		}
		more, failed := p.lackedCommits(ctx, st, stream)
		text, err = text+more, errors.Join(failed, stream.Close())
	}
	return text, err
}

func (p *Place) lackedCommits(ctx context.Context, s *state.State, stream taskdir.Stream) (text string, err error) {
	task := s.Opened.Task
	for _, dir := range slices.Sorted(maps.Keys(s.Git)) {
		var began, made []string // commits, and references with what the task made of them
		var files []string
		unbundled, at := "", make(map[string]string)
		for i, seq := range s.Git[dir].Seen {
			b, err := taskdir.ReadBody[*op.GitSeen](stream, seq)
			if err != nil {
				return "", err
			}
			if unbundled = b.Unbundled; b.Bundle != "" {
				files = append(files, filepath.Join(p.Home.Task(task), b.Bundle))
				maps.Copy(at, tips(b.GitAt))
			} else if i == 0 {
				began = slices.Collect(maps.Values(tips(b.GitAt)))
			}
		}
		ids := strings.Join(slices.Collect(maps.Values(at)), "\n")
		git := worldstate.GitCommand{Top: filepath.Join(p.Dir, dir), Stdin: ids}
		here, _ := git.Run(ctx, "cat-file", "--batch-check=%(objectname)") // without a repository none is here
		for _, name := range slices.Sorted(maps.Keys(at)) {                // the line of one that lacks says so
			if id := at[name]; !slices.Contains(began, id) && !slices.Contains(strings.Split(here, "\n"), id) {
				made = append(made, fmt.Sprintf("%s at %.7s", strings.TrimPrefix(name, "refs/heads/"), id))
			}
		}
		if len(made) > 0 {
			from := shell.QuoteIfNeeded(files[0])
			if len(files) > 1 {
				from = `"$b"`
			}
			fetch := "git fetch --no-tags --no-prune " + from + " '+*:refs/anamnesis/" + task + "/*'"
			if len(files) > 1 {
				fetch = "for b in " + shell.QuoteIfNeeded(filepath.Join(p.Home.Task(task), bundlePrefix(dir))) + "*.bundle; do " + fetch + "; done"
			}
			text += fmt.Sprintf(" %sCommits that the task made and the repository here lacks: %s. "+
				"In a clone, this line fetches them, as refs/anamnesis/%s/refs/…:\n%s\n", GitIn(dir), notice.List(made, len(made)), task, fetch)
		}
		if unbundled != "" {
			text += fmt.Sprintf(" %sThe last commits did not come along: %s.", GitIn(dir), unbundled)
		}
	}
	return text, nil
}

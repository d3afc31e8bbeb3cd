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
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

// maxBundleBytes bounds a bundle of commits: who sends it has it in memory.
const maxBundleBytes = 64 << 20

// bundle puts the commits of a repository that are in no bundle, and are new since the task began, into a file beside
// the stream, and names it in b. Those of remotes are left out: another clone gets them from there.
func (p *Place) bundle(ctx context.Context, b *op.GitSeen) error {
	seen := p.State().Git[b.Dir].Seen
	switch {
	case b.Unread != "" && b.Commit == "":
		return errors.New("where it stands is unknown")
	case len(seen) == 0 && p.State().Steps.Next() == 0:
		return nil // the task begins
	}
	var known []string
	for _, seq := range slices.Backward(seen) {
		was, err := taskdir.ReadBody[*op.GitSeen](p.Journal.Log(), seq)
		if err != nil {
			return err
		}
		if was.Unbundled == "" {
			known = slices.Sorted(maps.Values(tips(was.GitAt)))
			break
		}
	}
	now := tips(b.GitAt)
	maps.DeleteFunc(now, func(_, id string) bool { return slices.Contains(known, id) })
	if len(now) == 0 {
		return nil
	}
	// After a take-over the repository is another one, which may lack what is known.
	args := append([]string{"--ignore-missing"}, slices.Sorted(maps.Keys(now))...)
	args = append(append(append(args, "--not", "--remotes"), known...), "--")
	git := worldstate.GitCommand{Top: filepath.Join(p.Dir, b.Dir)}
	if n, err := git.Run(ctx, append([]string{"rev-list", "--count"}, args...)...); err != nil || n == "0" {
		return err
	}
	seq, _ := p.Journal.Log().Last()
	name := fmt.Sprintf("%s/%016d.bundle", bundlesOf(b.Dir), seq+1)
	path := filepath.Join(p.Home.Task(p.ID), name)
	err := durable.MakeDir(durable.OS{}, filepath.Dir(path))
	if err == nil {
		_, err = git.Run(ctx, append([]string{"bundle", "create", "-q", path}, args...)...)
	}
	if info, failed := os.Stat(path); err == nil && failed == nil && info.Size() > maxBundleBytes {
		return errors.Join(fmt.Errorf("they exceed %d MiB; push them", maxBundleBytes>>20), os.Remove(path))
	}
	if err == nil {
		b.Bundle, err = name, errors.Join(durable.Sync(path), durable.Sync(filepath.Dir(path)))
	}
	return err
}

// bundlesOf is the folder of a repository's bundles, beside the stream. Their names sort in the order of their making.
func bundlesOf(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return fmt.Sprintf("%s/%x", taskdir.BundlesName, sum[:4])
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
func (p *Place) bundledCommits(ctx context.Context) (text string) {
	tasks := []string{p.ID}
	for _, c := range p.State().Subagents {
		if c.Dir == "" && (c.Running || c.Step == p.State().Steps.Next()) {
			tasks = append(tasks, c.Task)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(p.State().Git)) {
		seen := p.State().Git[dir].Seen
		b, err := taskdir.ReadBody[*op.GitSeen](p.Journal.Log(), seen[len(seen)-1])
		if err == nil && b.Unbundled != "" {
			text += fmt.Sprintf(" %sThe last commits did not come along: %s.", GitIn(dir), b.Unbundled)
		}
		for _, task := range tasks {
			folder := filepath.Join(p.Home.Task(task), bundlesOf(dir))
			files, _ := os.ReadDir(folder)
			at := make(map[string]string)
			for _, f := range files {
				heads, _ := worldstate.GitCommand{Top: folder}.Run(ctx, "bundle", "list-heads", f.Name())
				for line := range strings.SplitSeq(heads, "\n") {
					if id, name, ok := strings.Cut(line, " "); ok {
						at[name] = id
					}
				}
			}
			ids := strings.Join(slices.Collect(maps.Values(at)), "\n")
			git := worldstate.GitCommand{Top: filepath.Join(p.Dir, dir), Stdin: ids}
			here, _ := git.Run(ctx, "cat-file", "--batch-check=%(objectname)") // a missing commit's line differs
			var lacks []string
			for _, name := range slices.Sorted(maps.Keys(at)) {
				if !slices.Contains(strings.Split(here, "\n"), at[name]) {
					lacks = append(lacks, fmt.Sprintf("%s at %.7s", strings.TrimPrefix(name, "refs/heads/"), at[name]))
				}
			}
			if len(lacks) > 0 {
				text += fmt.Sprintf(" %sCommits that the task made and the repository here lacks: %s. In a clone, "+
					"this line fetches them, as refs/anamnesis/%s/refs/…:\nfor b in %s/*; do git fetch --no-tags "+
					"--no-prune \"$b\" '+*:refs/anamnesis/%s/*'; done\n",
					GitIn(dir), notice.List(lacks, len(lacks)), task, shell.QuoteIfNeeded(folder), task)
			}
		}
	}
	return text
}

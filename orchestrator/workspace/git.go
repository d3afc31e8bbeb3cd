package workspace

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

// maxRepositories is how many repositories of one world are recorded.
const maxRepositories = 16

// RecordGit records where the user's repositories stand, of those for which that has changed. bundled: their new
// commits go into bundles first, if the task is kept in a bucket.
func (p *Place) RecordGit(ctx context.Context, bundled bool) error {
	var seen []op.Body
	for _, dir := range p.World.Repositories(maxRepositories) {
		if p.git[dir] == nil {
			p.git[dir] = new(worldstate.GitReader)
		}
		now := GitNow(ctx, filepath.Join(p.Dir, dir), p.git[dir])
		if was := p.State().Git[dir]; len(was.Seen) == 0 || was.GitAt != now {
			b := &op.GitSeen{Dir: dir, GitAt: now}
			if p.Kept && bundled {
				if err := p.bundle(ctx, b); err != nil {
					b.Bundle, b.Unbundled = "", err.Error()
				}
			}
			seen = append(seen, b)
		}
	}
	if len(seen) == 0 {
		return nil
	}
	return p.Record(ctx, seen...)
}

// GitNow reads where the repository whose .git is at top stands. Unread says what cannot be read.
func GitNow(ctx context.Context, top string, r *worldstate.GitReader) op.GitAt {
	s, err := r.Read(ctx, top)
	if err != nil {
		return op.GitAt{Unread: err.Error()}
	}
	return op.GitAt(s)
}

// GitThen returns where a repository stood at the end of a step. Unread says why that is unknown.
func GitThen(stream taskdir.Stream, s *state.State, dir string, step int) (op.GitAt, error) {
	for _, seq := range slices.Backward(s.Git[dir].Seen) {
		if seq > s.Steps.At(step).Last {
			continue
		}
		b, err := taskdir.ReadBody[*op.GitSeen](stream, seq)
		if err != nil {
			return op.GitAt{}, err
		}
		return b.GitAt, nil
	}
	return op.GitAt{Unread: "not recorded"}, nil
}

// GitIn begins a line about a repository: it names one inside the world.
func GitIn(dir string) string {
	if dir == "." || strings.HasPrefix(dir, "..") {
		return ""
	}
	return dir + ": "
}

// GitDifferences says in a line or two for each of the user's repositories how it differs from the end
// of a step.
func (p *Place) GitDifferences(ctx context.Context, step int) (lines []string) {
	for _, dir := range slices.Sorted(maps.Keys(p.State().Git)) {
		then, err := GitThen(p.Journal.Log(), p.State(), dir, step)
		if err != nil {
			then.Unread = err.Error()
		}
		git := worldstate.GitCommand{Top: filepath.Join(p.Dir, dir)}
		now := GitNow(ctx, git.Top, new(worldstate.GitReader))
		if then.Head != now.Head || then.Commit != now.Commit {
			line := fmt.Sprintf("%sHEAD was %s at that step; it is now %s", GitIn(dir), then, now)
			out, err := git.Run(ctx, "rev-list", "--left-right", "--count", then.Commit+"..."+now.Commit)
			if behind, ahead, ok := strings.Cut(out, "\t"); err == nil && ok {
				counts := fmt.Sprintf(", %s ahead, %s behind", ahead, behind)
				line += strings.NewReplacer(", 0 ahead", "", ", 0 behind", "").Replace(counts)
			}
			lines = append(lines, line+".")
		}
		var others []string
		for ref := range strings.Lines(then.Refs + "\n" + now.Refs) {
			name, _, _ := strings.Cut(ref, " ")
			// A change of the branch that HEAD stayed on is in the line above.
			if name != "\n" && then.Ref(name) != now.Ref(name) && (name != now.Head || now.Head != then.Head) {
				others = append(others, strings.TrimPrefix(name, "refs/heads/"))
			}
		}
		slices.Sort(others)
		if others = slices.Compact(others); then.Refs != "" && len(others) > 0 {
			lines = append(lines, GitIn(dir)+"Other references differ, too: "+notice.List(others, len(others))+".")
		}
		if then.Unread+now.Unread == "" && then.Staged != now.Staged {
			lines = append(lines, fmt.Sprintf("%sThe index had %d staged files; it has %d now.", GitIn(dir),
				strings.Count(then.Staged, "\x00"), strings.Count(now.Staged, "\x00")))
		}
	}
	return lines
}

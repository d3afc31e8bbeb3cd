package workspace

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

// maxRepositories is how many repositories of one world are recorded.
const maxRepositories = 16

// seeGit records where the user's repositories stand, of those for which that has changed.
func (p *Place) seeGit(ctx context.Context) error {
	var seen []op.Body
	for _, dir := range p.World.Repositories(maxRepositories) {
		r := p.git[dir]
		if r == nil {
			r = new(worldstate.GitReader)
			p.git[dir] = r
		}
		if b := p.State().Git[dir].ChangesTo(dir, GitNow(ctx, p.Dir, dir, r)); b != nil {
			seen = append(seen, b)
		}
	}
	if len(seen) == 0 {
		return nil
	}
	return p.Record(ctx, seen...)
}

// GitNow reads where the repository whose .git is in a directory of a world stands.
func GitNow(ctx context.Context, world, dir string, r *worldstate.GitReader) state.Git {
	s, err := r.Read(ctx, filepath.Join(world, dir))
	if err != nil {
		return state.Git{GitAt: op.GitAt{Unread: err.Error()}}
	}
	return state.Git{GitAt: op.GitAt{Head: s.Head, Commit: s.Commit, Staged: s.Staged, Unread: s.Unread, During: s.During}, Refs: s.Refs}
}

// GitThen returns where a repository stood at the end of a step. Without Seen, no step up to there recorded it.
func GitThen(stream interface {
	Get(seq uint64) (opstream.Record, error)
}, s *state.State, dir string, step int) (state.Git, error) {
	then := s.Git[dir]
	then.Refs = maps.Clone(then.Refs)
	for _, seq := range slices.Backward(then.Seen) {
		rec, err := stream.Get(seq)
		if err != nil {
			return then, err
		}
		o, err := taskdir.Decode(rec)
		if err != nil {
			return then, err
		}
		b, ok := o.Body.(*op.GitSeen)
		if !ok {
			return then, fmt.Errorf("%w: op %d is not where git stood", state.ErrStream, seq)
		}
		if seq <= s.Steps.At(step).Last {
			then.GitAt = b.GitAt
			return then, nil
		}
		for _, r := range b.Refs { // undone, the newest first
			if then.Refs[r.Name] = r.Old; r.Old == "" {
				delete(then.Refs, r.Name)
			}
		}
	}
	return state.Git{GitAt: op.GitAt{Unread: "no step up to there recorded it"}}, nil
}

// GitDifferences says in a line or two for each of the user's repositories how it differs from the end
// of a step.
func (p *Place) GitDifferences(ctx context.Context, step int) (lines []string) {
	for _, dir := range slices.Sorted(maps.Keys(p.State().Git)) {
		then, err := GitThen(p.Journal.Log(), p.State(), dir, step)
		if err != nil {
			then.GitAt = op.GitAt{Unread: err.Error()}
		}
		now := GitNow(ctx, p.Dir, dir, new(worldstate.GitReader))
		for _, line := range gitLines(ctx, filepath.Join(p.Dir, dir), then, now) {
			lines = append(lines, GitIn(dir)+line)
		}
	}
	return lines
}

// GitIn begins a line about a repository: it names one inside the world.
func GitIn(dir string) string {
	if dir == "." || strings.HasPrefix(dir, "..") {
		return ""
	}
	return dir + ": "
}

func gitLines(ctx context.Context, top string, then, now state.Git) (lines []string) {
	if then.Head+then.Commit == "" {
		return []string{fmt.Sprintf("Where git stood at that step is %s. HEAD is %s.", then, now)}
	}
	if then.Head != now.Head || then.Commit != now.Commit {
		lines = append(lines, fmt.Sprintf("HEAD was %s at that step; it is now %s%s.", then, now, distance(ctx, top, then.Commit, now.Commit)))
	}
	if now.During != then.During && now.During != "" {
		lines = append(lines, "The repository is in the middle of a "+now.During+".")
	}
	if a, b := then.NStaged(), now.NStaged(); then.Staged != now.Staged {
		lines = append(lines, fmt.Sprintf("The index had %d staged files at that step; it has %d now.", a, b))
	}
	var others []string
	then.Seen = nil
	for _, r := range then.ChangesTo("", now).Refs {
		name := strings.TrimPrefix(r.Name, "refs/heads/")
		switch {
		case r.Name == now.Head && now.Head == then.Head || then.Unread != "":
		case r.New == "":
			others = append(others, name+" (gone)")
		case r.Old == "":
			others = append(others, name+" (new)")
		default:
			others = append(others, fmt.Sprintf("%s (was at %.7s)", name, r.Old))
		}
	}
	if len(others) > 0 {
		lines = append(lines, "Other references differ: "+notice.List(others, len(others))+".")
	}
	return lines
}

// distance says by how many commits one is ahead of and behind another; empty if git cannot say.
func distance(ctx context.Context, top, from, to string) string {
	git := worldstate.GitCommand{Top: top}
	out, err := git.Run(ctx, "rev-list", "--left-right", "--count", from+"..."+to)
	behind, ahead, ok := strings.Cut(out, "\t")
	if err != nil || !ok {
		return ""
	}
	var sb strings.Builder
	for _, n := range [][2]string{{ahead, "ahead"}, {behind, "behind"}} {
		if n[0] != "0" {
			fmt.Fprintf(&sb, ", %s %s %s", n[0], map[bool]string{true: "commit", false: "commits"}[n[0] == "1"], n[1])
		}
	}
	return sb.String()
}

package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/memory"
	"anamnesis/orchestrator/report"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

// Report returns what happened in a task. What its snapshots cannot tell is left out, with the reason in
// NoFiles.
func (s *Service) Report(ctx context.Context, task string) (*report.Report, error) {
	st, err := s.State(task)
	if err != nil {
		return nil, err
	}
	r := &report.Report{}
	err = s.Ops(task, 0, func(o op.Op) error {
		r.Add(o)
		return nil
	})
	if err != nil {
		return nil, err
	}
	summary := taskdir.Summarize(s.Home, task, st)
	r.State, r.Waits, r.Steps, r.Dir = summary.State, summary.Waits, summary.Steps, st.Opened.Dir
	r.Usage, r.Until = st.Totals.Usage, strings.Join(st.Goal.Until, ", then ")
	if len(st.Goal.Runs) > 0 {
		r.Best = st.Goal.Best().Seq
	}
	running := summary.PID != 0
	if running {
		r.Advance(time.Now(), false)
	}
	for _, t := range st.Todos {
		if t.Status != op.TodoDone {
			r.Open = append(r.Open, report.Line{Text: t.Title})
		}
	}
	for i := range r.Questions { // other operations make one moot without naming it
		q := &r.Questions[i]
		q.Open = slices.ContainsFunc(st.Questions, func(o state.Question) bool {
			return o.Seq == q.Op && o.Answer == nil
		})
	}
	r.Learned = append(r.Learned, s.taskFacts(task, r.Dir)...)
	if r.Files, err = s.changedFiles(ctx, st, r); err != nil {
		r.NoFiles = err.Error()
	}
	r.Finish(func(step int) bool {
		return step >= st.Steps.Len() || !st.Steps.At(step).Ended || st.Steps.OnPath(step, st.Current)
	}, running)
	return r, nil
}

// taskFacts returns the facts of the repository that a task bears out. No single operation shows them.
func (s *Service) taskFacts(task, dir string) (lines []report.Line) {
	repo, err := memory.OpenFacts(s.Home, dir)
	if err != nil { // 'kb facts' and the start of a task say why
		return nil
	}
	for _, f := range repo.Facts() {
		if slices.Contains(f.Tasks, task) {
			lines = append(lines, report.Line{Text: "fact: " + f.String()})
		}
	}
	return lines
}

// changedFiles compares a task's present step with its first one.
func (s *Service) changedFiles(ctx context.Context, st *state.State, r *report.Report) ([]report.File, error) {
	first, now := r.Commit(0), r.Commit(st.Current)
	switch {
	case st.Opened.Origin.Imported() && first == "":
		return nil, errors.New("an imported session has no snapshots")
	case first == "" || now == "":
		return nil, fmt.Errorf("step 0 or step %d has no snapshot", st.Current)
	}
	w, err := s.World(st)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	changes, err := Changes(ctx, w, worldstate.ID(first), worldstate.ID(now), nil)
	if err != nil {
		return nil, err
	}
	var files []report.File
	for _, c := range changes {
		f := report.File{Path: c.Path, Kind: string(c.Kind)}
		if !c.Secret {
			var patch strings.Builder
			if err := w.Patch(ctx, &patch, []worldstate.Change{c}); err != nil {
				return nil, err
			}
			f.Added, f.Removed = countLines(patch.String())
		}
		files = append(files, f)
	}
	return files, nil
}

func countLines(patch string) (added, removed int) {
	inHunk := false
	for text := range strings.Lines(patch) {
		switch {
		case strings.HasPrefix(text, "@@"):
			inHunk = true
		case inHunk && strings.HasPrefix(text, "+"):
			added++
		case inHunk && strings.HasPrefix(text, "-"):
			removed++
		}
	}
	return added, removed
}

package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/tool"
	"anamnesis/worldstate"
)

// Fill gives a directory to which another machine's task came the files of the task's last snapshot, and returns
// a notice for the model of what is gone. Files that were there are saved before. What git ignores stays.
func (p *Place) Fill(ctx context.Context) (string, error) {
	s := p.State()
	was, err := p.present()
	if err != nil {
		return "", err
	}
	target := was.Commit
	if j := s.Jump.Intended; j != nil { // whoever finishes it starts from the files before it
		target = worldstate.ID(j.FromCommit)
	} else if r := s.World.Restoring; r != nil {
		target = worldstate.ID(r.FromCommit)
	}
	if target == "" {
		return fmt.Sprintf("[FILES] No snapshot of this task's files has left the machine it worked on before. The "+
			"files in %s are what was there.", p.Dir), nil
	}
	res, err := p.World.RestoreTo(ctx, target, worldstate.RestoreOptions{
		PlanOptions: worldstate.PlanOptions{OverwriteEdits: true}, Message: "before a task came from another machine",
	})
	if err = errors.Join(err, p.World.Sync()); err != nil {
		return "", fmt.Errorf("give %s the files of the task: %w", p.Dir, err)
	}
	lost, err := p.lostCalls(target)
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("[FILES] This task continues on another machine. The files in %s are those of the "+
		"end of step %d.", p.Dir, s.Current)
	if len(lost) > 0 {
		text += " These calls returned after that. What they changed in the directory is gone, what they did " +
			"elsewhere is not. Do again what is still needed:\n- " +
			strings.Join(notice.FirstN(lost, notice.MaxListed), "\n- ") + "\n"
	}
	text += " Processes that ran, files that git ignores and files outside the directory did not come along."
	if res.Source != "" && res.Source != res.Target {
		text += fmt.Sprintf(" What was in the directory before is the snapshot %.12s.", res.Source)
	}
	return text + p.bundledCommits(ctx), nil
}

// lostCalls lists the calls that returned after a snapshot and may have changed files.
func (p *Place) lostCalls(since worldstate.ID) (lost []string, err error) {
	s := p.State()
	changes := make(map[string]op.Call)
	first := uint64(1)
	if s.Steps.Len() > 0 {
		first = s.Steps.At(s.Current).Last
	}
	ops, err := p.Ops(op.Range{First: first, Last: s.Last})
	if err != nil {
		return nil, err
	}
	for _, o := range ops {
		// The snapshot holds what calls changed before this operation.
		if slices.Contains(op.Snapshots(o.Body), string(since)) {
			lost = nil
		}
		switch b := o.Body.(type) {
		case *op.JumpDone:
			if !b.Abandoned { // the jump took back what the calls changed
				lost = nil
			}
		case *op.ToolCalled:
			if b.Changes {
				changes[b.Call] = op.Call{ID: b.Call, Name: b.Name, Args: b.Args}
			}
		case *op.ToolReturned:
			if c, ok := changes[b.Call]; ok {
				lost = append(lost, fmt.Sprintf("op %d: %s", o.Seq, tool.Display(c, p.Dir)))
			}
		}
	}
	return lost, nil
}

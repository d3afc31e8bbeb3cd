//go:build unix

package result

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool/file"
	"anamnesis/orchestrator/workspace"
	"anamnesis/worldstate"
)

// Edits reads from a task's snapshots what its calls of file tools did, by call: of several edits
// of one file in a step, all at the last one. ops are those of the task's last turn. What cannot be
// read is left out.
func Edits(ctx context.Context, svc *session.Service, st *state.State, ops []op.Op) map[string][]file.Change {
	world, err := svc.World(st)
	if err != nil {
		return nil
	}
	defer world.Close()
	stream, err := taskdir.OpenStream(svc.Home, st.Opened.Task)
	if err != nil {
		return nil
	}
	defer stream.Close()
	edits := make(map[string][]file.Change)
	last := make(map[string]string) // of the step under way: the last call that edits a path
	for _, o := range ops {
		switch b := o.Body.(type) {
		case *op.ToolCalled:
			var args struct {
				Path string `json:"path"`
			}
			if _ = json.Unmarshal([]byte(b.Args), &args); args.Path != "" && op.Acts(b.Name) == op.Edits {
				last[args.Path] = b.Call
			}
		case *op.WorldSaved:
			if len(last) == 0 {
				break
			}
			ends, _, err := workspace.Commits(stream, st, world, b.Parent, o.Step)
			for path, call := range last {
				var before, after bytes.Buffer
				if err == nil && world.Content(ctx, ends[1], path, &after) == nil {
					missing := world.Content(ctx, ends[0], path, &before)
					if missing == nil || errors.Is(missing, worldstate.ErrNoPath) {
						edits[call] = []file.Change{{Path: path, Before: before.String(),
							After: after.String(), New: missing != nil}}
					}
				}
			}
			clear(last)
		}
	}
	return edits
}

package beside

import (
	"encoding/json"
	"errors"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
)

// cutReply answers contextCut.
func cutReply(svc *session.Service, task string) ([]byte, error) {
	left, err := discardedCalls(svc, task)
	if err != nil || len(left) == 0 {
		return nil, err
	}
	return json.Marshal(map[string][]string{"left": left})
}

// discardedCalls returns the ids of the calls in steps that a jump has discarded. The plugin of
// opencode omits them, with their results, from the context.
func discardedCalls(svc *session.Service, task string) (calls []string, err error) {
	st, err := svc.State(task)
	if errors.Is(err, taskdir.ErrNoTask) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	on := st.Steps.PathSet(st.Current)
	err = svc.Ops(task, 0, func(o op.Op) error {
		b, ok := o.Body.(*op.ModelReplied)
		if !ok || o.Step >= len(on) || on[o.Step] || !st.Steps.At(o.Step).Ended {
			return nil
		}
		for _, c := range b.Calls {
			calls = append(calls, c.ID)
		}
		return nil
	})
	return calls, err
}

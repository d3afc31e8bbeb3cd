package runtime

import (
	"fmt"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/taskdir"
)

// keptOf lists the operations of the reply under way that hold what a call
// printed.
func (t *ledger) keptOf(call string) ([]uint64, error) {
	var out []uint64
	for seq := t.state.Reply.Seq + 1; seq <= t.state.Last; seq++ {
		rec, err := t.journal.Log().Get(seq)
		if err != nil {
			return nil, fmt.Errorf("look for what call %s printed: %w", call, err)
		}
		if op.Kind(rec.Kind) != op.KindOutputKept {
			continue
		}
		o, err := taskdir.Decode(rec)
		if err != nil {
			return nil, fmt.Errorf("look for what call %s printed: %w", call, err)
		}
		if k, ok := o.Body.(*op.OutputKept); ok && k.Call == call {
			out = append(out, seq)
		}
	}
	return out, nil
}

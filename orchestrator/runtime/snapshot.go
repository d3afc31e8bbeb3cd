package runtime

import (
	"anamnesis/orchestrator/state"
)

// DefaultSnapshotEvery is how many operations a stream grows by, at least,
// until its fold is written down again: fewer are folded in less time than a
// checkpoint is written.
const DefaultSnapshotEvery = 512

// snapshotShare bounds what checkpoints cost a running task: the stream has
// grown by this part of its length, so that what is written in all stays in
// proportion to the stream.
const snapshotShare = 16

// writeSnapshot writes the folded state down beside the stream, when it is due.
// It is derived: where it cannot be written the next opening takes longer, and
// nothing else; the next one that is due tries again.
func (t *ledger) writeSnapshot(closing bool) {
	grown, due := t.state.Last-t.snapshot, t.opts.SnapshotEvery
	if !closing {
		due = max(due, t.state.Last/snapshotShare)
	}
	stale := closing && grown > 0 && t.journal.Log().CheckpointRefused() != nil // it would be refused every time
	if t.unusable || grown < due && !stale {
		return
	}
	t.snapshot = t.state.Last
	if data, err := state.Marshal(&t.state); err == nil {
		_ = t.journal.Log().Checkpoint(state.FoldVersion, data, t.state.Last)
	}
}

package gitfmt

// A Skip is a path and the reason why its content is not stored or not changed.
type Skip struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

type plainSkip Skip

// MarshalJSON adds path_bytes where the path is not UTF-8.
func (s Skip) MarshalJSON() ([]byte, error) { return MarshalNames((*plainSkip)(&s)) }

// The reasons why a restore keeps a path.
const (
	KeepEdited     = "edited since the last snapshot"
	KeepCreated    = "created since the last snapshot"
	KeepDeleted    = "deleted since the last snapshot, and stays deleted"
	KeepIgnored    = "ignored by the target's rules"
	KeepIgnoredNow = "ignored now, not by the target's rules"
	KeepNoBytes    = "ignored now, so the snapshot of the present does not hold its bytes"
	KeepNoMode     = "ignored now, so the snapshot of the present does not hold its mode"
	KeepUnread     = "could not be read when the target was saved"
	KeepLeftOut    = "left out of the target: "
	KeepBlocked    = "something that stays is in the way"
	KeepHolds      = "something in it stays"
	KeepRaced      = "changed during the restore"
	// For paths of PlanOptions.Edits.
	KeepMade           = "changed by the user after the target"
	KeepConflict       = "changed by the user after the target, and again since: the user's version stands"
	KeepUnsure         = "changed after the target, by whom is not known"
	KeepUnsureConflict = "changed after the target, by whom is not known, and again since: the first version stands"
)

// The reasons why a restore has nothing to do at a requested path.
const (
	SameAsTarget = "the same as in the snapshot"
	NeverHeld    = "ignored or excluded, so snapshots do not hold it"
)

// Edited reports whether a plan keeps the path because it was changed since the last snapshot
// or after the target. PlanOptions.OverwriteEdits without PlanOptions.Edits would revert it.
func (s Skip) Edited() bool {
	switch s.Reason {
	case KeepEdited, KeepCreated, KeepDeleted, KeepMade, KeepConflict, KeepUnsure, KeepUnsureConflict:
		return true
	}
	return false
}

// Fresh reports whether a path was changed after PlanOptions.Base or during the restore, so
// that no earlier snapshot holds its content.
func (s Skip) Fresh() bool {
	switch s.Reason {
	case KeepEdited, KeepCreated, KeepDeleted, KeepRaced:
		return true
	}
	return false
}

// Again reports whether a path was changed after an edit of PlanOptions.Edits. The restore
// brings the edit's version back.
func (s Skip) Again() bool { return s.Reason == KeepConflict || s.Reason == KeepUnsureConflict }

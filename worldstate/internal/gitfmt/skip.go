package gitfmt

// A Skip is a path and why its content is not held, or not touched.
type Skip struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

type plainSkip Skip

// MarshalJSON adds path_bytes where the path is not UTF-8.
func (s Skip) MarshalJSON() ([]byte, error) { return MarshalNames((*plainSkip)(&s)) }

// The reasons a path is kept.
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
	// Of PlanOptions.Edits.
	KeepMade     = "changed by the user after the target"
	KeepConflict = "changed by the user after the target, and again since: the user's version stands"
	KeepUnsure   = "changed after the target, by whom is not known"
	KeepUnsure2  = "changed after the target, by whom is not known, and again since: the first version stands"
)

// Edited reports that a plan keeps the path because of what was done to it since
// the last snapshot, or after the target: PlanOptions.OverwriteEdits would revert
// that, without PlanOptions.Edits.
func (s Skip) Edited() bool {
	switch s.Reason {
	case KeepEdited, KeepCreated, KeepDeleted, KeepMade, KeepConflict, KeepUnsure, KeepUnsure2:
		return true
	}
	return false
}

// Fresh reports that a path was changed after PlanOptions.Base, or while the
// restore ran: no snapshot from before holds what is there.
func (s Skip) Fresh() bool {
	switch s.Reason {
	case KeepEdited, KeepCreated, KeepDeleted, KeepRaced:
		return true
	}
	return false
}

// Again reports that a path was changed after an edit of PlanOptions.Edits, so that
// the edit's version is brought back.
func (s Skip) Again() bool { return s.Reason == KeepConflict || s.Reason == KeepUnsure2 }

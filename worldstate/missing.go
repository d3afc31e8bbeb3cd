package worldstate

import (
	"errors"
	"fmt"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
)

// A ref may name a snapshot that the store no longer holds. Our packs have .keep files, so that
// git removes none of them; a damaged disk or a user can. An operation on a lost snapshot is
// refused with one line. A save without its parent has none, and a plan without its base counts
// every path that differs from the target as edited.

// lostLine describes a lost snapshot in one line.
func lostLine(id ID, err error) string {
	return fmt.Sprintf("snapshot %s is missing or damaged: %s; only a backup can bring it back", gitfmt.Short(id), whyMissing(id, err))
}

// isGone reports whether an error means that a snapshot is lost. A whole id that is unknown
// counts, too: its snapshot existed once.
func isGone(id ID, err error) bool {
	_, whole := gitfmt.ParseHash(string(id))
	return errors.Is(err, gitfmt.ErrCorrupt) || whole && errors.Is(err, ErrUnknown)
}

// whyMissing returns the cause of a lost snapshot, without its id.
func whyMissing(id ID, err error) string {
	var m *MissingObjectError
	switch {
	case errors.As(err, &m) && m.Object == string(id):
		return m.Err.Error()
	case m != nil:
		return m.Error()
	case errors.Is(err, ErrUnknown):
		return objects.ErrNoObject.Error()
	}
	return err.Error()
}

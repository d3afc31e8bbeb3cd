package worldstate

import (
	"errors"
	"fmt"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
)

// A ref may name a snapshot that the store no longer holds. Our packs have .keep
// files, so git removes none of them; a damaged disk or a user's hand does. What is
// lost is refused with one line. A save has no parent then, and a plan counts every
// path that differs from the target as edited.

// lostLine describes a lost snapshot in one line.
func lostLine(id ID, err error) string {
	return fmt.Sprintf("snapshot %s is missing or damaged: %s; only a backup can bring it back", gitfmt.Short(id), whyMissing(id, err))
}

// isGone reports whether an error says that a snapshot is lost. Who names it by its
// whole id had it once.
func isGone(id ID, err error) bool {
	_, whole := gitfmt.ParseHash(string(id))
	return errors.Is(err, gitfmt.ErrCorrupt) || whole && errors.Is(err, ErrUnknown)
}

// whyMissing describes what is wrong with a snapshot whose id is printed beside it.
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

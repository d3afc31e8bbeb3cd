package gitfmt

import (
	"fmt"

	"anamnesis/worldstate/internal/fsys"
)

// A MissingObjectError names an object that is missing or damaged and a path that needs it. It
// is returned before a restore changes the first file.
type MissingObjectError struct {
	Object string // the object's hash, hex
	Path   string // the path in the snapshot that needs it, or a description of the object
	Err    error  // why it cannot be read
}

func (e *MissingObjectError) Error() string {
	if fsys.Exhausted(e.Err) {
		return fmt.Sprintf("object %s (%s) cannot be read: %v", e.Object, e.Path, e.Err)
	}
	return fmt.Sprintf("object %s (%s) is missing or damaged: %v", e.Object, e.Path, e.Err)
}

func (e *MissingObjectError) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrCorrupt) true, unless the object could not be opened because too
// many files were open.
func (e *MissingObjectError) Is(target error) bool {
	return target == ErrCorrupt && !fsys.Exhausted(e.Err)
}

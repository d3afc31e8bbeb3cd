package file

import (
	"encoding/json"
	"slices"
)

// Recorded is what a call of WriteFile or StrReplaceFile wrote, as a record has it.
type Recorded struct {
	Content *string // the whole text, of WriteFile
	edits   edits
}

// ReadRecorded reads the arguments of a recorded call.
func ReadRecorded(args string) (r Recorded, err error) {
	var a struct {
		replaceArgs
		Content *string `json:"content"`
	}
	if err := json.Unmarshal([]byte(args), &a); err != nil {
		return r, err
	}
	if a.Content != nil {
		return Recorded{Content: a.Content}, nil
	}
	r.edits, err = a.all()
	return r, err
}

// Apply returns a text after the call's edits. The error says why they do not fit it.
func (r Recorded) Apply(text string) (string, error) {
	text, _, err := apply(text, r.edits)
	return text, err
}

// Undo returns a text before the call's edits. Where an edit only removed something, it is not put back.
func (r Recorded) Undo(text string) (string, error) {
	var back edits
	for _, e := range slices.Backward(r.edits) {
		if e.New != "" {
			back = append(back, edit{Old: e.New, New: e.Old, ReplaceAll: e.ReplaceAll})
		}
	}
	text, _, err := apply(text, back)
	return text, err
}

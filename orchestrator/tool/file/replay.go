package file

import "slices"

// Recorded is a call of WriteFile or StrReplaceFile as a record has it.
type Recorded struct {
	Content *string `json:"content"` // the whole text, of WriteFile
	replaceArgs
}

// Undo returns a text before the call, an empty one before WriteFile. Where an edit only removed something, that is not
// put back. The error says why the text is not one that the call led to.
func (r Recorded) Undo(text string) (string, error) {
	var back edits
	wrote, err := r.all()
	for _, e := range slices.Backward(wrote) {
		if e.New != "" {
			back = append(back, edit{Old: e.New, New: e.Old, ReplaceAll: e.ReplaceAll})
		}
	}
	if err == nil {
		text, _, err = apply(text, back)
	}
	return text, err
}

package state

import (
	"strings"

	"anamnesis/opstream/op"
)

// OpText returns an operation as text for users: as the model saw it, or its content if the
// model did not.
func OpText(o op.Op) string {
	if o.Body == nil {
		return "(a kind of operation this program does not know)"
	}
	if b, ok := o.Body.(*op.OutputKept); ok {
		return b.Text
	}
	if text := op.ProjectedText(o.Body); strings.TrimSpace(text) != "" {
		return text
	}
	data, err := op.Encode(o.Body)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

package state

import (
	"strings"

	"anamnesis/opstream/op"
)

// OpText is an operation as a user reads it: what the model saw of it, or its content where
// the model saw nothing.
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

//go:build unix

package cardfile

import (
	"errors"
	"fmt"

	"anamnesis/cmd/internal/exit"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/review"
)

// RefusedReview returns the error of a review's text that cannot be applied, with the place in
// it and the file that holds it.
func (d Draft) RefusedReview(err error) error {
	var text *review.TextError
	var syntax *review.SyntaxError
	then := "when it is right"
	switch {
	case errors.As(err, &text):
		err = exit.Usagef("%s (card %s)", Fault(d.Path, text.Err), text.ID)
	case errors.As(err, &syntax):
		err = exit.Usagef("%s", Fault(d.Path, &card.Error{Line: syntax.Line, What: syntax.What}))
	case errors.As(err, new(*review.StaleError)):
		then = "once those cards are taken out of it; a new 'kb review' shows what they say now"
	}
	return d.WithPath(err, ": 'anamnesis kb review --apply %s' "+then)
}

// ReadReview reads the edited text of a review.
func (d Desk) ReadReview(file string) ([]byte, error) {
	doc, err := d.Read(file, knowledgebase.MaxChangeBytes)
	if err == nil && len(doc) > knowledgebase.MaxChangeBytes {
		err = fmt.Errorf("%s has more than %d bytes; review in parts", file, knowledgebase.MaxChangeBytes)
	}
	return doc, err
}

// Package consult asks a model a question: it declares the model, fills prompts and decodes
// replies.
package consult

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
)

// Model answers a text under a system text. An implementation returns promptly when ctx
// ends. It retries on faults of the network; callers ask again only to have an answer
// repaired.
type Model interface {
	Complete(ctx context.Context, system, text string) (Completion, error)
}

// Completion is a model's answer.
type Completion struct {
	Text  string
	Usage op.Usage // as the provider counts; zero when it does not say
}

// Fill puts values into a prompt and trims it. The pairs are a name and the value that
// replaces {{name}}. Fill does not look into values, so that braces in evidence stay.
func Fill(prompt string, pairs ...string) string {
	for i := 0; i < len(pairs); i += 2 {
		pairs[i] = "{{" + pairs[i] + "}}"
	}
	return strings.TrimSpace(strings.NewReplacer(pairs...).Replace(prompt))
}

// Object decodes the JSON object of a reply, from its first brace on, whatever text stands around it. The error
// says in a line why the reply cannot be used, in words for the model as well.
func Object(text string, maxBytes int, into any) error {
	first := strings.IndexByte(text, '{')
	switch {
	case len(text) > maxBytes:
		return fmt.Errorf("the reply has %d bytes, at most %d are read", len(text), maxBytes)
	case first < 0:
		return fmt.Errorf("the reply holds no JSON object: %q", quote.Clip(text, 100))
	}
	if err := json.NewDecoder(strings.NewReader(text[first:])).Decode(into); err != nil {
		return fmt.Errorf("the reply is not the JSON object asked for: %s", quote.Clip(quote.Squash(err.Error()), 200))
	}
	return nil
}
